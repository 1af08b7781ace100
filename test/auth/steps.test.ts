import { randomUUID } from 'node:crypto'
import { eq, isNull } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outbox as credentialOutbox } from '../../db/credential/tables.ts'
import { revocations } from '../../db/session/tables.ts'
import { type Auth, bearer, PASSWORD, send, startAuth } from '../session/support/auth.ts'
import { until } from '../support/until.ts'

/**
 * auth.md 14.3: a session process that ends between any two steps of a flow leaves nothing alive that should be dead,
 * and a repeat at another process succeeds. A step is one call of the store, of another component, or of the database.
 * The process stops for good after each step in turn, with its connections cut as by a kill.
 */

type Tokens = { access_token: string; refresh_token: string }
type Session = Awaited<ReturnType<Auth['addSession']>>
let auth: Auth
let relay: Awaited<ReturnType<Auth['addRelay']>>

const NEW_PASSWORD = 'Another-Staple-9-Lantern'
const PARTS = ['store', 'identity', 'credential', 'issuer', 'revocations'] as const

/** Starts a process that ends after this step; `ended` resolves when it gets there. */
const dying = async (at: number): Promise<Session & { ended: Promise<'ended'> }> => {
  const session = await auth.addSession()
  let passed = 0
  let end: (value: 'ended') => void = () => {}
  const ended = new Promise<'ended'>((resolve) => {
    end = resolve
  })
  const kill = (): Promise<never> => {
    const { _clients } = session.deps.db.$client as unknown as {
      _clients: { connection: { stream: { destroy: () => void } } }[]
    }
    for (const client of _clients) client.connection.stream.destroy()
    // Its pool would wait forever for the connection of the dead flow.
    Object.assign(session.deps, {
      close: async () => {
        session.deps.jwks.close()
        session.deps.redis.disconnect()
      },
    })
    end('ended')
    setImmediate(() => session.app.server.closeAllConnections())
    return new Promise(() => {})
  }
  const wrap = (call: (...args: unknown[]) => unknown) =>
    async function step(...args: unknown[]): Promise<unknown> {
      passed += 1
      const here = passed === at
      const answer = await call(...args)
      return here ? kill() : answer
    }
  const deps = session.deps as unknown as Record<string, Record<string, (...args: unknown[]) => unknown>>
  for (const part of PARTS) {
    const calls = Object.entries(deps[part] ?? {})
    const steps = calls.filter(
      ([name]) => !['assertApplied', 'isApplied', 'check', 'stop', 'appendAudit'].includes(name),
    )
    deps[part] = { ...deps[part], ...Object.fromEntries(steps.map(([name, call]) => [name, wrap(call)])) }
  }
  return { ...session, ended }
}

/** Runs one flow with an end after every step, until one run completes. Returns how many steps the flow has. */
const atEveryStep = async (
  prepare: () => Promise<{ flow: (url: string) => Promise<unknown>; check: (step: number) => Promise<void> }>,
): Promise<number> => {
  for (let at = 1; ; at++) {
    const { flow, check } = await prepare()
    const process = await dying(at)
    const outcome = await Promise.race([flow(process.url).then(() => 'lived' as const), process.ended])
    await check(at)
    if (outcome === 'lived') return at - 1
  }
}

const login = async (username: string, password = PASSWORD) => {
  const answer = await send(`${auth.session.url}/auth/login`, { body: { username, password } })
  return { status: answer.status, ...(answer.body as Tokens) }
}
const refresh = (url: string, refresh_token: string, headers = {}) =>
  send(`${url}/auth/refresh`, { body: { refresh_token }, headers })
const idOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).session_id

beforeAll(async () => {
  auth = await startAuth()
  relay = await auth.addRelay()
  await auth.addUser('eva')
})
afterAll(() => auth?.stop())

describe('a session process that ends at any step', () => {
  it('of a login leaves no one locked out and no usable session', async () => {
    const user = await auth.addUser('luis')
    const steps = await atEveryStep(async () => ({
      flow: (url) => send(`${url}/auth/login`, { body: { username: 'luis', password: PASSWORD } }),
      check: async (step) => {
        const again = await login('luis')
        expect([step, again.status]).toEqual([step, 200])
        expect([step, (await refresh(auth.session.url, again.refresh_token)).status]).toEqual([step, 200])
        for (const key of await auth.redis.keys(`${auth.prefix}sess:{${user.id}}:*`)) {
          const { state, refresh_token_hash } = await auth.redis.hgetall(key)
          expect([step, state === 'pending']).toEqual([step, refresh_token_hash === undefined])
        }
      },
    }))
    expect(steps).toBeGreaterThanOrEqual(7)
  })

  it('of a refresh is repaired by the same request, and the family lives', async () => {
    const steps = await atEveryStep(async () => {
      const { refresh_token } = await login('eva')
      const key = { 'idempotency-key': randomUUID() }
      return {
        flow: (url) => refresh(url, refresh_token, key),
        check: async (step) => {
          const again = await refresh(auth.session.url, refresh_token, key)
          expect([step, again.status]).toEqual([step, 200])
          const next = await refresh(auth.session.url, String(again.body.refresh_token))
          expect([step, next.status]).toEqual([step, 200])
        },
      }
    })
    expect(steps).toBeGreaterThanOrEqual(5)
  })

  it('of a logout ends the session, at the latest on the repeat, and announces it once', async () => {
    const steps = await atEveryStep(async () => {
      const { access_token, refresh_token } = await login('eva')
      const logout = (url: string) => send(`${url}/auth/logout`, { method: 'POST', headers: bearer(access_token) })
      return {
        flow: logout,
        check: async (step) => {
          expect([step, (await logout(auth.session.url)).status]).toEqual([step, 204])
          expect([step, (await refresh(auth.session.url, refresh_token)).status]).toEqual([step, 401])
          const denied = await auth.redis.keys(`${auth.prefix}deny:*:${idOf(access_token)}`)
          expect([step, denied.length]).toEqual([step, 1])
          const mine = eq(revocations.session_id, idOf(access_token))
          const rows = await until(async () => {
            const found = await auth.session.deps.db.select().from(revocations).where(mine)
            return found.length > 0 && found
          })
          expect([step, (rows as unknown[]).length]).toEqual([step, 1])
        },
      }
    })
    expect(steps).toBeGreaterThanOrEqual(2)
  })

  it('of a change of the password leaves the other sessions dead once the password is new', async () => {
    let n = 0
    const steps = await atEveryStep(async () => {
      const username = `changer-${n++}`
      await auth.addUser(username)
      const mine = await login(username)
      const other = await login(username)
      const request = {
        body: { current_password: PASSWORD, new_password: NEW_PASSWORD },
        headers: { ...bearer(mine.access_token), 'idempotency-key': randomUUID() },
      }
      const change = (url: string) => send(`${url}/v1/users/me/password`, request)
      return {
        flow: change,
        check: async (step) => {
          const again = await change(auth.session.url)
          expect([step, again.status]).toEqual([step, 200])
          await until(async () => {
            const open = await relay.deps.pool.query('select 1 from credential.outbox where published_at is null')
            return open.rowCount === 0
          })
          expect([step, (await refresh(auth.session.url, other.refresh_token)).status]).toEqual([step, 401])
          expect([step, (await login(username)).status]).toEqual([step, 401])
          expect([step, (await login(username, NEW_PASSWORD)).status]).toEqual([step, 200])
          if (again.body.refresh_token === undefined) return
          const next = await refresh(auth.session.url, String(again.body.refresh_token))
          expect([step, next.status]).toEqual([step, 200])
        },
      }
    })
    expect(steps).toBeGreaterThanOrEqual(6)
    expect(
      await auth.session.deps.db.select().from(credentialOutbox).where(isNull(credentialOutbox.published_at)),
    ).toEqual([])
  })
})
