import createClient, { type Client } from 'openapi-fetch'
import { read as bodyOf } from './problem.ts'
import type { components, paths } from './schema.d.ts'
import { type Repeats, type Send, type Tokens, withKey, withRepeats, withToken } from './send.ts'

export type { Code, Problem } from '../shared/contracts/client/problem.ts'
export { type EventsOptions, events } from './events.ts'
export { ProblemError } from './problem.ts'
export type { components, operations, paths } from './schema.d.ts'
export type { Repeats, Send, Tokens } from './send.ts'
/** A named schema of the API: `Schema<'Operation'>`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]

export type SignalboxOptions = {
  /** The address of the gateway: `https://signalbox.example`. */
  url: string
  /** An access token, or a function that returns one. */
  token?: string | Tokens['token']
  renew?: NonNullable<Tokens['renew']>
  /** How a retryable refusal is repeated. Default: 3 times, after waits of at most 10 s. */
  repeats?: Partial<Repeats>
  fetch?: Send
}

/** Calls by path, and `send` for whole requests; both add the token, the key and repeats. */
export type Signalbox = Client<paths> & { url: string; send: Send }

/** Returns the body of an answer, `undefined` for a 204; throws a ProblemError for a refusal. */
export const read: typeof bodyOf = async <T>(pending: Parameters<typeof bodyOf<T>>[0]) => {
  const answer = await pending
  return answer.response.status === 204 ? (undefined as never) : bodyOf(Promise.resolve(answer))
}

const REPEATS = { times: 3, longest_wait_ms: 10_000 }

/**
 * A typed client of the public API: `read(signalbox.GET('/api/v1/gates'))`. Every mutation has one Idempotency-Key,
 * which its repeats keep. A 401 is repeated once with a renewed token, a retryable refusal after its Retry-After.
 */
export const createSignalbox = ({
  url: given,
  token,
  renew,
  repeats,
  fetch: call = (request) => fetch(request),
}: SignalboxOptions): Signalbox => {
  const url = given.replace(/\/+$/, '')
  const tokens: Tokens = { token: typeof token === 'function' ? token : () => token, ...(renew && { renew }) }
  const send = withKey(withRepeats(withToken(call, tokens), { ...REPEATS, ...repeats }))
  return { ...createClient<paths>({ baseUrl: url, fetch: send }), url, send }
}
