import { useQuery } from '@tanstack/react-query'
import { Link, useParams, useSearch } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import { relationsQuery, resourceOperationsQuery, resourceQuery } from '../api/queries.ts'
import type { Resource } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { CopyButton } from '../parts/copy.tsx'
import { valueText } from '../parts/diff-view.tsx'
import { Failure } from '../parts/failure.tsx'
import { Empty, Heading, Loading, Page } from '../parts/page.tsx'
import { Health, Status } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

const TABS = ['overview', 'relations', 'operations'] as const

/** One resource: what should be, what is, what it stands in relation to, and which operations touched it. */
export const ResourcePage = () => {
  const { resource_id } = useParams({ from: '/shell/resources/$resource_id' })
  const { tab } = useSearch({ from: '/shell/resources/$resource_id' })
  useTopic(`resource:${resource_id}`)
  const { data: resource, error, isPending, refetch } = useQuery(resourceQuery(resource_id))
  if (resource === undefined) {
    return (
      <Page>
        <Heading title={resource_id}>{resource_id}</Heading>
        {isPending ? <Loading /> : <Failure error={error} retry={() => void refetch()} noun={t.noun.resource} />}
      </Page>
    )
  }
  return (
    <Page>
      <div className="flex flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <Heading title={resource.display_name || resource.name}>{resource.display_name || resource.name}</Heading>
          <Health health={resource.health_status} />
        </div>
        <p>
          {t.resource.sentence(
            capital(resource.lifecycle_status),
            (t.health[resource.health_status] ?? resource.health_status).toLowerCase(),
            resource.drift.paths.length,
          )}
        </p>
      </div>
      <nav className="tabs" aria-label={t.resource.tabs_label}>
        {TABS.map((choice) => (
          <Link
            key={choice}
            to="/resources/$resource_id"
            params={{ resource_id }}
            search={{ tab: choice }}
            aria-current={choice === tab ? 'page' : undefined}
          >
            {t.resource.tabs[choice]}
          </Link>
        ))}
      </nav>
      {tab === 'overview' ? <Overview resource={resource} /> : null}
      {tab === 'relations' ? <Relations resource_id={resource_id} /> : null}
      {tab === 'operations' ? <Operations resource_id={resource_id} /> : null}
    </Page>
  )
}

const Overview = ({ resource }: { resource: Resource }) => (
  <div className="grid items-start gap-4 md:grid-cols-[minmax(0,1fr)_320px]">
    <section className="card overflow-x-auto" aria-labelledby="states">
      <h2 id="states" className="card-head card-title">
        {t.resource.states}
      </h2>
      <States resource={resource} />
    </section>
    <section className="card" aria-labelledby="facts">
      <h2 id="facts" className="card-head card-title">
        {t.resource.facts}
      </h2>
      <dl className="facts p-4">
        <dt>{t.resources.type}</dt>
        <dd className="mono">{resource.type_key}</dd>
        <dt>{t.resource.id}</dt>
        <dd className="flex items-center gap-1">
          <code>{resource.resource_id}</code> <CopyButton text={resource.resource_id} />
        </dd>
        <dt>{t.resource.version}</dt>
        <dd>{resource.version}</dd>
        {resource.owner ? (
          <>
            <dt>{t.resource.owner}</dt>
            <dd>{resource.owner}</dd>
          </>
        ) : null}
        {Object.entries(resource.labels).map(([key, value]) => (
          <div key={key} className="contents">
            <dt className="mono">{key}</dt>
            <dd className="mono">{value}</dd>
          </div>
        ))}
        <dt>{t.resource.updated}</dt>
        <dd>
          <TimeText at={resource.updated_at} form="both" />
        </dd>
        {resource.last_operation ? (
          <>
            <dt>{t.resources.last_operation}</dt>
            <dd>
              <Link
                to="/operations/$operation_id/graph"
                params={{ operation_id: resource.last_operation.operation_id }}
              >
                <TimeText at={resource.last_operation.at} form="both" />
              </Link>
            </dd>
          </>
        ) : null}
      </dl>
    </section>
  </div>
)

/** Desired and observed side by side; what drifted, by the server's word, comes first. */
const States = ({ resource }: { resource: Resource }) => {
  const { desired_state, observed_state } = resource
  const drifted = new Set(resource.drift.paths.map((path) => path.replace(/^\/(desired_state\/)?/, '').split('/')[0]))
  const fields = [...new Set([...Object.keys(desired_state), ...Object.keys(observed_state)])].sort(
    (a, b) => Number(drifted.has(b)) - Number(drifted.has(a)) || a.localeCompare(b),
  )
  if (fields.length === 0) return <Empty>{t.resource.no_state}</Empty>
  return (
    <table className="table">
      <caption className="sr-only">{t.resource.states}</caption>
      <thead>
        <tr>
          <th scope="col">{t.resource.field}</th>
          <th scope="col">{t.resource.desired}</th>
          <th scope="col">{t.resource.observed}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={field}>
            <th scope="row" className="mono font-normal text-text">
              {field}
              {drifted.has(field) ? <span className="badge tone-wait ml-2">{t.resource.differs}</span> : null}
            </th>
            <td className="mono wrap-anywhere">{field in desired_state ? valueText(desired_state[field]) : ''}</td>
            <td className="mono wrap-anywhere">{field in observed_state ? valueText(observed_state[field]) : ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const Relations = ({ resource_id }: { resource_id: string }) => {
  const { data, error, isPending, refetch } = useQuery(relationsQuery(resource_id))
  if (isPending) return <Loading />
  if (data === undefined) return <Failure error={error} retry={() => void refetch()} />
  return (
    <div className="card overflow-x-auto">
      {data.items.length === 0 ? (
        <Empty>{t.resource.no_relations}</Empty>
      ) : (
        <table className="table cards">
          <caption className="sr-only">{t.resource.tabs.relations}</caption>
          <thead>
            <tr>
              <th scope="col">{t.resource.relation}</th>
              <th scope="col">{t.resource.peer}</th>
              <th scope="col">{t.resources.type}</th>
              <th scope="col">{t.resources.health}</th>
            </tr>
          </thead>
          <tbody>
            {data.items.map(({ relationship, direction, peer }) => (
              <tr key={relationship.relationship_id}>
                <td data-label={t.resource.relation}>
                  {relationship.type_key.replaceAll('_', ' ')} ({t.resource[direction]})
                </td>
                <td className="lead" data-label={t.resource.peer}>
                  <Link
                    to="/resources/$resource_id"
                    params={{ resource_id: peer.resource_id }}
                    search={{ tab: 'overview' }}
                    data-row=""
                  >
                    {peer.name}
                  </Link>
                </td>
                <td data-label={t.resources.type} className="mono">
                  {peer.type_key}
                </td>
                <td data-label={t.resources.health}>
                  <Health health={peer.health_status} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}

const Operations = ({ resource_id }: { resource_id: string }) => {
  const { data, error, isPending, refetch } = useQuery(resourceOperationsQuery(resource_id))
  if (isPending) return <Loading />
  if (data === undefined) return <Failure error={error} retry={() => void refetch()} />
  return (
    <div className="card overflow-x-auto">
      {data.items.length === 0 ? (
        <Empty>{t.resource.no_operations}</Empty>
      ) : (
        <table className="table cards">
          <caption className="sr-only">{t.resource.tabs.operations}</caption>
          <thead>
            <tr>
              <th scope="col">{t.operations.operation}</th>
              <th scope="col">{t.operations.status}</th>
              <th scope="col">{t.operations.started}</th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((row) => (
              <tr key={row.operation_id}>
                <td className="lead" data-label={t.operations.operation}>
                  <Link to="/operations/$operation_id/graph" params={{ operation_id: row.operation_id }} data-row="">
                    {row.title}
                  </Link>
                </td>
                <td data-label={t.operations.status}>
                  <Status state={row.status} />
                </td>
                <td data-label={t.operations.started}>{row.started_at ? <TimeText at={row.started_at} /> : ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
