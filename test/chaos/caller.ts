import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type Person } from '../../apps/platform/demo/client.ts'

/** What no outage may answer: 503 by whoever needs what is away, 502 and 504 by the gateway, and nothing else. */
const isFailure = ({ status }: ApiError) => status >= 500 && ![502, 503, 504].includes(status)
/** Where nobody answers at all, or breaks off: the same request is sent again with the same key. */
const isOutage = (error: unknown) =>
  error instanceof ApiError ? error.status >= 500 || error.body.retryable === true : error instanceof Error

/**
 * A person who repeats a request, with the same key, until it is answered: by 2xx or by a refusal that stands. A failure
 * that no outage explains is told to `failed`.
 */
export const patient = (person: Person, patience_ms: number, failed: (what: string) => void): Person => {
  const insist = async <T>(act: () => Promise<T>): Promise<T> => {
    const end = performance.now() + patience_ms
    for (;;) {
      try {
        return await act()
      } catch (error) {
        if (error instanceof ApiError && isFailure(error)) failed(error.message)
        if (!isOutage(error) || performance.now() > end) throw error
        await delay(300)
      }
    }
  }
  /** Without a key of its own a request that got no answer might be done twice. */
  const named = (path: string, name: string | undefined): string => {
    if (name === undefined) throw new Error(`${path} is sent without a name`)
    return name
  }
  return {
    username: person.username,
    get: (path) => insist(() => person.get(path)),
    post: (path, body, name) => insist(() => person.post(path, body, named(path, name))),
    put: (path, body, name) => insist(() => person.put(path, body, named(path, name))),
  }
}
