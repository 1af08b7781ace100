import { platform } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { createSignalbox, type Problem, type Repeats } from '../../client/index.ts'
import { noDryRun, usageError } from '../errors.ts'
import { replyOf, told } from './answers.ts'
import type { Credentials } from './credentials.ts'
import { isApiKey, tokensOfKey } from './machine.ts'
import { createRefresh } from './refresh.ts'
import { createSignIn } from './sign-in.ts'

const TIMEOUT_MS = 30_000
/** Of a refresh: how long the first answers may take, and the pause before the next. */
const SOON_MS = 3000
const AGAIN_MS = 300
/** Helps people recognize this client among their sessions. */
const AGENT = `signalbox ${platform()}`

export type Page<T> = { items: T[]; next_page_token: string | null }

export type ApiOptions = {
  url: string
  credentials: Credentials
  /** From SIGNALBOX_TOKEN: an access token, which is never refreshed, or the API key of a machine. */
  token: string | undefined
  /** From --idempotency-key: the key of the command's only request. */
  idempotency_key: string | undefined
  /** From --dry-run: refuses every request that would change something, unless the server only simulates it. */
  dry_run?: boolean | undefined
  timeout_ms?: number | undefined
  /** How often a retryable refusal is sent again; 3 by default. */
  repeats?: number | undefined
  /** Called with the reason and duration of each wait before a repeat. */
  say?: (line: string) => void
}

/** The public API as one signed-in person: `@signalbox/client` with the tokens of the credentials file. */
export const createApi = ({
  url,
  credentials,
  token,
  idempotency_key,
  dry_run = false,
  timeout_ms = TIMEOUT_MS,
  repeats = 3,
  say = () => {},
}: ApiOptions) => {
  refuseCleartext(url)
  // The value itself is a secret, so the message does not repeat it.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw usageError(
      'SIGNALBOX_TOKEN contains a space, a line break or another character that no token has.',
      'Set it again.',
    )
  const onRepeat = ({ detail }: Problem, wait_ms: number) =>
    say(`${detail.replace(/ Try again.*$/, '')} Trying again in ${Math.ceil(wait_ms / 1000)} s.`)
  const connect = (options: Partial<Repeats>, tokens = {}, send = sender(timeout_ms)) =>
    createSignalbox({ url, ...tokens, repeats: { ...options, onRepeat }, fetch: send })

  const refresh = createRefresh(url, credentials, connect({ times: 2 }, {}, insisting(timeout_ms)))
  const tokens =
    token === undefined ? refresh : isApiKey(token) ? tokensOfKey(connect({ times: repeats }), token) : { token }
  const signalbox = connect({ times: repeats }, tokens)

  /** `again`: options that a repeat needs beside its key, to be the same request. */
  const send = async <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    again = '',
  ) => {
    if (dry_run && !isTrial(method, path, body)) throw noDryRun()
    const request = new Request(`${url}${path}`, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(idempotency_key !== undefined && method !== 'GET' && { 'idempotency-key': idempotency_key }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const act = async () => replyOf<T>(url, await signalbox.send(request))
    return told(url, act, ({ status }) => {
      const key = request.headers.get('idempotency-key')
      if (status === 0 && key !== null)
        return `The command may have been applied. Repeat it with --idempotency-key ${key}${again}`
      return status === 401 && token !== undefined
        ? 'Set SIGNALBOX_TOKEN to a valid access token, or unset it and run: signalbox login NAME'
        : undefined
    })
  }

  const end = () => send('POST', '/auth/logout')
  const endGiven = async (given: string): Promise<void> => {
    if (isApiKey(given))
      throw usageError('SIGNALBOX_TOKEN is the key of a machine, which has no session.', 'Unset it to sign out here.')
    await end()
  }

  const get = <T>(path: string) => send<T>('GET', path).then(({ body }) => body)

  return {
    url,
    send,
    get,
    /** Returns an endless answer as it arrives; the signal ends it. */
    stream: (path: string, signal: AbortSignal): Promise<Response> =>
      signalbox.send(new Request(`${url}${path}`, { headers: { accept: STREAM }, signal })),
    post: <T>(path: string, body: unknown) => send<T>('POST', path, body).then((reply) => reply.body),
    /** Reads an endpoint that needs no sign-in. */
    open: <T>(path: string): Promise<T> =>
      told(
        url,
        async () => (await replyOf<T>(url, await connect({ times: repeats }).send(new Request(`${url}${path}`)))).body,
      ),
    /** The items of a list: one page, or all of them by following the cursor. */
    list: <T>(path: string, query: Query, all: boolean): Promise<T[]> =>
      listOf((at) => get<Page<T>>(at), path, query, all),
    ...createSignIn({ url, credentials, refresh, connect, say, end }),
    // A given token is not renewed, and the sign-in in the credentials file may be another person's.
    ...(token !== undefined && { renew: async () => {}, logout: () => endGiven(token) }),
  }
}

const isTrial = (method: string, path: string, body: unknown): boolean =>
  method === 'GET' ||
  path.includes('validate_only=true') ||
  (body as { dry_run?: unknown } | undefined)?.dry_run === true

export type Api = ReturnType<typeof createApi>

type Query = Record<string, string | undefined>
const listOf = async <T>(
  get: (path: string) => Promise<Page<T>>,
  path: string,
  query: Query,
  all: boolean,
): Promise<T[]> => {
  const items: T[] = []
  for (let page_token: string | null | undefined; ; ) {
    const page = await get(withQuery(path, { ...query, page_token: page_token ?? undefined }))
    items.push(...page.items)
    page_token = page.next_page_token
    if (!all || page_token === null) return items
  }
}

const STREAM = 'text/event-stream'

/** Sends one request with a timeout, which a stream does not have. */
const sender =
  (timeout_ms: number) =>
  (request: Request): Promise<Response> => {
    request.headers.set('user-agent', AGENT)
    const limits = request.headers.get('accept') === STREAM ? [] : [AbortSignal.timeout(timeout_ms)]
    return fetch(request, { redirect: 'error', signal: AbortSignal.any([request.signal, ...limits]) })
  }

/**
 * Sends a refresh, and after a lost answer again, soon: the server takes a repeat for 10 s, and a later one for a thief's.
 */
const insisting = (timeout_ms: number) => async (request: Request) => {
  for (let sent = 1; sent < 3; sent += 1) {
    try {
      return await sender(Math.min(timeout_ms, SOON_MS))(request.clone())
    } catch {
      await delay(AGAIN_MS)
    }
  }
  return sender(timeout_ms)(request)
}

const EXAMPLE = 'Name one such as https://signalbox.example.com.'

/** Tokens are sent in the clear only to this machine. */
const refuseCleartext = (url: string): void => {
  const read = URL.canParse(url) ? new URL(url) : undefined
  const { protocol, hostname } = read ?? { protocol: '', hostname: '' }
  // Not repeated in the message: it may hold a password.
  if (read && (read.username || read.password || read.search || read.hash || url !== url.trim()))
    throw usageError('The address must hold no name, password, query, fragment or space.', EXAMPLE)
  if (protocol === 'https:') return
  if (protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return
  throw protocol === 'http:'
    ? usageError(`${url} would send your token unencrypted.`, 'Use its https address.')
    : usageError(`${JSON.stringify(url)} is not a web address.`, EXAMPLE)
}

export const withQuery = (path: string, query: Query): string => {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
