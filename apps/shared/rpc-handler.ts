import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { Code, ConnectError, type ContextValues, type HandlerContext } from '@connectrpc/connect'
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

const MAX_TIMEOUT_MS = 8000
const MAX_BODY_BYTES = 65_536

export type UnaryMethod = {
  method: DescMethodUnary
  /** Decides who may call, before the message is read: what the handler's context carries, or a throw. */
  admit: (req: FastifyRequest) => ContextValues
  run: (message: never, context: HandlerContext) => unknown
  /** Maps what was thrown to what the caller hears. */
  refuse: (error: unknown) => ConnectError
}

/**
 * Serves unary methods by the Connect protocol: one message in, one out, in protobuf or JSON, each in one piece. The
 * library's general handler builds web streams, headers and abort signals for every call, which costs several times
 * what most of our methods do.
 */
export const serveUnary = (app: FastifyInstance, methods: readonly UnaryMethod[]): void => {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      ['application/proto', 'application/json'],
      { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
      (_req: FastifyRequest, body: Buffer, done: (error: null, body: Buffer) => void) => done(null, body),
    )
    for (const each of methods) {
      const path = `/${each.method.parent.typeName}/${each.method.name}`
      scope.post(path, { schema: { hide: true } }, (req, reply) => answer(each, req, reply))
    }
  })
}

const answer = async (served: UnaryMethod, req: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
  const { method, admit, run, refuse } = served
  const json = req.headers['content-type']?.startsWith('application/json') ?? false
  const call = beginCall(req, reply)
  try {
    const values = admit(req)
    const message = read(method.input, req.body as Buffer, json)
    const output = await Promise.race([run(message as never, contextOf(served, req, values, call)), call.late])
    const init = create(method.output, output as Record<string, unknown>)
    return json
      ? send(reply, 200, 'application/json', Buffer.from(JSON.stringify(toJson(method.output, init))))
      : send(reply, 200, 'application/proto', Buffer.from(toBinary(method.output, init)))
  } catch (error) {
    const refusal = refuse(error)
    const body = Buffer.from(errorToJsonBytes(refusal, undefined))
    return send(reply, codeToHttpStatus(refusal.code), 'application/json', body)
  } finally {
    call.end()
  }
}

const send = (reply: FastifyReply, status: number, type: string, body: Buffer) =>
  reply.code(status).header('content-type', type).send(body)

const read = (type: DescMessage, body: Buffer | undefined, json: boolean) => {
  try {
    const bytes = body ?? Buffer.alloc(0)
    return json ? fromJson(type, JSON.parse(bytes.toString('utf8')) as JsonValue) : fromBinary(type, bytes)
  } catch {
    throw new ConnectError('the message cannot be read', Code.InvalidArgument)
  }
}

/** The deadline of a call, and the signal of its end for those handlers that ask for one. */
const beginCall = (req: FastifyRequest, reply: FastifyReply) => {
  const asked = Number(req.headers['connect-timeout-ms'])
  const timeout_ms = Number.isFinite(asked) && asked > 0 ? Math.min(asked, MAX_TIMEOUT_MS) : MAX_TIMEOUT_MS
  const deadline = performance.now() + timeout_ms
  let aborting: AbortController | undefined
  let over = false
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new ConnectError('the call did not end in time', Code.DeadlineExceeded)
      aborting?.abort(error)
      reject(error)
    }, timeout_ms)
  })
  late.catch(() => {})
  return {
    late,
    timeoutMs: () => Math.max(0, deadline - performance.now()),
    signal: (): AbortSignal => {
      if (!aborting) {
        aborting = new AbortController()
        const { raw } = reply
        raw.once('close', () => {
          if (!over) aborting?.abort(new ConnectError('the caller went away', Code.Canceled))
        })
        if (raw.destroyed) aborting.abort(new ConnectError('the caller went away', Code.Canceled))
      }
      return aborting.signal
    },
    end: () => {
      over = true
      clearTimeout(timer)
    },
  }
}

const contextOf = (
  { method }: UnaryMethod,
  req: FastifyRequest,
  values: ContextValues,
  call: ReturnType<typeof beginCall>,
): HandlerContext => ({
  method,
  service: method.parent,
  requestMethod: 'POST',
  protocolName: 'connect',
  url: req.url,
  values,
  timeoutMs: call.timeoutMs,
  get signal() {
    return call.signal()
  },
  get requestHeader() {
    return new Headers(req.headers as Record<string, string>)
  },
  get responseHeader() {
    return new Headers()
  },
  get responseTrailer() {
    return new Headers()
  },
})
