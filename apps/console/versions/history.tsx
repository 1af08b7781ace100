import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { Resource, VersionRow } from '../api/types.ts'
import { Filter } from '../forms/select.tsx'
import { shortId } from '../kit/format.ts'
import { rowsOf } from '../queries/pages.ts'
import { versionQuery, versionsQuery } from '../queries/resources.ts'
import { Card } from '../ui/card.tsx'
import { Failure } from '../ui/failure.tsx'
import { Loading } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { FieldDiffs } from '../values/diff.tsx'
import { OperationLink } from '../values/links.tsx'
import { TimeText } from '../values/time.tsx'
import { tCatalog } from '../words/catalog.ts'
import { differencesOf, worded } from './differences.ts'
import { States } from './states.tsx'

const words = tCatalog.resource.versions
const PATHS = 4

type Props = { resource: Resource; version: number | undefined; against: number | undefined }

/** Who changed the resource, when and by which operation; shows one version beside any other. */
export const ResourceHistory = ({ resource, version, against }: Props) => {
  const { resource_id } = resource
  const list = useInfiniteQuery(versionsQuery(resource_id))
  const rows = rowsOf(list)
  return (
    <>
      {version === undefined ? null : (
        <Compared key={version} {...{ resource_id, version, rows }} against={against ?? version - 1} />
      )}
      <ListTable
        list={list}
        empty={null}
        caption={words.caption}
        columns={columnsOf(resource_id, version)}
        rows={rows}
        keyOf="version"
      />
    </>
  )
}

type ComparedProps = { resource_id: string; version: number; against: number; rows: VersionRow[] }

/** The changes from one version to another, and the resulting state. */
const Compared = ({ resource_id, version, against, rows }: ComparedProps) => {
  const navigate = useNavigate({ from: '/resources/$resource_id' })
  const then = useQuery(versionQuery(resource_id, version))
  const other = useQuery({ ...versionQuery(resource_id, against), enabled: against > 0 })
  const choose = (value: string) =>
    void navigate({
      search: (before) => ({ ...before, tab: 'versions', version, against: Number(value) }),
      resetScroll: false,
    })
  const others = rows.filter((row) => row.version !== version).map((row) => row.version)
  const known = others.includes(against) || against === 0 ? others : [against, ...others]
  const failed = [then, other].find(({ isError }) => isError)
  return (
    <>
      <Card
        title={words.title(version)}
        aside={
          against > 0 ? (
            <Filter
              label={words.against}
              choices={known.map((one) => [one, one === version - 1 ? words.before : words.nth(one)])}
              value={against}
              change={choose}
            />
          ) : (
            <p className="text-table text-muted">{words.first}</p>
          )
        }
      >
        <div className="p-4">
          {failed ? <Failure error={failed.error} retry={() => void failed.refetch()} /> : null}
          {then.data && (against === 0 || other.data) ? (
            <Differences fields={differencesOf(other.data, then.data)} />
          ) : failed ? null : (
            <Loading rows={1} />
          )}
        </div>
      </Card>
      {then.data ? (
        <Card title={words.state(version)} className="overflow-x-auto">
          <States resource={then.data} />
        </Card>
      ) : null}
    </>
  )
}

const Differences = ({ fields }: { fields: ReturnType<typeof differencesOf> }) =>
  fields.length === 0 ? (
    <p className="text-muted">{words.same}</p>
  ) : (
    <FieldDiffs fields={fields.map((field) => ({ ...field, path: worded(field.path) }))} />
  )

const columnsOf = (resource_id: string, shown: number | undefined): Column<VersionRow>[] => [
  {
    name: tCatalog.resource.version,
    kind: 'lead',
    cell: ({ version }) => (
      <Link
        to="/resources/$resource_id"
        params={{ resource_id }}
        search={{ tab: 'versions', version }}
        aria-current={version === shown ? 'true' : undefined}
        resetScroll={false}
        data-row=""
      >
        {words.title(version)}
      </Link>
    ),
  },
  { name: words.when, className: 'whitespace-nowrap', cell: ({ at }) => <TimeText at={at} form="both" /> },
  {
    name: words.who,
    className: 'wrap-anywhere',
    cell: ({ actor, actor_name }) => <bdi title={actor}>{actor_name}</bdi>,
  },
  {
    name: words.operation,
    cell: ({ operation_id }) =>
      operation_id === null ? null : <OperationLink id={operation_id}>{shortId(operation_id)}</OperationLink>,
  },
  {
    name: words.changed,
    className: 'wrap-anywhere',
    cell: ({ version, changed_paths }) =>
      version === 1 ? (
        words.created
      ) : (
        <>
          <code>{changed_paths.slice(0, PATHS).map(shortPath).join(', ')}</code>
          {changed_paths.length > PATHS ? ` ${words.more(changed_paths.length - PATHS)}` : null}
        </>
      ),
  },
]

const shortPath = (path: string): string => worded(path).slice(1).replaceAll('/', '.')
