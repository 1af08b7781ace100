import type { Pool } from 'undici'
import { quantile } from '../lib/graph.ts'
import { send } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, type Row, signIn } from './clients.ts'
import { startGateway } from './second-gateway.ts'

const LOGOUTS = 60
const GIVE_UP_MS = 10_000

const get = (pool: Pool, access_token: string) =>
  send(pool, { method: 'GET', path: '/api/v1/resources', headers: { authorization: `Bearer ${access_token}` } })

/** Milliseconds from now until this gateway refuses the token. */
const untilRefused = async (pool: Pool, access_token: string): Promise<number> => {
  const begun = performance.now()
  for (;;) {
    const { status } = await get(pool, access_token)
    const ms = performance.now() - begun
    if (status === 401) return ms
    if (ms > GIVE_UP_MS) throw new Error(`an ended session was still served after ${GIVE_UP_MS} ms (${status})`)
  }
}

/**
 * From the answer to a logout until another gateway refuses the token: with Redis, and by the event alone without it.
 */
export const benchRevocation = async (bench: Bench): Promise<Row[]> => {
  console.error(`${LOGOUTS} logouts, seen by two other gateways`)
  const near = await startGateway(bench, 'gateway-near')
  const far = await startGateway(bench, 'gateway-far', { GATEWAY__REDIS__URL: 'redis://127.0.0.1:9' })
  const by_redis: number[] = []
  const by_event: number[] = []
  let served = 0
  try {
    for (let i = 0; i < LOGOUTS; i++) {
      const { access_token } = await signIn(bench, i)
      for (const { pool } of [near, far]) await get(pool, access_token)
      const authorization = `Bearer ${access_token}`
      const logout = await send(bench.gateway, { method: 'POST', path: '/auth/logout', headers: { authorization } })
      if (logout.status !== 204) throw new Error(`a logout was answered ${logout.status}`)
      const event = untilRefused(far.pool, access_token)
      const begun = performance.now()
      if ((await get(near.pool, access_token)).status !== 401) served += 1
      by_redis.push(performance.now() - begun)
      by_event.push(await event)
    }
  } finally {
    await Promise.all([near.stop(), far.stop()])
  }
  const [p50, p99, slowest] = [quantile(by_event, 0.5), quantile(by_event, 0.99), Math.max(...by_event)]
  printFigure({
    figure: 'revocation',
    logouts: LOGOUTS,
    served_with_redis: served,
    event_p50_ms: p50,
    event_p99_ms: p99,
  })
  return [
    ['requests served after a logout, with Redis', String(served), '', 'aim 0'],
    [
      'logout to refusal by the event alone, p99',
      `${p99.toFixed(0)} ms`,
      `p50 ${p50.toFixed(0)} ms`,
      `aim <= 250 ms; slowest ${slowest.toFixed(0)} ms`,
    ],
  ]
}
