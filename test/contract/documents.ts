import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Method, ROUTES } from '../../apps/gateway/routes/table.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import type { JsonSchema } from '../../apps/shared/http/example.ts'
import { type Document, type Operation, operationsOf } from '../../apps/shared/http/openapi.ts'

export const FOLDER = join(ROOT, 'apps/shared/contracts/openapi')

/** One described operation, as a client of this API sees it. */
export type Endpoint = { name: string; method: Method; path: string; operation: Operation }
/** A listener with its operations and the closed list of its categories. */
export type Api = { name: string; endpoints: Endpoint[]; categories: string[]; document: Document }

const MiB = 1_048_576
/** Bytes of a body that each listener takes (auth.md 3, catalog.md 7.6, operations.md 4). */
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
const LARGER: Record<string, number> = { 'POST /internal/v1/resources:batch-apply': 8 * MiB }
export const bodyLimitOf = (api: string, endpoint?: string): number => {
  const limit = LARGER[endpoint ?? ''] ?? BODY_LIMITS[api]
  if (limit === undefined) throw new Error(`the body limit of ${api} is not known here`)
  return limit
}

const endpointsOf = (document: Document): Endpoint[] =>
  operationsOf(document).map(({ path, method, operation }) => {
    const upper = method.toUpperCase() as Method
    return { name: `${upper} ${path}`, method: upper, path, operation }
  })

const categoriesOf = (document: Document): string[] => {
  const schemas = (document.components?.schemas ?? {}) as { Problem?: { properties: { category: JsonSchema } } }
  return (schemas.Problem?.properties.category.enum ?? []) as string[]
}

/** Every committed document. */
export const readApis = (): Api[] =>
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => {
      const document = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Document
      const endpoints = endpointsOf(document)
      return { name: basename(file, '.json'), endpoints, categories: categoriesOf(document), document }
    })

/** Paths as the gateway spells them: those of the apps below /api, but for the few that stand at its root. */
const AT_ROOT = /^\/(auth\/|v1\/token|\.well-known\/|health\/|api\/)/

/** What clients reach: every row of the gateway's table with what its app says of it; `app` gives it for the row. */
export const gatewayEndpoints = (apis: Api[]): (Endpoint & { app: Api | undefined })[] =>
  ROUTES.map((route) => {
    const app = apis.find(({ name }) => name === route.upstream)
    const name = `${route.method} ${route.path}`
    const found = app?.endpoints.find(
      ({ method, path }) => method === route.method && route.path === (AT_ROOT.test(path) ? path : `/api${path}`),
    )
    const security = route.permission === 'none' ? [] : [{ access_token: [] }]
    const permissions = [route.permission].flat()
    // A row that no app serves yet: only what the gateway itself sees to is known of it.
    const operation: Operation = found?.operation ?? { security, responses: {}, 'x-permissions': permissions }
    return { name, method: route.method, path: route.path, operation, app: found && app }
  })
