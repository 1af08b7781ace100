import type { GraphEventRow as GraphEvent } from '../../../db/catalog/relationships/graph-events.ts'
import type { Types } from '../packs/registry.ts'
import { bytesOf, CLOSED, type GraphArrays, hashOfId, OPEN } from './arrays.ts'
import { createCounts } from './counts.ts'

/** One end of an open edge, seen from a node. */
export type Arc = { type: number; out: boolean; peer: number; no: number }
/** A place in a node's order of neighbours. */
export type Position = { type: number; out: boolean; peer: number }
export type Direction = 'out' | 'in' | 'both'

type Added = {
  id: string
  name: string
  kind: number
  type: number
  lifecycle: number
  health: number
  parent: number
  version: number
  health_revision: number
}

/** An event names what the types of this process do not know yet, or a resource that never came. */
export class UnknownName extends Error {}

/** Words such as lifecycle states as small numbers. */
const wordsOf = (known: string[]) => {
  const words = [...known]
  const numbers = new Map(words.map((word, i) => [word, i]))
  return {
    words,
    numberOf: (word: string): number => {
      const number = numbers.get(word)
      if (number !== undefined) return number
      numbers.set(word, words.length)
      words.push(word)
      return words.length - 1
    },
  }
}

/** Aggregates that tell of a resource's versions. */
const RESOURCE = new Set(['resource', 'relationships'])

/** About what an object of the overlay takes, for the bound on memory. */
const OVERLAY_BYTES = 200

/**
 * The graph of one process: the loaded arrays, changed in place where only a number changes, and maps for what was added
 * since. Fed by the event log alone, in its order; an event that the snapshot already held is known by its version and
 * skipped whole, edges included, since both were written together.
 */
export const createStore = (base: GraphArrays) => {
  const text = Buffer.from(base.text.buffer as ArrayBuffer, base.text.byteOffset, base.text.byteLength)
  const lifecycles = wordsOf(base.lifecycles)
  const healths = wordsOf(base.healths)
  const added = new Map<number, Added>()
  const addedIds = new Map<string, number>()
  const arcs = new Map<number, Arc[]>()
  let watermark = base.watermark
  let nodes = base.nodes
  let edges = base.edges
  let changed = 0
  let size = base.size
  let rank = new Uint16Array(0)
  let ranked: Types | undefined
  let containment = -1
  let counts: ReturnType<typeof createCounts> | undefined

  const has = (rid: number) => rid < base.size && base.kind[rid] !== 0
  const newOne = (rid: number): Added => {
    const node = added.get(rid)
    if (!node) throw new Error(`no resource ${rid} in the graph`)
    return node
  }
  const num = (rid: number, field: 'type' | 'parent' | 'version' | 'health_revision'): number =>
    has(rid) ? (base[field][rid] as number) : newOne(rid)[field]
  const setNum = (
    rid: number,
    field: 'kind' | 'lifecycle' | 'health' | 'parent' | 'version' | 'health_revision',
    value: number,
  ) => {
    if (has(rid)) base[field][rid] = value
    else newOne(rid)[field] = value
  }

  const ridOf = (id: string): number | undefined => {
    const mask = base.ids.length - 1
    for (let place = hashOfId(id.length, (i) => id.charCodeAt(i)) & mask; ; place = (place + 1) & mask) {
      const rid = base.ids[place] as number
      if (rid === 0) return addedIds.get(id)
      if (base.id_bytes[rid] === id.length && baseId(rid) === id) return rid
    }
  }
  const baseId = (rid: number): string => {
    const at = base.text_at[rid] as number
    return text.toString('latin1', at, at + (base.id_bytes[rid] as number))
  }

  /** Types by id, in the order of their keys. The order of two types never changes, so loaded lists stay sorted. */
  const rankTypes = (types: Types): void => {
    if (ranked === types) return
    rank = new Uint16Array(Math.max(0, ...types.relationships.map(({ id }) => id)) + 1)
    types.relationships.forEach(({ id }, i) => {
      rank[id] = i
    })
    containment = types.relationships.find((type) => type.containment)?.id ?? -1
    ranked = types
  }
  const order = (a: Position, type: number, out: boolean, peer: number): number =>
    (rank[a.type] as number) - (rank[type] as number) || Number(out) - Number(a.out) || a.peer - peer

  /** The place of a loaded edge in out_…, or -1. */
  const findLoaded = (src: number, type: number, dst: number): number => {
    if (src >= base.size) return -1
    let low = base.out_at[src] as number
    const end = base.out_at[src + 1] as number
    let high = end
    const wanted = { type, out: true, peer: dst }
    while (low < high) {
      const middle = (low + high) >>> 1
      if (order(wanted, base.out_type[middle] as number, true, base.out_dst[middle] as number) > 0) low = middle + 1
      else high = middle
    }
    const found = low < end && base.out_type[low] === type && base.out_dst[low] === dst && base.out_no[low] !== 0
    return found ? low : -1
  }

  /** The place of an arc in the overlay's list, or where it belongs. */
  const placeOfArc = (list: readonly Arc[], wanted: Position): number => {
    let low = 0
    for (let high = list.length; low < high; ) {
      const middle = (low + high) >>> 1
      const one = list[middle] as Arc
      if (order(wanted, one.type, one.out, one.peer) > 0) low = middle + 1
      else high = middle
    }
    return low
  }
  const insertArc = (rid: number, arc: Arc): void => {
    const list = arcs.get(rid) ?? []
    list.splice(placeOfArc(list, arc), 0, arc)
    arcs.set(rid, list)
    changed += 1
  }
  const findArc = (rid: number, type: number, out: boolean, peer: number): number => {
    const list = arcs.get(rid) ?? []
    const place = placeOfArc(list, { type, out, peer })
    const found = list[place]
    return found && found.type === type && found.out === out && found.peer === peer ? place : -1
  }

  const addEdge = (src: number, type: number, dst: number, no: number): void => {
    if (findLoaded(src, type, dst) >= 0 || findArc(src, type, true, dst) >= 0) return
    insertArc(src, { type, out: true, peer: dst, no })
    insertArc(dst, { type, out: false, peer: src, no })
    edges += 1
  }
  const removeEdge = (src: number, type: number, dst: number): void => {
    const loaded = findLoaded(src, type, dst)
    const place = findArc(src, type, true, dst)
    if (loaded < 0 && place < 0) return
    if (loaded >= 0) base.out_no[loaded] = 0
    if (place >= 0) {
      arcs.get(src)?.splice(place, 1)
      arcs.get(dst)?.splice(findArc(dst, type, false, src), 1)
    }
    changed += 1
    edges -= 1
  }

  /** The event of a version, or a part of its relationships, which comes before it. */
  const applyResource = (event: GraphEvent, types: Types): void => {
    const rid = Number(event.rid)
    const part = event.agg_type === 'relationships'
    const [version, type] = part ? [event.version ?? 0, event.of] : [event.agg_version, event.type]
    if (!has(rid) && !added.has(rid)) {
      const known = types.newest(event.type_key ?? '')
      if (!known) throw new UnknownName(`type ${event.type_key}`)
      const id = event.resource_id ?? ''
      const health = healths.numberOf(event.health_status ?? 'unknown')
      const node = { id, name: event.name ?? '', kind: OPEN, type: known.id, parent: 0, version: 0, health_revision: 0 }
      added.set(rid, { ...node, lifecycle: 0, health })
      addedIds.set(id, rid)
      size = Math.max(size, rid + 1)
      nodes += 1
      changed += 1
    }
    if (version <= num(rid, 'version')) return
    const moves = (event.changes ?? []).map((change) => resolve(change, types))
    for (const { op, relation, from, to, no } of moves) {
      if (op === 'added') addEdge(from, relation.id, to, no)
      else if (op === 'removed') removeEdge(from, relation.id, to)
      // Containment is told by either end, so a child's place is read from its edge; where it ended stays its place.
      if (!relation.containment) continue
      if (op === 'added') moveTo(from, to)
      else if (op === 'removed' && type !== 'resource.retired' && num(from, 'parent') === to) moveTo(from, 0)
    }
    if (part) return
    changing(rid, () => {
      if (type === 'resource.retired') setNum(rid, 'kind', CLOSED)
      setNum(rid, 'lifecycle', lifecycles.numberOf(event.lifecycle_status ?? 'unknown'))
    })
    setNum(rid, 'version', version)
  }

  const changing = (rid: number, change: () => void): void => (counts ? counts.changing(rid, change) : change())
  const moveTo = (rid: number, parent: number): void => {
    const move = () => setNum(rid, 'parent', parent)
    if (counts) counts.moving(rid, move)
    else move()
  }

  const resolve = (change: NonNullable<GraphEvent['changes']>[number], types: Types) => {
    const { op, relationship_id, type_key, from_id, to_id } = change
    const relation = types.relationship(type_key)
    const [from, to] = [ridOf(from_id), ridOf(to_id)]
    if (!relation || from === undefined || to === undefined)
      throw new UnknownName(`${type_key} from ${from_id} to ${to_id}`)
    return { op, relation, from, to, no: numberOfRelationship(relationship_id) }
  }

  const applyHealth = (event: GraphEvent): void => {
    const rid = Number(event.rid)
    if (event.agg_version <= num(rid, 'health_revision')) return
    changing(rid, () => setNum(rid, 'health', healths.numberOf(event.health_status ?? 'unknown')))
    setNum(rid, 'health_revision', event.agg_version)
  }

  const isOpen = (rid: number): boolean => (has(rid) ? base.kind[rid] === OPEN : added.get(rid)?.kind === OPEN)

  /** Every open edge of a node, in no order worth knowing. */
  const eachArc = (rid: number, visit: (type: number, out: boolean, peer: number, no: number) => void): void => {
    if (rid < base.size) {
      for (let i = base.out_at[rid] as number, end = base.out_at[rid + 1] as number; i < end; i++)
        if (base.out_no[i] !== 0)
          visit(base.out_type[i] as number, true, base.out_dst[i] as number, base.out_no[i] as number)
      for (let i = base.in_at[rid] as number, end = base.in_at[rid + 1] as number; i < end; i++) {
        const place = base.in_out[i] as number
        if (base.out_no[place] !== 0)
          visit(base.out_type[place] as number, false, base.in_src[i] as number, base.out_no[place] as number)
      }
    }
    const list = arcs.get(rid)
    if (list) for (const { type, out, peer, no } of list) visit(type, out, peer, no)
  }

  return {
    get watermark() {
      return watermark
    },
    /** Counts for metrics: nodes and edges that are held, and how much of it is not in the arrays. */
    figures: () => ({ nodes, edges, changed, bytes: bytesOf(base) + changed * OVERLAY_BYTES }),
    /** Row numbers are below this. */
    size: () => size,
    rankTypes,
    /** Applies events in the order of the log. Throws UnknownName before anything of that event has changed. */
    apply: (events: readonly GraphEvent[], types: Types): void => {
      rankTypes(types)
      for (const event of events) {
        if (event.rid !== null && RESOURCE.has(event.agg_type)) applyResource(event, types)
        else if (event.rid !== null && event.agg_type === 'health') applyHealth(event)
        watermark = event.pub_seq
      }
    },
    ridOf,
    knows: (rid: number): boolean => has(rid) || added.has(rid),
    typeOf: (rid: number): number => num(rid, 'type'),
    parentOf: (rid: number): number => num(rid, 'parent'),
    versionOf: (rid: number): number => num(rid, 'version'),
    idOf: (rid: number): string => (has(rid) ? baseId(rid) : newOne(rid).id),
    nameOf: (rid: number): string => {
      if (!has(rid)) return newOne(rid).name
      const at = (base.text_at[rid] as number) + (base.id_bytes[rid] as number)
      return text.toString('utf8', at, at + (base.name_bytes[rid] as number))
    },
    lifecycleOf: (rid: number): string =>
      lifecycles.words[has(rid) ? (base.lifecycle[rid] as number) : newOne(rid).lifecycle] ?? 'unknown',
    healthOf: (rid: number): string =>
      healths.words[has(rid) ? (base.health[rid] as number) : newOne(rid).health] ?? 'unknown',

    eachArc,
    isOpen,
    /** Begins to count what is below places, and keeps it from then on. */
    countPlaces: async (types: Types): Promise<void> => {
      rankTypes(types)
      const lifecycleNo = (rid: number) => (has(rid) ? (base.lifecycle[rid] as number) : newOne(rid).lifecycle)
      const healthNo = (rid: number) => (has(rid) ? (base.health[rid] as number) : newOne(rid).health)
      const eachChild = (rid: number, visit: (child: number) => void) =>
        eachArc(rid, (type, out, peer) => {
          if (!out && type === containment) visit(peer)
        })
      const parts = { size: () => size, isOpen, lifecycleNo, healthNo, eachChild }
      const of = { typeOf: (rid: number) => num(rid, 'type'), parentOf: (rid: number) => num(rid, 'parent') }
      counts = createCounts({ ...parts, ...of }, new Set(types.topologyIds))
      await counts.fill()
    },
    /** Whether places of these types are counted. */
    counts: (types: Types): boolean =>
      counts !== undefined && types.topologyIds.every((id) => counts?.topology.has(id)),
    /** What is below a place: how many open resources of each type, lifecycle and health. */
    eachCount: (
      place: number,
      visit: (type: number, lifecycle: string, health: string, count: number) => void,
    ): void => {
      counts?.each(place, (type, lifecycle, health, count) =>
        visit(type, lifecycles.words[lifecycle] ?? 'unknown', healths.words[health] ?? 'unknown', count),
      )
    },

    /**
     * The open edges of a node in the order type key, out before in, peer, from after a position on, until `visit`
     * answers false: three sorted lists merged.
     */
    orderedArcs: (
      rid: number,
      direction: Direction,
      after: Position | undefined,
      visit: (type: number, out: boolean, peer: number) => boolean,
    ): void => {
      const loaded = rid < base.size
      let o = loaded && direction !== 'in' ? (base.out_at[rid] as number) : 0
      const o_end = loaded && direction !== 'in' ? (base.out_at[rid + 1] as number) : 0
      let i = loaded && direction !== 'out' ? (base.in_at[rid] as number) : 0
      const i_end = loaded && direction !== 'out' ? (base.in_at[rid + 1] as number) : 0
      const list = arcs.get(rid) ?? []
      let a = 0
      for (;;) {
        while (o < o_end && base.out_no[o] === 0) o++
        while (i < i_end && base.out_no[base.in_out[i] as number] === 0) i++
        while (a < list.length && direction !== 'both' && (list[a] as Arc).out !== (direction === 'out')) a++
        let type = -1
        let out = true
        let peer = 0
        if (o < o_end) {
          type = base.out_type[o] as number
          peer = base.out_dst[o] as number
        }
        if (i < i_end) {
          const in_type = base.out_type[base.in_out[i] as number] as number
          if (type < 0 || (rank[in_type] as number) < (rank[type] as number)) {
            type = in_type
            out = false
            peer = base.in_src[i] as number
          }
        }
        const arc = list[a]
        const from_list = arc !== undefined && (type < 0 || order(arc, type, out, peer) < 0)
        if (from_list) {
          type = arc.type
          out = arc.out
          peer = arc.peer
        }
        if (type < 0) return
        if (from_list) a++
        else if (out) o++
        else i++
        if (after !== undefined && order(after, type, out, peer) >= 0) continue
        if (!visit(type, out, peer)) return
      }
    },
    /** Whether a position comes after another in a node's order. */
    isAfter: (a: Position, b: Position): boolean => order(a, b.type, b.out, b.peer) > 0,
  }
}
export type Store = ReturnType<typeof createStore>

/** The number in a relationship's id (documents.ts, relationshipId). */
const numberOfRelationship = (id: string): number => Number.parseInt(id.slice('rel_'.length), 32)
