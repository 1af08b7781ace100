import { useQuery } from '@tanstack/react-query'
import { Link, useParams, useSearch } from '@tanstack/react-router'
import { OPERATION_ENDS } from '../../shared/contracts/operations/graph.ts'
import { useTopic } from '../api/hooks.ts'
import type { HealthCheck, OperationRow, Resource } from '../api/types.ts'
import { meQuery } from '../queries/me.ts'
import { healthQuery, resourceOperationsQuery, resourceQuery } from '../queries/resources.ts'
import { Card } from '../ui/card.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { Failure, isRefusal, readOf, UnreadPage } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, DataTable, ListTable } from '../ui/table.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { OperationLink, ResourceLink } from '../values/links.tsx'
import { Health, OperationStatusMark } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ResourceHistory } from '../versions/history.tsx'
import { States } from '../versions/states.tsx'
import { tCatalog } from '../words/catalog.ts'
import { tOperation } from '../words/operation.ts'
import { tPlan } from '../words/plan.ts'
import { ResourceCapabilities } from './capabilities.tsx'
import { ResourceImpact } from './impact.tsx'
import { Managers } from './managers.tsx'
import { Relations } from './relations.tsx'
import { RollUp } from './roll-up.tsx'
import { TypeName } from './type-icon.tsx'

const TABS = ['overview', 'relations', 'impact', 'capabilities', 'operations', 'versions'] as const

/** One resource: its desired and observed state, its relations, and the operations that touched it. */
export const ResourcePage = () => {
  const { resource_id } = useParams({ from: '/shell/resources/$resource_id' })
  const { tab, view, version, against, assume } = useSearch({ from: '/shell/resources/$resource_id' })
  useTopic(`resource:${resource_id}`)
  const query = useQuery(resourceQuery(resource_id))
  const resource = readOf(query)
  const me = useQuery(meQuery()).data
  if (resource === undefined) return <UnreadPage title={resource_id} query={query} noun="resource" />
  return (
    <Page>
      <div className="flex flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <Heading title={resource.display_name || resource.name}>{resource.display_name || resource.name}</Heading>
          <Health health={resource.health_status} />
          {me?.permissions.includes('intent:create') ? (
            <Link
              to="/new"
              search={{ kind: 'change', type: '', procedure: '', resource: resource_id }}
              className="button"
            >
              {tPlan.intent.change}
            </Link>
          ) : null}
        </div>
        <p>
          {tCatalog.resource.sentence(
            capital(tCatalog.resources.lifecycles[resource.lifecycle_status] ?? resource.lifecycle_status),
            resource.drift.paths.length,
          )}
        </p>
        <Holders resource_id={resource_id} />
      </div>
      <Tabs label={tCatalog.resource.tabs_label}>
        {TABS.map((choice) => (
          <Link
            key={choice}
            to="/resources/$resource_id"
            params={{ resource_id }}
            search={{ tab: choice, ...(view ? { view } : {}) }}
            aria-current={choice === tab ? 'page' : undefined}
          >
            {tCatalog.resource.tabs[choice]}
          </Link>
        ))}
      </Tabs>
      {tab === 'overview' ? <Overview resource={resource} /> : null}
      {tab === 'relations' ? <Relations resource={resource} view={view} /> : null}
      {tab === 'impact' ? <ResourceImpact resource={resource} view={view} asked={assume} /> : null}
      {tab === 'capabilities' ? <ResourceCapabilities resource_id={resource_id} /> : null}
      {tab === 'operations' ? <Operations resource_id={resource_id} /> : null}
      {tab === 'versions' ? <ResourceHistory resource={resource} version={version} against={against} /> : null}
    </Page>
  )
}

/** Operations that hold this resource, from their start to their end. */
const Holders = ({ resource_id }: { resource_id: string }) => {
  const { data, isError, error, refetch } = useQuery(resourceOperationsQuery(resource_id))
  const holders = data?.items.filter(({ status }) => !ENDED.has(status) && status !== 'queued') ?? []
  if (isError && !isRefusal(error)) return <Failure error={error} retry={() => void refetch()} />
  return holders.map(({ operation_id, title, status, blocked_on }) => (
    <p key={operation_id} className="flex flex-wrap items-center gap-2">
      {tCatalog.resource.held_by} <OperationLink id={operation_id}>{title}</OperationLink>
      <OperationStatusMark status={status} blockedOn={blocked_on} />
    </p>
  ))
}
const ENDED: ReadonlySet<string> = new Set(OPERATION_ENDS)

const Overview = ({ resource }: { resource: Resource }) => (
  <div className="grid items-start gap-4 md:grid-cols-[minmax(0,1fr)_320px]">
    <div className="flex min-w-0 flex-col gap-4">
      <Card
        title={tCatalog.resource.states}
        className="overflow-x-auto"
        note={
          <>
            {tCatalog.resource.recorded(resource.version)} <TimeText at={resource.updated_at} form="both" />
          </>
        }
      >
        <States resource={resource} />
      </Card>
      <RollUp resource_id={resource.resource_id} />
      <Checks resource_id={resource.resource_id} />
      <Managers resource_id={resource.resource_id} />
    </div>
    <Card title={tCatalog.resource.facts}>
      <dl className="facts p-4">
        <dt>{tCatalog.resources.type}</dt>
        <dd className="mono">
          <TypeName type_key={resource.type_key} />
        </dd>
        <dt>{tCatalog.resource.id}</dt>
        <dd className="flex items-center gap-1">
          <code>{resource.resource_id}</code> <CopyButton text={resource.resource_id} />
        </dd>
        <dt>{tCatalog.resource.version}</dt>
        <dd>{resource.version}</dd>
        <Containers resource={resource} />
        {resource.owner ? (
          <>
            <dt>{tCatalog.resource.owner}</dt>
            <dd>{resource.owner}</dd>
          </>
        ) : null}
        {Object.keys(resource.labels).length > 0 ? (
          <>
            <dt>{tCatalog.resource.labels}</dt>
            <dd className="flex flex-col">
              {Object.entries(resource.labels).map(([key, value]) => (
                <code key={key}>
                  {key}={value}
                </code>
              ))}
            </dd>
          </>
        ) : null}
        <dt>{tCatalog.resource.updated}</dt>
        <dd>
          <TimeText at={resource.updated_at} form="both" />
        </dd>
        {resource.last_operation ? (
          <>
            <dt>{tCatalog.resources.last_operation}</dt>
            <dd>
              <OperationLink id={resource.last_operation.operation_id}>
                <TimeText at={resource.last_operation.at} form="both" />
              </OperationLink>
            </dd>
          </>
        ) : null}
      </dl>
    </Card>
  </div>
)

/** Where a resource is: its places from the region down, and what it is in if that is no place. */
const Containers = ({ resource: { resource_id, scope, parent_id } }: { resource: Resource }) => {
  const levels = [scope.region_id, scope.datacenter_id, scope.layer_id, scope.segment_id]
  const places = levels.filter((id) => id !== null).filter((id) => id !== resource_id)
  return (
    <>
      {places.length > 0 ? (
        <>
          <dt>{tCatalog.resources.place}</dt>
          <dd>
            {places.map((id, at) => (
              <span key={id}>
                {at > 0 ? ' / ' : null}
                <ResourceLink id={id} />
              </span>
            ))}
          </dd>
        </>
      ) : null}
      {parent_id !== null && !places.includes(parent_id) ? (
        <>
          <dt>{tCatalog.resource.container}</dt>
          <dd>
            <ResourceLink id={parent_id} />
          </dd>
        </>
      ) : null}
    </>
  )
}

/** The checks that determine health, each with its message. Empty if the resource has no checks. */
const Checks = ({ resource_id }: { resource_id: string }) => {
  const { data, error, refetch } = useQuery(healthQuery(resource_id))
  if (error !== null && data === undefined) return <Failure error={error} retry={() => void refetch()} />
  if (data === undefined || data.checks.length === 0) return null
  return (
    <Card title={tCatalog.resource.checks}>
      <DataTable
        caption={tCatalog.resource.checks}
        columns={CHECKS}
        rows={data.checks}
        keyOf={({ source, check_key }) => `${source} ${check_key}`}
      />
    </Card>
  )
}

const CHECKS: Column<HealthCheck>[] = [
  {
    name: tCatalog.resource.check,
    kind: 'lead',
    cell: ({ source, check_key }) => (
      <>
        {check_key} <span className="text-muted">({source})</span>
      </>
    ),
  },
  { name: tCatalog.resources.health, cell: ({ status, expired }) => <Health health={expired ? 'unknown' : status} /> },
  { name: tCatalog.resource.says, className: 'wrap-anywhere', cell: ({ summary }) => summary },
  {
    name: tCatalog.resource.observed_at,
    className: 'whitespace-nowrap',
    cell: (check) => <TimeText at={check.observed_at} />,
  },
]

const Operations = ({ resource_id }: { resource_id: string }) => {
  const list = useQuery(resourceOperationsQuery(resource_id))
  return (
    <ListTable
      list={list}
      empty={tCatalog.resource.no_operations}
      caption={tCatalog.resource.tabs.operations}
      columns={OPERATIONS}
      keyOf="operation_id"
    />
  )
}

const OPERATIONS: Column<OperationRow>[] = [
  {
    name: tOperation.operations.operation,
    kind: 'lead',
    cell: (row) => (
      <OperationLink id={row.operation_id} data-row="">
        {row.title}
      </OperationLink>
    ),
  },
  {
    name: tOperation.operations.status,
    cell: (row) => <OperationStatusMark status={row.status} blockedOn={row.blocked_on} />,
  },
  { name: tOperation.operations.started, cell: (row) => (row.started_at ? <TimeText at={row.started_at} /> : null) },
]

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
