import { platform } from 'node:os'
import { createSignalbox, type Problem, ProblemError, type Repeats, read } from '../../client/index.ts'
import { problemFrom } from '../../shared/contracts/client/problem.ts'
import { whyOf } from '../../shared/errors.ts'
import { CliError, EXIT, failure, refused, usageError } from '../errors.ts'
import type { BrowserCode } from './browser.ts'
import type { Credentials } from './credentials.ts'
import { type DeviceCodes, tokensByDevice } from './device.ts'
import { isApiKey, tokensOfKey } from './machine.ts'
import { createRefresh, isEnrolling, nameIn, type TokenReply } from './refresh.ts'

const TIMEOUT_MS = 30_000
/** A sign-in waits longer for its turn than other requests do. */
const LOGIN_REPEATS = { times: 30, longest_wait_ms: 30_000 }
/** Helps people recognize this client among their sessions. */
const AGENT = `signalbox ${platform()}`

export type Reply<T> = { status: number; headers: Headers; body: T }
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
  /** How long one request may take. */
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
  const connect = (options: Partial<Repeats>, tokens = {}) =>
    createSignalbox({ url, ...tokens, repeats: { ...options, onRepeat }, fetch: sender(timeout_ms) })

  const refresh = createRefresh(url, credentials, connect({ times: 0 }))
  const tokens =
    token === undefined ? refresh : isApiKey(token) ? tokensOfKey(connect({ times: repeats }), token) : { token }
  const signalbox = connect({ times: repeats }, tokens)

  const send = async <T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    if (dry_run && !isTrial(method, path, body)) throw usageError('This command has no --dry-run. Nothing was changed.')
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
        return `The command may have been applied. Repeat it with --idempotency-key ${key}`
      return status === 401 && token !== undefined
        ? 'Set SIGNALBOX_TOKEN to a valid access token, or unset it and run: signalbox login NAME'
        : undefined
    })
  }

  /** The fields by which a sign-in from here is recognized, now and the next time. */
  const deviceOf = (username?: string) => {
    const device_token = credentials.device(url, username)
    return { remember_device: true, ...(device_token !== undefined && { device_token }) }
  }

  const enter = (username: string, tokens: TokenReply): Promise<string> =>
    credentials.alone(async () => {
      refresh.keep(username, tokens)
      if (isEnrolling(tokens.access_token))
        say(
          `Your role needs a second factor, so this sign-in only sets one up. Run: signalbox totp set, or open ${url}/settings/passkeys`,
        )
      if (tokens.device_token !== undefined) credentials.saveDevice(url, username, tokens.device_token)
      return username
    })

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
    /** Signs in; retries a busy server after the delay that it names. */
    login: async (username: string, password: string, askCode: AskCode = noCode): Promise<void> => {
      const device = deviceOf(username)
      const signIn = (body: object): Promise<TokenReply> =>
        read(connect(LOGIN_REPEATS).POST('/v1/token', { body: { ...body, ...device } }))
      const tokens = await told(url, () =>
        signIn({ grant_type: 'password', username, password }).catch((error: unknown) =>
          byCode(error, askCode, (more) => signIn({ grant_type: 'second_factor', ...more })),
        ),
      )
      await enter(username, tokens)
    },
    /** Signs in with the code that a browser delivered; returns the name of the user. */
    redeem: async (grant: BrowserCode): Promise<string> => {
      const body = { grant_type: 'authorization_code' as const, ...grant, ...deviceOf() }
      const tokens: TokenReply = await told(url, () => read(connect({ times: 0 }).POST('/v1/token', { body })))
      return enter(nameIn(tokens.access_token), tokens)
    },
    /** Signs in by an approval in a browser on another device; returns the name of the user. */
    loginDevice: async (show: (codes: DeviceCodes) => void): Promise<string> => {
      const tokens = await told(url, () => tokensByDevice(connect({ times: 0 }), show, deviceOf()))
      return enter(nameIn(tokens.access_token), tokens)
    },
    /** Keeps the API key of a machine; returns the machine's name. */
    loginMachine: (key: string): Promise<string> =>
      told(url, () => credentials.alone(async () => (await refresh.keepKey(key)).username)),
    /** Gets a new access token after the session gained rights. */
    renew: async (): Promise<void> => void (await refresh.renew(await refresh.token())),
    /** Ends the session; the credentials kept here are removed in any case. */
    logout: async (): Promise<void> => {
      try {
        // A machine's session is its key, which remains valid.
        if (credentials.get(url)?.api_key === undefined) await send('POST', '/auth/logout')
      } finally {
        await credentials.alone(async () => credentials.save(url, undefined))
      }
    },
  }
}
/** Asks the person for a code of the authenticator app; `again` after a refused code. */
export type AskCode = (again: boolean) => Promise<string>
const noCode: AskCode = async () => {
  throw usageError('The sign-in needs a code of your authenticator app.', 'Sign in at a terminal: signalbox login NAME')
}

/** Completes a sign-in that needs a code; the server limits the number of wrong codes. */
const byCode = async (
  refusal: unknown,
  askCode: AskCode,
  signIn: (more: { factor_token: string; totp: string }) => Promise<TokenReply>,
): Promise<TokenReply> => {
  if (!(refusal instanceof ProblemError) || refusal.problem.code !== 'second_factor_required') throw refusal
  const { factor_token, factors } = refusal.problem
  if (!Array.isArray(factors) || !factors.includes('totp'))
    throw failure(
      EXIT.sign_in,
      'The sign-in needs your passkey, which a terminal cannot use.',
      'Sign in at the console, or set up an authenticator app there.',
    )
  for (let again = false; ; again = true) {
    try {
      return await signIn({ factor_token: String(factor_token), totp: (await askCode(again)).replaceAll(/\s/g, '') })
    } catch (error) {
      const mistyped =
        error instanceof ProblemError && ['totp_invalid', 'schema_violation'].includes(error.problem.code)
      if (!mistyped) throw error
    }
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

/** An answer with its body: JSON as data, anything else as text. Throws a ProblemError for a refusal. */
const replyOf = async <T>(url: string, answer: Response): Promise<Reply<T>> => {
  const { ok, status, headers } = answer
  const text = await answer.text()
  const type = headers.get('content-type') ?? ''
  const body = /[/+]json\b/.test(type) && text ? JSON.parse(text) : text
  if (!ok) throw new ProblemError(problemFrom(status, body, headers.get('retry-after')))
  if (type.startsWith('text/html')) throw failure(EXIT.error, `${url} is a web page.`, OTHER_ADDRESS)
  return { status, headers, body: body as T }
}

/** Sends one request with a timeout, which a stream does not have. */
const sender =
  (timeout_ms: number) =>
  (request: Request): Promise<Response> => {
    request.headers.set('user-agent', AGENT)
    const limits = request.headers.get('accept') === STREAM ? [] : [AbortSignal.timeout(timeout_ms)]
    return fetch(request, { redirect: 'error', signal: AbortSignal.any([request.signal, ...limits]) })
  }

/** The result of `act`. A refusal or outage (status 0) becomes readable lines, with a known or a general remedy. */
const told = async <T>(
  url: string,
  act: () => Promise<T>,
  remedyOf: (failed: { status: number }) => string | undefined = () => undefined,
): Promise<T> => {
  try {
    return await act()
  } catch (error) {
    if (error instanceof CliError) throw error
    if (error instanceof ProblemError) {
      const { problem } = error
      if (!problem.code.startsWith('status_')) throw refused(problem, remedyOf(problem))
      throw passing(
        `${url} answered ${problem.status} without an explanation. It may not be a Signalbox server.`,
        OTHER_ADDRESS,
      )
    }
    const why = whyOf(error)
    const fault = error instanceof SyntaxError ? 'gave an unreadable answer' : 'did not answer'
    throw passing(`${url} ${fault}: ${why.replace(/\.$/, '')}.`, remedyOf({ status: 0 }) ?? OTHER_ADDRESS)
  }
}

const OTHER_ADDRESS = 'Start the platform, or name another address: --url, --context or SIGNALBOX_URL.'

const passing = (fault: string, remedy: string): CliError =>
  Object.assign(failure(EXIT.error, fault, remedy), { passing: true })

/** Tokens are sent in the clear only to this machine. */
const refuseCleartext = (url: string): void => {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: '', hostname: '' }
  if (protocol === 'https:') return
  if (protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) return
  throw protocol === 'http:'
    ? usageError(`${url} would send your token unencrypted.`, 'Use its https address.')
    : usageError(`${JSON.stringify(url)} is not a web address.`, 'Name one such as https://signalbox.example.com.')
}

export const withQuery = (path: string, query: Query): string => {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
