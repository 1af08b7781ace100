import type { Box, Drawing, Point } from './layout.ts'

/** The box that an arrow key leads to: right and left along the edges, up and down to neighbors. Pure. */
export const neighbour = (drawing: Drawing, at: string, step: 'right' | 'left' | 'up' | 'down'): string => {
  const boxes = drawing.boxes.filter((box) => box.kind !== 'group')
  const here = boxes.find((box) => box.id === at) ?? boxes[0]
  if (here === undefined) return at
  const middle = centreOf(drawing, here)
  const near = (ids: readonly Box[]): string | undefined =>
    [...ids].sort((a, b) => distance(centreOf(drawing, a), middle) - distance(centreOf(drawing, b), middle))[0]?.id
  if (step === 'right' || step === 'left') {
    const ids = drawing.lines
      .filter((line) => (step === 'right' ? line.from : line.to) === here.id)
      .map((line) => (step === 'right' ? line.to : line.from))
    return near(boxes.filter((box) => ids.includes(box.id))) ?? here.id
  }
  const sign = step === 'down' ? 1 : -1
  const sameColumn = boxes.filter((box) => {
    const centre = centreOf(drawing, box)
    return Math.abs(centre.x - middle.x) < box.width / 2 && (centre.y - middle.y) * sign > 0
  })
  return near(sameColumn) ?? here.id
}

const centreOf = (drawing: Drawing, box: Box): Point => {
  const parent = box.parent === undefined ? undefined : drawing.boxes.find((candidate) => candidate.id === box.parent)
  return { x: (parent?.x ?? 0) + box.x + box.width / 2, y: (parent?.y ?? 0) + box.y + box.height / 2 }
}

const distance = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y)
