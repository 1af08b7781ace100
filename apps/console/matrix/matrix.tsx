import '../styles/matrix.css'
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Virtualizer, type VirtualizerHandle } from 'virtua'
import type { Graph, GraphNode } from '../api/types.ts'
import { isAtWork, useProgress } from '../graph/progress.ts'
import { type GraphStates, isBroken } from '../graph/states.ts'
import { WindowBody, WindowRow } from '../ui/window.tsx'
import { tOperation } from '../words/operation.ts'
import { linesOf, type Matrix, type Place, placeAfter, placeOf } from './cells.ts'
import { placeGates } from './gates.ts'
import { Counts, GateMarks, HeadRow } from './heads.tsx'
import { Rail } from './rail.tsx'
import { RowCells } from './row.tsx'

type Props = {
  operation_id: string
  graph: Graph
  /** Of the graph; `null` if it has none. */
  matrix: Matrix | null
  states: GraphStates
  selected: string | undefined
  /** The highlighted cells; the others are dimmed. */
  marked: ((node: GraphNode) => boolean) | undefined
  open: (node_id: string) => void
  openGate: (gate_id: string) => void
}

/**
 * Hosts by steps: the state of every node at a glance. It has one tab stop; arrow keys move through it and Enter opens
 * a node. Draws only rows near the view, and those of the tab stop and of the selected node.
 */
export const GraphMatrix = memo(({ matrix, ...props }: Props) =>
  matrix === null ? (
    <p className="p-4 text-muted">{tOperation.graph.no_matrix}</p>
  ) : (
    <Grid {...props} matrix={matrix} />
  ),
)

type GridProps = Props & { matrix: Matrix }

const FIRST: Place = [0, 0]

/** The tab stop, which keys and presses move; keys also move the focus with it. */
const useWalk = (box: React.RefObject<HTMLDivElement | null>, { matrix, states, open }: GridProps) => {
  const [asked, setAt] = useState<Place>(FIRST)
  // A patch may have removed its row: without a tab stop, no key would reach the matrix.
  const at = asked[0] < matrix.rows.length && asked[1] < matrix.steps.length ? asked : FIRST
  const [walked, walk] = useState<Place>()
  useEffect(() => {
    if (walked) box.current?.querySelector<HTMLElement>(`[data-at="${walked.join('/')}"]`)?.focus()
  }, [box, walked])
  const key = (event: React.KeyboardEvent) => {
    const node = matrix.rows[at[0]]?.cells[at[1]]
    const by = event.key === ']' ? 1 : event.key === '[' ? -1 : undefined
    // Outside the matrix, these keys lead to other tabs.
    if (by) event.stopPropagation()
    const next = by
      ? placeOf(by, at, matrix, ({ node_id }) => isBroken(states, node_id))
      : placeAfter(event, at, matrix)
    if (next !== undefined) {
      setAt(next)
      walk(next)
    } else if (event.key === 'Enter' && node) open(node.node_id)
    else return
    event.preventDefault()
  }
  const press = (event: React.MouseEvent<HTMLElement>) => {
    const pressed = (event.target as HTMLElement).closest<HTMLElement>('[data-at]')?.dataset.at
    if (pressed === undefined) return
    const [row = 0, column = 0] = pressed.split('/').map(Number)
    setAt([row, column])
    const node = matrix.rows[row]?.cells[column]
    if (node) open(node.node_id)
  }
  return { at, key, press }
}

const Grid = (props: GridProps) => {
  const { operation_id, graph, states, selected, marked, openGate, matrix } = props
  // biome-ignore lint/correctness/useExhaustiveDependencies: a gate keeps its place; its state comes from `states`
  const gates = useMemo(() => placeGates(graph, matrix), [graph.gates.length, matrix])
  const lines = useMemo(() => linesOf(matrix), [matrix])
  const columns = useMemo(() => columnsOf(matrix), [matrix])
  const blocks = useMemo(() => blocksOf(matrix), [matrix])
  const critical = useMemo(() => new Set(graph.critical_path), [graph.critical_path])
  const runs = useMemo(() => graph.nodes.some(({ state }) => isAtWork(state)), [graph.nodes])
  const progress = useProgress(operation_id, runs)
  const list = useRef<VirtualizerHandle>(null)
  const box = useRef<HTMLDivElement>(null)
  const head = useRef<HTMLTableSectionElement>(null)
  const { height: headPx, wide } = useSize(head, box)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selected cell is found in the document
  useEffect(() => {
    box.current?.querySelector('[aria-selected=true]')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' })
  }, [selected])
  const { at, key, press } = useWalk(box, props)
  const names = useMemo(() => new Map(graph.groups.map((group) => [group.group_id, group.name])), [graph])
  const chosen = useMemo(() => rowOf(matrix, selected), [matrix, selected])
  const showLine = useCallback((line: number) => list.current?.scrollToIndex(line, { align: 'center' }), [])
  const kept = [at[0], chosen].map((row) => lines.findIndex(({ index }) => index === row)).filter((line) => line >= 0)
  return (
    <div className="flex min-w-0 flex-1 gap-2">
      <div ref={box} className="card matrix-box min-w-0 flex-1" style={{ scrollPaddingTop: headPx }}>
        <table
          className={wide ? 'matrix wide' : 'matrix'}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid of cells is a table with keys
          role="grid"
          aria-label={tOperation.graph.matrix_label}
          aria-rowcount={lines.length + 1}
          style={{ '--steps': matrix.steps.length } as React.CSSProperties}
          onKeyDown={key}
          onClick={press}
        >
          <thead ref={head}>
            <HeadRow steps={matrix.steps} {...{ graph, columns, gates, states, openGate }} />
          </thead>
          <Virtualizer
            ref={list}
            data={lines}
            scrollRef={box}
            startMargin={headPx}
            itemSize={ROW_PX}
            keepMounted={kept}
            as={WindowBody}
            item={WindowRow}
          >
            {({ index, group }) => {
              const row = matrix.rows[index]
              if (row === undefined)
                return (
                  <th key={`block ${group}`} scope="rowgroup" className="block">
                    {names.get(group ?? '') ?? group}
                    <Counts states={states} nodes={blocks.get(group ?? '') ?? []} />
                    <GateMarks gates={gates.blocks.get(group ?? '')} open={openGate} />
                  </th>
                )
              const stop = at[0] === index ? at[1] : undefined
              const picked = chosen === index ? selected : undefined
              const dim = marked && dimOf(row, states, marked)
              return <RowCells key={row.target_id} {...{ row, index, stop, picked, dim, gates, critical, progress }} />
            }}
          </Virtualizer>
        </table>
        <GateMarks gates={gates.single} open={openGate} numbered />
      </div>
      {lines.length > MOST_IN_VIEW ? <Rail {...{ graph, matrix, lines, states }} show={showLine} /> : null}
    </div>
  )
}

const ROW_PX = 32
/** More lines than a screen has room for have a rail beside them. */
const MOST_IN_VIEW = 20

const dimOf = ({ cells }: Matrix['rows'][number], states: GraphStates, marked: (node: GraphNode) => boolean): string =>
  cells.map((planned) => (planned && !marked(states.node(planned.node_id) ?? planned) ? '1' : '0')).join('')

const columnsOf = ({ rows, steps }: Matrix): GraphNode[][] =>
  steps.map((_, column) => rows.flatMap(({ cells }) => cells[column] ?? []))

/** The nodes of each block. */
const blocksOf = ({ rows }: Matrix): Map<string, GraphNode[]> => {
  const named = Map.groupBy(rows, ({ group }) => group ?? '')
  return new Map(
    [...named].map(([group, block]) => [group, block.flatMap(({ cells }) => cells.flatMap((node) => node ?? []))]),
  )
}

const rowOf = ({ rows }: Matrix, node_id: string | undefined): number =>
  rows.findIndex(({ cells }) => cells.some((node) => node && node.node_id === node_id))

/** The height of the head, which stays in view above the rows; and whether the matrix is wider than its window. */
const useSize = (head: React.RefObject<HTMLElement | null>, box: React.RefObject<HTMLElement | null>) => {
  const [height, setHeight] = useState(0)
  const [wide, setWide] = useState(false)
  useLayoutEffect(() => {
    const [element, around] = [head.current, box.current]
    if (element === null || around === null) return
    const observer = new ResizeObserver(() => {
      setHeight(element.offsetHeight)
      setWide(around.scrollWidth > around.clientWidth)
    })
    for (const sized of [element, around]) observer.observe(sized)
    return () => observer.disconnect()
  }, [head, box])
  return { height, wide }
}
