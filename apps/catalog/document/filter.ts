import type { Comparison, Filter } from '../../../db/catalog/resources/filter.ts'
import { AppError } from '../../shared/errors.ts'

const MAX_RESTRICTIONS = 20
const MAX_NESTING = 10

type Token = { kind: 'word' | 'string' | 'symbol'; text: string; offset: number }

/** Returns 400 `filter_invalid` with the position in the text. */
export const filterInvalid = (offset: number, message: string): AppError => {
  const violation = { pointer: '/filter', code: 'filter_invalid', message, offset }
  return new AppError('validation_error', 'filter_invalid', `filter: ${message} (at character ${offset + 1}).`, {
    violations: [violation],
    hint: 'A filter looks like: name:web AND labels.env="prod" AND (type_key:infra.host OR drift=drifted).',
  })
}

const WORD = /[A-Za-z0-9_.:+/@*-]/y
const COMPARISONS = new Set(['=', '!=', '<', '<=', '>', '>=', ':'])
const SYMBOLS = ['!=', '<=', '>=', '=', '<', '>', ':', '(', ')', '.']

/** Parses a filter in the grammar of catalog.md 7.1. OR binds tighter than AND, as in AIP-160. */
export const parseFilter = (text: string): Filter => {
  const cursor: Cursor = { text, tokens: tokenize(text), at: 0, restrictions: 0 }
  if (cursor.tokens.length === 0) fail(cursor, 'is empty')
  const parsed = filterAt(cursor, 0)
  if (cursor.at < cursor.tokens.length) fail(cursor, 'AND or OR is missing here')
  return parsed
}

/** A position among the tokens, and the number of restrictions read so far. */
type Cursor = { readonly text: string; readonly tokens: readonly Token[]; at: number; restrictions: number }

const peek = ({ tokens, at }: Cursor): Token | undefined => tokens[at]
const offsetOf = (cursor: Cursor): number => peek(cursor)?.offset ?? cursor.text.length
const fail = (cursor: Cursor, message: string): never => {
  throw filterInvalid(offsetOf(cursor), message)
}
const take = (cursor: Cursor, kind: Token['kind'], text: string): boolean => {
  const token = peek(cursor)
  if (token?.kind !== kind || token.text !== text) return false
  cursor.at += 1
  return true
}

const filterAt = (cursor: Cursor, depth: number): Filter => {
  if (depth > MAX_NESTING) fail(cursor, `is nested deeper than ${MAX_NESTING}`)
  return listAt(cursor, 'and', () => listAt(cursor, 'or', () => termAt(cursor, depth)))
}

const listAt = (cursor: Cursor, kind: 'and' | 'or', part: () => Filter): Filter => {
  const items = [part()]
  while (take(cursor, 'word', kind.toUpperCase())) items.push(part())
  return items.length === 1 ? (items[0] as Filter) : { kind, items }
}

/** At most one NOT or "-" for each term, so that a text of dashes cannot nest as deep as it is long. */
const termAt = (cursor: Cursor, depth: number): Filter => {
  const negated = take(cursor, 'word', 'NOT') || take(cursor, 'symbol', '-')
  const item = simpleAt(cursor, depth)
  return negated ? { kind: 'not', item } : item
}

const simpleAt = (cursor: Cursor, depth: number): Filter => {
  if (!take(cursor, 'symbol', '(')) return restrictionAt(cursor)
  const inner = filterAt(cursor, depth + 1)
  if (!take(cursor, 'symbol', ')')) fail(cursor, 'a ")" is missing')
  return inner
}

const restrictionAt = (cursor: Cursor): Filter => {
  cursor.restrictions += 1
  if (cursor.restrictions > MAX_RESTRICTIONS) fail(cursor, `has more than ${MAX_RESTRICTIONS} restrictions`)
  const offset = offsetOf(cursor)
  const field = fieldAt(cursor)
  const comparison = peek(cursor)
  if (comparison?.kind !== 'symbol' || !COMPARISONS.has(comparison.text))
    return fail(cursor, 'a comparison (= != < <= > >= :) is missing')
  cursor.at += 1
  const value = peek(cursor)
  if (!value || value.kind === 'symbol') return fail(cursor, 'a value is missing')
  cursor.at += 1
  const raw = value.kind === 'word'
  return { kind: 'test', field, comparison: comparison.text as Comparison, value: value.text, raw, offset }
}

const fieldAt = (cursor: Cursor): string[] => {
  const name = peek(cursor)
  if (name?.kind !== 'word' || !/^[a-z][A-Za-z0-9_]*$/.test(name.text)) return fail(cursor, 'a field name is missing')
  const field = [name.text]
  cursor.at += 1
  while (take(cursor, 'symbol', '.')) {
    const part = peek(cursor)
    if (!part || part.kind === 'symbol') return fail(cursor, 'a name after "." is missing')
    field.push(part.text)
    cursor.at += 1
  }
  return field
}

/** Tokenizes text. A word before a comparison is a field, where "." and ":" are symbols; after one it is a value. */
const tokenize = (text: string): Token[] => {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    const before = tokens.at(-1)
    const afterComparison = before?.kind === 'symbol' && COMPARISONS.has(before.text)
    if (/\s/.test(char)) at += 1
    else if (char === '"') {
      const string = /"(?:[^"\\]|\\.)*"/y
      string.lastIndex = at
      const found = string.exec(text)?.[0]
      if (found === undefined) throw filterInvalid(at, 'a string is not terminated')
      tokens.push({ kind: 'string', text: parseString(found, at), offset: at })
      at += found.length
    } else if (char === '-' && !afterComparison) {
      tokens.push({ kind: 'symbol', text: '-', offset: at })
      at += 1
    } else {
      const word = afterComparison ? scan(text, at, WORD) : scan(text, at, /[A-Za-z0-9_]/y)
      const inLabel = tokens.at(-1)?.text === '.' ? scan(text, at, /[A-Za-z0-9_/-]/y) : word
      const symbol = SYMBOLS.find((candidate) => text.startsWith(candidate, at))
      if (inLabel !== '') tokens.push({ kind: 'word', text: inLabel, offset: at })
      else if (symbol) tokens.push({ kind: 'symbol', text: symbol, offset: at })
      else throw filterInvalid(at, `${JSON.stringify(char)} has no meaning here`)
      at += inLabel !== '' ? inLabel.length : (symbol as string).length
    }
  }
  return tokens
}

const scan = (text: string, from: number, one: RegExp): string => {
  let at = from
  while (at < text.length) {
    one.lastIndex = at
    if (!one.test(text)) break
    at += 1
  }
  return text.slice(from, at)
}

const parseString = (text: string, offset: number): string => {
  try {
    return JSON.parse(text) as string
  } catch {
    throw filterInvalid(offset, 'a string has an invalid escape')
  }
}
