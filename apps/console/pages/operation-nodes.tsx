import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useEffect, useId, useMemo } from 'react'
import { nodeLook } from '../../shared/contracts/client/status.ts'
import { graphQuery, nodesQuery } from '../api/queries.ts'
import type { NodeRow } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { Failure } from '../parts/failure.tsx'
import { Empty, Loading } from '../parts/page.tsx'
import { NodeStatus } from '../parts/status.tsx'
import { DurationText, TimeText } from '../parts/time-text.tsx'

/** Every node with its newest attempt: failures first, then what waits or runs, then what is done. */
export const OperationNodesPage = () => {
  const { operation_id } = useParams({ from: '/shell/operations/$operation_id' })
  const { state } = useSearch({ from: '/shell/operations/$operation_id/nodes' })
  const navigate = useNavigate({ from: '/operations/$operation_id/nodes' })
  const list = useInfiniteQuery(nodesQuery(operation_id))
  const waiting = useWaitingNodes(operation_id)
  const filterId = useId()
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  const all = useMemo(() => {
    const rows = list.data?.pages.flatMap((page) => page.items) ?? []
    return rows
      .map((row) => ({ row, look: nodeLook(row.state, waiting.has(row.node_id)) }))
      .sort((a, b) => a.look.rank - b.look.rank)
  }, [list.data, waiting])
  if (list.isPending) return <Loading />
  if (list.isError) return <Failure error={list.error} retry={() => void list.refetch()} />
  const words = [...new Map(all.map(({ look }) => [look.word, look])).values()]
  const rows = state === undefined ? all : all.filter(({ look }) => look.word === state)
  return (
    <>
      <div className="flex items-center gap-2">
        <label htmlFor={filterId}>{t.nodes.filter}</label>
        <select
          id={filterId}
          className="input"
          value={state ?? ''}
          onChange={(event) =>
            void navigate({ search: event.target.value === '' ? {} : { state: event.target.value }, replace: true })
          }
        >
          <option value="">{t.nodes.every}</option>
          {words.map((look) => (
            <option key={look.word} value={look.word}>
              {t.graph.only(t.status[look.word], all.filter((one) => one.look.word === look.word).length)}
            </option>
          ))}
        </select>
      </div>
      <div className="card overflow-x-auto">
        {rows.length === 0 ? (
          <Empty>{t.nodes.no_match}</Empty>
        ) : (
          <Table rows={rows.map(({ row }) => row)} waiting={waiting} />
        )}
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

const Table = ({ rows, waiting }: { rows: NodeRow[]; waiting: ReadonlySet<string> }) => (
  <table className="table cards">
    <caption className="sr-only">{t.nodes.caption}</caption>
    <thead>
      <tr>
        <th scope="col">{t.nodes.node}</th>
        <th scope="col">{t.nodes.status}</th>
        <th scope="col">{t.nodes.target}</th>
        <th scope="col" className="number">
          {t.nodes.attempt}
        </th>
        <th scope="col">{t.nodes.started}</th>
        <th scope="col" className="number">
          {t.nodes.duration}
        </th>
        <th scope="col">{t.nodes.error}</th>
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr key={row.node_id}>
          <td className="lead" data-label={t.nodes.node}>
            <Link
              to="/operations/$operation_id/nodes/$node_id"
              params={{ operation_id: row.operation_id, node_id: row.node_id }}
              search={{ tab: row.error_message ? 'logs' : 'summary' }}
              data-row=""
              className="font-medium wrap-anywhere"
            >
              {row.name}
            </Link>
          </td>
          <td data-label={t.nodes.status}>
            <NodeStatus state={row.state} person={waiting.has(row.node_id)} />
          </td>
          <td data-label={t.nodes.target}>
            {row.target_id ? (
              <Link to="/resources/$resource_id" params={{ resource_id: row.target_id }} search={{ tab: 'overview' }}>
                {row.target_id}
              </Link>
            ) : null}
          </td>
          <td data-label={t.nodes.attempt} className="number">
            {row.attempt > 0 ? row.attempt : ''}
          </td>
          <td data-label={t.nodes.started} className="whitespace-nowrap">
            {row.started_at ? <TimeText at={row.started_at} /> : ''}
          </td>
          <td data-label={t.nodes.duration} className="number whitespace-nowrap">
            <DurationText from={row.started_at} to={row.ended_at} />
          </td>
          <td data-label={t.nodes.error} className="max-w-96 text-bad wrap-anywhere">
            {row.error_message ?? ''}
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)
