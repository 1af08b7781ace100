import { useQuery } from '@tanstack/react-query'
import type { AgentView } from '../../shared/contracts/engine/agents.ts'
import { AdminPage } from '../admin/frame.tsx'
import { agentsQuery } from '../queries/changes.ts'
import { type Column, DataTable, Listing } from '../ui/table.tsx'
import { NodeLink } from '../values/links.tsx'
import { TimeText } from '../values/time.tsx'
import { tAdmin } from '../words/admin.ts'

const words = tAdmin.agent

/** The agents that ask for work: whether they live, for which pools, and their current work. */
export const AgentsPage = () => {
  const list = useQuery(agentsQuery())
  const agents = list.data?.items ?? []
  return (
    <AdminPage title={words.title}>
      <p className="max-w-text text-muted">{words.about}</p>
      <Listing list={list} empty={agents.length === 0 ? words.empty : undefined}>
        <DataTable caption={words.title} columns={COLUMNS} rows={agents} keyOf="agent" />
      </Listing>
    </AdminPage>
  )
}

const COLUMNS: Column<AgentView>[] = [
  {
    name: words.columns.agent,
    kind: 'lead',
    className: 'wrap-anywhere',
    cell: ({ agent, instances }) => (
      <>
        {agent}
        {instances === undefined ? null : <p className="text-bad">{words.sharing(instances)}</p>}
      </>
    ),
  },
  { name: words.columns.status, cell: ({ status }) => words.status[status] },
  { name: words.columns.pools, cell: ({ pools }) => pools.join(', ') || null },
  {
    name: words.columns.labels,
    cell: ({ labels }) =>
      Object.entries(labels)
        .map((pair) => pair.join('='))
        .join(', ') || null,
  },
  { name: words.columns.version, cell: ({ version }) => version },
  { name: words.columns.places, kind: 'number', cell: ({ concurrency }) => concurrency },
  { name: words.columns.seen, cell: ({ seen_at }) => <TimeText at={seen_at} /> },
  {
    name: words.columns.work,
    className: 'wrap-anywhere',
    cell: ({ work, works }) =>
      works === 0 ? null : (
        <ul>
          {work.map(({ operation_id, node_id }) => (
            <li key={`${operation_id} ${node_id}`}>
              <NodeLink operation_id={operation_id} node_id={node_id} />
            </li>
          ))}
          {works > work.length ? <li className="text-muted">{words.others(works - work.length)}</li> : null}
        </ul>
      ),
  },
]
