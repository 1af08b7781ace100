import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { shortId } from '../api/format.ts'
import { useTopic } from '../api/hooks.ts'
import { type OperationsTab, operationsQuery } from '../api/queries.ts'
import type { OperationRow } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { CopyButton } from '../parts/copy.tsx'
import { Failure } from '../parts/failure.tsx'
import { Empty, Heading, Loading, Page } from '../parts/page.tsx'
import { Person } from '../parts/person.tsx'
import { ProgressBar } from '../parts/progress-bar.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { OperationStatusMark } from '../parts/status.tsx'
import { DurationText, TimeText } from '../parts/time-text.tsx'

const TABS: OperationsTab[] = ['running', 'waiting', 'failed', 'all']

export const OperationsPage = () => {
  const { tab, q } = useSearch({ from: '/shell/operations' })
  const navigate = useNavigate({ from: '/operations' })
  const list = useInfiniteQuery(operationsQuery(tab, q))
  useTopic('operations')
  const rows = list.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <Page>
      <Heading title={t.operations.title}>{t.operations.title}</Heading>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <nav className="choices" aria-label={t.operations.filter}>
          {TABS.map((choice) => (
            <Link
              key={choice}
              to="/operations"
              search={{ tab: choice, q }}
              aria-current={choice === tab ? 'page' : undefined}
            >
              {t.operations.tabs[choice]}
            </Link>
          ))}
        </nav>
        <SearchField
          label={t.operations.search}
          value={q}
          search={(text) => void navigate({ search: { tab, q: text }, replace: true })}
        />
      </div>
      {list.isPending ? <Loading /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.isSuccess && rows.length === 0 ? <NothingHere tab={tab} q={q} /> : null}
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

const NothingHere = ({ tab, q }: { tab: OperationsTab; q: string }) => (
  <div className="card">
    {q === '' ? (
      <Empty
        next={
          tab === 'all' ? (
            <code>{t.operations.demo}</code>
          ) : (
            <Link to="/operations" search={{ tab: 'all', q: '' }} className="button">
              {t.operations.see_all}
            </Link>
          )
        }
      >
        {t.operations.empty[tab]}
      </Empty>
    ) : (
      <Empty
        next={
          <Link to="/operations" search={{ tab, q: '' }} className="button">
            {t.operations.clear}
          </Link>
        }
      >
        {t.operations.no_match}
      </Empty>
    )}
  </div>
)

const Table = ({ rows }: { rows: OperationRow[] }) => (
  <table className="table cards">
    <caption className="sr-only">{t.operations.caption}</caption>
    <thead>
      <tr>
        <th scope="col">{t.operations.operation}</th>
        <th scope="col">{t.operations.status}</th>
        <th scope="col">{t.operations.progress}</th>
        <th scope="col">{t.operations.waiting_on}</th>
        <th scope="col">{t.operations.who}</th>
        <th scope="col">{t.operations.started}</th>
        <th scope="col" className="number">
          {t.operations.duration}
        </th>
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr key={row.operation_id}>
          <td className="lead" data-label={t.operations.operation}>
            <Link
              to="/operations/$operation_id/graph"
              params={{ operation_id: row.operation_id }}
              data-row=""
              className="text-body font-medium wrap-anywhere"
            >
              {row.title}
            </Link>
            <span className="flex items-center gap-1 text-muted">
              <code>{shortId(row.operation_id)}</code>
              <CopyButton text={row.operation_id} />
            </span>
          </td>
          <td data-label={t.operations.status} className="whitespace-nowrap">
            <OperationStatusMark status={row.status} blockedOn={row.blocked_on} />
          </td>
          <td data-label={t.operations.progress}>
            <div className="min-w-36">
              <ProgressBar progress={row.progress} status={row.status} blockedOn={row.blocked_on} />
            </div>
          </td>
          <td data-label={t.operations.waiting_on} className="max-w-56 wrap-anywhere">
            {row.blocked_on[0]?.message ?? ''}
          </td>
          <td data-label={t.operations.who}>
            <Person who={row.requester} />
          </td>
          <td data-label={t.operations.started} className="whitespace-nowrap">
            {row.started_at ? <TimeText at={row.started_at} /> : ''}
          </td>
          <td data-label={t.operations.duration} className="number whitespace-nowrap">
            <DurationText from={row.started_at} to={row.ended_at} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
