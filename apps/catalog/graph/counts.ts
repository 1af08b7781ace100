import { setImmediate as turn } from 'node:timers/promises'

/** What counting reads from a node. Lifecycle and health are small numbers. */
type Nodes = {
  size: () => number
  isOpen: (rid: number) => boolean
  typeOf: (rid: number) => number
  parentOf: (rid: number) => number
  lifecycleNo: (rid: number) => number
  healthNo: (rid: number) => number
  eachChild: (rid: number, visit: (child: number) => void) => void
}

/** Nodes between two yields to the event loop. */
const PART = 5000

/**
 * How many open resources are below each place, by type, lifecycle and health (catalog.md 4, 7.3). It is maintained
 * from the log because reading the whole tree below a region takes seconds.
 */
export const createCounts = (nodes: Nodes, topology: ReadonlySet<number>) => {
  const below = new Map<number, Map<number, number>>()

  /** Adds (1) or removes (-1) one node, as it is now, in the counts of all places above it. */
  const shift = (rid: number, by: 1 | -1): void => {
    if (!nodes.isOpen(rid)) return
    const key = nodes.typeOf(rid) * 65_536 + nodes.lifecycleNo(rid) * 256 + nodes.healthNo(rid)
    for (let at = nodes.parentOf(rid); at !== 0; at = nodes.parentOf(at)) {
      if (!topology.has(nodes.typeOf(at))) continue
      const counts = below.get(at) ?? new Map<number, number>()
      below.set(at, counts)
      const count = (counts.get(key) ?? 0) + by
      if (count === 0) counts.delete(key)
      else counts.set(key, count)
    }
  }
  const shiftTree = (rid: number, by: 1 | -1): void => {
    const way = [rid]
    for (let at = way.pop(); at !== undefined; at = way.pop()) {
      shift(at, by)
      nodes.eachChild(at, (child) => void way.push(child))
    }
  }

  return {
    topology,
    /** Counts all nodes, once; the graph must not change meanwhile. */
    fill: async (): Promise<void> => {
      for (let rid = 1, size = nodes.size(); rid < size; rid++) {
        if (rid % PART === 0) await turn()
        shift(rid, 1)
      }
    },
    /** Applies a change to one node's own facts. */
    changing: (rid: number, change: () => void): void => {
      shift(rid, -1)
      change()
      shift(rid, 1)
    },
    /** Applies a change to one node's place; everything below moves with it. */
    moving: (rid: number, change: () => void): void => {
      shiftTree(rid, -1)
      change()
      shiftTree(rid, 1)
    },
    each: (place: number, visit: (type: number, lifecycle: number, health: number, count: number) => void): void => {
      for (const [key, count] of below.get(place) ?? [])
        visit(Math.floor(key / 65_536), (key >>> 8) & 255, key & 255, count)
    },
  }
}
