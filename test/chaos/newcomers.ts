import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from '../../apps/platform/demo/client.ts'

/** How many people signed in, and how long the slowest took from the first try, in milliseconds. */
export type SignIns = { count: number; slowest_ms: number }

/** Answers that an outage may give someone who signs in: they try again. */
const PASSING = new Set([429, 502, 503, 504])
const PAUSE_MS = 500
/** A gateway that has just come back may learn of a logout a moment later, if Redis and NATS were away. */
const TOLD_MS = 5000

type Reply = { status: number; body: Record<string, unknown> }

/**
 * Someone signs in, reads, signs out, and comes again, as long as `goes` allows: a right password is never called
 * wrong, and an ended session is never served again.
 */
export const keepSigningIn = async (
  gateway_url: string,
  { username, password }: Account,
  { goes, patience_ms, breach }: { goes: () => boolean; patience_ms: number; breach: (what: string) => void },
): Promise<SignIns> => {
  const signed: SignIns = { count: 0, slowest_ms: 0 }
  const call = async (path: string, token?: string, body?: object): Promise<Reply | undefined> => {
    try {
      const reply = await fetch(`${gateway_url}${path}`, {
        method: body ? 'POST' : 'GET',
        headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(15_000),
      })
      return { status: reply.status, body: (await reply.json().catch(() => ({}))) as Record<string, unknown> }
    } catch {
      return undefined
    }
  }
  /** Repeats until an answer that no outage explains; `undefined` if none comes in time. */
  const insist = async (act: () => Promise<Reply | undefined>): Promise<Reply | undefined> => {
    const end = performance.now() + patience_ms
    while (performance.now() < end) {
      const reply = await act()
      if (reply && !PASSING.has(reply.status)) return reply
      await delay(PAUSE_MS)
    }
    return undefined
  }

  while (goes()) {
    const began = performance.now()
    const login = await insist(() => call('/v1/token', undefined, { grant_type: 'password', username, password }))
    if (login?.status !== 200) {
      breach(`a right password was answered ${login?.status ?? 'too late'}: ${JSON.stringify(login?.body ?? {})}`)
      continue
    }
    signed.count += 1
    signed.slowest_ms = Math.max(signed.slowest_ms, performance.now() - began)
    const token = String(login.body.access_token)
    const me = await insist(() => call('/api/v1/users/me', token))
    if (me?.status !== 200) breach(`a new session was answered ${me?.status ?? 'too late'} to who it is`)
    const out = await insist(() => call('/auth/logout', token, {}))
    // The first logout may have been carried out and its answer lost: the repeat finds no session.
    if (out && out.status >= 400 && out.status !== 401) breach(`a logout was answered ${out.status}`)
    if ((await call('/api/v1/users/me', token))?.status === 200) {
      await delay(TOLD_MS)
      if ((await call('/api/v1/users/me', token))?.status === 200) breach('a session was served after its logout')
    }
    await delay(PAUSE_MS)
  }
  return signed
}
