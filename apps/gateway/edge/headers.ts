import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { ConfigError } from '../../shared/config.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { PRIORITY_HEADER } from '../../shared/http/pressure.ts'
import { random128 } from '../../shared/ids.ts'
import type { Priority } from '../../shared/process/priority.ts'
import { isTrace } from '../../shared/process/trace.ts'
import { addressKey, groupsOf } from '../../shared/web/addresses.ts'
import type { Origins } from '../../shared/web/origins.ts'
import type { Upstream } from '../routes/table.ts'

const ONCE = new Set(['host', 'authorization', 'content-type', 'content-length', 'idempotency-key', 'x-csrf-token'])

/**
 * Refuses headers that two parsers could read differently: names with an underscore (some servers read it as a dash),
 * and repeated headers that decide something. On token routes also a repeated Cookie.
 */
export const checkHeaders = (req: IncomingMessage, token_route: boolean): void => {
  const seen = new Set<string>()
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const name = (req.rawHeaders[i] ?? '').toLowerCase()
    if (name.includes('_'))
      throw refused('forbidden_header', `The header ${name.slice(0, 64)} has an underscore in its name.`)
    const once = ONCE.has(name) || (token_route && name === 'cookie')
    if (once && seen.has(name)) throw refused('duplicate_header', `The header ${name} occurs twice.`)
    seen.add(name)
  }
  const { method = '' } = req
  const { 'content-length': length, 'transfer-encoding': coding, expect } = req.headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue')
    throw refused('forbidden_header', 'The only supported expectation is 100-continue.')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw refused('forbidden_header', 'The only supported transfer coding is chunked.', { connection: 'close' })
  const has_body = coding !== undefined || (length !== undefined && length !== '0')
  if (has_body && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')) {
    throw refused('forbidden_header', `A ${method} request has no body.`)
  }
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new AppError('validation_error', 'unsupported_media_type', 'Compressed bodies are not accepted.')
  }
}

const refused = (code: CodeOf<'validation_error'>, detail: string, headers: Record<string, string> = {}) =>
  new AppError('validation_error', code, detail, { hint: 'Send the request without it.', headers })

const FORWARDED = [
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'content-type',
  'content-length',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'last-event-id',
  'range',
  'user-agent',
  'x-csrf-token',
]
/** The headers that sign a webhook. */
const FOR_OPERATIONS = ['webhook-id', 'webhook-signature', 'webhook-timestamp', 'x-hub-signature-256']
const FOR_SESSION = ['cookie', 'origin', 'sec-fetch-site']

const FOR_UPSTREAM: Partial<Record<Upstream, string[]>> = { session: FOR_SESSION, operations: FOR_OPERATIONS }

export type Identity = { user_id: string; jwt_payload: string }

/** Builds the headers of the upstream request from the allow-list, so that a client cannot speak for the gateway. */
export const upstreamHeaders = (
  headers: IncomingHttpHeaders,
  more: {
    upstream: Upstream
    request_id: string
    address: string
    traceparent: string
    priority: Priority
    deadline_ms?: number
    /** What the client's path has before the one of the app. */
    prefix?: string
    identity?: Identity
  },
): Record<string, string> => {
  const named = connectionNames(headers.connection)
  const made: Record<string, string> = {}
  for (const name of [...FORWARDED, ...(FOR_UPSTREAM[more.upstream] ?? [])]) {
    const value = headers[name]
    if (typeof value === 'string' && !named.has(name)) made[name] = value
  }
  // No answer tells the client that its copy is still good, so it gets the whole.
  if (headers['if-range'] !== undefined) delete made.range
  made['x-request-id'] = more.request_id
  made['x-forwarded-for'] = more.address
  made.traceparent = more.traceparent
  made[PRIORITY_HEADER] = more.priority
  if (more.deadline_ms !== undefined) made['x-request-deadline'] = String(more.deadline_ms)
  if (more.prefix) made['x-forwarded-prefix'] = more.prefix
  if (more.identity) {
    made['x-user-id'] = more.identity.user_id
    made['x-jwt-payload'] = more.identity.jwt_payload
  }
  return made
}

/** Returns the trace that a request belongs to (W3C Trace Context): the caller's, or a new unrecorded one. */
export const traceOf = (given: string | string[] | undefined): string =>
  isTrace(given) ? given : `00-${hex(random128())}-${hex(random128().subarray(8))}-00`

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')

const NOT_PASSED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'server',
  'x-powered-by',
])
/** Only the gateway sets these, whatever an upstream sends. */
const OURS =
  /^(access-control-|strict-transport-security$|x-frame-options$|x-content-type-options$|referrer-policy$|cross-origin-|content-security-policy$|x-request-id$|vary$)/

const NO_NAMES: ReadonlySet<string> = new Set()
/** Trims after the split: one expression for both takes quadratic time for a run of blanks, which any client may send. */
const connectionNames = (value: string | string[] | undefined): ReadonlySet<string> =>
  value === undefined || value === 'keep-alive' ? NO_NAMES : new Set(namesIn([value].flat().join().toLowerCase()))
const namesIn = (list: string): string[] => list.split(',').map((name) => name.trim())

/** Headers as Node takes them without a copy: name, value, name, value. */
export type HeaderList = string[]

const MAX_REMEMBERED = 256
const decided = new Map<string, boolean>()
/** Whether an upstream's header is passed on. Upstreams send the same few names every time, so results are cached. */
const isPassed = (name: string): boolean => {
  let passed = decided.get(name)
  if (passed === undefined) {
    passed = !NOT_PASSED.has(name) && !OURS.test(name)
    if (decided.size < MAX_REMEMBERED) decided.set(name, passed)
  }
  return passed
}

/** Returns the headers of an upstream's answer that go to a client below `base`; `set-cookie` only from session. */
export const answerHeaders = (
  headers: Record<string, string | string[] | undefined>,
  upstream: Upstream,
  base = '',
): HeaderList => {
  const named = connectionNames(headers.connection)
  const kept: HeaderList = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || !isPassed(name) || named.has(name)) continue
    if (name === 'set-cookie' && upstream !== 'session') continue
    const seen = base === '' ? undefined : BELOW[name]
    for (const one of [value].flat()) kept.push(name, seen ? seen(one, base) : one)
  }
  return kept
}

/** The paths in headers as a client below a base path sees them. A cookie named `__Host-` has to keep the path `/`. */
const BELOW: Record<string, (value: string, base: string) => string> = {
  location: (value, base) => (value.startsWith('/') ? base + value : value),
  link: (value, base) => value.replaceAll('</', `<${base}/`),
  'set-cookie': (value, base) => (value.startsWith('__Host-') ? value : value.replace('; Path=/', `; Path=${base}/`)),
}

/** The security headers of every answer, except the content policy. HSTS has meaning only over https. */
export const createSecurityHeaders = (public_origin: string): HeaderList => [
  'x-content-type-options',
  'nosniff',
  'x-frame-options',
  'DENY',
  'referrer-policy',
  'no-referrer',
  'cross-origin-resource-policy',
  'same-origin',
  ...(public_origin.startsWith('https:') ? ['strict-transport-security', 'max-age=31536000; includeSubDomains'] : []),
]

export const API_POLICY: HeaderList = ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"]

/** The content policy of an API answer. An upstream may add a stricter one: browsers then apply both. */
export const apiPolicy = (added: string | string[] | undefined): HeaderList =>
  added === undefined
    ? API_POLICY
    : API_POLICY.concat([added].flat().flatMap((policy) => ['content-security-policy', policy]))

type Answered = { req: IncomingMessage; request_id: string }

/** The headers of every answer of the gateway: its own, request id, security headers, the content policy, CORS. */
export const commonHeaders = (
  { securityHeaders, cors }: { securityHeaders: HeaderList; cors: Cors },
  { req, request_id }: Answered,
  own: HeaderList,
  policy: HeaderList = API_POLICY,
  allowed: HeaderList = cors.answer(req.headers.origin),
): HeaderList => own.concat(['x-request-id', request_id], securityHeaders, policy, allowed)

const METHODS = 'GET, POST, PUT, PATCH, DELETE'
const REQUEST_HEADERS =
  'Authorization, Content-Type, X-CSRF-Token, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID'
const EXPOSED = 'X-CSRF-Token, ETag, Location, Retry-After, X-Request-Id, Idempotency-Replayed'
const MAX_AGE_S = '600'

/** Paths for which browsers may send a preflight request. */
const PREFLIGHT = /^\/(auth\/|v1\/token$|v1\/token\/(reauth|passkey-options)$|v1\/(?!token)|api\/)/
export const isPreflightPath = (path: string): boolean => PREFLIGHT.test(path)

/**
 * CORS headers (auth.md 3.3). An origin that is not allowed gets none at all, so a browser shows the page no answer.
 * The Origin rule, not this file, decides what the origin may do.
 */
export const createCors = (origins: Origins, { enabled, credentials }: { enabled: boolean; credentials: boolean }) => {
  const common = (origin: string): HeaderList => [
    'access-control-allow-origin',
    origin,
    ...(credentials ? ['access-control-allow-credentials', 'true'] : []),
    'access-control-expose-headers',
    EXPOSED,
  ]
  const preflight = (origin: string): HeaderList => [
    ...common(origin),
    'access-control-allow-methods',
    METHODS,
    'access-control-allow-headers',
    REQUEST_HEADERS,
    'access-control-max-age',
    MAX_AGE_S,
  ]
  /** Every answer varies by origin, even one without these headers, and caches must know. */
  const withVary = (origin: string | undefined, allowed: (origin: string) => HeaderList): HeaderList =>
    enabled && origin !== undefined && origins.isAllowed(origin) ? ['vary', 'Origin', ...allowed(origin)] : VARY
  return {
    answer: (origin: string | undefined): HeaderList => withVary(origin, common),
    preflight: (origin: string | undefined): HeaderList => withVary(origin, preflight),
  }
}
export type Cors = ReturnType<typeof createCors>

const VARY: HeaderList = ['vary', 'Origin']

/** The client of a request: its address, and the key that its limits count by (IPv6 by /64). */
export type ClientAddress = { address: string; key: string }

/** Clients send many requests, so the result for each spelling is cached. */
const MAX_KNOWN = 1000
const MAX_SPELLING = 200

/** Finds the client's address: the socket's, or behind trusted proxies the right-most entry that is not one of them. */
export const createAddressReader = (trusted: readonly string[]) => {
  const proxies = new BlockList()
  for (const cidr of trusted) addTo(proxies, cidr)
  const isTrusted = (address: string) => trusted.length > 0 && proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

  const read = (socket_address: string | undefined, forwarded: string | string[] | undefined): ClientAddress => {
    let address = normalize(socket_address ?? '') ?? '0.0.0.0'
    const chain = [forwarded ?? []].flat().join(',').split(',')
    while (isTrusted(address)) {
      const next = normalize(withoutPort((chain.pop() ?? '').trim()))
      if (next === undefined) break
      address = next
    }
    return { address, key: addressKey(address) }
  }
  const known = new Map<string, ClientAddress>()
  return (socket_address: string | undefined, forwarded: string | string[] | undefined): ClientAddress => {
    const spelling = `${socket_address} ${forwarded}`
    let client = known.get(spelling)
    if (client === undefined) {
      client = read(socket_address, forwarded)
      if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value as string)
      if (spelling.length <= MAX_SPELLING) known.set(spelling, client)
    }
    return client
  }
}
export type ReadAddress = ReturnType<typeof createAddressReader>

const addTo = (list: BlockList, cidr: string) => {
  const [address = '', bits] = cidr.split('/')
  const family = isIP(address)
  if (family === 0)
    throw new ConfigError(`GATEWAY__HTTP__TRUSTED_PROXIES holds ${JSON.stringify(cidr)}, which is not a CIDR range.`)
  list.addSubnet(address, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
}

/** An entry of X-Forwarded-For: some proxies add the port, and brackets around IPv6. */
const withoutPort = (entry: string): string =>
  /^(?:(\d+\.\d+\.\d+\.\d+)|\[([^\]]+)\])(?::\d{1,5})?$/.exec(entry)?.slice(1).find(Boolean) ?? entry

/** Returns one spelling per address: IPv4-mapped ones as IPv4, IPv6 without zone. `undefined` for other text. */
const normalize = (text: string): string | undefined => {
  const [address = ''] = text.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  const plain = mapped ?? address
  if (isIP(plain) === 0) return undefined
  return isIPv4(plain) ? plain : groupsOf(plain).join(':')
}
