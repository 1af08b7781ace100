import { afterEach, expect, it, vi } from 'vitest'
import { until } from '../support/until.ts'

afterEach(() => void vi.unstubAllGlobals())

/** The module of a tab whose server answers these paths. */
const tabWith = (answers: Record<string, () => Response | Promise<Response>>) => {
  const kept = new Map([['csrf_token', 'c']])
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  vi.stubGlobal('sessionStorage', storage)
  vi.stubGlobal('localStorage', storage)
  vi.stubGlobal('navigator', { locks: { request: async (_lock: string, work: () => unknown) => work() } })
  const fetched = vi.fn(async (path: string) => (await answers[path]?.()) ?? new Response(null, { status: 503 }))
  vi.stubGlobal('fetch', fetched)
  return { kept, fetched, session: import('../../apps/console/session/token.ts') }
}
const tokensOf = (session_id: string) => ({
  access_token: `.${btoa(JSON.stringify({ sub: 'otto', username: 'otto', session_id }))}.`,
  expires_in: 900,
})
const REFRESH = '/v1/token?response_mode=cookie'
const LOGOUT = '/auth/logout'
const done = () => new Response(null, { status: 204 })

it('lives on if a refresh that is refused began before the last sign-out', async () => {
  const refresh = Promise.withResolvers<Response>()
  const { fetched, session } = tabWith({ [LOGOUT]: done, [REFRESH]: () => refresh.promise })
  const { accessToken, renew, sessionPhase, signOut, take } = await session
  const [first, second] = [tokensOf('first'), tokensOf('second')]
  take(first)
  const renewed = renew(first.access_token)
  await until(() => fetched.mock.calls.length > 0, { what: 'the refresh to begin' })
  await signOut()
  take(second)
  refresh.resolve(new Response(null, { status: 401 }))
  expect(await renewed).toBe('ok')
  expect([accessToken(), sessionPhase().name]).toEqual([second.access_token, 'signed_in'])
  await signOut()
})

it('ends with the next start if an older build left a mark of a sign-out, which names no session', async () => {
  const { kept, fetched, session } = tabWith({ [LOGOUT]: done, [REFRESH]: () => Response.json(tokensOf('third')) })
  const { accessToken, SIGNED_OUT, startSession } = await session
  kept.set(SIGNED_OUT, '1')
  expect(await startSession()).toBe('over')
  expect(fetched.mock.calls.map(([path]) => path)).toEqual([REFRESH, LOGOUT])
  expect([accessToken(), kept.has(SIGNED_OUT)]).toEqual([null, false])
})

it('takes a token of its own after a return from a provider: those of other tabs are older', async () => {
  const { kept, fetched, session } = tabWith({ [LOGOUT]: done, [REFRESH]: () => Response.json(tokensOf('fourth')) })
  const { accessToken, AT_PROVIDER, signOut, startSession } = await session
  const elsewhere = new BroadcastChannel('signalbox-auth')
  const asked = vi.fn()
  elsewhere.addEventListener('message', ({ data }: MessageEvent<{ kind: string }>) => asked(data.kind))
  kept.set(AT_PROVIDER, '1')
  expect(await startSession()).toBe('ok')
  expect(accessToken()).toBe(tokensOf('fourth').access_token)
  expect(fetched).toHaveBeenCalledTimes(1)
  expect(kept.has(AT_PROVIDER)).toBe(false)
  await signOut()
  await until(() => asked.mock.calls.length > 1, { what: 'the other tab to hear of both' })
  expect(asked.mock.calls).toEqual([['token'], ['logout']])
  elsewhere.close()
})

it('ends with an unconfirmed sign-out: what is refused later is not renewed by the cookie that is left', async () => {
  const answers = {
    [LOGOUT]: () => new Response(null, { status: 429 }),
    [REFRESH]: () => Response.json(tokensOf('fifth')),
  }
  const { fetched, session } = tabWith(answers)
  const { accessToken, renew, signOut, take } = await session
  take(tokensOf('fifth'))
  await signOut()
  expect(await renew(null)).toBe('over')
  expect([accessToken(), fetched.mock.calls.map(([path]) => path)]).toEqual([null, [LOGOUT]])
})

it('is replaced, not ended, if its revocation comes from a newer sign-in of this browser', async () => {
  const { session } = tabWith({ [LOGOUT]: done, [REFRESH]: () => Response.json(tokensOf('seventh')) })
  const { accessToken, revoked, sessionPhase, signOut, take } = await session
  const elsewhere = new BroadcastChannel('signalbox-auth')
  take(tokensOf('sixth'))
  await revoked()
  expect([accessToken(), sessionPhase().name]).toEqual([tokensOf('seventh').access_token, 'signed_in'])
  // Another tab reports the end of the earlier session: this tab holds a newer one. Its own end is another matter.
  const answered = vi.fn()
  elsewhere.addEventListener('message', ({ data }: MessageEvent<{ kind: string }>) => answered(data.kind))
  elsewhere.postMessage({ kind: 'logout', reason: 'revoked', session_id: 'sixth' })
  elsewhere.postMessage({ kind: 'ask' })
  await until(() => answered.mock.calls.length > 0, { what: 'the tab to answer' })
  expect(sessionPhase().name).toBe('signed_in')
  elsewhere.postMessage({ kind: 'logout', reason: 'revoked', session_id: 'seventh' })
  await until(() => sessionPhase().name === 'signed_out', { what: 'the end' })
  elsewhere.close()
  await signOut()
})

it('keeps the key of a refresh without an answer for the next call, in whichever tab', async () => {
  vi.useFakeTimers()
  try {
    let down = true
    const { fetched } = tabWith({
      [REFRESH]: () => (down ? new Response(null, { status: 503 }) : Response.json(tokensOf('sixth'))),
    })
    const { refreshed } = await import('../../apps/console/session/cookie.ts')
    const keyAt = (n: number) =>
      new Headers((fetched.mock.calls.at(n) as [string, RequestInit?])[1]?.headers).get('idempotency-key')
    const call = async () => {
      const called = refreshed()
      await vi.runAllTimersAsync()
      return called
    }
    expect(await call()).toBe('unreachable')
    down = false
    expect(await call()).toMatchObject({ expires_in: 900 })
    expect(keyAt(-1)).toBe(keyAt(0))
    await call()
    expect(keyAt(-1)).not.toBe(keyAt(0))
  } finally {
    vi.useRealTimers()
  }
})

it('renews a token that is refused with a proof, and sends the proof again', async () => {
  const REAUTH = '/v1/token/reauth'
  const answers = [new Response(null, { status: 401 }), Response.json(tokensOf('sixth'))]
  const { fetched, session } = tabWith({
    ...{ [LOGOUT]: done, [REFRESH]: () => Response.json(tokensOf('sixth')) },
    [REAUTH]: () => answers.shift() as Response,
  })
  const { signOut, take } = await session
  const { confirmBy } = await import('../../apps/console/session/sign-in.ts')
  take(tokensOf('sixth'))
  expect(await confirmBy({ password: 'right' })).toBe(200)
  expect(fetched.mock.calls.map(([path]) => path)).toEqual([REAUTH, REFRESH, REAUTH])
  await signOut()
})
