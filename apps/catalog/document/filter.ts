import type { Comparison, Filter } from '../../../db/catalog/resources/filter.ts'
import { AppError } from '../../shared/errors.ts'

const MAX_RESTRICTIONS = 20
const MAX_NESTING = 10

type Token = { kind: 'word' | 'string' | 'symbol'; text: string; offset: number }

/** 400 `filter_invalid` with the place in the text. */
export const filterInvalid = (offset: number, message: string): AppError => {
  const violation = { pointer: '/filter', code: 'filter_invalid', message, offset }
  return new AppError('validation_error', 'filter_invalid', `filter: ${message} (at character ${offset + 1}).`, {
    violations: [violation],
    hint: 'A filter looks like: name:web AND labels.env="prod" AND (type_key:infra.host OR drift=drifted).',
  })
}

const WORD = /[A-Za-z0-9_.:+/@*-]/y
const SYMBOLS = ['!=', '<=', '>=', '=', '<', '>', ':', '(', ')', '.']

/** Reads a filter of the grammar in catalog.md 7.1. OR binds tighter than AND, as in AIP-160. */
export const parseFilter = (text: string): Filter => {
  const tokens = tokenize(text)
  let at = 0
  let restrictions = 0
  const peek = () => tokens[at]
  const fail = (message: string): never => {
    throw filterInvalid(peek()?.offset ?? text.length, message)
  }
  const isWord = (word: string) => peek()?.kind === 'word' && peek()?.text === word
  const take = (symbol: string) => {
    if (peek()?.kind !== 'symbol' || peek()?.text !== symbol) return false
    at += 1
    return true
  }

  const list = (kind: 'and' | 'or', word: string, part: () => Filter): Filter => {
    const items = [part()]
    while (isWord(word)) {
      at += 1
      items.push(part())
    }
    return items.length === 1 ? (items[0] as Filter) : { kind, items }
  }
  const filter = (depth: number): Filter => {
    if (depth > MAX_NESTING) fail(`is nested deeper than ${MAX_NESTING}`)
    return list('and', 'AND', () => list('or', 'OR', () => term(depth)))
  }
  const term = (depth: number): Filter => {
    if (isWord('NOT')) {
      at += 1
      return { kind: 'not', item: simple(depth) }
    }
    return simple(depth)
  }
  const simple = (depth: number): Filter => {
    if (peek()?.kind === 'symbol' && peek()?.text === '-') {
      at += 1
      return { kind: 'not', item: simple(depth) }
    }
    if (!take('(')) return restriction()
    const inner = filter(depth + 1)
    if (!take(')')) fail('a ")" is missing')
    return inner
  }
  const restriction = (): Filter => {
    restrictions += 1
    if (restrictions > MAX_RESTRICTIONS) fail(`has more than ${MAX_RESTRICTIONS} restrictions`)
    const offset = peek()?.offset ?? text.length
    const field = fieldName()
    const comparison = peek()
    if (comparison?.kind !== 'symbol' || !['=', '!=', '<', '<=', '>', '>=', ':'].includes(comparison.text))
      return fail('a comparison (= != < <= > >= :) is missing')
    at += 1
    const value = peek()
    if (!value || value.kind === 'symbol') return fail('a value is missing')
    at += 1
    return {
      kind: 'test',
      field,
      comparison: comparison.text as Comparison,
      value: value.text,
      raw: value.kind === 'word',
      offset,
    }
  }
  const fieldName = (): string[] => {
    const name = peek()
    if (name?.kind !== 'word' || !/^[a-z][A-Za-z0-9_]*$/.test(name.text)) fail('a field name is missing')
    const field = [(name as Token).text]
    at += 1
    while (take('.')) {
      const part = peek()
      if (!part || part.kind === 'symbol') return fail('a name after "." is missing')
      field.push(part.text)
      at += 1
    }
    return field
  }

  if (tokens.length === 0) fail('is empty')
  const parsed = filter(0)
  if (at < tokens.length) fail('AND or OR is missing here')
  return parsed
}

/** Splits the text. A word before a comparison is a field, where "." and ":" are symbols; after one it is a value. */
const tokenize = (text: string): Token[] => {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    const afterComparison = /^(=|!=|<|<=|>|>=|:)$/.test(
      tokens.at(-1)?.kind === 'symbol' ? (tokens.at(-1)?.text ?? '') : '',
    )
    if (/\s/.test(char)) at += 1
    else if (char === '"') {
      const string = /"(?:[^"\\]|\\.)*"/y
      string.lastIndex = at
      const found = string.exec(text)?.[0]
      if (found === undefined) throw filterInvalid(at, 'a string does not end')
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
    throw filterInvalid(offset, 'a string has a wrong escape')
  }
}
