import { MAX_QUERY, PATH_TEXT } from '../../../gateway/routes/router.ts'
import { ROUTES, type Route, type Upstream } from '../../../gateway/routes/table.ts'
import { ownWebhooks } from '../../../operations/notifications/channels/webhook.openapi.ts'
import type { JsonSchema } from '../../../shared/http/example.ts'
import { type Document, type Operation, operationsOf, type Parameter } from '../../../shared/http/openapi.ts'
import { refusalOf } from '../../../shared/http/refusals.ts'

/** Groups of operations, in the order of the document. */
const TAGS: Record<string, string> = {
  tokens: 'Sign in, renew and end tokens; the keys that verify them.',
  sso: 'Sign in through an identity provider, and be signed out by it.',
  devices: 'Sign in a machine without a browser, with an approval in another one.',
  sessions: 'Your own sessions.',
  password: 'Your own password.',
  passkeys: 'Your own passkeys, and the challenge that one answers.',
  administration: 'Accounts and sessions of others.',
  preferences: 'Your display preferences.',
  views: 'Your saved searches.',
  users: 'People: your own account, administration, enrolment.',
  groups: 'Groups of people.',
  grants: 'Roles of people and groups.',
  changes: 'Changes of users and grants that need two administrators.',
  machines: 'Service accounts and their credentials.',
  intents: 'The desired result, and the plans that lead to it.',
  plans: 'Plans: read, review and start.',
  schedules: 'Intents that run on a schedule.',
  notifications: 'How you are notified of items that wait for you.',
  procedures: 'The procedures that plans are made of.',
  operations: 'Running plans.',
  nodes: 'Steps of an operation, their logs and interventions.',
  gates: 'Decisions that an operation waits for.',
  patches: 'Changes to a running operation.',
  history: 'Timeline, evidence, artifacts and commands of an operation.',
  calendar: 'Change windows and freezes.',
  me: "The caller's own state.",
  events: 'Live changes as server-sent events.',
  catalog: 'Resources, types, relationships, topology and graphs.',
  audit: 'Who did what.',
  agents: 'Work for agents, which carry out steps where tools and credentials are.',
  engine: 'Payloads of the workflow engine.',
  health: 'State of the platform.',
}

const DESCRIPTION = `Reviewed plans for infrastructure: intents, plans, gates and durable operations over a resource catalog.

Sign in with \`POST /v1/token\` and send the access token as a bearer token. Every command takes an \`Idempotency-Key\`: repeat a request with the same key and body, and you get the first answer. Refusals are \`application/problem+json\` (RFC 9457); [the error reference](/docs/errors) lists every code with its remedy. A path in a body, such as \`href\`, begins below the address of the server; \`Location\` and \`Link\` hold the whole path. Such paths may begin with \`/v1\` instead of \`/api/v1\`: both lead to the same operations of the catalog and of operations.`

/** Routes of an app that the gateway does not serve, for internal callers. */
const INSIDE = new Set(['GET /jwks'])

/**
 * The one public API document: the apps' routes at the gateway's paths, and the webhooks that we send. Throws unless
 * routes and paths match one to one.
 */
export const publicDocument = (apps: Map<Upstream, Document>): Document => {
  const problems: string[] = []
  const left = new Map(
    [...apps].flatMap(([app, document]) =>
      operationsOf(document).map(({ path, method, operation }) => [keyOf(app, method, path), operation] as const),
    ),
  )
  const paths: Document['paths'] = {}
  const ids = new Set<string>()
  for (const route of ROUTES) {
    const key = keyOf(route.upstream, route.method, route.path)
    const operation = left.get(key)
    if (!operation) {
      problems.push(
        `${route.upstream} ${route.method} ${route.path} is in the gateway's table, but no app describes it`,
      )
      continue
    }
    left.delete(key)
    const id = operation.operationId ?? ''
    if (ids.has(id)) problems.push(`two operations have the id ${id}`)
    ids.add(id)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: withEdge(operation, route) }
  }
  for (const key of left.keys())
    if (!INSIDE.has(key.slice(key.indexOf(' ') + 1))) problems.push(`${key} is not in the gateway's table`)
  const used = new Set(Object.values(paths).flatMap((item) => Object.values(item).flatMap((one) => one?.tags ?? [])))
  for (const tag of used) if (!TAGS[tag]) problems.push(`the tag ${tag} is not described in check/openapi/public.ts`)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const [first] = apps.values()
  return {
    openapi: '3.1.0',
    info: {
      title: 'Signalbox',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).flatMap(([name, description]) => (used.has(name) ? [{ name, description }] : [])),
    paths,
    webhooks: ownWebhooks(),
    components: first?.components ?? {},
  }
}

/** Most paths in the apps lack the /api that the gateway adds in front. */
const keyOf = (app: string, method: string, path: string) =>
  `${app} ${method.toUpperCase()} ${path.replace(/^\/api\//, '/')}`

/** Adds the answers that the gateway may give instead of the app. */
const withEdge = (operation: Operation, route: Route): Operation => {
  const statuses = [
    400,
    414,
    431,
    ...(route.method === 'GET' ? [] : [408]),
    // Pages of other origins are refused also where no one signs in.
    ...(route.permission === 'none' && route.class !== 'none' ? [403] : []),
    ...(route.class === 'none' ? [] : [429, 503]),
    ...(route.upstream === 'gateway' ? [] : [502, 504]),
  ]
  const edge = Object.fromEntries(statuses.map((status) => [status, refusalOf(status)]))
  return {
    ...operation,
    ...(operation.parameters && { parameters: operation.parameters.map(fitting) }),
    responses: { ...edge, ...operation.responses },
  }
}

type Bounded = JsonSchema & {
  pattern?: string
  format?: string
  maxLength?: number
  maxItems?: number
  items?: Bounded
}
const ITEM = 400
/** The part of 16 KiB left for one header beside the longest target, a token and the headers of every client. */
const HEADER = 6000

/** Apps accept longer parameters than the edge lets through, so the document states lengths and characters that arrive. */
const fitting = (parameter: Parameter): Parameter => {
  const schema: Bounded = parameter.schema
  if (parameter.in === 'path' && !schema.pattern && !schema.format && !schema.enum)
    return { ...parameter, schema: { ...schema, pattern: PATH_TEXT.source } as JsonSchema }
  if (parameter.in === 'header' && (schema.maxLength ?? 0) > HEADER)
    return { ...parameter, schema: { ...schema, maxLength: HEADER } as JsonSchema }
  if (parameter.in !== 'query' || schema.type !== 'array' || !schema.items) return parameter
  const { items } = schema
  const length = items.enum
    ? Math.max(...items.enum.map((one) => String(one).length))
    : Math.min(items.maxLength ?? ITEM, ITEM)
  const maxItems = Math.min(
    schema.maxItems ?? items.enum?.length ?? Infinity,
    Math.floor(MAX_QUERY / (length + parameter.name.length + 2)),
  )
  const narrowed: Bounded = { ...schema, maxItems, items: items.enum ? items : { ...items, maxLength: length } }
  return { ...parameter, schema: narrowed }
}
