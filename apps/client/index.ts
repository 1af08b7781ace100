import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'
import { type Send, type Tokens, withKey, withRepeats, withToken } from './send.ts'

export type { Code, Problem } from '../shared/contracts/client/problem.ts'
export { type EventsOptions, events } from './events.ts'
export { ProblemError, read } from './problem.ts'
export type { components, operations, paths } from './schema.d.ts'
export type { Send, Tokens } from './send.ts'
/** A named schema of the API: `Schema<'Operation'>`. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]

export type SignalboxOptions = {
  /** Where the gateway is: `https://signalbox.example`. */
  url: string
  /** An access token, or where tokens come from. */
  token?: string | Tokens['token']
  renew?: NonNullable<Tokens['renew']>
  /** How often a request is repeated that may be: after the time in Retry-After; 3 unless said. */
  repeats?: number
  fetch?: Send
}

/**
 * A typed client of the public API: `read(signalbox.GET('/api/v1/gates'))`. Every mutation has one Idempotency-Key for
 * itself and its repeats; a 401 is repeated once with a renewed token; an answer that may be repeated is, after its time.
 */
export const createSignalbox = ({
  url,
  token,
  renew,
  repeats = 3,
  fetch: call = (request) => fetch(request),
}: SignalboxOptions) => {
  const tokens: Tokens = { token: typeof token === 'function' ? token : () => token, ...(renew && { renew }) }
  const send = withKey(withRepeats(withToken(call, tokens), repeats))
  return { ...createClient<paths>({ baseUrl: url, fetch: send }), url, send }
}
export type Signalbox = ReturnType<typeof createSignalbox>
