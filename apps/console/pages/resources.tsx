import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId } from 'react'
import { coarse } from '../api/format.ts'
import { useTopic } from '../api/hooks.ts'
import { resourcesQuery } from '../api/queries.ts'
import type { ResourceRow } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { type Column, DataTable, Listing } from '../parts/data-table.tsx'
import { Empty, Heading, Page } from '../parts/page.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { Health } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

const BEHIND_MS = 10_000
const ALL = { type: '', region: '', health: '', q: '' }

export const ResourcesPage = () => {
  const find = useSearch({ from: '/shell/resources' })
  const navigate = useNavigate({ from: '/resources' })
  const list = useInfiniteQuery(resourcesQuery(find))
  const healthId = useId()
  useTopic('resources')
  const rows = list.data?.pages.flatMap((page) => page.items) ?? []
  const behind = list.data?.pages[0]?.as_of?.lag_ms ?? 0
  const filtered = Object.values(find).some((value) => value !== '')
  return (
    <Page>
      <Heading title={t.resources.title}>{t.resources.title}</Heading>
      {behind > BEHIND_MS ? <p className="text-wait">{t.resources.behind(coarse(behind))}</p> : null}
      <div className="flex flex-wrap items-center gap-3">
        <SearchField
          label={t.resources.search}
          value={find.q}
          search={(q) => void navigate({ search: (before) => ({ ...before, q }), replace: true })}
        />
        <div className="flex items-center gap-2">
          <label htmlFor={healthId}>{t.resources.health_filter}</label>
          <select
            id={healthId}
            className="input"
            value={find.health}
            onChange={(event) =>
              void navigate({ search: (before) => ({ ...before, health: event.target.value }), replace: true })
            }
          >
            <option value="">{t.resources.any}</option>
            {Object.entries(t.health).map(([health, word]) => (
              <option key={health} value={health}>
                {word}
              </option>
            ))}
          </select>
        </div>
        {filtered ? (
          <Link to="/resources" search={ALL} className="button quiet">
            {t.operations.clear}
          </Link>
        ) : null}
      </div>
      <Listing list={list} empty={rows.length === 0 ? <NothingHere filtered={filtered} /> : undefined}>
        <DataTable
          caption={t.resources.caption}
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
          {t.operations.clear}
        </Link>
      }
    >
      {t.resources.no_match}
    </Empty>
  ) : (
    <Empty next={<p>{t.resources.empty_hint}</p>}>{t.resources.empty}</Empty>
  )

const COLUMNS: Column<ResourceRow>[] = [
  {
    name: t.resources.name,
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
  { name: t.resources.type, className: 'mono', cell: (row) => row.type_key },
  { name: t.resources.health, cell: (row) => <Health health={row.health_status} /> },
  { name: t.resources.lifecycle, cell: (row) => row.lifecycle_status },
  { name: t.resources.drift, cell: (row) => t.resources.drifts[row.drift.status] },
  {
    name: t.resources.place,
    cell: ({ scope }) => [scope.region_id, scope.datacenter_id].filter((place) => place !== null).join(' / '),
  },
  {
    name: t.resources.last_operation,
    className: 'whitespace-nowrap',
    cell: ({ last_operation }) =>
      last_operation ? (
        <Link to="/operations/$operation_id/graph" params={{ operation_id: last_operation.operation_id }}>
          <TimeText at={last_operation.at} />
        </Link>
      ) : null,
  },
]
