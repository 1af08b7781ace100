import { memo, useContext } from 'react'
import type { StatusLook } from '../../shared/contracts/client/status.ts'
import type { GraphNode } from '../api/types.ts'
import { isAtWork } from '../graph/progress.ts'
import { StatesContext, useNodes } from '../graph/states.ts'
import { duration } from '../kit/format.ts'
import { ShapeIcon, statusWord } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import type { Row } from './cells.ts'
import type { placeGates } from './gates.ts'

type RowCellsProps = {
  gates: ReturnType<typeof placeGates>
  row: Row
  index: number
  /** The column of the tab stop, if it is in this row. */
  stop: number | undefined
  /** The selected node, if it is in this row. */
  picked: string | undefined
  /** "1" for each dimmed column, "0" for the others: equal texts do not redraw. */
  dim: string | undefined
  critical: ReadonlySet<string>
  /** How far the running nodes are, by id. */
  progress: Readonly<Record<string, string>>
}

/** A key changes the tab stop of two rows; the others do not redraw. News redraws only its own row. */
export const RowCells = memo(({ row, index, stop, picked, dim, gates, critical, progress }: RowCellsProps) => {
  const states = useContext(StatesContext)
  const nodes = useNodes(row.cells)
  const times = nodes.flatMap((node) => node?.ran_ms ?? [])
  return (
    <>
      <th scope="row">
        <bdi>{row.name}</bdi>
        {times.length === 0 ? null : <span className="time">{duration(times.reduce((sum, ms) => sum + ms))}</span>}
      </th>
      {nodes.map((node, column) => (
        <Cell
          // biome-ignore lint/suspicious/noArrayIndexKey: columns keep their order
          key={column}
          at={`${index}/${column}`}
          stop={stop === column}
          node={node}
          look={node && states.look(node)}
          gated={gates.columns.has(column)}
          numbers={node && gates.cells.get(node.node_id)}
          chosen={node !== undefined && node.node_id === picked}
          dim={dim?.[column] === '1'}
          critical={node !== undefined && critical.has(node.node_id)}
          progress={node && progress[node.node_id]}
        />
      ))}
    </>
  )
})

type CellProps = {
  /** Row and column. */
  at: string
  stop: boolean
  node: GraphNode | undefined
  look: StatusLook | undefined
  /** Behind a gate that is before the column. */
  gated: boolean
  /** The numbers of the gates before only this cell. */
  numbers: readonly number[] | undefined
  chosen: boolean
  dim: boolean
  critical: boolean
  progress: string | undefined
}

const Cell = ({ at, stop, node, look, gated, numbers, chosen, dim, critical, progress }: CellProps) => {
  const word = node && look && statusWord(node.state, look)
  const says = node && isAtWork(node.state) ? progress : undefined
  const marks = node && marksOf(node, critical)
  const names = [look && `tone-${look.tone}`, dim && 'dim', gated && 'gated', ...(marks ?? [])]
  return (
    <td
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: the cell of a grid
      role="gridcell"
      data-at={at}
      tabIndex={stop ? 0 : -1}
      aria-selected={chosen}
      aria-label={node && word ? tOperation.graph.spoken(node.name, word, node.attempt) : tOperation.graph.no_cell}
      title={
        node &&
        [node.name, ...(marks ?? []).map((mark) => tOperation.graph.cell_marks[mark]), says].filter(Boolean).join(' · ')
      }
      className={names.filter(Boolean).join(' ')}
    >
      {node && look ? (
        <>
          <ShapeIcon shape={look.shape} tone={look.tone} />
          <span>{says ?? word}</span>
          {numbers ? <span className="text-muted tabular-nums">◇{numbers.join(', ')}</span> : null}
          {node.attempt > 1 ? <span className="text-muted tabular-nums">×{node.attempt}</span> : null}
        </>
      ) : (
        <span aria-hidden="true">·</span>
      )}
    </td>
  )
}

type Mark = keyof typeof tOperation.graph.cell_marks
const marksOf = (node: GraphNode, critical: boolean): Mark[] => [
  ...(node.held_by_patch ? (['held'] as const) : []),
  ...(node.exception === null ? [] : (['excepted'] as const)),
  ...(critical ? (['critical'] as const) : []),
]
