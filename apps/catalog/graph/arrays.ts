/**
 * The graph as flat arrays, indexed by row number (catalog.md 10): 22 bytes per edge, about 45 bytes plus texts per
 * node. A worker's loader makes it and hands it over whole; the store keeps the overlay of changes.
 */
export type GraphArrays = {
  /** The last event that it contains. */
  watermark: string
  /** All row numbers are below this. */
  size: number
  nodes: number
  edges: number
  /** 0 if no such resource exists, else OPEN or CLOSED. */
  kind: Uint8Array
  type: Uint16Array
  /** Indexes into `lifecycles` and `healths`. */
  lifecycle: Uint8Array
  health: Uint8Array
  parent: Uint32Array
  version: Uint32Array
  health_revision: Uint32Array
  /** Id and name of each node, concatenated. */
  text: Uint8Array
  text_at: Uint32Array
  id_bytes: Uint8Array
  name_bytes: Uint16Array
  lifecycles: string[]
  healths: string[]
  /** Row numbers by hash of the id, open addressing; the length is a power of two. */
  ids: Uint32Array
  /** Edges from n: out_at[n] … out_at[n + 1], by (order of the type's key, peer). Number 0: removed since loading. */
  out_at: Uint32Array
  out_dst: Uint32Array
  out_type: Uint16Array
  out_no: Float64Array
  /** Edges that enter: the peer, and the index of the same edge in out_…, in the same order. */
  in_at: Uint32Array
  in_src: Uint32Array
  in_out: Uint32Array
}

export const OPEN = 1
export const CLOSED = 2

/** FNV-1a over the characters of an id, which are ASCII. */
export const hashOfId = (length: number, code: (i: number) => number): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ code(i), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Builds the open-addressing table of ids. */
export const indexIds = ({
  size,
  nodes,
  kind,
  text,
  text_at,
  id_bytes,
}: Pick<GraphArrays, 'size' | 'nodes' | 'kind' | 'text' | 'text_at' | 'id_bytes'>): Uint32Array => {
  let length = 16
  while (length < nodes * 2) length *= 2
  const ids = new Uint32Array(length)
  for (let rid = 1; rid < size; rid++) {
    if (kind[rid] === 0) continue
    const at = text_at[rid] as number
    let place = hashOfId(id_bytes[rid] as number, (i) => text[at + i] as number) & (length - 1)
    while (ids[place] !== 0) place = (place + 1) & (length - 1)
    ids[place] = rid
  }
  return ids
}

/** Edges as read, in any order. */
export type EdgeColumns = { count: number; src: Uint32Array; dst: Uint32Array; type: Uint16Array; no: Float64Array }

/** A stable counting sort of indexes by a small key. */
const sortBy = (order: Uint32Array | undefined, count: number, keys: number, keyOf: (place: number) => number) => {
  const starts = new Uint32Array(keys + 1)
  for (let i = 0; i < count; i++) starts[keyOf(i) + 1] = (starts[keyOf(i) + 1] as number) + 1
  for (let key = 0; key < keys; key++) starts[key + 1] = (starts[key + 1] as number) + (starts[key] as number)
  const next = starts.slice()
  const sorted = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    const place = order === undefined ? i : (order[i] as number)
    const key = keyOf(place)
    const at = next[key] as number
    next[key] = at + 1
    sorted[at] = place
  }
  return { sorted, starts }
}

/** Links all edges in both directions, sorted per node by (type rank, peer): five counting sorts, no comparison. */
export const linkEdges = (edges: EdgeColumns, size: number, rank: Uint16Array) => {
  const { count, src, dst, type, no } = edges
  const ranks = rank.reduce((most, one) => Math.max(most, one), 0) + 1
  const by_dst = sortBy(undefined, count, size, (i) => dst[i] as number).sorted
  const by_type = sortBy(by_dst, count, ranks, (i) => rank[type[i] as number] as number).sorted
  const { sorted, starts } = sortBy(by_type, count, size, (i) => src[i] as number)
  const out_dst = new Uint32Array(count)
  const out_type = new Uint16Array(count)
  const out_no = new Float64Array(count)
  const out_src = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    const place = sorted[i] as number
    out_dst[i] = dst[place] as number
    out_type[i] = type[place] as number
    out_no[i] = no[place] as number
    out_src[i] = src[place] as number
  }
  const in_type = sortBy(undefined, count, ranks, (i) => rank[out_type[i] as number] as number).sorted
  const { sorted: in_out, starts: in_at } = sortBy(in_type, count, size, (i) => out_dst[i] as number)
  const in_src = new Uint32Array(count)
  for (let i = 0; i < count; i++) in_src[i] = out_src[in_out[i] as number] as number
  return { out_at: starts, out_dst, out_type, out_no, in_at, in_src, in_out }
}

export const bytesOf = (arrays: GraphArrays): number =>
  Object.values(arrays).reduce<number>((sum, value) => sum + (ArrayBuffer.isView(value) ? value.byteLength : 0), 0)
