import { AppError } from '../../shared/errors.ts'
import type { Route } from './table.ts'

type Node = { literals: Map<string, Node>; parameter: Node | undefined; routes: Map<string, Compiled> }
type Compiled = { route: Route; parts: ({ literal: string } | { name: string })[] }

/** A route with the decoded values of its path. */
export type Match = { route: Route; upstream_path: string }
export type Found = { match: Match } | { allow: string[] } | undefined

const MAX_VALUE = 255
/** A path value that passed the path rules; control characters cannot get here. */
const VALUE = /^[\x21-\x7e]+$/

const emptyNode = (): Node => ({ literals: new Map(), parameter: undefined, routes: new Map() })

/**
 * Matches decoded path segments against the table, literals before parameters. The path for the upstream is built from
 * the template and the checked values, so no spelling of the client gets through.
 */
export const createRouter = (routes: readonly Route[]) => {
  const root = emptyNode()
  for (const route of routes) insert(root, route)
  return (method: string, segments: readonly string[]): Found => {
    const values: string[] = []
    const node = walk(root, segments, 0, values)
    if (!node || node.routes.size === 0) return undefined
    const compiled = node.routes.get(method) ?? (method === 'HEAD' ? readOf(node) : undefined)
    if (!compiled) return { allow: [...node.routes.keys(), ...(readOf(node) ? ['HEAD'] : [])] }
    return { match: { route: compiled.route, upstream_path: pathOf(compiled, values) } }
  }
}
export type Router = ReturnType<typeof createRouter>

/**
 * What a HEAD asks for: the GET of the same path, whose body is then left out. A stream has no end to wait for, and the
 * way back from an identity provider is gone once: a look at the link must not take it.
 */
const readOf = ({ routes }: Node): Compiled | undefined => {
  const get = routes.get('GET')
  return get && get.route.class !== 'stream' && !get.route.redirects ? get : undefined
}

const insert = (root: Node, route: Route): void => {
  const parts = route.path
    .split('/')
    .slice(1)
    .map((text) => (text.startsWith('{') ? { name: text.slice(1, -1) } : { literal: text }))
  insertAt(root, route, parts, parts)
  // These apps name their objects below /v1 in links and replies, also stored ones, so those paths lead there too.
  if (route.upstream === 'catalog' || route.upstream === 'operations') insertAt(root, route, parts.slice(1), parts)
}

const insertAt = (root: Node, route: Route, path: Compiled['parts'], parts: Compiled['parts']): void => {
  let node = root
  for (const part of path) {
    if ('name' in part) {
      node.parameter ??= emptyNode()
      node = node.parameter
    } else {
      const next = node.literals.get(part.literal) ?? emptyNode()
      node.literals.set(part.literal, next)
      node = next
    }
  }
  if (node.routes.has(route.method)) throw new Error(`${route.method} ${route.path} is in the route table twice`)
  node.routes.set(route.method, { route, parts })
}

/** Searches depth first and prefers literals; backtracks from a branch that ends without routes. */
const walk = (node: Node, segments: readonly string[], at: number, values: string[]): Node | undefined => {
  const segment = segments[at]
  if (segment === undefined) return node.routes.size > 0 ? node : undefined
  const literal = node.literals.get(segment)
  const found = literal && walk(literal, segments, at + 1, values)
  if (found) return found
  if (!node.parameter || segment.length > MAX_VALUE || !VALUE.test(segment)) return undefined
  values.push(segment)
  const deeper = walk(node.parameter, segments, at + 1, values)
  if (!deeper) values.pop()
  return deeper
}

const pathOf = ({ route, parts }: Compiled, values: string[]): string => {
  let next = 0
  const path = parts
    .map((part) => ('literal' in part ? part.literal : encodeURIComponent(values[next++] ?? '')))
    .join('/')
  return `/${route.path.startsWith('/api/') ? path.slice('api/'.length) : path}`
}

/** A request target that passed the path rules: its path decoded, also by segments, and the query as it came. */
export type Target = { path: string; segments: string[]; query: string }

const MAX_PATH = 2048
export const MAX_QUERY = 8192
/** Characters that a path may hold unescaped (RFC 3986 pchar without percent sequences). */
export const PATH_TEXT = /^[A-Za-z0-9._~:@!$&'()*+,;=-]*$/
/** Characters that a percent sequence may stand for: none that could change where a path leads. */
const ENCODED = /^[A-Za-z0-9\-_~:@!$&'()*+,;=]$/
const QUERY = /^(?:[A-Za-z0-9\-._~:@!$&'()*+,;=/?[\]|]|%[0-9A-Fa-f]{2})*$/

/**
 * Takes the base path off a request that came below it: the proxy kept it, or names it in X-Forwarded-Prefix. Only the
 * configured path counts, so a caller cannot choose where our links lead.
 */
export const splitBase = (url: string, named: unknown, base: string): { url: string; base: string } =>
  base !== '' && url.startsWith(`${base}/`)
    ? { url: url.slice(base.length), base }
    : { url, base: named === base ? base : '' }

const bad = (detail: string) => new AppError('validation_error', 'bad_path', detail)

/**
 * Parses a request target by the path rules of auth.md 6. It refuses whatever two parsers could read differently: forms
 * other than `/path?query`, empty and dot segments, backslashes, raw non-ASCII, and percent sequences of anything but
 * harmless characters.
 */
export const parseTarget = (url: string): Target => {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  if (path.length > MAX_PATH || query.length > MAX_QUERY) {
    throw new AppError('validation_error', 'uri_too_long', 'The request target is too long.', {
      hint: `A path has at most ${MAX_PATH} and a query at most ${MAX_QUERY} characters.`,
    })
  }
  if (!path.startsWith('/')) throw bad('The request target must be a path.')
  if (!QUERY.test(query)) throw bad('The query holds characters that must be percent-encoded.')
  const parts = path.slice(1).split('/')
  // A path with a trailing slash is a different path, which no route has; an empty segment inside is refused.
  const segments = parts.map((part, at) => {
    if (part === '' && at < parts.length - 1) throw bad('The path has an empty segment.')
    return decodeSegment(part)
  })
  return { path: `/${segments.join('/')}`, segments, query }
}

const decodeSegment = (part: string): string => {
  if (part === '.' || part.startsWith('..')) throw bad('The path has a dot segment.')
  if (!part.includes('%')) {
    if (!PATH_TEXT.test(part)) throw bad('The path holds characters that are not allowed.')
    return part
  }
  const pieces = part.split('%')
  return pieces
    .map((piece, at) => {
      const hex = at === 0 ? '' : piece.slice(0, 2)
      const char = at === 0 ? '' : String.fromCharCode(Number.parseInt(/^[0-9A-Fa-f]{2}$/.test(hex) ? hex : '0', 16))
      const rest = at === 0 ? piece : piece.slice(2)
      if ((at > 0 && !ENCODED.test(char)) || !PATH_TEXT.test(rest))
        throw bad('The path holds a percent sequence that is not allowed.')
      return char + rest
    })
    .join('')
}
