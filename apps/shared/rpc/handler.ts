import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
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
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Deadline, withinDeadline } from '../process/deadline.ts'
import { type Edge, requestIdOf } from '../process/edge.ts'
import { withinTrace } from '../process/trace.ts'

const MAX_TIMEOUT_MS = 8000
const MAX_BODY_BYTES = 65_536
const PROTO = 'application/proto'

/** The input of a method besides its message. */
export type Call = { id: string; url: string; headers: IncomingHttpHeaders; res: ServerResponse }
export type UnaryMethod = {
  method: DescMethodUnary
  /** Decides who may call, before the message is read: returns the context of the handler, or throws. */
  admit: (call: Call) => ContextValues
  run: (message: never, context: HandlerContext) => unknown
  /** Maps a thrown error to the caller's answer. */
  refuse: (error: unknown) => ConnectError
}

/**
 * Serves unary methods by the Connect protocol: one message in, one out, in protobuf or JSON, each in one piece. The
 * library's general handler builds web streams, headers and abort signals for every call, which costs several times as
 * much as most of our methods.
 */
export const serveUnary = (app: FastifyInstance, methods: readonly UnaryMethod[]): void => {
  const served = new Map(methods.map((each) => [`/${each.method.parent.typeName}/${each.method.name}`, each]))
  takeCalls(app, served)
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      [PROTO, 'application/json'],
      { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES },
      (_req: FastifyRequest, body: Buffer, done: (error: null, body: Buffer) => void) => done(null, body),
    )
    for (const [path, each] of served) {
      scope.post(path, { schema: { hide: true } }, async (req, reply) => {
        const call = { id: String(req.id), url: req.url, headers: req.headers, res: reply.raw }
        const { status, type, body } = await answer(each, call, req.body as Buffer | undefined)
        return reply.code(status).header('content-type', type).send(body)
      })
    }
  })
}

/**
 * Answers our own apps' calls without the framework, whose hooks and routing cost more than most methods. All other
 * requests (another type, no length, a refused caller) go through the framework.
 */
const takeCalls = (app: FastifyInstance, served: ReadonlyMap<string, UnaryMethod>): void => {
  const [framework] = app.server.listeners('request') as ((req: IncomingMessage, res: ServerResponse) => void)[]
  if (!framework) throw new Error('the framework does not listen to its server')
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
  })
  app.server.removeAllListeners('request').on('request', (req, res) => {
    const { headers, method, url = '' } = req
    const each = method === 'POST' && headers['content-type'] === PROTO ? served.get(url) : undefined
    if (closing || !each || !(Number(headers['content-length']) <= MAX_BODY_BYTES) || !app.edge.admits(req))
      return framework(req, res)
    take(each, app.edge, req, res)
  })
}

const take = (each: UnaryMethod, edge: Edge, req: IncomingMessage, res: ServerResponse): void => {
  const started = performance.now()
  const { headers, url = '' } = req
  const call = { id: requestIdOf(headers), url, headers, res }
  const chunks: Buffer[] = []
  const finish = async () => {
    const { status, type, body } = await answer(each, call, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    res.writeHead(status, ['content-type', type, 'content-length', String(body.length), 'x-request-id', call.id])
    res.end(body)
    edge.answered({ endpoint: url, method: 'POST', status, request_id: call.id, ms: performance.now() - started })
  }
  req.on('data', (chunk: Buffer) => void chunks.push(chunk))
  req.on('error', () => res.destroy())
  req.on('end', () => withinTrace(headers.traceparent, () => void finish()))
}

type Answer = { status: number; type: string; body: Buffer }

/** Returns the answer to one call; never throws. */
const answer = async (served: UnaryMethod, call: Call, body: Buffer | undefined): Promise<Answer> => {
  const { method, admit, run, refuse } = served
  const json = call.headers['content-type']?.startsWith('application/json') ?? false
  const time = beginCall(call)
  try {
    const values = admit(call)
    const message = read(method.input, body, json)
    const work = withinDeadline(time.deadline, () => run(message as never, contextOf(served, call, values, time)))
    const output = await Promise.race([work, time.late])
    const init = create(method.output, output as Record<string, unknown>)
    return json
      ? { status: 200, type: 'application/json', body: Buffer.from(JSON.stringify(toJson(method.output, init))) }
      : { status: 200, type: PROTO, body: bytesOf(toBinary(method.output, init)) }
  } catch (error) {
    const refusal = refuse(time.deadline.over ? lateCall() : error)
    const text = errorToJsonBytes(refusal, undefined)
    return { status: codeToHttpStatus(refusal.code), type: 'application/json', body: bytesOf(text) }
  } finally {
    time.end()
  }
}

const bytesOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const read = (type: DescMessage, body: Buffer | undefined, json: boolean) => {
  try {
    const bytes = body ?? Buffer.alloc(0)
    return json ? fromJson(type, JSON.parse(bytes.toString('utf8')) as JsonValue) : fromBinary(type, bytes)
  } catch {
    throw new ConnectError('the message cannot be read', Code.InvalidArgument)
  }
}

const lateCall = () => new ConnectError('the call did not end in time', Code.DeadlineExceeded)

/** Returns a call's deadline, and the signal of its end for handlers that need one. Its work ends before the answer. */
const beginCall = ({ headers, res }: Call) => {
  const asked = Number(headers['connect-timeout-ms'])
  const timeout_ms = Number.isFinite(asked) && asked > 0 ? Math.min(asked, MAX_TIMEOUT_MS) : MAX_TIMEOUT_MS
  const deadline = new Deadline(performance.now() + timeout_ms, lateCall)
  let aborting: AbortController | undefined
  let over = false
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = lateCall()
      void deadline.end().then(() => reject(error))
      aborting?.abort(error)
    }, timeout_ms)
  })
  late.catch(() => {})
  return {
    late,
    deadline,
    timeoutMs: () => deadline.left_ms,
    signal: (): AbortSignal => {
      if (!aborting) {
        aborting = new AbortController()
        res.once('close', () => {
          if (!over) aborting?.abort(new ConnectError('the caller went away', Code.Canceled))
        })
        if (res.destroyed) aborting.abort(new ConnectError('the caller went away', Code.Canceled))
      }
      return aborting.signal
    },
    end: () => {
      over = true
      deadline.answered()
      clearTimeout(timer)
    },
  }
}

const contextOf = (
  { method }: UnaryMethod,
  { url, headers }: Call,
  values: ContextValues,
  time: ReturnType<typeof beginCall>,
): HandlerContext => ({
  method,
  service: method.parent,
  requestMethod: 'POST',
  protocolName: 'connect',
  url,
  values,
  timeoutMs: time.timeoutMs,
  get signal() {
    return time.signal()
  },
  get requestHeader() {
    return new Headers(headers as Record<string, string>)
  },
  get responseHeader() {
    return new Headers()
  },
  get responseTrailer() {
    return new Headers()
  },
})
