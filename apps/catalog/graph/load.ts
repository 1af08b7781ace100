import { eachElement, type Piece, readGraph } from '../../../db/catalog/relationships/graph-load.ts'
import { CLOSED, type EdgeColumns, type GraphArrays, indexIds, linkEdges, OPEN } from './arrays.ts'

type Growing = { text: Uint8Array; text_end: number; edges: EdgeColumns }

const grown = <T extends Uint8Array | Uint16Array | Uint32Array | Float64Array>(array: T, needed: number): T => {
  if (needed <= array.length) return array
  const larger = new (array.constructor as new (length: number) => T)(Math.max(needed, array.length * 2))
  larger.set(array as never)
  return larger
}

/** Loads the whole graph from one database snapshot. */
export const loadGraph = async (url: string): Promise<GraphArrays> => {
  let arrays: GraphArrays | undefined
  let rank = new Uint16Array(1)
  const interned = { lifecycles: new Map<string, number>(), healths: new Map<string, number>() }
  const growing: Growing = {
    text: new Uint8Array(1 << 16),
    text_end: 0,
    edges: {
      count: 0,
      src: new Uint32Array(1024),
      dst: new Uint32Array(1024),
      type: new Uint16Array(1024),
      no: new Float64Array(1024),
    },
  }
  await readGraph(url, {
    onHead: ({ watermark, max_rid, relationship_types }) => {
      arrays = emptyArrays(watermark, max_rid + 1)
      rank = new Uint16Array(Math.max(0, ...relationship_types) + 1)
      relationship_types.forEach((id, i) => {
        rank[id] = i
      })
    },
    onPiece: (piece) => {
      if (!arrays) throw new Error('a piece came before the head')
      if (piece.kind === 'resources') takeResources(arrays, growing, piece)
      else if (piece.kind === 'states') takeStates(arrays, interned, piece)
      else takeEdges(growing, piece)
    },
  })
  if (!arrays) throw new Error('nothing was read')
  arrays.text = growing.text.slice(0, growing.text_end)
  arrays.lifecycles = [...interned.lifecycles.keys()]
  arrays.healths = [...interned.healths.keys()]
  arrays.ids = indexIds(arrays)
  arrays.edges = growing.edges.count
  return { ...arrays, ...linkEdges(growing.edges, arrays.size, rank) }
}

const none = new Uint32Array(0)

/** An empty graph, from which folding the first event starts. */
export const emptyArrays = (watermark: string, size: number): GraphArrays => ({
  watermark,
  size,
  nodes: 0,
  edges: 0,
  kind: new Uint8Array(size),
  type: new Uint16Array(size),
  lifecycle: new Uint8Array(size),
  health: new Uint8Array(size),
  parent: new Uint32Array(size),
  version: new Uint32Array(size),
  health_revision: new Uint32Array(size),
  text: new Uint8Array(0),
  text_at: new Uint32Array(size),
  id_bytes: new Uint8Array(size),
  name_bytes: new Uint16Array(size),
  lifecycles: [],
  healths: [],
  ids: new Uint32Array(1),
  out_at: new Uint32Array(size + 1),
  out_dst: none,
  out_type: new Uint16Array(0),
  out_no: new Float64Array(0),
  in_at: new Uint32Array(size + 1),
  in_src: none,
  in_out: none,
})

/** A bigint of Postgres as a number: row numbers stay far below 2^53. */
const bigAt = (bytes: Buffer, at: number): number => bytes.readUInt32BE(at) * 4_294_967_296 + bytes.readUInt32BE(at + 4)
const rids = (column: Buffer): number[] => {
  const all: number[] = []
  eachElement(column, (at) => void all.push(bigAt(column, at)))
  return all
}

const takeResources = (arrays: GraphArrays, growing: Growing, { columns }: Piece): void => {
  const [rid, parent, type, open, id, name] = columns as [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]
  const at_rid = rids(rid)
  arrays.nodes += at_rid.length
  const each = (column: Buffer, take: (rid: number, at: number, length: number) => void) => {
    let i = 0
    eachElement(column, (at, length) => take(at_rid[i++] as number, at, length))
  }
  each(parent, (node, at) => {
    arrays.parent[node] = bigAt(parent, at)
  })
  each(type, (node, at) => {
    arrays.type[node] = type.readUInt16BE(at)
  })
  each(open, (node, at) => {
    arrays.kind[node] = open[at] === 1 ? OPEN : CLOSED
  })
  growing.text = grown(growing.text, growing.text_end + id.length + name.length)
  const places: number[] = []
  eachElement(id, (at, length) => void places.push(at, length))
  let i = 0
  each(name, (node, at, length) => {
    const [id_at, id_length] = [places[i++] as number, places[i++] as number]
    arrays.text_at[node] = growing.text_end
    arrays.id_bytes[node] = id_length
    arrays.name_bytes[node] = length
    growing.text.set(id.subarray(id_at, id_at + id_length), growing.text_end)
    growing.text.set(name.subarray(at, at + length), growing.text_end + id_length)
    growing.text_end += id_length + length
  })
}

const takeStates = (
  arrays: GraphArrays,
  interned: Record<'lifecycles' | 'healths', Map<string, number>>,
  { columns }: Piece,
): void => {
  const [rid, version, revision, lifecycle, health] = columns as [Buffer, Buffer, Buffer, Buffer, Buffer]
  const at_rid = rids(rid)
  let i = 0
  eachElement(version, (at) => {
    arrays.version[at_rid[i++] as number] = version.readUInt32BE(at)
  })
  i = 0
  eachElement(revision, (at) => {
    arrays.health_revision[at_rid[i++] as number] = revision.readUInt32BE(at)
  })
  const intern = (known: Map<string, number>, column: Buffer, into: Uint8Array) => {
    i = 0
    eachElement(column, (at, length) => {
      const word = column.toString('latin1', at, at + length)
      let index = known.get(word)
      if (index === undefined) {
        index = known.size
        known.set(word, index)
      }
      into[at_rid[i++] as number] = index
    })
  }
  intern(interned.lifecycles, lifecycle, arrays.lifecycle)
  intern(interned.healths, health, arrays.health)
}

const takeEdges = ({ edges }: Growing, { columns }: Piece): void => {
  const [src, dst, type, no] = columns as [Buffer, Buffer, Buffer, Buffer]
  const count = src.readInt32BE(12)
  const from = edges.count
  edges.count += count
  edges.src = grown(edges.src, edges.count)
  edges.dst = grown(edges.dst, edges.count)
  edges.type = grown(edges.type, edges.count)
  edges.no = grown(edges.no, edges.count)
  // No edge column is null: every element is a four-byte length and its fixed width.
  for (let i = 0, big = 24, small = 24; i < count; i++, big += 12, small += 6) {
    edges.src[from + i] = bigAt(src, big)
    edges.dst[from + i] = bigAt(dst, big)
    edges.type[from + i] = type.readUInt16BE(small)
    edges.no[from + i] = bigAt(no, big)
  }
}
