import '../styles/matrix.css'
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Virtualizer } from 'virtua'
import type { Graph, GraphNode } from '../api/types.ts'
import { type GraphStates, isBroken, useNodeState, useRanMs } from '../graph/states.ts'
import { duration } from '../kit/format.ts'
import { WindowBody, WindowRow } from '../ui/window.tsx'
import { ShapeIcon, statusWord } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import { linesOf, type Matrix, type Place, placeAfter, placeOf, type Row } from './cells.ts'
import { placeGates } from './gates.ts'
import { GateMarks, StepHead } from './heads.tsx'

type Props = {
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

const Grid = ({ graph, states, selected, marked, open, openGate, matrix }: GridProps) => {
  // biome-ignore lint/correctness/useExhaustiveDependencies: a gate keeps its place; its state comes from `states`
  const gates = useMemo(() => placeGates(graph, matrix), [graph.gates.length, matrix])
  const lines = useMemo(() => linesOf(matrix), [matrix])
  const columns = useMemo(() => columnsOf(matrix), [matrix])
  const box = useRef<HTMLDivElement>(null)
  const head = useRef<HTMLTableSectionElement>(null)
  const [at, setAt] = useState<Place>([0, 0])
  const [walked, walk] = useState<Place>()
  const headPx = useHeight(head)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selected cell is found in the document
  useEffect(() => {
    box.current?.querySelector('[aria-selected=true]')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' })
  }, [selected])
  useEffect(() => {
    if (walked) box.current?.querySelector<HTMLElement>(`[data-at="${walked.join('/')}"]`)?.focus()
  }, [walked])
  const key = (event: React.KeyboardEvent) => {
    const node = matrix.rows[at[0]]?.cells[at[1]]
    const by = event.key === ']' ? 1 : event.key === '[' ? -1 : undefined
    // Outside the matrix, these keys lead to other tabs.
    if (by) event.stopPropagation()
    const next = by
      ? placeOf(by, at, matrix, ({ node_id }) => isBroken(states, node_id))
      : placeAfter(event.key, at, matrix)
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
  const names = useMemo(() => new Map(graph.groups.map((group) => [group.group_id, group.name])), [graph])
  const chosen = useMemo(() => rowOf(matrix, selected), [matrix, selected])
  const kept = [at[0], chosen].map((row) => lines.findIndex(({ index }) => index === row)).filter((line) => line >= 0)
  return (
    <div ref={box} className="card matrix-box min-w-0 flex-1" style={{ scrollPaddingTop: headPx }}>
      <table
        className="matrix"
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
                  <GateMarks gates={gates.blocks.get(group ?? '')} open={openGate} />
                </th>
              )
            const stop = at[0] === index ? at[1] : undefined
            const picked = chosen === index ? selected : undefined
            return <RowCells key={row.target_id} {...{ row, index, stop, picked, marked, gates }} />
          }}
        </Virtualizer>
      </table>
      <GateMarks gates={gates.single} open={openGate} numbered />
    </div>
  )
}

type Placed = ReturnType<typeof placeGates>

type HeadRowProps = {
  /** Redraws it when it changes. */
  graph: Graph
  steps: Matrix['steps']
  columns: GraphNode[][]
  gates: Placed
  states: GraphStates
  openGate: (gate_id: string) => void
}

/** Counts all nodes, so it redraws when they change, but not for a key. */
const HeadRow = memo(({ steps, columns, gates, states, openGate }: HeadRowProps) => (
  <tr aria-rowindex={1}>
    <th scope="col">{tOperation.graph.host}</th>
    {steps.map((step, column) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a step may have two columns, and columns keep their order
      <th key={column} scope="col" className={gates.columns.has(column) ? 'gated' : undefined}>
        {step}
        <StepHead states={states} nodes={columns[column] ?? []} />
        <GateMarks gates={gates.columns.get(column)} open={openGate} />
      </th>
    ))}
  </tr>
))

type RowCellsProps = {
  gates: Placed
  row: Row
  index: number
  /** The column of the tab stop, if it is in this row. */
  stop: number | undefined
  /** The selected node, if it is in this row. */
  picked: string | undefined
  marked: ((node: GraphNode) => boolean) | undefined
}

/** A key changes the tab stop of two rows; the others do not redraw. News redraws only its own cells. */
const RowCells = memo(({ row, index, stop, picked, marked, gates }: RowCellsProps) => (
  <>
    <th scope="row">
      <bdi>{row.name}</bdi>
      <RowTime nodes={row.cells} />
    </th>
    {row.cells.map((node, column) => (
      <Cell
        // biome-ignore lint/suspicious/noArrayIndexKey: columns keep their order
        key={column}
        at={`${index}/${column}`}
        stop={stop === column}
        node_id={node?.node_id}
        gated={gates.columns.has(column)}
        numbers={node && gates.cells.get(node.node_id)}
        chosen={node !== undefined && node.node_id === picked}
        marked={marked}
      />
    ))}
  </>
))

const ROW_PX = 32

const columnsOf = ({ rows, steps }: Matrix): GraphNode[][] =>
  steps.map((_, column) => rows.flatMap(({ cells }) => cells[column] ?? []))

const rowOf = ({ rows }: Matrix, node_id: string | undefined): number =>
  rows.findIndex(({ cells }) => cells.some((node) => node && node.node_id === node_id))

/** The height of the head, which stays in view above the rows. */
const useHeight = (head: React.RefObject<HTMLElement | null>): number => {
  const [height, setHeight] = useState(0)
  useLayoutEffect(() => {
    const element = head.current
    if (element === null) return
    const observer = new ResizeObserver(() => setHeight(element.offsetHeight))
    observer.observe(element)
    return () => observer.disconnect()
  }, [head])
  return height
}

const RowTime = ({ nodes }: { nodes: readonly (GraphNode | undefined)[] }) => {
  const ran_ms = useRanMs(nodes)
  return ran_ms === undefined ? null : <span className="time">{duration(ran_ms)}</span>
}

type CellProps = {
  /** Row and column. */
  at: string
  stop: boolean
  node_id: string | undefined
  /** Behind a gate that is before the column. */
  gated: boolean
  /** The numbers of the gates before only this cell. */
  numbers: readonly number[] | undefined
  chosen: boolean
  marked: ((node: GraphNode) => boolean) | undefined
}

const Cell = ({ at, stop, node_id = '', gated, numbers, chosen, marked }: CellProps) => {
  const { node, look } = useNodeState(node_id)
  const dim = node !== undefined && marked !== undefined && !marked(node)
  const word = node && look && statusWord(node.state, look)
  return (
    <td
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: the cell of a grid
      role="gridcell"
      data-at={at}
      tabIndex={stop ? 0 : -1}
      aria-selected={chosen}
      aria-label={node && word ? tOperation.graph.spoken(node.name, word, node.attempt) : tOperation.graph.no_cell}
      title={node?.name}
      className={`${look ? `tone-${look.tone}` : ''} ${dim ? 'dim' : ''} ${gated ? 'gated' : ''}`}
    >
      {node && look ? (
        <span className="cell">
          <ShapeIcon shape={look.shape} tone={look.tone} />
          <span>{word}</span>
          {numbers ? <span className="text-muted tabular-nums">◇{numbers.join(', ')}</span> : null}
          {node.attempt > 1 ? <span className="text-muted tabular-nums">×{node.attempt}</span> : null}
        </span>
      ) : (
        <span aria-hidden="true">·</span>
      )}
    </td>
  )
}
