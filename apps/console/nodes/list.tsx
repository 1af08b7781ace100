import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import { nodeLook, type StatusLook } from '../../shared/contracts/client/status.ts'
import type { NodeRow } from '../api/types.ts'
import { SearchField } from '../forms/search.tsx'
import { Filter } from '../forms/select.tsx'
import { shortId, shown } from '../kit/format.ts'
import { graphQuery, nodesQuery } from '../queries/operations.ts'
import { rowsOf, useAllPages } from '../queries/pages.ts'
import { Export, type Fields } from '../ui/export.tsx'
import { Unread } from '../ui/failure.tsx'
import { Empty } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { LongTable } from '../ui/window.tsx'
import { NodeLink, ResourceLink } from '../values/links.tsx'
import { NodeStatus } from '../values/status.tsx'
import { DurationText, TimeText } from '../values/time.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'

/** Every node with its newest attempt: failed first, then waiting and running, then ended. */
export const OperationNodesPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { state, q = '' } = useSearch({ from: '/shell/operations/$operation_id/nodes' })
  const navigate = useNavigate({ from: '/operations/$operation_id/nodes' })
  const list = useInfiniteQuery(nodesQuery(operation_id))
  const waiting = useWaitingNodes(operation_id)
  useAllPages(list)
  const all = useMemo(
    () =>
      rowsOf({ data: list.data })
        .map((row): Shown => {
          const person = waiting.has(row.node_id)
          return { row, person, look: nodeLook(row.state, person) }
        })
        .sort((a, b) => a.look.rank - b.look.rank),
    [list.data, waiting],
  )
  if (list.data === undefined) return <Unread query={list} />
  const counts = Map.groupBy(all, ({ look }) => look.word)
  const rows = all.filter((shown) => (state === undefined || shown.look.word === state) && holds(shown, q))
  const show = (change: { state?: string; q?: string }, replace = false) =>
    void navigate({
      search: (before) => Object.fromEntries(Object.entries({ ...before, ...change }).filter(([, value]) => value)),
      replace,
    })
  const table = { caption: tOperation.nodes.caption, columns: COLUMNS, rows, keyOf: ({ row }: Shown) => row.node_id }
  return (
    <>
      <Unread query={list} />
      <SearchField label={tOperation.graph.find} value={q} search={(text, replace) => show({ q: text }, replace)} />
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Filter
          label={tOperation.nodes.filter}
          choices={[
            ['', tOperation.nodes.every],
            ...[...counts].map(([word, { length }]) => [word, tOperation.graph.only(t.status[word], length)] as const),
          ]}
          value={state ?? ''}
          change={(value) => show({ state: value })}
        />
        {list.hasNextPage ? null : (
          <Export
            name={`nodes-${shortId(operation_id)}`}
            read={async () => ({ items: rows.map(({ row }) => row), next_page_token: null })}
            fields={FIELDS}
          />
        )}
      </div>
      <div className="card">
        {rows.length === 0 ? <Empty>{tOperation.nodes.no_match}</Empty> : <LongTable {...table} />}
      </div>
    </>
  )
}

/** Nodes behind a gate that waits for people: the graph knows which gate guards which node. */
function useWaitingNodes(operation_id: string): ReadonlySet<string> {
  const graph = useQuery(graphQuery(operation_id)).data
  return useMemo(() => {
    const open = new Set(graph?.gates.filter((gate) => gate.state === 'waiting').map((gate) => gate.gate_id))
    return new Set(graph?.nodes.filter((node) => node.gates.some((gate) => open.has(gate))).map((node) => node.node_id))
  }, [graph])
}

type Shown = { row: NodeRow; look: StatusLook; person: boolean }

/** Whether a node's name, host, id, status or error contains all these words. */
const holds = ({ row, look }: Shown, text: string): boolean => {
  const all = [row.name, row.target_id, row.node_id, t.status[look.word], row.error_message].join(' ').toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word))
}

const FIELDS: Fields<NodeRow> = {
  node_id: (row) => row.node_id,
  name: (row) => row.name,
  target: (row) => row.target_id,
  state: (row) => row.state,
  attempt: (row) => row.attempt,
  started_at: (row) => row.started_at,
  ended_at: (row) => row.ended_at,
  error_class: (row) => row.error_class,
  error: (row) => row.error_message,
}

const COLUMNS: Column<Shown>[] = [
  {
    name: tOperation.nodes.node,
    kind: 'lead',
    cell: ({ row }) => (
      <NodeLink
        operation_id={row.operation_id}
        node_id={row.node_id}
        tab={row.error_message && row.attempt > 0 ? 'logs' : 'summary'}
        data-row=""
        className="font-medium wrap-anywhere"
      >
        {row.name}
      </NodeLink>
    ),
  },
  { name: tOperation.nodes.status, cell: ({ row, person }) => <NodeStatus state={row.state} person={person} /> },
  { name: tOperation.nodes.target, cell: ({ row }) => (row.target_id ? <ResourceLink id={row.target_id} /> : null) },
  { name: tOperation.nodes.attempt, kind: 'number', cell: ({ row }) => (row.attempt > 0 ? row.attempt : null) },
  {
    name: tOperation.nodes.started,
    className: 'whitespace-nowrap',
    cell: ({ row }) => (row.started_at ? <TimeText at={row.started_at} /> : null),
  },
  {
    name: tOperation.nodes.duration,
    kind: 'number',
    className: 'whitespace-nowrap',
    cell: ({ row }) => <DurationText from={row.started_at} to={row.ended_at} />,
  },
  {
    name: tOperation.nodes.error,
    className: 'max-w-96 text-bad wrap-anywhere',
    cell: ({ row }) => row.error_message && shown(row.error_message),
  },
]
