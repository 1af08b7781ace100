import type { Graph } from '../api/types.ts'
import type { GraphStates } from '../graph/states.ts'
import { Status } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import { whyOf } from './why.ts'

type WhyWaitingProps = {
  graph: Graph
  states: GraphStates
  node_id: string
  select: (chosen: { node?: string; gate?: string }) => void
}

/** The chain of things that the selected node waits for, nearest first; a press opens each. */
export const WhyWaiting = ({ graph, states, node_id, select }: WhyWaitingProps) => {
  const chain = whyOf(graph, states, node_id)
  if (chain.length === 0) return null
  return (
    <section aria-label={tOperation.graph.why}>
      <h3 className="font-semibold">{tOperation.graph.why}</h3>
      <ol className="mt-1 flex flex-col gap-1">
        {chain.map((link) => {
          const [key, name, chosen] =
            'gate' in link
              ? [link.gate.gate_id, link.gate.question, { gate: link.gate.gate_id }]
              : [link.node.node_id, link.node.name, { node: link.node.node_id }]
          return (
            <li key={key} className="flex flex-wrap items-center gap-x-3">
              <button
                type="button"
                className="text-left text-accent underline wrap-anywhere"
                onClick={() => select(chosen)}
              >
                {name}
              </button>
              {'gate' in link ? (
                <Status state={link.gate.state} />
              ) : (
                <Status state={link.node.state} look={states.look(link.node)} />
              )}
            </li>
          )
        })}
      </ol>
    </section>
  )
}
