import { platform } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { uuidv7 } from '../../shared/ids.ts'
import { CliError, EXIT, refused } from '../errors.ts'
import type { Credentials, Entry } from './credentials.ts'

const TIMEOUT_MS = 30_000
/** An access token this close to its end is not worth a request. */
const EARLY_MS = 10_000
/** How long a sign-in goes on trying. */
const PATIENCE_MS = 90_000
/** A longer wait is told to the person instead. */
const LONG_WAIT_MS = 30_000

/** By this a person finds this client among their sessions. */
const AGENT = `signalbox ${platform()}`

type TokenReply = { access_token: string; refresh_token: string; expires_in: number; device_token?: string }
export type Reply<T> = { status: number; headers: Headers; body: T }
export type Page<T> = { items: T[]; next_page_token: string | null }

export type ApiOptions = {
  url: string
  credentials: Credentials
  /** From SIGNALBOX_TOKEN: used as it is, never refreshed. */
  token: string | undefined
  /** From --idempotency-key: the key of the one command that is sent. */
  idempotency_key: string | undefined
  /** How long one request may take. */
  timeout_ms?: number | undefined
}

/** The public API as one signed-in person: refreshes its token under the lock, repeats nothing that may be done twice. */
export const createApi = ({ url, credentials, token, idempotency_key, timeout_ms = TIMEOUT_MS }: ApiOptions) => {
  refuseCleartext(url)

  const raw = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const reply = await fetch(`${url}${path}`, {
      method,
      redirect: 'error',
      headers: { 'user-agent': AGENT, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeout_ms),
    })
    const text = await reply.text()
    const json = /[/+]json\b/.test(reply.headers.get('content-type') ?? '')
    const parsed = json && text ? JSON.parse(text) : text
    if (!reply.ok) throw refused(reply.status, json ? parsed : {})
    return { status: reply.status, headers: reply.headers, body: parsed as T }
  }

  const reach = async <T>(act: () => Promise<T>, repeat?: string): Promise<T> => {
    try {
      return await act()
    } catch (error) {
      if (error instanceof CliError) throw error
      const why = ((error as Error).cause as Error | undefined)?.message || (error as Error).message
      const failed = new CliError(
        EXIT.error,
        `failed   ${url} did not answer: ${why}`,
        repeat ? `hint     Whether it was taken is not known. Repeat it with --idempotency-key ${repeat}` : HINT_URL,
      )
      failed.passing = true
      throw failed
    }
  }

  const keep = (username: string, { access_token, refresh_token, expires_in }: TokenReply): Entry => {
    const entry = { username, access_token, refresh_token, expires_at: Date.now() + expires_in * 1000 }
    credentials.save(url, entry)
    return entry
  }

  /** Another process may have refreshed while this one waited for the lock: then its result is used. */
  const refresh = (used: string): Promise<Entry> =>
    credentials.alone(async () => {
      const entry = credentials.get(url)
      if (!entry) throw signedOut()
      if (entry.access_token !== used && entry.expires_at - EARLY_MS > Date.now()) return entry
      const retry_key = entry.retry_key ?? uuidv7()
      credentials.save(url, { ...entry, retry_key })
      const { refresh_token } = entry
      const request = { grant_type: 'refresh_token', refresh_token }
      try {
        const { body } = await raw<TokenReply>('POST', '/v1/token', request, { 'idempotency-key': retry_key })
        return keep(entry.username, body)
      } catch (error) {
        if (!(error instanceof CliError) || error.exit !== EXIT.sign_in) throw error
        credentials.save(url, undefined)
        throw signedOut()
      }
    })

  const bearer = async (): Promise<string> => {
    if (token !== undefined) return token
    const entry = credentials.get(url)
    if (!entry) throw signedOut()
    if (entry.expires_at - EARLY_MS > Date.now()) return entry.access_token
    return (await reach(() => refresh(entry.access_token))).access_token
  }

  const send = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const key = method === 'GET' ? undefined : (headers['idempotency-key'] ?? idempotency_key ?? uuidv7())
    const call = (access_token: string) =>
      raw<T>(method, path, body, {
        authorization: `Bearer ${access_token}`,
        ...(key && { 'idempotency-key': key }),
        ...headers,
      })
    const access_token = await bearer()
    return reach(async () => {
      try {
        return await call(access_token)
      } catch (error) {
        if (!(error instanceof CliError) || error.exit !== EXIT.sign_in || token !== undefined) throw error
        return call((await refresh(access_token)).access_token)
      }
    }, key)
  }

  const get = <T>(path: string) => send<T>('GET', path).then(({ body }) => body)

  return {
    url,
    send,
    get,
    /** An answer that does not end by itself, as it comes; the caller ends it by the signal. */
    stream: async (path: string, signal: AbortSignal): Promise<Response> => {
      const headers = { 'user-agent': AGENT, authorization: `Bearer ${await bearer()}`, accept: 'text/event-stream' }
      return fetch(`${url}${path}`, { headers, redirect: 'error', signal })
    },
    post: <T>(path: string, body: unknown) => send<T>('POST', path, body).then((reply) => reply.body),
    /** The items of a list: one page, or all of them by the cursor. */
    list: async <T>(path: string, query: Record<string, string | undefined>, all: boolean): Promise<T[]> => {
      const items: T[] = []
      for (let page_token: string | null | undefined; ; ) {
        const page = await get<Page<T>>(withQuery(path, { ...query, page_token: page_token ?? undefined }))
        items.push(...page.items)
        page_token = page.next_page_token
        if (!all || page_token === null) return items
      }
    },
    /** Signs in; while the server is busy it waits as long as it is told to, and says so. */
    login: async (username: string, password: string, say: (line: string) => void): Promise<void> => {
      const device_token = credentials.device(url, username)
      const request = { grant_type: 'password', username, password, remember_device: true, device_token }
      const { body } = await patiently(() => reach(() => raw<TokenReply>('POST', '/v1/token', request)), say)
      await credentials.alone(async () => {
        keep(username, body)
        if (body.device_token !== undefined) credentials.saveDevice(url, username, body.device_token)
      })
    },
    /** Ends the session; what is kept here goes in any case. */
    logout: async (): Promise<void> => {
      try {
        const authorization = `Bearer ${await bearer()}`
        await reach(() => raw('POST', '/auth/logout', undefined, { authorization }))
      } finally {
        await credentials.alone(async () => credentials.save(url, undefined))
      }
    },
  }
}
export type Api = ReturnType<typeof createApi>

/** Repeats what the server says may be repeated, for as long as a person waits. */
const patiently = async <T>(act: () => Promise<T>, say: (line: string) => void): Promise<T> => {
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    try {
      return await act()
    } catch (error) {
      const wait_ms = error instanceof CliError ? error.retry_after_ms : undefined
      if (wait_ms === undefined || wait_ms > LONG_WAIT_MS || Date.now() + wait_ms > end) throw error
      const why = (error as CliError).detail.replace(/ Try again.*$/, '')
      say(`${why} Trying again in ${Math.ceil(wait_ms / 1000)} s.`)
      await delay(wait_ms)
    }
  }
}

const HINT_URL = 'hint     Is it running? --url or SIGNALBOX_URL name another address.'
const signedOut = () => new CliError(EXIT.sign_in, 'Nobody is signed in here.', 'hint     signalbox login NAME')

/** Tokens do not travel in the clear, but to this very machine. */
const refuseCleartext = (url: string): void => {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  if (protocol === 'https:') return
  if (protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return
  throw new CliError(EXIT.usage, `refused  ${JSON.stringify(url)} is no https address.`, HINT_URL)
}

export const withQuery = (path: string, query: Record<string, string | undefined>): string => {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
