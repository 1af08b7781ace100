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
