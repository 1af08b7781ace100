import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Overview } from '../../shared/contracts/overview/overview.ts'
import { useTopic } from '../api/hooks.ts'
import type { OperationRow, Waiting } from '../api/types.ts'
import { heldQuery, type OverviewWhere, runningQuery } from '../queries/overview.ts'
import { rowsOf } from '../queries/pages.ts'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { ProgressBar } from '../ui/progress.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { NodeLink, OperationLink } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { DurationText, TimeText } from '../values/time.tsx'
import { Said } from '../votes/brief.tsx'
import { tOverview } from '../words/overview.ts'
import { InList } from './where.tsx'

const words = tOverview.by_group
/** How many held operations are listed; the inbox has all. */
const HELD = 10

/** Who must decide, the longest wait first. A server that is older than the console does not tell. */
export const ByGroup = ({ overview: { waiting = [] } }: { overview: Partial<Pick<Overview, 'waiting'>> }) =>
  waiting.length === 0 ? null : (
    <Card title={words.title}>
      <DataTable caption={words.title} columns={GROUPS} rows={waiting} keyOf={({ group }) => group ?? ''} />
    </Card>
  )

const GROUPS: Column<Overview['waiting'][number]>[] = [
  { name: words.group, kind: 'lead', cell: ({ group }) => (group === null ? words.any : <bdi>{group}</bdi>) },
  { name: words.gates, kind: 'number', cell: ({ gates }) => gates },
  { name: words.patches, kind: 'number', cell: ({ patches }) => patches },
  {
    name: words.longest,
    cell: ({ oldest: { operation_id, title, since } }) => (
      <>
        <OperationLink id={operation_id}>
          <Said>{title}</Said>
        </OperationLink>{' '}
        <TimeText at={since} />
      </>
    ),
  },
]

/** The newest operations that run now. */
export const Running = ({ where }: { where: OverviewWhere }) => {
  const list = useInfiniteQuery(runningQuery(where))
  useTopic('operations')
  // A frame says that one of them has ended before the list is read again.
  const rows = rowsOf(list).filter(({ status }) => status === 'running')
  return (
    <Card title={tOverview.running.title}>
      <Unread query={list} rows={2} />
      {list.isSuccess && !list.hasNextPage && rows.length === 0 && !(list.isFetching && rowsOf(list).length > 0) ? (
        <p className="p-4 text-muted">{tOverview.running.none}</p>
      ) : null}
      {rows.length === 0 ? null : (
        <DataTable caption={tOverview.running.title} columns={RUNNING} rows={rows} keyOf="operation_id" />
      )}
      {list.hasNextPage ? (
        <p className="p-4">
          <InList find={{ tab: 'running', q: '' }}>{tOverview.running.more}</InList>
        </p>
      ) : null}
    </Card>
  )
}

const RUNNING: Column<OperationRow>[] = [
  {
    name: tOverview.running.operation,
    kind: 'lead',
    cell: ({ operation_id, title }) => (
      <OperationLink id={operation_id} data-row="">
        <Said>{title}</Said>
      </OperationLink>
    ),
  },
  {
    name: tOverview.running.progress,
    cell: ({ progress, status, blocked_on }) => (
      <ProgressBar progress={progress} status={status} blockedOn={blocked_on} />
    ),
  },
  { name: tOverview.running.who, cell: ({ requester }) => <Person who={requester} /> },
  {
    name: tOverview.running.since,
    kind: 'number',
    cell: ({ started_at }) => <DurationText from={started_at} to={null} />,
  },
]

/** Operations that a failure or moved targets hold, the oldest first. */
export const Held = ({ where }: { where: OverviewWhere }) => {
  const waiting = useQuery(heldQuery(where))
  useTopic('inbox')
  const held = (waiting.data?.failures ?? []).toSorted((a, b) => a.waiting_since.localeCompare(b.waiting_since))
  return (
    <Card title={tOverview.held.title}>
      <Unread query={waiting} rows={2} />
      {waiting.isSuccess && held.length === 0 ? <p className="p-4 text-muted">{tOverview.held.none}</p> : null}
      {held.length === 0 ? null : (
        <DataTable
          caption={tOverview.held.title}
          columns={HELD_COLUMNS}
          rows={held.slice(0, HELD)}
          keyOf="operation_id"
        />
      )}
      {held.length > HELD ? (
        <p className="p-4">
          <Link to="/inbox" search={{ for: 'all' }}>
            {tOverview.held.more(held.length - HELD)}
          </Link>
        </p>
      ) : null}
    </Card>
  )
}

const HELD_COLUMNS: Column<Waiting['failures'][number]>[] = [
  {
    name: tOverview.running.operation,
    kind: 'lead',
    cell: ({ operation_id, operation_title }) => (
      <OperationLink id={operation_id} data-row="">
        <Said>{operation_title}</Said>
      </OperationLink>
    ),
  },
  {
    name: tOverview.held.by,
    className: 'wrap-anywhere',
    cell: ({ operation_id, node_count, nodes: [node] }) =>
      node === undefined ? (
        tOverview.held.drift
      ) : (
        <>
          <NodeLink operation_id={operation_id} node_id={node.node_id} tab="logs">
            <Said>{node.name}</Said>
          </NodeLink>{' '}
          {node_count > 1 ? tOverview.others(node_count - 1) : null}
        </>
      ),
  },
  { name: tOverview.held.since, cell: ({ waiting_since }) => <TimeText at={waiting_since} /> },
]
