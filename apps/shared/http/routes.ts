import type { FastifyPluginAsyncTypebox, TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { ErrorObject } from 'ajv'
import type {
  ContextConfigDefault,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
  RouteShorthandOptions,
} from 'fastify'
import Type, { type TSchema } from 'typebox'
import { CATEGORIES } from '../contracts/categories.ts'
import { text } from '../contracts/shapes.ts'

/** Schema of every refusal (application/problem+json). */
export const Problem = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String(),
    category: Type.Enum(CATEGORIES),
    code: Type.String(),
    request_id: Type.String(),
    retryable: Type.Boolean(),
    hint: Type.String(),
  },
  { $id: 'Problem', additionalProperties: true, description: 'A refusal (RFC 9457).' },
)

/** Headers of every public mutation. */
export const CommandHeaders = Type.Object({
  'idempotency-key': text('0195f0c2-9b1e-7c44-8a53-6d0f2e7b9c11', {
    minLength: 1,
    maxLength: 255,
    pattern: '^[\\x20-\\x7e]+$',
    description: 'New and random for each new command; unchanged in a retry.',
  }),
})
/** Headers of a command that may depend on the version that the caller read. */
export const VersionedHeaders = Type.Object({
  ...CommandHeaders.properties,
  'if-match': Type.Optional(
    Type.String({
      maxLength: 512,
      description:
        'The ETag that was read, or a list of them; `*` is any. Refused (412) if the version is none of these, also if a tag is not one of ours. `W/` before a tag is ignored: a proxy may have added it.',
    }),
  ),
})
/** Headers of a read that answers 304 if nothing has changed. */
export const ReadHeaders = Type.Object({
  'if-none-match': Type.Optional(Type.String({ maxLength: 512, description: 'The ETag that the caller already has.' })),
})

/**
 * The tags of a precondition; `*` matches any (RFC 9110, 13.1). No tag of ours contains a comma. Weak ones count as
 * ours: a proxy that compresses an answer weakens its tag.
 */
export const tagsOf = (header: string): string[] =>
  header
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .filter((tag) => tag !== '')

type Asked = { headers: { 'if-none-match'?: string | undefined } }

/** Whether the caller already has this tag: one of those that it names, or `*`; weak ones too (RFC 9110, 13.1.2). */
export const isKnown = (req: Asked, etag: string): boolean =>
  tagsOf(req.headers['if-none-match'] ?? '').some((tag) => tag === '*' || tag === etag.replace(/^W\//, ''))

/** Sends 304 without a body: a serialized null would be four forbidden bytes, and a proxy refuses such an answer. */
export const sendUnchanged = (reply: FastifyReply): FastifyReply => reply.code(304).send()

/** Sends requested members: parts of what the schema of the reply describes as a whole. */
export const sendPart = <R>(reply: FastifyReply, part: R): R => {
  reply.type('application/json; charset=utf-8').serializer((value: unknown) => JSON.stringify(value))
  return part
}

type Shapes<P, Q, H, B, R> = { params: P; querystring: Q; headers: H; body: B; response: R }
type Handler<S extends FastifySchema> = RouteHandlerMethod<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  RouteGenericInterface,
  ContextConfigDefault,
  S,
  TypeBoxTypeProvider
>
type Options = Pick<RouteShorthandOptions, 'bodyLimit' | 'config' | 'onRequest' | 'preHandler' | 'preValidation'>
/** One route: its entry in the API document, what it takes and replies, who may call it, and its handler. */
type Route<P, Q, H, B, R> = Omit<FastifySchema, keyof Shapes<P, Q, H, B, R>> &
  Options & {
    operationId: string
    summary: string
    description: string
    /** Instead of the tag of the area. */
    tags?: readonly string[]
    params?: P
    querystring?: Q
    headers?: H
    body?: B
    /** Successful replies; any route may also refuse. */
    response: R
    handler: Handler<Shapes<P, Q, H, B, R>>
  }
type Add = <
  const P extends TSchema,
  const Q extends TSchema,
  const H extends TSchema,
  const B extends TSchema,
  const R extends Record<number, TSchema>,
>(
  path: string,
  route: Route<P, Q, H, B, R>,
) => void
type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
/** Where an area adds its routes; `plain` is the Fastify instance. */
export type Router = Record<Method, Add> & { plain: FastifyInstance }

const routerOf = (plain: FastifyInstance, area: string): Router => {
  const add =
    (method: Method): Add =>
    (path, { bodyLimit, config, onRequest, preHandler, preValidation, handler, ...described }) => {
      const tags = [path.startsWith('/internal/') ? 'internal' : area]
      const schema = { tags, ...described, response: { ...described.response, '4xx': Problem, '5xx': Problem } }
      const options = { bodyLimit, config, onRequest, preHandler, preValidation } as Options
      plain[method](path, { ...options, schema, handler: handler as never })
    }
  return { get: add('get'), post: add('post'), put: add('put'), patch: add('patch'), delete: add('delete'), plain }
}

export type Routes<Deps, More = unknown> = FastifyPluginAsyncTypebox<{ deps: Deps } & More>

/** The routes of an area as a plugin. The document tags them with the area, or `internal` if they are below /internal. */
export const routes =
  <Deps, More = unknown>(
    area: string,
    add: (app: Router, options: { deps: Deps } & More) => void | Promise<void>,
  ): Routes<Deps, More> =>
  async (app, options) =>
    add(routerOf(app as unknown as FastifyInstance, area), options)

/** Marks whether this is the stored answer of an earlier request with the same key. */
export const markReplayed = (reply: FastifyReply, { replayed }: { replayed: boolean }): FastifyReply =>
  replayed ? reply.header('idempotency-replayed', 'true') : reply

/** Sends a stored first answer byte for byte, marked if it is a replay. */
export const sendStored = (
  reply: FastifyReply,
  answer: { status: number; headers: Record<string, string>; body: Buffer; replayed: boolean },
): FastifyReply => {
  markReplayed(reply, answer).code(answer.status).headers(answer.headers)
  if (answer.body.length === 0) return reply.send()
  return sendText(reply, answer.body.toString('utf8'), answer.headers['content-type'])
}

/** Sends a body that is text already. */
export const sendText = (reply: FastifyReply, body: string, type = 'application/json; charset=utf-8'): FastifyReply =>
  reply
    .type(type)
    .serializer((text: string) => text)
    .send(body)

/** Returns where a part of a body violates its own schema; `undefined` if it fits. */
export const faultsIn = (req: FastifyRequest, schema: TSchema, part: unknown): ErrorObject[] | undefined => {
  const fits = req.compileValidationSchema(schema, 'body')
  return fits(part) ? undefined : (fits.errors as ErrorObject[])
}
