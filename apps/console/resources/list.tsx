import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { ResourceRow } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { coarse } from '../kit/format.ts'
import { resourcesQuery } from '../queries/resources.ts'
import { Empty, Heading, Page } from '../ui/page.tsx'
import { Health } from '../ui/status.tsx'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { TimeText } from '../ui/time.tsx'
import { tCatalog } from '../words/catalog.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { TypeName } from './type-icon.tsx'

const BEHIND_MS = 10_000
const ALL = { type: '', region: '', health: '', q: '' }

export const ResourcesPage = () => {
  const find = useSearch({ from: '/shell/resources' })
  const navigate = useNavigate({ from: '/resources' })
  const list = useInfiniteQuery(resourcesQuery({ ...find, health: find.health ? [find.health] : [] }))
  const healthId = useId()
  useTopic('resources')
  const rows = list.data?.pages.flatMap((page) => page.items) ?? []
  const behind = list.data?.pages[0]?.as_of?.lag_ms ?? 0
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
        <div className="flex items-center gap-2">
          <label htmlFor={healthId}>{tCatalog.resources.health_filter}</label>
          <select
            id={healthId}
            className="input"
            value={find.health}
            onChange={(event) =>
              void navigate({ search: (before) => ({ ...before, health: event.target.value }), replace: true })
            }
          >
            <option value="">{tCatalog.resources.any}</option>
            {Object.entries(t.health).map(([health, word]) => (
              <option key={health} value={health}>
                {word}
              </option>
            ))}
          </select>
        </div>
        {filtered ? (
          <Link to="/resources" search={ALL} className="button quiet">
            {tOperation.operations.clear}
          </Link>
        ) : null}
      </div>
      <Listing list={list} empty={rows.length === 0 ? <NothingHere filtered={filtered} /> : undefined}>
        <DataTable
          caption={tCatalog.resources.caption}
          columns={COLUMNS}
          rows={rows}
          keyOf={({ resource_id }) => resource_id}
        />
      </Listing>
    </Page>
  )
}

const NothingHere = ({ filtered }: { filtered: boolean }) =>
  filtered ? (
    <Empty
      next={
        <Link to="/resources" search={ALL} className="button">
          {tOperation.operations.clear}
        </Link>
      }
    >
      {tCatalog.resources.no_match}
    </Empty>
  ) : (
    <Empty next={<p>{tCatalog.resources.empty_hint}</p>}>{tCatalog.resources.empty}</Empty>
  )

const COLUMNS: Column<ResourceRow>[] = [
  {
    name: tCatalog.resources.name,
    kind: 'lead',
    cell: (row) => (
      <Link
        to="/resources/$resource_id"
        params={{ resource_id: row.resource_id }}
        search={{ tab: 'overview' }}
        data-row=""
        className="font-medium wrap-anywhere"
      >
        {row.display_name || row.name}
      </Link>
    ),
  },
  { name: tCatalog.resources.type, className: 'mono', cell: (row) => <TypeName type_key={row.type_key} /> },
  { name: tCatalog.resources.health, cell: (row) => <Health health={row.health_status} /> },
  { name: tCatalog.resources.lifecycle, cell: (row) => row.lifecycle_status },
  { name: tCatalog.resources.drift, cell: (row) => tCatalog.resources.drifts[row.drift.status] },
  {
    name: tCatalog.resources.place,
    cell: ({ scope }) => [scope.region_id, scope.datacenter_id].filter((place) => place !== null).join(' / '),
  },
  {
    name: tCatalog.resources.last_operation,
    className: 'whitespace-nowrap',
    cell: ({ last_operation }) =>
      last_operation ? (
        <Link to="/operations/$operation_id/graph" params={{ operation_id: last_operation.operation_id }}>
          <TimeText at={last_operation.at} />
        </Link>
      ) : null,
  },
]
