import { type Edge, type Node, Position } from '@xyflow/react'
import type { Graph } from '../api/types.ts'
import { gateOfBox } from './gates.ts'
import type { Drawing } from './layout.ts'
import type { PatchedGraph } from './patched.ts'

/** Turns a layout into React Flow's boxes and lines, with its size. */
export const MAP = { width: 220, height: 76 }

export const sizeOf = (drawing: Drawing | null): { width: number; height: number } => {
  const boxes = drawing?.boxes.filter((box) => box.parent === undefined) ?? []
  return {
    width: Math.max(0, ...boxes.map((box) => box.x + box.width)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  }
}

const MARGIN = 24
/** The center nearest to the wanted one that keeps the view inside the drawing; the middle if the drawing fits. */
export const within = (wanted: number, whole: number, seen: number): number =>
  whole + 2 * MARGIN <= seen ? whole / 2 : Math.min(Math.max(wanted, seen / 2 - MARGIN), whole + MARGIN - seen / 2)

/** The height of the drawing at a readable size, with room for the map below it. */
export const heightOf = (drawing: Drawing | null): number => {
  const { height } = sizeOf(drawing)
  return height === 0 ? 0 : height * 0.9 + 2 * (MAP.height + 24)
}

type Marks = { fold: (group: string) => void; patched: PatchedGraph | undefined }

/** The boxes with their sizes and the ends of their lines; otherwise React Flow draws every box to measure it. */
export function toNodes(drawing: Drawing, graph: Graph, { fold, patched }: Marks): Node[] {
  const names = new Map(graph.groups.map((group) => [group.group_id, group.name]))
  return drawing.boxes.map(
    ({ id, kind, x, y, width, height, parent }): Node => ({
      ...{ id, type: kind, position: { x, y }, width, height, measured: { width, height } },
      handles: [
        { type: 'target', position: Position.Left, x: 0, y: height / 2 },
        { type: 'source', position: Position.Right, x: width, y: height / 2 },
      ],
      data: { name: names.get(id) ?? id, fold, mark: patched?.marks.get(id), patched: patched !== undefined },
      ...(parent === undefined ? {} : { parentId: parent }),
      ...(kind === 'group' ? { zIndex: -1 } : {}),
    }),
  )
}

export function toEdges(drawing: Drawing, graph: Graph, patched: PatchedGraph | undefined): Edge[] {
  const critical = new Set(graph.critical_path)
  return drawing.lines.map(
    (line): Edge => ({
      id: line.id,
      source: line.from,
      target: line.to,
      type: 'line',
      data: {
        points: line.points,
        critical: critical.has(line.from) && critical.has(line.to),
        mark: patched?.lines.get(line.id) ?? (gateOfBox(line.from) && patched?.marks.get(line.from)),
      },
    }),
  )
}
