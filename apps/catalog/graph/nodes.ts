import { CLOSED, type GraphArrays, hashOfId, OPEN } from './arrays.ts'

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
type Fact = 'kind' | 'lifecycle' | 'health' | 'parent' | 'version' | 'health_revision'

/** Maps words such as lifecycle states to small numbers. */
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

/** The resources of a graph: the loaded arrays, whose numbers change in place, and a map of resources added since. */
export const createNodes = (base: GraphArrays) => {
  const lifecycles = wordsOf(base.lifecycles)
  const healths = wordsOf(base.healths)
  const added = new Map<number, Added>()
  const addedIds = new Map<string, number>()
  const { baseId, baseName } = textsOf(base)
  let size = base.size

  const has = (rid: number) => rid < base.size && base.kind[rid] !== 0
  const newOne = (rid: number): Added => {
    const node = added.get(rid)
    if (!node) throw new Error(`no resource ${rid} in the graph`)
    return node
  }
  const numberAt = (rid: number, field: Fact | 'type'): number =>
    has(rid) ? (base[field][rid] as number) : newOne(rid)[field]
  const set = (rid: number, field: Fact, value: number): void => {
    if (has(rid)) base[field][rid] = value
    else newOne(rid)[field] = value
  }

  return {
    numberAt,
    set,
    lifecycles,
    healths,
    /** All row numbers are below this. */
    size: () => size,
    count: () => base.nodes + added.size,
    /** How many nodes are not in the arrays. */
    changed: () => added.size,
    knows: (rid: number): boolean => has(rid) || added.has(rid),
    isOpen: (rid: number): boolean => (has(rid) ? base.kind[rid] === OPEN : added.get(rid)?.kind === OPEN),
    add: (rid: number, node: Pick<Added, 'id' | 'name' | 'type' | 'health'>): void => {
      added.set(rid, { ...node, kind: OPEN, lifecycle: 0, parent: 0, version: 0, health_revision: 0 })
      addedIds.set(node.id, rid)
      size = Math.max(size, rid + 1)
    },
    close: (rid: number): void => set(rid, 'kind', CLOSED),
    ridOf: (id: string): number | undefined => {
      const mask = base.ids.length - 1
      for (let place = hashOfId(id.length, (i) => id.charCodeAt(i)) & mask; ; place = (place + 1) & mask) {
        const rid = base.ids[place] as number
        if (rid === 0) return addedIds.get(id)
        if (base.id_bytes[rid] === id.length && baseId(rid) === id) return rid
      }
    },
    idOf: (rid: number): string => (has(rid) ? baseId(rid) : newOne(rid).id),
    nameOf: (rid: number): string => (has(rid) ? baseName(rid) : newOne(rid).name),
    lifecycleOf: (rid: number): string => lifecycles.words[numberAt(rid, 'lifecycle')] ?? 'unknown',
    healthOf: (rid: number): string => healths.words[numberAt(rid, 'health')] ?? 'unknown',
  }
}
export type Nodes = ReturnType<typeof createNodes>

/** Ids and names of the loaded resources, concatenated in one text. */
const textsOf = (base: GraphArrays) => {
  const text = Buffer.from(base.text.buffer as ArrayBuffer, base.text.byteOffset, base.text.byteLength)
  return {
    baseId: (rid: number): string => {
      const at = base.text_at[rid] as number
      return text.toString('latin1', at, at + (base.id_bytes[rid] as number))
    },
    baseName: (rid: number): string => {
      const at = (base.text_at[rid] as number) + (base.id_bytes[rid] as number)
      return text.toString('utf8', at, at + (base.name_bytes[rid] as number))
    },
  }
}
