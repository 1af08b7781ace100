import { lookOf } from '../../shared/contracts/client/status.ts'
import type { Graph, GraphNode } from '../api/types.ts'
import { Card } from '../ui/card.tsx'
import { LongList } from '../ui/window.tsx'
import { GateLink, NodeLink } from '../values/links.tsx'
import { Status } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { guardedNames } from './gate-panel.tsx'
import type { GraphStates } from './states.ts'

type Props = {
  graph: Graph
  states: GraphStates
  /** The operation for the links of nodes; a plan has no node pages yet. */
  operation_id: string | null
  only: string | undefined
  /** Whether a node matches the search. */
  marked?: (node: GraphNode) => boolean
}
const ROW = 'flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-4 py-2'
const NAME = 'min-w-44 font-medium wrap-anywhere'
const NOTES = 'min-w-0 flex-1 text-table max-sm:basis-full text-muted wrap-anywhere'

/** The drawing as a list in the order of the plan, with the same content. */
export const GraphList = ({ graph, states, operation_id, only, marked = () => true }: Props) => {
  const names = new Map(graph.nodes.map((node) => [node.node_id, node.name]))
  const critical = new Set(graph.critical_path)
  const nodes = graph.nodes.filter((node) => only === undefined || states.look(node).word === only).filter(marked)
  const sections = sectionsOf(graph, nodes)
  return (
    <div className="flex flex-col gap-4">
      <GateSection graph={graph} operation_id={operation_id} only={only} />
      {sections.map((section) => (
        <section key={section.id} className="card" aria-label={section.name ?? tOperation.nodes.title}>
          {section.name ? (
            <h2 className="card-head font-semibold">
              {section.name}
              <span className="text-table font-normal text-muted">{tOperation.graph.nodes(section.nodes.length)}</span>
            </h2>
          ) : null}
          <LongList rows={section.nodes} keyOf={({ node_id }) => node_id}>
            {(node) => (
              <Item
                node={node}
                states={states}
                operation_id={operation_id}
                after={node.depends_on.map((id) => names.get(id) ?? id)}
                critical={critical.has(node.node_id)}
                gates={graph.gates.filter((gate) => node.gates.includes(gate.gate_id)).map((gate) => gate.question)}
              />
            )}
          </LongList>
        </section>
      ))}
    </div>
  )
}

/** Every gate with its state and its guarded nodes; gates that wait for a person come first. */
const GateSection = ({ graph, operation_id, only }: Pick<Props, 'graph' | 'operation_id' | 'only'>) => {
  const gates = graph.gates
    .map((gate) => ({ gate, look: lookOf(gate.state) }))
    .filter(({ look }) => only === undefined || look.word === only)
    .sort((a, b) => a.look.rank - b.look.rank)
  if (gates.length === 0) return null
  return (
    <Card title={tOperation.graph.gates}>
      <ul>
        {gates.map(({ gate, look }) => (
          <li key={gate.gate_id} className={`${ROW} last:border-0`}>
            {operation_id === null ? (
              <span className={NAME}>{gate.question}</span>
            ) : (
              <GateLink operation_id={operation_id} gate_id={gate.gate_id} data-row="" className={NAME}>
                {gate.question}
              </GateLink>
            )}
            <span className="min-w-40">
              <Status state={gate.state} look={look} />
            </span>
            <span className={NOTES}>
              {tOperation.graph.guards}{' '}
              {t.and(
                abridged(
                  guardedNames(gate, graph, AFTER + 1).map(([, name]) => name),
                  gate.guards.length,
                ),
              )}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** Sections in rank order: a group's nodes together at the place of its first node, the others in between. */
function sectionsOf(graph: Graph, nodes: GraphNode[]): { id: string; name: string | null; nodes: GraphNode[] }[] {
  const names = new Map(graph.groups.map((group) => [group.group_id, group.name]))
  const sections = new Map<string, { id: string; name: string | null; nodes: GraphNode[] }>()
  let loose = ''
  for (const node of nodes) {
    if (node.group === null && loose === '') loose = `before ${node.node_id}`
    const id = node.group ?? loose
    if (node.group !== null) loose = ''
    const section = sections.get(id) ?? { id, name: names.get(id) ?? null, nodes: [] }
    section.nodes.push(node)
    sections.set(id, section)
  }
  return [...sections.values()]
}

const AFTER = 4
const abridged = (names: string[], of = names.length): string[] =>
  of > AFTER + 1 ? [...names.slice(0, AFTER), t.others(of - AFTER)] : names

type ItemProps = {
  node: GraphNode
  states: GraphStates
  operation_id: string | null
  after: string[]
  critical: boolean
  gates: string[]
}

const Item = ({ node, states, operation_id, after, critical, gates }: ItemProps) => {
  const notes = [
    ...(after.length > 0 ? [`${tOperation.graph.after} ${t.and(abridged(after))}`] : []),
    ...(critical ? [tOperation.graph.critical] : []),
    ...gates.map(tOperation.graph.gate_before),
  ]
  return (
    <div className={`${ROW} [li:last-child>&]:border-0`}>
      {operation_id === null ? (
        <span className={NAME}>{node.name}</span>
      ) : (
        <NodeLink operation_id={operation_id} node_id={node.node_id} data-row="" className={NAME}>
          {node.name}
        </NodeLink>
      )}
      <span className="min-w-40">
        <Status state={node.state} look={states.look(node)} />
      </span>
      <span className={NOTES}>{notes.join('; ')}</span>
    </div>
  )
}
