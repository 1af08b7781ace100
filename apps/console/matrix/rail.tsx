import { memo, useMemo } from 'react'
import type { Tone } from '../../shared/contracts/client/status.ts'
import type { Graph } from '../api/types.ts'
import type { GraphStates } from '../graph/states.ts'
import type { linesOf, Matrix } from './cells.ts'

type RailProps = {
  /** Redraws it when it changes. */
  graph: Graph
  matrix: Matrix
  lines: ReturnType<typeof linesOf>
  states: GraphStates
  show: (line: number) => void
}

/** The whole matrix at the height of its window: a square per node. A press shows its lines. The keys have no need of it. */
export const Rail = memo(({ graph, matrix, lines, states, show }: RailProps) => {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the states of the nodes come with a new graph
  const paths = useMemo(() => pathsOf(matrix, lines, states), [graph, matrix, lines, states])
  const width = matrix.steps.length
  return (
    <svg
      className="matrix-rail"
      aria-hidden="true"
      viewBox={`0 0 ${width} ${lines.length}`}
      preserveAspectRatio="none"
      style={{ width: Math.min(MOST_PX, width * SQUARE_PX), maxHeight: lines.length * SQUARE_PX }}
      onClick={({ clientY, currentTarget }) => {
        const { top, height } = currentTarget.getBoundingClientRect()
        show(Math.min(lines.length - 1, Math.floor(((clientY - top) / height) * lines.length)))
      }}
    >
      {[...paths].map(([tone, path]) => (
        <path key={tone} className={`tone-${tone}`} d={path} />
      ))}
    </svg>
  )
})
const SQUARE_PX = 8
const MOST_PX = 96

/** One path per tone, of unit squares at their line and step. Pure. */
export const pathsOf = (
  { rows }: Matrix,
  lines: ReturnType<typeof linesOf>,
  states: Pick<GraphStates, 'node' | 'look'>,
): Map<Tone, string> => {
  const paths = new Map<Tone, string>()
  for (const [y, { index }] of lines.entries())
    for (const [x, planned] of rows[index]?.cells.entries() ?? []) {
      const node = planned && states.node(planned.node_id)
      if (node === undefined) continue
      const { tone } = states.look(node)
      paths.set(tone, `${paths.get(tone) ?? ''}M${x} ${y}h.9v.9h-.9z`)
    }
  return paths
}
