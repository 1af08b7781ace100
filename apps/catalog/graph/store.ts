import type { GraphEventRow as GraphEvent } from '../../../db/catalog/relationships/graph-events.ts'
import type { Types } from '../packs/registry.ts'
import { applyEvent, type Parts } from './apply.ts'
import { bytesOf, type GraphArrays } from './arrays.ts'
import { createCounts } from './counts.ts'
import { createEdges, type Direction, eachArc, order, orderedArcs, type Position, rankTypes } from './edges.ts'
import { createNodes } from './nodes.ts'

/** Approximate size of an overlay object, for the memory bound. */
const OVERLAY_BYTES = 200

/** One process's graph: loaded arrays (numbers change in place), maps for additions, fed in order by the event log. */
export const createStore = (base: GraphArrays) => {
  const nodes = createNodes(base)
  const edges = createEdges(base)
  const parts: Parts = { nodes, edges }
  const { size, knows, isOpen, ridOf, idOf, nameOf, lifecycleOf, healthOf, numberAt } = nodes
  let watermark = base.watermark

  return {
    get watermark() {
      return watermark
    },
    /** Counts for metrics: nodes and edges held, and how many of them are not in the arrays. */
    figures: () => {
      const changed = nodes.changed() + edges.changed
      return { nodes: nodes.count(), edges: edges.count, changed, bytes: bytesOf(base) + changed * OVERLAY_BYTES }
    },
    rankTypes: (types: Types): void => rankTypes(edges, types),
    /** Applies events in log order. Throws UnknownName before anything of that event has changed. */
    apply: (events: readonly GraphEvent[], types: Types): void => {
      rankTypes(edges, types)
      for (const event of events) {
        applyEvent(parts, event, types)
        watermark = event.pub_seq
      }
    },
    ...{ size, knows, isOpen, ridOf, idOf, nameOf, lifecycleOf, healthOf },
    typeOf: (rid: number): number => numberAt(rid, 'type'),
    parentOf: (rid: number): number => numberAt(rid, 'parent'),
    versionOf: (rid: number): number => numberAt(rid, 'version'),
    eachArc: (rid: number, visit: (type: number, out: boolean, peer: number, no: number) => void): void =>
      eachArc(edges, rid, visit),
    orderedArcs: (
      rid: number,
      direction: Direction,
      after: Position | undefined,
      visit: (type: number, out: boolean, peer: number) => boolean,
    ): void => orderedArcs(edges, rid, direction, after, visit),
    /** Whether a position comes after another in a node's order. */
    isAfter: (a: Position, b: Position): boolean => order(edges, a, b.type, b.out, b.peer) > 0,
    /** Starts counting the resources below places, and maintains the counts from then on. */
    countPlaces: async (types: Types): Promise<void> => {
      rankTypes(edges, types)
      parts.counts = countsOf(parts, types)
      await parts.counts.fill()
    },
    /** Whether places of these types are counted. */
    counts: ({ topologyIds }: Types): boolean =>
      parts.counts !== undefined && topologyIds.every((id) => parts.counts?.topology.has(id)),
    /** How many open resources of each type, lifecycle and health are below a place. */
    eachCount: (
      place: number,
      visit: (type: number, lifecycle: string, health: string, count: number) => void,
    ): void => {
      const { lifecycles, healths } = nodes
      parts.counts?.each(place, (type, lifecycle, health, count) =>
        visit(type, lifecycles.words[lifecycle] ?? 'unknown', healths.words[health] ?? 'unknown', count),
      )
    },
  }
}
export type Store = ReturnType<typeof createStore>

const countsOf = ({ nodes: { size, isOpen, numberAt }, edges }: Parts, types: Types) => {
  const containment = types.relationships.find((type) => type.containment)?.id ?? -1
  return createCounts(
    {
      size,
      isOpen,
      typeOf: (rid) => numberAt(rid, 'type'),
      parentOf: (rid) => numberAt(rid, 'parent'),
      lifecycleNo: (rid) => numberAt(rid, 'lifecycle'),
      healthNo: (rid) => numberAt(rid, 'health'),
      eachChild: (rid, visit) =>
        eachArc(edges, rid, (type, out, peer) => {
          if (!out && type === containment) visit(peer)
        }),
    },
    new Set(types.topologyIds),
  )
}
