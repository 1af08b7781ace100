import type { Graph } from '../../shared/contracts/topology/graphs.ts'

export type Resource = Graph['nodes'][number]

/** The resources of each place, by name; undefined if not all of them were read. */
export const contentsOf = ({ nodes, edges, truncated }: Graph, places: ReadonlySet<string>) => {
  if (truncated.nodes || truncated.edges || truncated.fanout) return undefined
  const outer = new Map(edges.map(({ from, to }) => [from, to]))
  const placeOf = (id: string): string => {
    const around = outer.get(id) ?? ''
    return around === '' || places.has(around) ? around : placeOf(around)
  }
  const inside = nodes.filter(({ resource_id }) => !places.has(resource_id))
  return Map.groupBy(
    inside.toSorted((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })),
    ({ resource_id }) => placeOf(resource_id),
  )
}

/** The size of a square and the gap beside it, in px, and how many are in a row. */
export const CELL = 12
const SIDE = 10
const ACROSS = 16

/** The shape of each health differs without its color, too; every part is within the square. */
const SHAPES: Record<string, (x: number, y: number) => string> = {
  unhealthy: (x, y) => `M${x} ${y}h${SIDE}v${SIDE}h-${SIDE}z`,
  degraded: (x, y) => `M${x} ${y + SIDE}h${SIDE}l-5 -${SIDE}z`,
  unknown: (x, y) => `M${x + 5} ${y}l5 5l-5 5l-5 -5z`,
  maintenance: (x, y) => `M${x + 1} ${y}h3v${SIDE}h-3zM${x + 6} ${y}h3v${SIDE}h-3z`,
  healthy: (x, y) => `M${x + 2} ${y + 2}h6v6h-6z`,
}

/** A picture of resources in rows: one path per health, so that thousands take few elements. */
export const squaresOf = (resources: readonly Pick<Resource, 'health_status'>[]) => {
  const across = Math.min(ACROSS, Math.max(1, resources.length))
  const paths = new Map<string, string>()
  for (const [at, { health_status }] of resources.entries()) {
    const draw = SHAPES[health_status] ?? SHAPES.unknown
    const path = draw?.((at % across) * CELL, Math.floor(at / across) * CELL) ?? ''
    paths.set(health_status, (paths.get(health_status) ?? '') + path)
  }
  return { across, paths, width: across * CELL, height: Math.ceil(resources.length / across) * CELL }
}

/** The resource at a point of the picture, by its place in the list; undefined where none is. */
export const squareAt = (x: number, y: number, across: number, count: number): number | undefined => {
  const [column, row] = [Math.floor(x / CELL), Math.floor(y / CELL)]
  const at = row * across + column
  return column >= 0 && column < across && row >= 0 && at < count ? at : undefined
}

/** Where an arrow key leads from a square; undefined for other keys. */
export const stepFrom = (at: number, key: string, across: number, count: number): number | undefined => {
  const by = new Map([
    ['ArrowRight', 1],
    ['ArrowLeft', -1],
    ['ArrowDown', across],
    ['ArrowUp', -across],
  ]).get(key)
  if (by === undefined) return undefined
  return at + by < 0 || at + by >= count ? at : at + by
}
