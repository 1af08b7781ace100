import { keepPreviousData, type UseQueryResult, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTopic } from '../api/hooks.ts'
import type { FoundResource, ResourceRow, SearchResult } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { Filter } from '../forms/select.tsx'
import { coarse } from '../kit/format.ts'
import { rowsOf } from '../queries/pages.ts'
import { isWords, resourcesQuery, searchQuery } from '../queries/resources.ts'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { OperationLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ViewsRow } from '../views/row.tsx'
import { tCatalog } from '../words/catalog.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { NAME, PLACE } from './columns.tsx'
import { TypeName } from './type-icon.tsx'

const BEHIND_MS = 10_000
const CLEAR = (
  <Link to="/resources" search={{ type: '', region: '', health: '', q: '' }} className="button quiet">
    {tOperation.operations.clear}
  </Link>
)

export const ResourcesPage = () => {
  const find = useSearch({ from: '/shell/resources' })
  const navigate = useNavigate({ from: '/resources' })
  const wanted = { ...find, health: find.health ? [find.health] : [] }
  const words = isWords(find.q)
  const list = useInfiniteQuery({ ...resourcesQuery(wanted), enabled: !words })
  const found = useQuery({ ...searchQuery(wanted), enabled: words, placeholderData: keepPreviousData })
  useTopic('resources')
  const behind = (words ? found.data : list.data?.pages[0])?.as_of.lag_ms ?? 0
  const filtered = Object.values(find).some((value) => value !== '')
  return (
    <Page>
      <Heading title={tCatalog.resources.title}>{tCatalog.resources.title}</Heading>
      {behind > BEHIND_MS ? <p className="text-wait">{tCatalog.resources.behind(coarse(behind))}</p> : null}
      <div className="flex flex-wrap items-center gap-3">
        <SearchField
          label={tCatalog.resources.search}
          value={find.q}
          search={(q) => void navigate({ search: (before) => ({ ...before, q }), replace: true })}
        />
        <Filter
          label={tCatalog.resources.health_filter}
          choices={[['', tCatalog.resources.any], ...Object.entries(t.health)]}
          value={find.health}
          change={(health) => void navigate({ search: (before) => ({ ...before, health }), replace: true })}
        />
        {filtered ? CLEAR : null}
      </div>
      <ViewsRow list="resources" />
      {words ? <FoundTable found={found} /> : null}
      {words ? null : (
        <ListTable
          list={list}
          empty={filtered ? tCatalog.resources.no_match : tCatalog.resources.empty}
          next={filtered ? CLEAR : <p>{tCatalog.resources.empty_hint}</p>}
          caption={tCatalog.resources.caption}
          columns={COLUMNS}
          rows={rowsOf(list)}
          keyOf={({ resource_id }) => resource_id}
        />
      )}
    </Page>
  )
}

const TYPE: Column<Pick<ResourceRow, 'type_key'>> = {
  name: tCatalog.resources.type,
  className: 'mono',
  cell: ({ type_key }) => <TypeName type_key={type_key} />,
}

/** What search found, the best first, with the fields that hold the words. */
const FoundTable = ({ found }: { found: UseQueryResult<SearchResult> }) => (
  <>
    <ListTable
      list={found}
      empty={tCatalog.resources.no_match}
      next={CLEAR}
      caption={tCatalog.resources.found}
      columns={FOUND}
      rows={found.data?.items ?? []}
      keyOf={({ resource_id }) => resource_id}
    />
    {found.data?.more ? <p className="text-muted">{tCatalog.resources.more_match(found.data.items.length)}</p> : null}
  </>
)

const FOUND: Column<FoundResource>[] = [
  NAME,
  { name: tCatalog.resources.found_in, cell: ({ matched }) => tCatalog.resources.found_fields(matched) },
  TYPE,
  { name: tCatalog.resources.health, cell: (row) => <Health health={row.health_status} /> },
  { name: tCatalog.resources.lifecycle, cell: (row) => row.lifecycle_status },
  { name: tCatalog.resources.owner, cell: (row) => row.owner },
  PLACE,
]

const COLUMNS: Column<ResourceRow>[] = [
  NAME,
  TYPE,
  { name: tCatalog.resources.health, cell: (row) => <Health health={row.health_status} /> },
  { name: tCatalog.resources.lifecycle, cell: (row) => row.lifecycle_status },
  { name: tCatalog.resources.drift, cell: (row) => tCatalog.resources.drifts[row.drift.status] },
  PLACE,
  {
    name: tCatalog.resources.last_operation,
    className: 'whitespace-nowrap',
    cell: ({ last_operation }) =>
      last_operation ? (
        <OperationLink id={last_operation.operation_id}>
          <TimeText at={last_operation.at} />
        </OperationLink>
      ) : null,
  },
]
