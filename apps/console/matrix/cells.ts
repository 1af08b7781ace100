import { useMemo } from 'react'
import type { Graph, GraphNode } from '../api/types.ts'

export type Row = { target_id: string; name: string; group: string | null; cells: (GraphNode | undefined)[] }
export type Matrix = { steps: string[]; rows: Row[] }

/**
 * A plan that repeats steps over targets, as rows of targets and columns of steps in plan order; `null` if no two
 * targets share a step. A node is named "<step> <target>": the words that all nodes of a target end with are the
 * target's name. Rows of a block follow each other. Nodes without a target are left out. Pure.
 */
export const matrixOf = (graph: Graph): Matrix | null => {
  const targets = Map.groupBy(
    graph.nodes.filter(({ target_id }) => target_id !== null),
    ({ target_id }) => target_id as string,
  )
  const columns = new Map<string, { step: string; cells: Map<string, GraphNode> }>()
  const names = new Map<string, string>()
  for (const [target_id, nodes] of targets) {
    const name = sharedEnd(nodes, target_id)
    names.set(target_id, name)
    for (const node of nodes) {
      const step = node.name.endsWith(` ${name}`) ? node.name.slice(0, -name.length - 1) : node.name
      // A step that a patch gives a target twice gets a second column.
      let key = step
      while (columns.get(key)?.cells.has(target_id)) key += '+'
      const column = columns.get(key) ?? { step, cells: new Map() }
      columns.set(key, column)
      column.cells.set(target_id, node)
    }
  }
  const shown = [...columns.values()]
  if (!shown.some(({ cells }) => cells.size > 1)) return null
  const rows = [...targets].map(
    ([target_id, nodes]): Row => ({
      target_id,
      name: names.get(target_id) ?? target_id,
      group: nodes[0]?.group ?? null,
      cells: shown.map(({ cells }) => cells.get(target_id)),
    }),
  )
  return { steps: shown.map(({ step }) => step), rows: [...Map.groupBy(rows, ({ group }) => group).values()].flat() }
}

/** Whether the matrix says more than the drawing: many targets share steps, few cells are empty, no work or gate is left out. */
export const isMatrixFirst = ({ nodes, gates }: Graph, { rows, steps }: Matrix): boolean => {
  const cells = new Set(rows.flatMap((row) => row.cells.flatMap((node) => node?.node_id ?? [])))
  return (
    rows.length >= 6 &&
    steps.length >= 2 &&
    5 * cells.size >= 4 * rows.length * steps.length &&
    nodes.every(({ target_id, kind }) => target_id !== null || kind === 'barrier') &&
    gates.every(({ guards }) => guards.length === 0 || guards.some((id) => cells.has(id)))
  )
}

/** The matrix of a graph that is read again and again: its places change only with the plan. */
export const useMatrix = (graph: Graph): Matrix | null =>
  // biome-ignore lint/correctness/useExhaustiveDependencies: states come from `GraphStates`
  useMemo(() => matrixOf(graph), [graph.plan_revision])

/** The lines from top to bottom: before the rows of each block, a line with the block's name and index -1. Pure. */
export const linesOf = ({ rows }: Matrix): { index: number; group: string | null }[] =>
  [...Map.groupBy(rows.entries(), ([, { group }]) => group)].flatMap(([group, block]) => [
    ...(group === null ? [] : [{ index: -1, group }]),
    ...block.map(([index]) => ({ index, group })),
  ])

/** The words that all of these nodes' names end with; each name keeps at least one word that is not shared. */
const sharedEnd = (nodes: GraphNode[], target_id: string): string => {
  const [first = [], ...others] = nodes.map(({ name }) => name.split(' '))
  let length = 0
  const holds = (at: number) => others.every((words) => words.length > at && words.at(-at) === first.at(-at))
  if (others.length > 0) while (length + 1 < first.length && holds(length + 1)) length += 1
  return length === 0 ? target_id : first.slice(-length).join(' ')
}

type Key = { key: string; ctrlKey?: boolean }
/** The place that a key leads to, within the matrix. A page is a block, or ten rows if there is only one block. Pure. */
export const placeAfter = (
  { key, ctrlKey = false }: Key,
  [row, column]: Place,
  { rows, steps }: Matrix,
): Place | undefined => {
  const [down, right] = [rows.length - 1, steps.length - 1]
  const inside = (r: number, c: number): Place => [Math.min(down, Math.max(0, r)), Math.min(right, Math.max(0, c))]
  if (key === 'ArrowDown') return inside(row + 1, column)
  if (key === 'ArrowUp') return inside(row - 1, column)
  if (key === 'ArrowRight') return inside(row, column + 1)
  if (key === 'ArrowLeft') return inside(row, column - 1)
  if (key === 'Home') return [ctrlKey ? 0 : row, 0]
  if (key === 'End') return [ctrlKey ? down : row, right]
  const begins = rows.flatMap(({ group }, at) => (at === 0 || group !== rows[at - 1]?.group ? [at] : []))
  const blocks = begins.length > 1
  if (key === 'PageDown') return inside(blocks ? (begins.find((at) => at > row) ?? down) : row + ROWS, column)
  if (key === 'PageUp') return inside(blocks ? (begins.findLast((at) => at < row) ?? 0) : row - ROWS, column)
  return undefined
}
const ROWS = 10

/** The next or previous node, row by row, that passes a test; `undefined` if none does. Pure. */
export const placeOf = (
  by: 1 | -1,
  [row, column]: Place,
  { rows }: Matrix,
  passes: (node: GraphNode) => boolean,
): Place | undefined => {
  const places = rows.flatMap(({ cells }, r) =>
    cells.flatMap((node, c): Place[] => (node && passes(node) ? [[r, c]] : [])),
  )
  const after = ([r, c]: Place) => r - row || c - column
  return by > 0 ? places.find((place) => after(place) > 0) : places.findLast((place) => after(place) < 0)
}
export type Place = [row: number, column: number]
