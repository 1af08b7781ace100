import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId } from 'react'
import { coarse } from '../api/format.ts'
import { useTopic } from '../api/hooks.ts'
import { resourcesQuery } from '../api/queries.ts'
import type { ResourceRow } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { Failure } from '../parts/failure.tsx'
import { Empty, Heading, Loading, Page } from '../parts/page.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { Health } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

const BEHIND_MS = 10_000

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
          <Link to="/resources" search={{ type: '', region: '', health: '', q: '' }} className="button quiet">
            {t.operations.clear}
          </Link>
        ) : null}
      </div>
      {list.isPending ? <Loading /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.isSuccess && rows.length === 0 ? (
        <div className="card">
          {filtered ? (
            <Empty>{t.resources.no_match}</Empty>
          ) : (
            <Empty next={<p>{t.resources.empty_hint}</p>}>{t.resources.empty}</Empty>
          )}
        </div>
      ) : null}
      {rows.length > 0 ? (
        <div className="card overflow-x-auto">
          <Table rows={rows} />
        </div>
      ) : null}
      {list.hasNextPage ? (
        <p className="text-center">
          <button
            type="button"
            className="button"
            onClick={() => void list.fetchNextPage()}
            aria-disabled={list.isFetchingNextPage}
          >
            {list.isFetchingNextPage ? t.loading : t.more}
          </button>
        </p>
      ) : null}
    </Page>
  )
}

const Table = ({ rows }: { rows: ResourceRow[] }) => (
  <table className="table cards">
    <caption className="sr-only">{t.resources.caption}</caption>
    <thead>
      <tr>
        <th scope="col">{t.resources.name}</th>
        <th scope="col">{t.resources.type}</th>
        <th scope="col">{t.resources.health}</th>
        <th scope="col">{t.resources.lifecycle}</th>
        <th scope="col">{t.resources.drift}</th>
        <th scope="col">{t.resources.place}</th>
        <th scope="col">{t.resources.last_operation}</th>
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr key={row.resource_id}>
          <td className="lead" data-label={t.resources.name}>
            <Link
              to="/resources/$resource_id"
              params={{ resource_id: row.resource_id }}
              search={{ tab: 'overview' }}
              data-row=""
              className="font-medium wrap-anywhere"
            >
              {row.display_name || row.name}
            </Link>
          </td>
          <td data-label={t.resources.type} className="mono">
            {row.type_key}
          </td>
          <td data-label={t.resources.health}>
            <Health health={row.health_status} />
          </td>
          <td data-label={t.resources.lifecycle}>{row.lifecycle_status}</td>
          <td data-label={t.resources.drift}>{t.resources.drifts[row.drift.status]}</td>
          <td data-label={t.resources.place}>
            {[row.scope.region_id, row.scope.datacenter_id].filter((place) => place !== null).join(' / ')}
          </td>
          <td data-label={t.resources.last_operation} className="whitespace-nowrap">
            {row.last_operation ? (
              <Link to="/operations/$operation_id/graph" params={{ operation_id: row.last_operation.operation_id }}>
                <TimeText at={row.last_operation.at} />
              </Link>
            ) : (
              ''
            )}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
