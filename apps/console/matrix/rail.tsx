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

/** The whole matrix at the height of its window, a bar per step and state. A press shows the line; the keys need none of it. */
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

/** One path per tone, of bars: the lines of one step that follow each other in that tone. Pure. */
export const pathsOf = (
  { rows, steps }: Matrix,
  lines: ReturnType<typeof linesOf>,
  states: Pick<GraphStates, 'node' | 'look'>,
): Map<Tone, string> => {
  const paths = new Map<Tone, string>()
  const toneAt = (x: number, y: number): Tone | undefined => {
    const planned = rows[lines[y]?.index ?? -1]?.cells[x]
    const node = planned && states.node(planned.node_id)
    return node && states.look(node).tone
  }
  for (const x of steps.keys())
    for (let y = 0, next = 0; y < lines.length; y = next) {
      const tone = toneAt(x, y)
      for (next = y + 1; next < lines.length && toneAt(x, next) === tone; ) next += 1
      if (tone) paths.set(tone, `${paths.get(tone) ?? ''}M${x} ${y}h.9v${next - y}h-.9z`)
    }
  return paths
}
