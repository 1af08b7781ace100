import type { Box, Drawing, Point } from './layout.ts'

type Step = 'right' | 'left' | 'up' | 'down'
const PAGE = 10
const STEPS: Record<string, [step: Step, times: number]> = {
  ArrowRight: ['right', 1],
  ArrowLeft: ['left', 1],
  ArrowUp: ['up', 1],
  ArrowDown: ['down', 1],
  PageUp: ['up', PAGE],
  PageDown: ['down', PAGE],
}

/** The box that a key leads to, a page being ten boxes; undefined for another key. Pure. */
export const boxAfter = (drawing: Drawing, at: string, key: string): string | undefined => {
  const [step, times] = STEPS[key] ?? []
  if (step === undefined) return undefined
  let next = at
  for (let n = 0; n < (times ?? 1); n += 1) next = neighbour(drawing, next, step)
  return next
}

/** The box that an arrow key leads to: right and left along the edges, up and down to neighbors. Pure. */
export const neighbour = (drawing: Drawing, at: string, step: Step): string => {
  const all = new Map(drawing.boxes.map((box) => [box.id, box]))
  const boxes = drawing.boxes.filter((box) => box.kind !== 'group')
  const found = all.get(at)
  const here = found === undefined || found.kind === 'group' ? boxes[0] : found
  if (here === undefined) return at
  const centreOf = (box: Box): Point => {
    const parent = box.parent === undefined ? undefined : all.get(box.parent)
    return { x: (parent?.x ?? 0) + box.x + box.width / 2, y: (parent?.y ?? 0) + box.y + box.height / 2 }
  }
  const middle = centreOf(here)
  const near = (ids: readonly Box[]): string | undefined => {
    let [best, least]: [string | undefined, number] = [undefined, Number.POSITIVE_INFINITY]
    for (const box of ids) {
      const far = distance(centreOf(box), middle)
      if (far < least) [best, least] = [box.id, far]
    }
    return best
  }
  if (step === 'right' || step === 'left') {
    const ends = drawing.lines
      .filter((line) => (step === 'right' ? line.from : line.to) === here.id)
      .map((line) => (step === 'right' ? line.to : line.from))
    const ids = new Set(ends)
    return near(boxes.filter((box) => ids.has(box.id))) ?? here.id
  }
  const sign = step === 'down' ? 1 : -1
  const sameColumn = boxes.filter((box) => {
    const centre = centreOf(box)
    return Math.abs(centre.x - middle.x) < box.width / 2 && (centre.y - middle.y) * sign > 0
  })
  return near(sameColumn) ?? here.id
}

const distance = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y)
