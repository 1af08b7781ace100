import swagger, { type FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { FastifyInstance, RouteOptions } from 'fastify'
import Type, { type TSchema } from 'typebox'
import { Closed } from '../contracts/shapes.ts'
import { exampleOf, type JsonSchema } from './example.ts'
import { isOmissible } from './json-body.ts'
import { problemSchemas, refusalOf, refusals } from './refusals.ts'

/** A document's title, and the listener it describes: the public one (behind the gateway) or the internal one. */
export type Documented = {
  title: string
  description: string
  listener?: 'public' | 'internal'
  /** Statuses that any of its routes may refuse with. */
  refusals?: readonly number[]
}

declare module 'fastify' {
  interface FastifySchema {
    /** Headers of successful replies, besides those that all have. */
    'x-reply-headers'?: readonly ('etag' | 'location')[]
    /** Refusals besides those that follow from the request's parts. */
    'x-errors'?: readonly number[]
    /** Content types of the same answer as text, chosen by a query parameter. */
    'x-text-types'?: readonly string[]
    /** The documented body, if its handler checks parts of it. */
    'x-body'?: TSchema
    /** The items of an endless reply. */
    'x-item-schema'?: TSchema
    /** For a route whose caller brings another token than its guard would take. */
    'x-scope'?: string
    'x-permissions'?: readonly string[]
  }
}

export type Parameter = {
  in: string
  name: string
  required?: boolean
  description?: string
  schema: JsonSchema
  example?: unknown
}
type Media = {
  schema?: JsonSchema
  /** `itemSchema` of OpenAPI 3.2. Inline: a linter does not count references in extensions as uses. */
  'x-itemSchema'?: JsonSchema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}
type Reply = { description: string; headers?: object; content?: Record<string, Media> } | { $ref: string }
export type Operation = {
  operationId?: string
  tags?: string[]
  summary?: string
  description?: string
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, Reply>
  security?: Record<string, string[]>[]
  'x-action-kind'?: string
  'x-permissions'?: readonly string[]
  'x-scope'?: string
  'x-reply-headers'?: readonly string[]
  'x-errors'?: readonly number[]
  'x-text-types'?: readonly string[]
  'x-item-schema'?: JsonSchema
}
type PathItem = Record<string, Operation | undefined>
export type Document = {
  openapi: string
  info: object
  servers?: object[]
  tags?: object[]
  components?: Record<string, object>
  paths: Record<string, PathItem>
  /** Requests that the platform sends, by name. */
  webhooks?: Record<string, PathItem>
}

/** The input of a route without a body: nothing, or an empty object. */
const NO_BODY = Type.Unsafe<null>({ type: ['object', 'null'], additionalProperties: false, $comment: 'no body' })
const CLOSED = Closed({})
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Refuses unknown query parameters, and members of a body that a route does not take. RPC (no schema) is not ours. */
export const closeInputs = (route: RouteOptions): void => {
  const { schema } = route
  if (!schema || schema.hide) return
  const query = schema.querystring as TSchema | undefined
  const closed = query ? { additionalProperties: false, ...query } : CLOSED
  const writes = [route.method].flat().some((method) => WRITES.has(method))
  route.schema = { ...schema, querystring: closed, ...(writes && !schema.body && { body: NO_BODY }) }
}

/** Describes every route of this listener; the document is ready with the app. Throws if a route has no description. */
export const describeRoutes = (app: FastifyInstance, about: Documented, problem: TSchema): void => {
  const openapi = { openapi: '3.1.0', ...headOf(about) } as FastifyDynamicSwaggerOptions['openapi']
  void app.register(swagger, {
    ...(openapi && { openapi }),
    transform: ({ schema, url }) => ({ schema: withoutRefusals(schema as DocumentedSchema), url }),
    transformObject: ((document: { openapiObject: Document }) =>
      completeDocument(document.openapiObject, about, problem)) as never,
  })
}

type DocumentedSchema = { body?: unknown; 'x-body'?: unknown; response?: Record<string, unknown> }
/** Describes refusals once, as components, instead of with each route. */
const withoutRefusals = ({ body: checked, 'x-body': body = checked, response = {}, ...schema }: DocumentedSchema) =>
  spelled({
    ...schema,
    ...(body !== undefined && body !== NO_BODY && { body }),
    response: Object.fromEntries(Object.entries(response).filter(([status]) => !/^[45]/.test(status))),
  })

/** `documented` holds what a schema says only in the document. */
type Patterned = { documented?: object; patternProperties?: Record<string, unknown>; propertyNames?: object }
type Members = { properties?: Record<string, { default?: unknown }>; required?: unknown }
/** A member with a default may be left out. */
const requireOnly = (schema: Members | null): void => {
  const { properties, required } = schema ?? {}
  if (!schema || !properties || !Array.isArray(required)) return
  schema.required = required.filter((name: string) => properties[name]?.default === undefined)
}

/** Returns a schema as plain JSON, and a record by its names and values: generators do not know `patternProperties`. */
export const spelled = <T extends object>(schema: T): T =>
  JSON.parse(JSON.stringify(schema), (name, value: (Patterned & Members) | null) => {
    if (name.startsWith('~')) return undefined
    requireOnly(value)
    if (value?.documented) {
      const { documented, ...checked } = value
      return { ...checked, ...documented }
    }
    const [record, another] = Object.entries(value?.patternProperties ?? {})
    if (!value || !record || another) return value
    const { patternProperties: _spelled, ...rest } = value
    const [pattern, additionalProperties] = record
    return { ...rest, ...(pattern !== '^.*$' && { propertyNames: { pattern } }), additionalProperties }
  })

const headOf = ({ title, description }: Documented) => ({ info: { title, description, version: '1.0.0' } })

/** A summary is one line of a menu. */
const SUMMARY = 60
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Returns every operation of a document, without its webhooks. */
export const operationsOf = ({ paths }: Pick<Document, 'paths'>) =>
  Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method]
      return operation ? [{ path, method, operation }] : []
    }),
  )

/** Adds the parts derived from the routes: servers, security, refusals, reply headers, and the examples. */
export const completeDocument = (document: Document, about: Documented, problem: TSchema): Document => {
  const internal = about.listener === 'internal'
  const missing: string[] = []
  for (const { path, method, operation } of operationsOf(document)) {
    const lacks = (what: string) => missing.push(`${method.toUpperCase()} ${path}: ${what}`)
    for (const member of ['operationId', 'summary', 'description', 'tags'] as const)
      if (!operation[member]?.length) lacks(`${member} is missing`)
    if ((operation.summary?.length ?? 0) > SUMMARY) lacks(`summary has more than ${SUMMARY} characters`)
    operation.security = securityOf(operation, internal)
    addExamples(operation, lacks)
    markOmissible(method, operation)
    addReplyHeaders(operation)
    addTextTypes(operation)
    addItemSchema(operation)
    for (const status of [...refusalsOf(path, method, operation, internal), ...(about.refusals ?? [])])
      operation.responses[status] ??= refusalOf(status)
    delete operation['x-reply-headers']
    delete operation['x-errors']
    delete operation['x-text-types']
    delete operation['x-item-schema']
  }
  if (missing.length > 0) throw new Error(`${about.title} is not fully described:\n${missing.join('\n')}`)
  return {
    ...document,
    servers: [{ url: '/' }],
    components: {
      securitySchemes: internal
        ? { service_token: SERVICE_TOKEN }
        : { access_token: ACCESS_TOKEN, execution_token: EXECUTION_TOKEN },
      headers: HEADERS,
      schemas: { Problem: problem, ...problemSchemas() },
      responses: refusals(),
    },
  }
}

const ACCESS_TOKEN = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'The access token of POST /v1/token. x-permissions names what its user must hold.',
}
const SERVICE_TOKEN = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'A token that the calling service signs itself; x-scope names the scope it must hold.',
}

const EXECUTION_TOKEN = {
  type: 'http',
  scheme: 'bearer',
  description: 'The token that an agent gets with a piece of work, for that work alone.',
}

const securityOf = ({ 'x-permissions': permissions = [], 'x-scope': scope }: Operation, internal: boolean) => {
  if (internal) return scope === undefined ? [] : [{ service_token: [scope] }]
  if (scope !== undefined) return [{ execution_token: [] }]
  return permissions.length === 0 || permissions.includes('none') ? [] : [{ access_token: [] }]
}

const addExamples = (operation: Operation, lacks: (what: string) => void): void => {
  const complete = (media: Media, place: string) => {
    if (media.example === undefined && media.schema)
      media.example = exampleOf(media.schema, (pointer) => lacks(`no example of ${place}${pointer}`))
    return media
  }
  for (const parameter of operation.parameters ?? [])
    if (parameter.required) complete(parameter, `the parameter ${parameter.name}`)
  for (const [type, media] of Object.entries(operation.requestBody?.content ?? {})) {
    if (operation.requestBody) operation.requestBody.content[type] = complete(ofType(type, media), 'the body')
  }
  for (const [status, reply] of Object.entries(operation.responses))
    if ('content' in reply) for (const media of Object.values(reply.content ?? {})) complete(media, `reply ${status} `)
}

/** Keeps the examples of a body that fit a content type: a JSON patch is a list, all others are not. */
const ofType = (type: string, { examples, ...media }: Media): Media => {
  const fits = ({ value }: { value: unknown }) => Array.isArray(value) === type.includes('json-patch')
  return examples ? { ...media, example: Object.values(examples).find(fits)?.value } : media
}

const has = (operation: Operation, name: string, place = 'header') =>
  operation.parameters?.some((parameter) => parameter.in === place && parameter.name === name) ?? false

const markOmissible = (method: string, operation: Operation): void => {
  const { requestBody } = operation
  const schemas = Object.values(requestBody?.content ?? {}).map(({ schema }) => schema)
  if (requestBody && method === 'post' && has(operation, 'idempotency-key') && schemas.every(isOmissible))
    requestBody.required = false
}

const addReplyHeaders = (operation: Operation): void => {
  const named = ['x-request-id', ...(operation['x-reply-headers'] ?? [])]
  if (has(operation, 'idempotency-key')) named.push('idempotency-replayed')
  const headers = Object.fromEntries(named.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  for (const [status, reply] of Object.entries(operation.responses)) {
    if ('$ref' in reply) continue
    reply.headers = { ...headers, ...reply.headers }
    reply.description = reply.description === 'Default Response' ? (MEANING[status] ?? 'Done.') : reply.description
  }
}

const addTextTypes = (operation: Operation): void => {
  const reply = operation.responses[200]
  if (reply && 'content' in reply)
    for (const type of operation['x-text-types'] ?? [])
      Object.assign(reply.content, { [type]: { schema: { type: 'string' }, example: TEXTS[type] } })
}
const addItemSchema = ({ responses, 'x-item-schema': item }: Operation): void => {
  const reply = responses[200]
  if (item && reply && 'content' in reply)
    for (const media of Object.values(reply.content ?? {})) media['x-itemSchema'] = item
}

/** The shortest document of each text format. */
const TEXTS: Record<string, string> = {
  'application/graphml+xml': '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>',
  'text/vnd.graphviz': 'digraph {}',
  'application/jsonl': '{}',
}

const MEANING: Record<string, string> = {
  200: 'Done; the answer.',
  201: 'Created.',
  202: 'Accepted, and not yet carried out.',
  204: 'Done, without a body.',
  304: 'Unchanged since the ETag that was sent.',
}
const HEADERS = Object.fromEntries(
  [
    ['x-request-id', 'Names this request in logs, events and audit.'],
    ['etag', 'The version that was read, for If-Match and If-None-Match.'],
    [
      'location',
      'Where the created object, or the outcome of the accepted command, is read; of a redirect: where the browser goes next.',
    ],
    ['idempotency-replayed', '`true`: the stored first answer of this Idempotency-Key.'],
    ['retry-after', 'Seconds after which the same request may be sent again.'],
    ['www-authenticate', 'Bearer, with error="invalid_token" when the token that was sent is refused.'],
  ].map(([name = '', description]) => [name, { description, schema: { type: 'string' } }]),
)

/** Returns which refusals a route can give, from its parts. */
const refusalsOf = (path: string, method: string, operation: Operation, internal: boolean): number[] => {
  const { requestBody, security = [], 'x-errors': more = [] } = operation
  const command = has(operation, 'idempotency-key') || (internal && requestBody !== undefined)
  return [
    400,
    ...(security.length > 0 ? [401, 403] : []),
    // The Origin rule of the gateway.
    ...(!internal && WRITES.has(method.toUpperCase()) ? [403] : []),
    ...(path.includes('{') ? [404] : []),
    // The state at an earlier time may be past its retention.
    ...(has(operation, 'at', 'query') ? [410] : []),
    ...(command ? [404, 409, 422] : []),
    ...(has(operation, 'if-match') ? [412] : []),
    ...(WRITES.has(method.toUpperCase()) ? [413, 415] : []),
    500,
    503,
    ...more,
  ]
}
