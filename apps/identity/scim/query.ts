import { FILTERS, type ScimType } from '../../../db/identity/scim.ts'
import { pointerToUnstorable } from '../../shared/http/json-body.ts'
import { scimError } from './errors.ts'
import { invalid, nameOf, SPELLED } from './read.ts'

const TERM = /\s*([A-Za-z][\w.:$-]*)\s+eq\s+("(?:[^"\\]|\\.)*")\s*(?:and\s+(?=\S)|$)/iy

/** The text of a JSON string (RFC 7644 3.4.2.2); `undefined` if it is none, or none that a name can have. */
const unquoted = (quoted: string): string | undefined => {
  try {
    // Some directories send a tab or a line break as it is.
    const text: unknown = JSON.parse(quoted.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1)))
    return typeof text === 'string' && pointerToUnstorable(text) === undefined ? text : undefined
  } catch {
    return undefined
  }
}

/** `attribute eq "value"`, several joined with `and`. Other filters are refused. */
const termsOf = (type: ScimType, filter: unknown): [string, string][] => {
  const terms: [string, string][] = []
  const names = Object.keys(FILTERS[type]).map((name) => SPELLED[name] ?? name)
  TERM.lastIndex = 0
  while (filter !== undefined && (TERM.lastIndex < String(filter).length || terms.length === 0)) {
    const [, path = '', quoted = ''] = TERM.exec(String(filter)) ?? []
    const [name, value] = [nameOf(path), unquoted(quoted)]
    if (!Object.hasOwn(FILTERS[type], name) || value === undefined || terms.length === 3)
      throw scimError(400, 'invalidFilter', `Send ${names.join(', ')} with eq "value", at most three joined by and.`)
    terms.push([name, value])
  }
  return terms
}

const MOST_ITEMS = 200
/** The requested page: `startIndex` counts from 1, `count` is at most 200. */
export const readPage = (type: ScimType, query: Record<string, unknown>) => {
  const whole = (name: string, otherwise: number) => {
    const value = query[name] ?? otherwise
    if (/^-?\d{1,9}$/.test(String(value))) return Number(value)
    throw invalid(`${name} must be a whole number.`)
  }
  const limit = Math.min(MOST_ITEMS, Math.max(0, whole('count', 100)))
  return { terms: termsOf(type, query.filter), offset: Math.max(1, whole('startIndex', 1)) - 1, limit }
}

/** Includes `meta`, although its version and location are also reply headers. */
const ALWAYS = new Set(['schemas', 'id', 'meta'])
/** A reply's attributes: only those in `attributes`, or all except those in `excludedAttributes` (RFC 7644 3.9). */
export const readShown = (query: Record<string, unknown>): ((attribute: string) => boolean) => {
  const named = (text: unknown) =>
    new Set(
      String(text)
        .split(/[\s,]+/)
        .map((name) => nameOf(name).split('.')[0]),
    )
  const { attributes, excludedAttributes } = query
  const [only, left_out] = [named(attributes), named(excludedAttributes)]
  return (attribute) => {
    const name = attribute.toLowerCase()
    return ALWAYS.has(name) || (attributes === undefined ? !left_out.has(name) : only.has(name))
  }
}
