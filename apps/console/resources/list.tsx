import { keepPreviousData, type UseQueryResult, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { FoundResource, ResourceRow, SearchResult } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { Filter } from '../forms/select.tsx'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { resourcesPage, resourcesQuery, searchQuery, typesQuery } from '../queries/resources.ts'
import { placesQuery } from '../queries/topology.ts'
import { Export, type Fields } from '../ui/export.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { LongTable } from '../ui/window.tsx'
import { Behind } from '../values/behind.tsx'
import { isWords } from '../values/filter.ts'
import { NewLink, OperationLink } from '../values/links.tsx'
import { Health } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { ViewsRow } from '../views/row.tsx'
import { tCatalog } from '../words/catalog.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { NAME, PLACE } from './columns.tsx'
import { TypeName } from './type-icon.tsx'

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
  const list = useInfiniteQuery({ ...resourcesQuery({ ...wanted, counted: true }), enabled: !words })
  const found = useQuery({ ...searchQuery(wanted), enabled: words, placeholderData: keepPreviousData })
  useTopic('resources')
  const { sort, ...filters } = find
  const filtered = Object.values(filters).some((value) => value !== '' && value !== undefined)
  const set = (change: Partial<typeof find>, replace = false) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace })
  const columns = useMemo(
    () => sortable(sort, (next) => void navigate({ search: (before) => ({ ...before, sort: next ?? '' }) })),
    [sort, navigate],
  )
  return (
    <Page>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Heading title={tCatalog.resources.title}>{tCatalog.resources.title}</Heading>
        <NewLink />
      </div>
      <Behind replies={[words ? found.data : list.data?.pages[0]]} />
      <div className="flex flex-wrap items-center gap-3">
        <SearchField label={tCatalog.resources.search} value={find.q} search={(q, replace) => set({ q }, replace)} />
        <Filters find={find} set={set} />
        {filtered ? CLEAR : null}
      </div>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <ViewsRow list="resources" />
        {words ? null : <Total list={list} />}
        <Export<FoundResource | ResourceRow>
          name="resources"
          read={words ? async () => ({ items: [], ...found.data, next_page_token: null }) : resourcesPage(wanted)}
          off={words && (found.data === undefined || found.isPlaceholderData)}
          fields={FIELDS}
        />
      </div>
      {words ? <FoundTable found={found} /> : null}
      {words ? null : (
        <ListTable
          list={list}
          empty={filtered ? tCatalog.resources.no_match : tCatalog.resources.empty}
          next={filtered ? CLEAR : <p>{tCatalog.resources.empty_hint}</p>}
          caption={tCatalog.resources.caption}
          className="two-line"
          columns={columns}
          keyOf="resource_id"
          draw={LongTable}
        />
      )}
    </Page>
  )
}

type Find = { type: string; region: string; health: string; lifecycle?: string; drift?: string }

/** Filters with known values. */
const Filters = ({ find, set }: { find: Find; set: (change: Partial<Find>) => void }) => {
  const types = useQuery(typesQuery()).data?.items ?? []
  const places = useInfiniteQuery(placesQuery('regions', {}))
  useAllPages(places)
  const named = (values: readonly string[], chosen: string) =>
    [...new Set([...(chosen ? [chosen] : []), ...values])].map((value) => [value, value] as const)
  const words = tCatalog.resources
  const any = ['', words.any] as const
  return (
    <div className="filters">
      <Filter
        label={words.type}
        choices={[any, ...named(types.map(({ type_key }) => type_key).sort(), find.type)]}
        value={find.type}
        change={(type) => set({ type })}
      />
      <Filter
        label={words.region}
        choices={[
          any,
          ...named(
            rowsOf(places)
              .map(({ resource_id }) => resource_id)
              .sort(),
            find.region,
          ),
        ]}
        value={find.region}
        change={(region) => set({ region })}
      />
      <Filter
        label={words.health_filter}
        choices={[any, ...Object.entries(t.health)]}
        value={find.health}
        change={(health) => set({ health })}
      />
      <Filter
        label={words.lifecycle}
        choices={[any, ...Object.entries(words.lifecycles)]}
        value={find.lifecycle ?? ''}
        change={(lifecycle) => set({ lifecycle })}
      />
      <Filter
        label={words.drift}
        choices={[any, ...Object.entries(words.drifts)]}
        value={find.drift ?? ''}
        change={(drift) => set({ drift })}
      />
    </div>
  )
}

/** How many resources match, as far as the catalog counts. */
const Total = ({
  list,
}: {
  list: { data: { pages: { count?: { value: number; relation: string } }[] } | undefined }
}) => {
  const count = list.data?.pages[0]?.count
  return count === undefined ? null : (
    <p role="status" className="text-muted">
      {tCatalog.resources.total(count.value, count.relation === 'gte')}
    </p>
  )
}

const TYPE: Column<Pick<ResourceRow, 'type_key'>> = {
  name: tCatalog.resources.type,
  className: 'mono',
  cell: ({ type_key }) => <TypeName type_key={type_key} />,
}

/** The results of a search, best first, with the fields that contain the words. */
const FoundTable = ({ found }: { found: UseQueryResult<SearchResult> }) => (
  <>
    <ListTable
      list={found}
      empty={tCatalog.resources.no_match}
      next={CLEAR}
      caption={tCatalog.resources.found}
      columns={FOUND}
      keyOf="resource_id"
    />
    {found.data?.more ? <p className="text-muted">{tCatalog.resources.more_match(found.data.items.length)}</p> : null}
  </>
)

const FOUND: Column<FoundResource>[] = [
  NAME,
  { name: tCatalog.resources.found_in, cell: ({ matched }) => tCatalog.resources.found_fields(matched) },
  TYPE,
  { name: tCatalog.resources.health, cell: (row) => <Health health={row.health_status} /> },
  {
    name: tCatalog.resources.lifecycle,
    cell: (row) => tCatalog.resources.lifecycles[row.lifecycle_status] ?? row.lifecycle_status,
  },
  { name: tCatalog.resources.owner, cell: (row) => row.owner },
  PLACE,
]

/** The results of a search have no drift and no operation. */
const FIELDS: Fields<FoundResource | ResourceRow> = {
  resource_id: (row) => row.resource_id,
  name: (row) => row.name,
  display_name: (row) => row.display_name,
  type: (row) => row.type_key,
  owner: (row) => row.owner,
  region: (row) => row.scope.region_id,
  datacenter: (row) => row.scope.datacenter_id,
  segment: (row) => row.scope.segment_id,
  health: (row) => row.health_status,
  lifecycle: (row) => row.lifecycle_status,
  drift: (row) => ('drift' in row ? row.drift.status : null),
  last_operation_id: (row) => ('last_operation' in row ? row.last_operation?.operation_id : null),
  updated_at: (row) => ('updated_at' in row ? row.updated_at : null),
}

/** The columns, whose heads sort the rows: ascending, descending, and unsorted. Health begins with the worst. */
const sortable = (sort: string | undefined, order: (sort: string | undefined) => void): Column<ResourceRow>[] =>
  COLUMNS.map(({ by, ...column }) => {
    if (by === undefined) return column
    const [one, other] = by === 'health_status' ? [`-${by}`, by] : [by, `-${by}`]
    return {
      ...column,
      sort: {
        now: sort === by ? 'ascending' : sort === `-${by}` ? 'descending' : undefined,
        press: () => order(sort === one ? other : sort === other ? undefined : one),
      },
    }
  })

const COLUMNS: (Column<ResourceRow> & { by?: string })[] = [
  { ...NAME, by: 'name' },
  { ...TYPE, by: 'type_key', className: 'mono second' },
  { name: tCatalog.resources.health, by: 'health_status', cell: (row) => <Health health={row.health_status} /> },
  {
    name: tCatalog.resources.lifecycle,
    by: 'lifecycle_status',
    className: 'more',
    cell: (row) => tCatalog.resources.lifecycles[row.lifecycle_status] ?? row.lifecycle_status,
  },
  { name: tCatalog.resources.drift, className: 'more', cell: (row) => tCatalog.resources.drifts[row.drift.status] },
  { ...PLACE, className: 'second' },
  {
    name: tCatalog.resources.last_operation,
    className: 'whitespace-nowrap more',
    cell: ({ last_operation }) =>
      last_operation ? (
        <OperationLink id={last_operation.operation_id}>
          <TimeText at={last_operation.at} />
        </OperationLink>
      ) : null,
  },
]
