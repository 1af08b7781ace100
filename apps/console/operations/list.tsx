import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTopic } from '../api/hooks.ts'
import type { OperationRow } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { shortId, shortTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import type { OperationsSearch, OperationsTab } from '../queries/operations.ts'
import { rowsOf } from '../queries/pages.ts'
import { CopyButton } from '../ui/copy.tsx'
import { Export, type Fields } from '../ui/export.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { ProgressBar } from '../ui/progress.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { LongTable } from '../ui/window.tsx'
import { BlockedOn } from '../values/blocked.tsx'
import { NewLink, OperationLink } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { OperationStatusMark } from '../values/status.tsx'
import { DurationText, TimeText } from '../values/time.tsx'
import { ViewsRow } from '../views/row.tsx'
import { tOperation } from '../words/operation.ts'
import { isNarrowed, OperationFilters, operationsPage, operationsQuery, sinceOf } from './filters.tsx'
import { SelectBox, type Selection, SelectionBar, selectByKey, useSelection } from './selection.tsx'

const TABS: OperationsTab[] = ['running', 'waiting', 'failed', 'all']
/** Tabs that are only reachable by a link come last, and only while they are selected. */
const tabsWith = (tab: OperationsTab): OperationsTab[] => (TABS.includes(tab) ? TABS : [...TABS, tab])

export const OperationsPage = () => {
  const find = useSearch({ from: '/shell/operations' })
  const { tab, q } = find
  const navigate = useNavigate({ from: '/operations' })
  const since = useMemo(() => sinceOf(find.age), [find.age])
  const list = useInfiniteQuery(operationsQuery(find, since))
  const rows = rowsOf(list)
  const selection = useSelection(rows)
  const set = (change: Partial<OperationsSearch>, replace = false) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace })
  useTopic('operations')
  return (
    <Page>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Heading title={tOperation.operations.title}>{tOperation.operations.title}</Heading>
        <NewLink />
      </div>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <nav className="choices" aria-label={tOperation.operations.filter}>
          {tabsWith(tab).map((choice) => (
            <Link
              key={choice}
              to="/operations"
              search={{ ...find, tab: choice }}
              aria-current={choice === tab ? 'page' : undefined}
            >
              {tOperation.operations.tabs[choice]}
            </Link>
          ))}
        </nav>
        <SearchField
          label={tOperation.operations.search}
          value={q}
          search={(text, replace) => set({ q: text }, replace)}
        />
      </div>
      <OperationFilters find={find} rows={rows} set={set} />
      <EndedInRow find={find} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <ViewsRow list="operations" />
        {list.data?.pages[0]?.items.length ? (
          <Export name="operations" read={operationsPage(find, since)} fields={FIELDS} />
        ) : null}
      </div>
      <SelectionBar selection={selection} />
      <ListTable
        list={list}
        empty={isNarrowed(find) ? tOperation.operations.no_match : tOperation.operations.empty[tab]}
        next={<NextStep find={find} />}
        caption={tOperation.operations.caption}
        columns={[leadOf(selection), ...COLUMNS]}
        keyOf="operation_id"
        draw={LongTable}
      />
    </Page>
  )
}

/** The time range of the list, set by links from the overview. */
const EndedInRow = ({ find: { from, to, ...rest } }: { find: OperationsSearch }) => {
  const { zone } = useDisplay()
  const words = (at: string | undefined) => (at === undefined ? '…' : shortTime(Date.parse(at), 0, zone))
  return from === undefined && to === undefined ? null : (
    <p className="flex flex-wrap items-center gap-3">
      {tOperation.operations.ended_between(words(from), words(to))}
      <Link to="/operations" search={rest} className="button quiet">
        {tOperation.operations.any_time}
      </Link>
    </p>
  )
}

const NextStep = ({ find }: { find: OperationsSearch }) => {
  const narrowed = isNarrowed(find)
  return !narrowed && find.tab === 'all' ? (
    <code>{tOperation.operations.demo}</code>
  ) : (
    <Link to="/operations" search={{ tab: narrowed ? find.tab : 'all', q: '' }} className="button">
      {narrowed ? tOperation.operations.clear : tOperation.operations.see_all}
    </Link>
  )
}

const FIELDS: Fields<OperationRow> = {
  operation_id: (row) => row.operation_id,
  title: (row) => row.title,
  status: (row) => row.status,
  kind: (row) => row.kind,
  requester: (row) => row.requester.name,
  risk: (row) => row.risk_level,
  environment: (row) => row.environment,
  ticket: (row) => row.ticket,
  nodes: (row) => row.progress.total,
  done: (row) => row.progress.done,
  failed: (row) => row.progress.failed,
  waiting_on: (row) => row.blocked_on[0]?.message,
  created_at: (row) => row.created_at,
  started_at: (row) => row.started_at,
  ended_at: (row) => row.ended_at,
}

const leadOf = (selection: Selection): Column<OperationRow> => ({
  name: tOperation.operations.operation,
  kind: 'lead',
  cell: (row) => (
    <div className="flex items-start gap-2">
      <SelectBox row={row} selection={selection} />
      <div className="min-w-0">
        <OperationLink
          id={row.operation_id}
          data-row=""
          onKeyDown={selectByKey(row, selection)}
          className="text-body font-medium wrap-anywhere"
        >
          {row.title}
        </OperationLink>
        <span className="flex items-center gap-1 text-muted">
          <code>{shortId(row.operation_id)}</code>
          <CopyButton text={row.operation_id} />
        </span>
      </div>
    </div>
  ),
})

const COLUMNS: Column<OperationRow>[] = [
  {
    name: tOperation.operations.status,
    className: 'whole',
    width: '9rem',
    cell: (row) => <OperationStatusMark status={row.status} blockedOn={row.blocked_on} />,
  },
  {
    name: tOperation.operations.progress,
    width: '8.5rem',
    cell: (row) => (
      <div className="min-w-28">
        <ProgressBar progress={row.progress} status={row.status} blockedOn={row.blocked_on} />
      </div>
    ),
  },
  {
    name: tOperation.operations.waiting_on,
    width: 'minmax(0, 1.5fr)',
    className: 'max-w-56 wrap-anywhere',
    cell: ({ blocked_on }) => (blocked_on[0] ? <BlockedOn by={blocked_on.slice(0, 1)} /> : null),
  },
  { name: tOperation.operations.who, className: 'more', cell: (row) => <Person who={row.requester} /> },
  {
    name: tOperation.operations.started,
    className: 'more whole',
    width: '7.5rem',
    cell: (row) => (row.started_at ? <TimeText at={row.started_at} /> : null),
  },
  {
    name: tOperation.operations.duration,
    kind: 'number',
    className: 'whitespace-nowrap more',
    width: '6.5rem',
    cell: (row) => <DurationText from={row.started_at} to={row.ended_at} />,
  },
]
