import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Method, ROUTES, type Upstream } from '../../apps/gateway/routes/table.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { AUTH_CODES, CATALOG_CODES, type EdgeCodes, OPERATIONS_CODES } from '../../apps/shared/http/edge-codes.ts'
import { type Document, type Operation, operationsOf } from '../../apps/shared/http/openapi.ts'

const FOLDER = join(ROOT, 'apps/shared/contracts/openapi')

/** One described operation, as a client of this API sees it. */
export type Endpoint = { name: string; method: Method; path: string; operation: Operation }
/** A listener with its operations and the closed list of its categories. */
export type Api = { name: string; endpoints: Endpoint[]; categories: readonly string[] }

const MiB = 1_048_576
/** The bytes of a body that each listener accepts (auth.md 3, catalog.md 7.6, operations.md 4). */
const BODY_LIMITS: Record<string, number> = {
  session: 16_384,
  identity: 16_384,
  token: 16_384,
  catalog: MiB,
  'catalog-internal': MiB,
  operations: 4 * MiB,
  'operations-internal': 8 * MiB,
}
/** Endpoints that take many commands in one body. */
const LARGER: Record<string, number> = {
  'POST /internal/v1/resources:batch-apply': 8 * MiB,
  'POST /v1/execution-results': 8 * MiB,
}
export const bodyLimitOf = (api: string, endpoint?: string): number => {
  const limit = LARGER[endpoint ?? ''] ?? BODY_LIMITS[api]
  if (limit === undefined) throw new Error(`the body limit of ${api} is not known here`)
  return limit
}

const endpoint = (method: string, path: string, operation: Operation): Endpoint => {
  const upper = method.toUpperCase() as Method
  return { name: `${upper} ${path}`, method: upper, path, operation }
}

/** A committed document with all named schemas inlined. */
export const readDocument = (name: string): Document => {
  const document = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Document
  const schemas = (document.components?.schemas ?? {}) as Record<string, unknown>
  const whole = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(whole)
    const { $ref, ...rest } = value as { $ref?: unknown }
    const named = typeof $ref === 'string' ? /^#\/components\/schemas\/(\w+)$/.exec($ref)?.[1] : undefined
    if (named !== undefined) return { ...(whole(schemas[named]) as object), ...rest }
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, whole(member)]))
  }
  return whole(document) as Document
}

const CODES: Record<Exclude<Upstream, 'gateway'>, EdgeCodes> = {
  session: AUTH_CODES,
  identity: AUTH_CODES,
  token: AUTH_CODES,
  catalog: CATALOG_CODES,
  operations: OPERATIONS_CODES,
}
const APPS = Object.keys(CODES) as (keyof typeof CODES)[]

/** The path that an app serves on its own listener: the gateway puts /api in front of most paths. */
const behind = (path: string) => path.replace(/^\/api\//, '/')

/** Every listener as the committed documents describe it. */
export const readApis = (): Api[] => {
  const open = readDocument('public')
  const served = new Map(operationsOf(open).map((one) => [`${one.method.toUpperCase()} ${one.path}`, one]))
  const endpointsOf = (app: Upstream) =>
    ROUTES.filter(({ upstream }) => upstream === app).flatMap(({ method, path }) => {
      const found = served.get(`${method} ${path}`)
      return found ? [endpoint(method, app === 'gateway' ? path : behind(path), found.operation)] : []
    })
  const internal = (['catalog', 'operations'] as const).map((app) => ({
    name: `${app}-internal`,
    endpoints: operationsOf(readDocument(`${app}-internal`)).map(({ method, path, operation }) =>
      endpoint(method, path, operation),
    ),
    categories: CODES[app].categories,
  }))
  const apps = APPS.map((name) => ({ name, endpoints: endpointsOf(name), categories: CODES[name].categories }))
  // Internal verifiers ask token itself, at the address of the specification.
  for (const { name, endpoints } of apps)
    if (name === 'token') endpoints.push(...endpoints.map(({ operation }) => endpoint('GET', '/jwks', operation)))
  return [
    ...apps,
    ...internal,
    { name: 'gateway', endpoints: endpointsOf('gateway'), categories: AUTH_CODES.categories },
  ]
}

/** The endpoints that clients reach: each row of the gateway's table with its app's description; `app` is that app. */
export const gatewayEndpoints = (apis: Api[]): (Endpoint & { app: Api | undefined })[] =>
  ROUTES.map((route) => {
    const app = apis.find(({ name }) => name === route.upstream)
    const name = `${route.method} ${route.path}`
    const found = app?.endpoints.find(
      ({ method, path }) =>
        method === route.method && path === (app.name === 'gateway' ? route.path : behind(route.path)),
    )
    if (!found) throw new Error(`${name} is not described`)
    return { name, method: route.method, path: route.path, operation: found.operation, app }
  })
