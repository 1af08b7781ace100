import { AppError } from '../errors.ts'
import { pointerOf } from './pointer.ts'

/** Bounds of a JSON document from outside (reliability.md 5.1). Texts count in their escaped form. */
export type JsonLimits = {
  depth: number
  keys: number
  items: number
  string_bytes: number
  /** For a list of documents (`{items: […]}` or `[…]`): how many. The other bounds then apply to each one. */
  each?: number
  /** Only `[…]` is such a list: an object is one document. */
  bare?: true
}
export const JSON_LIMITS: JsonLimits = { depth: 32, keys: 1000, items: 10_000, string_bytes: 65_536 }

/** Postgres refuses U+0000 in jsonb, and an unpaired surrogate is not valid text. */
export const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** A refusal of the document, or of the part of a list that `pointer` names. */
const refuse = (message: string, pointer = '') =>
  new AppError('validation_error', 'schema_violation', `${pointer || 'The document'} ${message}.`, {
    status: 400,
    hint: 'Correct the document as the detail says.',
    ...(pointer && { violations: [{ pointer, code: 'schema_violation', message }] }),
  })

/**
 * Scans JSON text once, in linear time, before it is parsed. Refuses text that is too deep, too long or has too many
 * parts, and repeated members (JSON.parse would silently keep the last one). Malformed text is left to the parser.
 */
export const scanJson = (text: string, limits: JsonLimits = JSON_LIMITS): void => {
  const members: (Set<string> | null)[] = []
  let keys = 0
  let items = 0
  let each = 0
  let expectKey = false
  const part = (): string | undefined => {
    const [first, second] = members
    if (limits.each === undefined || (first !== null && (limits.bare || second !== null))) return undefined
    return first === null ? `/${each}` : `/items/${each}`
  }
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x22) {
      const start = at
      at = endOfString(text, at)
      if (at - start - 1 > limits.string_bytes) throw tooLong(text, limits.string_bytes)
      const open = members.at(-1)
      if (expectKey && open) {
        expectKey = false
        keys += 1
        const name = spelledOnce(text.slice(start, at + 1))
        if (open.has(name)) throw refuse(`has the member ${name} twice`, part())
        open.add(name)
      }
    } else if (char === 0x7b || char === 0x5b) {
      members.push(char === 0x7b ? new Set() : null)
      expectKey = char === 0x7b
      if (members.length > limits.depth) throw refuse(`is nested deeper than ${limits.depth}`, part())
    } else if (char === 0x7d || char === 0x5d) {
      members.pop()
      expectKey = false
    } else if (char === 0x2c && limits.each !== undefined && isList(members, limits.bare)) {
      each += 1
      keys = 0
      items = 0
      if (each >= limits.each) throw refuse(`has more than ${limits.each} items`)
    } else if (char === 0x2c) {
      items += 1
      expectKey = members.at(-1) instanceof Set
    }
    if (keys > limits.keys) throw refuse(`has more than ${limits.keys} members`, part())
    if (items > limits.items) throw refuse(`has more than ${limits.items} items`, part())
  }
}

/** Whether the list of documents is the innermost open part: the document itself or one of its members. */
const isList = ([first, second, ...deeper]: readonly (Set<string> | null)[], bare = false): boolean =>
  deeper.length === 0 && (second === undefined ? first === null : !bare && first !== null && second === null)

/** Returns an error that names the text that is too long, as far as the document can be read. */
const tooLong = (text: string, most: number): AppError => {
  const pointer = longestIn(text) ?? ''
  const message = `is longer than ${most} characters in its JSON form`
  return new AppError('validation_error', 'schema_violation', `${pointer || 'A string'} ${message}.`, {
    violations: [{ pointer, code: 'maxLength', message }],
    hint: `A string can have at most ${most} characters, regardless of the size of the document. Store longer ones elsewhere and refer to them.`,
  })
}

/** Returns the pointer to the longest text of a document; `undefined` if it is not JSON or a name is the longest. */
const longestIn = (text: string): string | undefined => {
  const longest = { length: 0, pointer: undefined as string | undefined }
  const visit = (value: unknown, pointer: string): void => {
    const length = typeof value === 'string' ? JSON.stringify(value).length : 0
    if (length > longest.length) Object.assign(longest, { length, pointer })
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) visit(member, pointer + pointerOf(name))
  }
  try {
    visit(JSON.parse(text), '')
  } catch {
    return undefined
  }
  return longest.pointer
}

/** Returns a name in its only spelling: "\\u0061" and "a" are the same member. Malformed text is left to the parser. */
const spelledOnce = (name: string): string => {
  if (!name.includes('\\')) return name
  try {
    return JSON.stringify(JSON.parse(name))
  } catch {
    return name
  }
}

const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x5c) at += 1
    else if (char === 0x22) return at
  }
  return text.length
}

/** Whether a value is nested deeper than `levels`; looks no further. */
export const isDeeper = (value: unknown, levels: number): boolean => {
  let layer: unknown[] = [value]
  for (let level = 0; level <= levels; level++) {
    layer = layer.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []))
    if (layer.length === 0) return false
  }
  return true
}
