import type { Graph } from '../api/types.ts'
import type { Matrix } from './cells.ts'

type Gate = Graph['gates'][number]
/** The positions of the gates: before a column, above a block of rows (by its group), or in single cells, by node. */
export type Placed = {
  columns: Map<number, Gate[]>
  blocks: Map<string | null, Gate[]>
  /** Numbered from 1, in the order of the plan. */
  single: Gate[]
  cells: Map<string, number[]>
}

/**
 * A gate that every target passes at the same step goes before that column. A gate that guards whole blocks from their
 * first step goes above each of them. Any other is a number in the cells that it guards first. Gates of nodes outside
 * the matrix are left out. Pure.
 */
export const placeGates = ({ gates }: Pick<Graph, 'gates'>, { rows }: Matrix): Placed => {
  const placed: Placed = { columns: new Map(), blocks: new Map(), single: [], cells: new Map() }
  const blocks = Map.groupBy(rows, ({ group }) => group)
  for (const gate of gates) {
    const guards = new Set(gate.guards)
    const firsts = rows.map(({ cells }) => cells.findIndex((node) => node !== undefined && guards.has(node.node_id)))
    const column = firsts.find((at) => at >= 0)
    if (column === undefined) continue
    const whole = [...blocks].filter(
      ([group, members]) =>
        group !== null &&
        members.every(({ cells }) => firstOf(cells) >= 0 && guards.has(cells[firstOf(cells)]?.node_id ?? '')),
    )
    const inWhole = whole.reduce((sum, [, members]) => sum + members.length, 0)
    if (rows.every(({ cells }, at) => firsts[at] === column || (firsts[at] === -1 && cells[column] === undefined)))
      add(placed.columns, column, gate)
    else if (inWhole === firsts.filter((at) => at >= 0).length)
      for (const [group] of whole) add(placed.blocks, group, gate)
    else {
      const number = placed.single.push(gate)
      for (const [at, { cells }] of rows.entries()) {
        const node = cells[firsts[at] ?? -1]
        if (node) add(placed.cells, node.node_id, number)
      }
    }
  }
  return placed
}

const firstOf = (cells: Matrix['rows'][number]['cells']): number => cells.findIndex((node) => node !== undefined)
const add = <K, V>(map: Map<K, V[]>, key: K, value: V): void => void map.set(key, [...(map.get(key) ?? []), value])

/** The median of these numbers; `undefined` if there are none. Pure. */
export const median = (numbers: readonly number[]): number | undefined => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return low === undefined || high === undefined ? undefined : (low + high) / 2
}
