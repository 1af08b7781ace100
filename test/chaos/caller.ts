import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type Person, type Reply } from '../../apps/platform/demo/client.ts'
import type { Dice } from './dice.ts'

/** Statuses that no outage may cause: an app that needs a missing part answers 503, the gateway 502 and 504. */
const isFailure = ({ status }: ApiError) => status >= 500 && ![502, 503, 504].includes(status)
/** When no one answers, or the connection breaks off: the same request is sent again with the same key. */
const isOutage = (error: unknown) =>
  error instanceof ApiError ? error.status >= 500 || error.body.retryable === true : error instanceof Error

/** How often an answer is lost on its way, and how often an answered request is sent again. */
const LOST = 0.15
const REPEATED = 0.15

type Patient = {
  patience_ms: number
  failed: (what: string) => void
  refused: ((error: Error) => void) | undefined
  dice: Dice
}

/**
 * A person who repeats a request, with the same key, until it is answered: by 2xx or by a final refusal. Some answers
 * are lost, so that the repeat runs alongside the first; some requests are sent again after their answer, which must be
 * the same. A failure that no outage explains is reported to `failed`.
 */
export const patient = (person: Person, { patience_ms, failed, refused, dice }: Patient): Person => {
  const insist = async <T>(act: () => Promise<T>): Promise<T> => {
    const end = performance.now() + patience_ms
    for (;;) {
      try {
        return await act()
      } catch (error) {
        if (error instanceof ApiError && isFailure(error)) failed(error.message)
        if (!isOutage(error) || performance.now() > end) throw error
        refused?.(error as Error)
        await delay(300)
      }
    }
  }
  /** Without its own key a request that got no answer might be done twice. */
  const named = (path: string, name: string | undefined): string => {
    if (name === undefined) throw new Error(`${path} is sent without a name`)
    return name
  }
  const once = async <T>(what: string, act: () => Promise<Reply<T>>): Promise<Reply<T>> => {
    if (dice.between(0, 1) < LOST) {
      act().catch(() => {})
      await delay(dice.between(0, 60))
    }
    const first = await insist(act)
    if (dice.between(0, 1) >= REPEATED) return first
    const second = await insist(act)
    if (second.status !== first.status || bytesOf(second.body) !== bytesOf(first.body))
      failed(`${what} was answered ${said(first)}, and the same request again ${said(second)}`)
    return first
  }
  return {
    username: person.username,
    get: (path) => insist(() => person.get(path)),
    post: (path, body, name) => once(path, () => person.post(path, body, named(path, name))),
    put: (path, body, name) => once(path, () => person.put(path, body, named(path, name))),
  }
}

/** Each item of a bulk answer states for itself that it is a repeat. */
const bytesOf = (body: unknown): string =>
  JSON.stringify(body, (name, value) => (name === 'replayed' ? undefined : value))

const said = ({ status, body }: Reply<unknown>): string => `${status} ${JSON.stringify(body).slice(0, 300)}`
