import { memo } from 'react'
import type { Graph, GraphNode } from '../api/types.ts'
import { gateBox } from '../graph/gates.ts'
import { countLooks, type GraphStates, useGateState } from '../graph/states.ts'
import { duration, figure } from '../kit/format.ts'
import { ShapeIcon, Status } from '../values/status.tsx'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import type { Matrix } from './cells.ts'
import { median, type placeGates } from './gates.ts'

type HeadRowProps = {
  /** Redraws it when it changes. */
  graph: Graph
  steps: Matrix['steps']
  columns: GraphNode[][]
  gates: ReturnType<typeof placeGates>
  states: GraphStates
  openGate: (gate_id: string) => void
}

/** Counts all nodes, so it redraws when they change, but not for a key. */
export const HeadRow = memo(({ steps, columns, gates, states, openGate }: HeadRowProps) => (
  <tr aria-rowindex={1}>
    <th scope="col">{tOperation.graph.host}</th>
    {steps.map((step, column) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a step may have two columns, and columns keep their order
      <th key={column} scope="col" className={gates.columns.has(column) ? 'gated' : undefined}>
        {step}
        <Counts states={states} nodes={columns[column] ?? []} />
        <GateMarks gates={gates.columns.get(column)} open={openGate} />
      </th>
    ))}
  </tr>
))

type CountProps = { states: GraphStates; nodes: GraphNode[] }

/** How many nodes of a step or a block have ended, their median time, and how many are in each state. */
export const Counts = ({ states, nodes }: CountProps) => {
  const live = nodes.map((node) => states.node(node.node_id) ?? node)
  const p50 = median(live.flatMap(({ ran_ms }) => ran_ms ?? []))
  const counts = countLooks(states, live)
  const ended = counts.reduce((sum, { look, count }) => sum + (ENDED.has(look.word) ? count : 0), 0)
  return (
    <>
      <span className="time">
        {tOperation.graph.done(ended, nodes.length)}
        {p50 === undefined ? '' : ` · ${tOperation.graph.p50(duration(p50))}`}
      </span>
      <span className="counts">
        {counts.map(({ look, count }) => (
          <span key={look.word} title={t.status[look.word]}>
            <ShapeIcon shape={look.shape} tone={look.tone} size={12} />
            {figure(count)}
          </span>
        ))}
      </span>
    </>
  )
}
const ENDED = new Set(['succeeded', 'succeeded_with_exceptions', 'skipped', 'cancelled', 'undone'])

type GateMarksProps = { gates: Graph['gates'] | undefined; open: (gate_id: string) => void; numbered?: boolean }

/** Gates at their positions: the question and state of each; a press opens its panel. */
export const GateMarks = ({ gates = [], open, numbered = false }: GateMarksProps) =>
  gates.map(({ gate_id, question, state }, at) => (
    <button key={gate_id} type="button" className="gate-mark" onClick={() => open(gate_id)}>
      {numbered ? `◇${at + 1} ` : null}
      <span>{question}</span>
      <GateState gate_id={gate_id} planned={state} />
    </button>
  ))

const GateState = ({ gate_id, planned }: { gate_id: string; planned: Graph['gates'][number]['state'] }) => (
  <Status state={useGateState(gateBox(gate_id))?.state ?? planned} />
)
