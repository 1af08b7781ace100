import { type Agent, type Dispatcher, errors, request as undiciRequest } from 'undici'
import { hmacSha256 } from '../../../apps/shared/data/digest.ts'
import { isDeeper } from '../../../apps/shared/data/json.ts'
import { parseOutput } from '../../../apps/shared/run/storable.ts'
import { Denied, Unreachable } from '../../../apps/shared/web/agent.ts'
import { connectionHeader, isConnectionHeader } from '../../../apps/shared/web/headers.ts'
import type { ExecutorContext, ExecutorResult } from '../types.ts'

export type Request = {
  method: string
  url: string
  headers?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
  timeout_s?: number
}
/** The parts of an attempt that a request needs. */
export type Sender = Pick<ExecutorContext, 'log' | 'signal' | 'slice_end' | 'deadline' | 'key' | 'fence'>
/** The raw result that expressions and outputs see. */
export type Response = { status: number; headers: Record<string, string>; body: unknown }
export type Settings = {
  base_url?: string
  headers?: Record<string, string>
  max_response_bytes?: number
  /** The header with the HMAC-SHA-256 of the call's body, by which a receiver of webhooks knows its sender. */
  sign?: { secret: string; header: string }
}
export type Failure = Extract<ExecutorResult, { status: 'failed' | 'unknown' }>

const DEFAULT_TIMEOUT_S = 30
const DEFAULT_BYTES = 1_048_576
const MAX_BYTES = 8 * DEFAULT_BYTES
const MAX_REDIRECTS = 3
const MAX_DEPTH = 64
const FOLLOWED = new Set([301, 302, 307, 308])
const SAFE = new Set(['GET', 'HEAD'])

export const isFailure = (value: Response | ExecutorResult): value is ExecutorResult => typeof value.status === 'string'

export const failed = (
  kind: string,
  message: string,
  more: Partial<Extract<ExecutorResult, { status: 'failed' }>> = {},
): Failure => ({ status: 'failed', class: kind, message, ...more })

/**
 * Sends one request and reads its answer. `effect`: the call changes something, so it carries the attempt's key and
 * fencing token, and a connection cut after sending is `unknown`. Bodies, queries and credentials are never logged.
 */
export const send = async (
  context: Sender,
  settings: Settings,
  request: Request,
  agent: Agent,
  { effect }: { effect: boolean },
): Promise<Response | Failure> => {
  const url = urlOf(settings.base_url, request)
  if (!url) return failed('refused', `"${request.url}" is not an http or https URL`)
  if (settings.sign?.secret === '') return failed('refused', 'The secret that signs the call is empty')
  const names = Object.keys({
    ...settings.headers,
    ...request.headers,
    ...(settings.sign && { [settings.sign.header]: '' }),
  })
  const refused = names.find(isConnectionHeader)
  if (refused !== undefined) return failed('refused', `The headers ${connectionHeader(refused)}`)
  const limit = Math.min(settings.max_response_bytes ?? DEFAULT_BYTES, MAX_BYTES)
  const timeout = AbortSignal.timeout(Math.max(Math.floor(timeLeft(context, request)), 1))
  const started = performance.now()
  const label = `${request.method} ${url.origin}${url.pathname}`
  const say = (text: string, level: 'info' | 'warn') =>
    context.log(`${label} ${text} (${Math.round(performance.now() - started)} ms)`, { level })
  try {
    const body = textOf(request)
    const headers = headersOf(context, settings, request, effect)
    const { sign } = settings
    if (sign && effect)
      headers[sign.header.toLowerCase()] = `sha256=${hmacSha256(Buffer.from(sign.secret), body ?? '').toString('hex')}`
    const signal = AbortSignal.any([context.signal, timeout])
    const answer = await follow(url, request.method, body, headers, agent, signal)
    const response = await readAnswer(answer, limit)
    if (!response) {
      say('answers too much', 'warn')
      const message = `${label}: the response is longer than ${limit} bytes`
      // Something has probably changed, and no one can tell what: it must not happen again under the next attempt's key.
      if (effect && !SAFE.has(request.method) && answer.statusCode < 400)
        return { status: 'unknown', class: 'unexpected_response', message, final: true }
      return failed('unexpected_response', message)
    }
    say(`answered ${response.status}`, response.status >= 400 ? 'warn' : 'info')
    return response
  } catch (error) {
    const failure = classify(error as Error, label, timeout.aborted)
    say(failure.message.slice(label.length + 2) || failure.class, 'warn')
    return failure
  }
}

const timeLeft = ({ slice_end, deadline }: Sender, { timeout_s }: Request): number =>
  Math.min((timeout_s ?? DEFAULT_TIMEOUT_S) * 1000, slice_end - Date.now(), deadline - Date.now())

const urlOf = (base_url: string | undefined, { url, query }: Request): URL | undefined => {
  const text = /^https?:\/\//i.test(url) ? url : `${(base_url ?? '').replace(/\/$/, '')}${url}`
  if (!URL.canParse(text)) return undefined
  const parsed = new URL(text)
  for (const [name, value] of Object.entries(query ?? {})) parsed.searchParams.append(name, String(value))
  return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed : undefined
}

const headersOf = (context: Sender, settings: Settings, request: Request, effect: boolean): Record<string, string> => {
  // Answers are read uncompressed, so that a small one cannot unfold into a large one.
  const headers: Record<string, string> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'signalbox',
  }
  for (const [name, value] of Object.entries({ ...settings.headers, ...request.headers }))
    headers[name.toLowerCase()] = String(value)
  if (request.body !== undefined) headers['content-type'] ??= 'application/json'
  if (effect) Object.assign(headers, { 'idempotency-key': context.key, 'x-fencing-token': String(context.fence) })
  return headers
}

const textOf = ({ body }: Request): string | undefined =>
  body === undefined || typeof body === 'string' ? body : JSON.stringify(body)

/** Follows at most three redirects of a safe or repeatable kind; credentials are not sent to another host. */
const follow = async (
  start: URL,
  method: string,
  body: string | undefined,
  given: Record<string, string>,
  agent: Agent,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> => {
  let url = start
  let headers = given
  for (let hops = 0; ; hops++) {
    const answer = await undiciRequest(url, {
      method: method as Dispatcher.HttpMethod,
      headers,
      body: body ?? null,
      dispatcher: agent,
      signal,
      reset: true,
    })
    const location = answer.headers.location
    const repeatable = SAFE.has(method) || answer.statusCode === 307 || answer.statusCode === 308
    const leads = typeof location === 'string' && URL.canParse(location, url.href)
    if (!FOLLOWED.has(answer.statusCode) || !leads || !repeatable || hops >= MAX_REDIRECTS) return answer
    await answer.body.dump()
    const next = new URL(location, url)
    if (next.host !== url.host) headers = withoutCredentials(headers)
    url = next
  }
}

const SAFE_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'user-agent',
  'content-type',
  'idempotency-key',
  'x-fencing-token',
])
/** Any header of the node may carry a credential, so another host gets only our own headers. */
const withoutCredentials = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => SAFE_HEADERS.has(name)))

const readAnswer = async ({ statusCode, headers, body }: Dispatcher.ResponseData, limit: number) => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      body.destroy()
      return undefined
    }
    chunks.push(chunk)
  }
  const plain = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : String(value ?? ''),
    ]),
  )
  const text = Buffer.concat(chunks).toString('utf8')
  return { status: statusCode, headers: plain, body: bodyOf(text, plain['content-type'] ?? '') }
}

const bodyOf = (text: string, type: string): unknown => {
  if (text === '') return null
  if (!/json/i.test(type)) return text
  try {
    const value = parseOutput(text)
    // Deeper nesting can be neither stored nor checked, so such a body is plain text.
    return isDeeper(value, MAX_DEPTH) ? text : value
  } catch {
    return text
  }
}

const classify = (error: Error, label: string, timed_out: boolean): Failure => {
  if (error instanceof Denied) return failed('address_denied', `${label}: ${error.message}`)
  if (error instanceof Unreachable) return failed('unreachable', `${label}: ${error.message}`)
  if (error instanceof errors.InvalidArgumentError) return failed('refused', `${label}: ${error.message}`)
  const code = (error as NodeJS.ErrnoException).code ?? error.message
  return timed_out
    ? { status: 'unknown', class: 'timeout', message: `${label}: no answer in time` }
    : { status: 'unknown', class: 'timeout', message: `${label}: the connection was cut (${code})` }
}
