import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ensurePerson, readDemo } from '../../apps/platform/demo/accounts.ts'
import type { Account } from '../../apps/platform/demo/client.ts'
import type { Stack } from '../support/stack.ts'
import type { Act, PersonBook } from './books.ts'

// biome-ignore lint/suspicious/noExplicitAny: the model reads what it needs of any answer
export type Answer = Act & { status: number; body: any; code: string }
export type Caller = {
  name: string
  call: (method: string, path: string, body?: unknown, options?: { twice?: boolean }) => Promise<Answer>
  get: (path: string) => Promise<Answer>
}

const TRIES = 4
const PAUSE_MS = 250

/**
 * A person at the gateway. A command without a certain answer is sent again with the same key; `twice` sends it two
 * times at once. The answer gives the whole span of time, and `unknown` if it may still have been carried out.
 */
export const createCaller = (gateway_url: string, account: Account): Caller => {
  let token = ''
  const send = async (method: string, path: string, body: unknown, headers: Record<string, string>) => {
    try {
      const reply = await fetch(`${gateway_url}${path}`, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(15_000),
      })
      const text = await reply.text()
      const json =
        reply.headers.get('content-type')?.includes('json') && !reply.headers.get('content-type')?.includes('jsonl')
      return { status: reply.status, body: text && json ? JSON.parse(text) : text }
    } catch {
      return { status: 0, body: {} }
    }
  }
  const signIn = async () => {
    const { username, password } = account
    const { status, body } = await send('POST', '/v1/token', { grant_type: 'password', username, password }, {})
    token = status === 200 ? body.access_token : ''
  }
  /** One request, signed in again if the session has ended. */
  const once = async (method: string, path: string, body: unknown, headers: Record<string, string>) => {
    if (!token) await signIn()
    const sent = () => send(method, `/api${path}`, body, { ...headers, authorization: `Bearer ${token || 'none'}` })
    const reply = await sent()
    if (reply.status !== 401) return reply
    await signIn()
    return token ? sent() : reply
  }
  const call: Caller['call'] = async (method, path, body, { twice = false } = {}) => {
    const type: Record<string, string> = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {}
    const headers = { ...type, ...(method !== 'GET' && { 'idempotency-key': randomUUID() }) }
    const from = Date.now()
    let reply = { status: 0, body: {} as Answer['body'] }
    // The same key again: a command that was carried out without an answer is answered now.
    const unsure = () =>
      reply.status === 0 || reply.status === 429 || reply.status >= 500 || reply.body?.retryable === true
    for (let n = 0; n < TRIES && (n === 0 || unsure()); n++) {
      if (n > 0) await delay(PAUSE_MS * n)
      const both = [once(method, path, body, headers), ...(twice ? [once(method, path, body, headers)] : [])]
      const replies = await Promise.all(both)
      reply = replies.find(({ status }) => status >= 200 && status < 300) ?? replies[0] ?? reply
    }
    const outcome = reply.status >= 200 && reply.status < 300 ? 'done' : unsure() ? 'unknown' : 'refused'
    const to = outcome === 'unknown' ? Number.POSITIVE_INFINITY : Date.now()
    return { from, to, outcome, status: reply.status, body: reply.body, code: reply.body?.code ?? '' }
  }
  return { name: account.username, call, get: (path) => call('GET', path) }
}

type Wanted = { name: string; roles: string[]; group: string }
/** The people who start and stop: most often those who do only that. */
export const OPERATORS = ['oda', 'olaf', 'oda', 'olaf', 'oda', 'olaf', 'adam', 'adam', 'both1', 'both2'] as const
/** Also starts operations, and gives people their rights: those do not count for operations in which he takes part. */
export const GIVER = 'adam'
export const VOTERS = ['eric', 'emma', 'enno', 'edda', 'ivo', 'both1', 'both2'] as const
const WANTED: Wanted[] = [
  { name: 'oda', roles: ['operator'], group: 'weboperators' },
  { name: 'olaf', roles: ['operator'], group: 'weboperators' },
  { name: GIVER, roles: ['operator', 'admin'], group: 'weboperators' },
  ...['both1', 'both2'].map((name) => ({ name, roles: ['operator', 'approver'], group: 'netops' })),
  ...['eric', 'emma', 'enno', 'edda'].map((name) => ({ name, roles: ['approver'], group: 'netops' })),
  { name: 'ivo', roles: ['approver'], group: 'storage' },
  { name: 'aud', roles: ['auditor', 'viewer'], group: 'weboperators' },
]

export type Crowd = {
  admin: Caller
  reader: Caller
  of: (name: string) => Caller
  ids: Map<string, string>
  books: Map<string, PersonBook>
}

/** Creates the people of the model, with their initial rights. */
export const gather = async (stack: Stack): Promise<Crowd> => {
  const { ada } = await stack.people()
  const url = stack.gateway_url
  for (const key of ['netops', 'storage', 'weboperators'])
    await ada.post('/v1/admin/groups', { group_key: key, name: key, description: 'of the model' }).catch(() => {})
  const callers = new Map<string, Caller>()
  const books = new Map<string, PersonBook>()
  await Promise.all(
    WANTED.map(async ({ name, roles, group }) => {
      const account = { username: name, password: `Aa1-${randomBytes(9).toString('hex')}-Zz9`, roles }
      await ensurePerson(url, ada, account, group)
      callers.set(name, createCaller(url, account))
      const part = () => ({ lost: [], given: [] })
      books.set(name, { name, group, parts: { account: part(), role: part(), group: part() } })
    }),
  )
  const account = readDemo(stack.context.dir)?.users.find(({ username }) => username === 'ada')
  if (!account) throw new Error('there is no administrator')
  const admin = createCaller(url, account)
  const { body } = await admin.get('/v1/admin/users?page_size=200')
  const ids = new Map<string, string>(
    body.items.map(({ id, username }: { id: string; username: string }) => [username, id]),
  )
  const of = (name: string) => {
    const caller = callers.get(name)
    if (!caller) throw new Error(`nobody is called ${name}`)
    return caller
  }
  return { admin, reader: of('aud'), of, ids, books }
}
