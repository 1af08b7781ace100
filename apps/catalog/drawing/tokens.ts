import type { Position } from '../graph/edges.ts'
import type { Hop, Shown } from './traverse.ts'

/**
 * Where a graph continues (catalog.md 7.2): the node, its depth, the position among its neighbors, and the hops that
 * led there. Nodes shown on the way are not shown again.
 */
export type Place = { rid: number; depth: number; from: Position | undefined; way: Hop[] }

/** How many continuations may follow one another; beyond that, the walk starts afresh at the node. */
const MAX_HOPS = 10

const writePosition = (at: Position | undefined): string => (at ? `${at.type}${at.out ? 'o' : 'i'}${at.peer}` : '')
const readPosition = (text: string): Position | undefined => {
  const [, type, end, peer] = /^(\d+)([oi])(\d+)$/.exec(text) ?? []
  return type && peer ? { type: Number(type), out: end === 'o', peer: Number(peer) } : undefined
}

/** Reads the keys of a page token, which reach this code only if we signed them. */
export const readPlace = ([depth = '0', ...hops]: readonly string[]): Place => {
  const way = hops.map((text): Hop => {
    const [rid = '0', from = '', to = ''] = text.split('~')
    return { rid: Number(rid), from: readPosition(from), to: readPosition(to) }
  })
  const { rid, from } = way.pop() ?? { rid: 0, from: undefined }
  return { rid, depth: Number(depth), from, way }
}

export const hopsBefore = ({ way, rid, from }: Place): Hop[] => [...way, { rid, from, to: undefined }]

/** The keys of the token that continues at a node of a picture; `undefined` if too many hops led there. */
export const writePlace = (place: Place | undefined, nodes: readonly Shown[], node: Shown): string[] | undefined => {
  const hops: Hop[] = []
  if (place) {
    const shown: Hop = { rid: place.rid, from: place.from, to: nodes[0]?.last }
    const before = place.way.at(-1)
    // Consecutive pages of one node are one hop.
    if (before?.rid === place.rid) hops.push(...place.way.slice(0, -1), { ...shown, from: before.from })
    else hops.push(...place.way, shown)
  }
  if (hops.length > MAX_HOPS) return undefined
  const texts = hops.map(({ rid, from, to }) => `${rid}~${writePosition(from)}~${writePosition(to)}`)
  return [String(node.depth), ...texts, `${node.rid}~${writePosition(node.last)}~`]
}
