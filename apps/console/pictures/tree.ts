import { type Box, type Drawing, type Line, NODE_HEIGHT, NODE_WIDTH, type Point } from '../graph/layout.ts'

/** A resource in a picture and the branches beyond it, by relation. */
export type Branch = { id: string; beyond: Relation[] }
export type Relation = { name: string; members: Branch[] }
/** The name of a relation, in the middle of the lines that it gathers. */
export type Tag = Omit<Box, 'parent' | 'kind'> & { name: string }
export type Picture = Drawing & { tags: Tag[]; width: number; height: number }

const GAP = 12
const TAG = { width: 112, height: 24 }
const TAG_AT = 24
const CHANNEL = TAG.width + 2 * TAG_AT
const MARGIN = 8

type Part = { boxes: Box[]; tags: Tag[]; lines: Line[] }

/**
 * Draws a resource with relations to its right, and perhaps to its left. Every resource has one box, columns are
 * distances, and no two boxes overlap. A line from the left ends at the resource, one to the right begins there. Pure.
 */
export const pictureOf = (id: string, right: readonly Relation[], left: readonly Relation[] = []): Picture => {
  const [after, before] = [right, left].map((beyond) => grow({ id, beyond: [...beyond] }, 0, 0).part) as [Part, Part]
  const lift = (after.boxes[0]?.y ?? 0) - (before.boxes[0]?.y ?? 0)
  const mirrored = moved(mirror(before), 0, lift)
  const boxes = [...after.boxes, ...mirrored.boxes.slice(1)]
  const corner = { x: Math.min(...boxes.map(({ x }) => x)), y: Math.min(...boxes.map(({ y }) => y)) }
  const all: Part = { boxes, tags: [...after.tags, ...mirrored.tags], lines: [...after.lines, ...mirrored.lines] }
  const whole = moved(all, MARGIN - corner.x, MARGIN - corner.y)
  return {
    ...whole,
    whole: true,
    width: Math.max(...whole.boxes.map(({ x, width }) => x + width)) + MARGIN,
    height: Math.max(...whole.boxes.map(({ y, height }) => y + height)) + MARGIN,
  }
}

/** A branch from `top` down, with each resource centered on the resources beyond it. */
const grow = ({ id, beyond }: Branch, depth: number, top: number): { part: Part; bottom: number; middle: number } => {
  const part: Part = { boxes: [], tags: [], lines: [] }
  const x = depth * (NODE_WIDTH + CHANNEL)
  let bottom = top
  const tags = beyond.map(({ name, members }) => {
    const middles = members.map((member) => {
      const grown = grow(member, depth + 1, bottom)
      bottom = grown.bottom
      for (const kind of ['boxes', 'tags', 'lines'] as const) part[kind].push(...(grown.part[kind] as never[]))
      return { to: member.id, y: grown.middle }
    })
    const y = ((middles[0]?.y ?? 0) + (middles.at(-1)?.y ?? 0)) / 2
    const tag: Tag = { id: `${id} ${name}`, name, x: x + NODE_WIDTH + TAG_AT, y: y - TAG.height / 2, ...TAG }
    return { tag, middles, y }
  })
  const middle = tags.length === 0 ? top + NODE_HEIGHT / 2 : ((tags[0]?.y ?? 0) + (tags.at(-1)?.y ?? 0)) / 2
  const box: Box = { id, x, y: middle - NODE_HEIGHT / 2, width: NODE_WIDTH, height: NODE_HEIGHT, kind: 'node' }
  const lines = tags.flatMap(({ tag, middles, y }) =>
    middles.map((member): Line => {
      const points: Point[] = [
        { x: x + NODE_WIDTH, y: middle },
        { x: tag.x, y },
        { x: tag.x + tag.width, y },
        { x: x + NODE_WIDTH + CHANNEL, y: member.y },
      ]
      return { id: `${tag.id} ${member.to}`, from: id, to: member.to, points }
    }),
  )
  part.boxes.unshift(box)
  part.tags.push(...tags.map(({ tag }) => tag))
  part.lines.push(...lines)
  return { part, bottom: Math.max(bottom, top + NODE_HEIGHT + GAP), middle }
}

const mirror = ({ boxes, tags, lines }: Part): Part => {
  const flip = <T extends { x: number; width: number }>(one: T): T => ({ ...one, x: NODE_WIDTH - one.x - one.width })
  return {
    boxes: boxes.map(flip),
    tags: tags.map((tag) => ({ ...flip(tag), id: `${tag.id} before` })),
    lines: lines.map(({ id, from, to, points }) => ({
      ...{ id: `${id} before`, from: to, to: from },
      points: points.map(({ x, y }) => ({ x: NODE_WIDTH - x, y })).reverse(),
    })),
  }
}

const moved = ({ boxes, tags, lines }: Part, dx: number, dy: number): Part => {
  const move = <T extends Point>(one: T): T => ({ ...one, x: one.x + dx, y: one.y + dy })
  return {
    boxes: boxes.map(move),
    tags: tags.map(move),
    lines: lines.map((line) => ({ ...line, points: line.points.map(move) })),
  }
}

/** A line as a path: curved to its tag, straight below it, curved to its end. */
export const curveOf = ([a, b, c, d]: readonly Point[]): string =>
  a && b && c && d ? `M${a.x} ${a.y}${bend(a, b)}L${c.x} ${c.y}${bend(c, d)}` : ''

const bend = (from: Point, to: Point): string => {
  const x = (from.x + to.x) / 2
  return `C${x} ${from.y} ${x} ${to.y} ${to.x} ${to.y}`
}
