import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { type Account, ApiError, soon } from '../../apps/platform/demo/client.ts'
import { listing } from '../overload/crowd.ts'
import type { Listed } from '../overload/lister.ts'
import type { Stack } from '../support/stack.ts'

/** The number of answers by status, and those that no platform may give. */
export type Answers = { statuses: Map<number, number>; wrong: Map<string, number> }

type Seen = { request: { method: string; path: string }; response: { statusCode: number; headers: Buffer[] } }

const CHANNEL = 'undici:request:headers'
/** A token lives longer than this. */
const ROUND_S = 600

const add = <K>(counts: Map<K, number>, key: K): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

/** Counts every answer that this process gets by fetch: a 5xx is right only as a 503 or 504 that says when to retry. */
export const watchAnswers = () => {
  const answers: Answers = { statuses: new Map(), wrong: new Map() }
  const see = (message: unknown) => {
    const { request, response } = message as Seen
    const told = response.headers.some((header) => header.toString('latin1').toLowerCase() === 'retry-after')
    add(answers.statuses, response.statusCode)
    if (response.statusCode >= 500 && !([503, 504].includes(response.statusCode) && told))
      add(answers.wrong, `${request.method} ${request.path.split('?')[0]}: ${response.statusCode}`)
  }
  subscribe(CHANNEL, see)
  return { answers, end: () => unsubscribe(CHANNEL, see) }
}

const tokenOf = (gateway_url: string, { username, password }: Account): Promise<string> =>
  soon(async () => {
    const reply = await fetch(`${gateway_url}/v1/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'password', username, password }),
    })
    const body = (await reply.json()) as Record<string, unknown>
    if (!reply.ok) throw new ApiError(`the sign-in of ${username}`, reply.status, body, reply.headers)
    return String(body.access_token)
  })

/** Lists over this many connections without a pause, for the given time: the platform has no idle moment. */
export const saturate = async (
  stack: Stack,
  { seconds, connections }: { seconds: number; connections: number },
  { statuses, wrong }: Answers,
): Promise<void> => {
  const account = readDemo(stack.dir)?.users.find(({ username }) => username === 'ada')
  if (!account) throw new Error('the demo has no ada')
  const url = stack.gateway_url.replace('localhost', '127.0.0.1')
  const path = '/api/v1/operations?page_size=50'
  for (let left = seconds; left > 0; left -= ROUND_S) {
    const token = await tokenOf(stack.gateway_url, account)
    const listed: Listed = await listing({ url, connections, seconds: Math.min(left, ROUND_S), path, token })
    for (const { status, told } of listed) {
      add(statuses, status)
      if (status === 0 || (status >= 500 && !(status === 503 && told))) add(wrong, `GET ${path}: ${status}`)
    }
  }
}
