import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'undici'
import { APPS, envFor } from '../../../apps/platform/run/apps.ts'
import { loadTokenConfig } from '../../../apps/token/config.ts'
import { killKey, tendKeys } from '../../../apps/token/keys.service.ts'
import { keySettingsOf } from '../../../apps/token/wire.ts'
import { createDb } from '../../../db/client.ts'
import { listKeys } from '../../../db/token/queries.ts'
import { send } from '../lib/load.ts'
import { printFigure } from '../lib/print.ts'
import { type Bench, type Row, signIn, type Tokens } from './clients.ts'
import { startGateway } from './second-gateway.ts'

const CLIENTS = 8
/** Each of eight clients sends 25 requests a second: 200 in total. */
const PAUSE_MS = 40
const PHASE_MS = 5000
const GIVE_UP_MS = 30_000

const kidOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid
const get = async (pool: Pool, token: string) =>
  (await send(pool, { method: 'GET', path: '/api/v1/resources', headers: { authorization: `Bearer ${token}` } })).status

/** Whether anyone is wrongly refused while the signing key rotates under load, and how soon a killed key is refused. */
export const benchKeys = async (bench: Bench): Promise<Row[]> => {
  console.error('rotation of the signing key under load, and the end of the old one')
  const other = await startGateway(bench, 'gateway-other')
  const token = APPS.find(({ name }) => name === 'token')
  if (!token) throw new Error('token is not in the table of apps')
  const config = loadTokenConfig(envFor(token, bench.stack.context))
  const { db, close } = createDb(config.TOKEN__DATABASE__URL, { app: 'bench', max: 1 })
  const settings = keySettingsOf(config, db)
  const clients = await Promise.all(Array.from({ length: CLIENTS }, (_, i) => signIn(bench, i)))
  const old_token = (clients[0] as Tokens).access_token
  let running = true
  let served = 0
  let refused = 0
  const kids = new Set<string>()
  const work = async (session: Tokens, worker: number) => {
    for (let round = worker; running; round++) {
      const pool = round % 2 === 0 ? bench.gateway : other.pool
      if (round % 10 === 0) {
        const body = JSON.stringify({ refresh_token: session.refresh_token })
        const headers = { 'content-type': 'application/json' }
        const reply = await send(bench.gateway, { method: 'POST', path: '/auth/refresh', headers, body })
        if (reply.status === 200) Object.assign(session, JSON.parse(reply.text))
        else refused += 1
      } else if ((await get(pool, session.access_token)) === 200) served += 1
      else refused += 1
      kids.add(kidOf(session.access_token))
      await delay(PAUSE_MS)
    }
  }
  try {
    const load = Promise.all(clients.map(work))
    await delay(PHASE_MS)
    // As if the rotation time were over: the key that was published long ago takes over, and a next one is published.
    const later = new Date(Date.now() + (config.TOKEN__KEYS__ROTATE_EVERY_S + 60) * 1000)
    await tendKeys({ ...settings, clock: { now: () => later } })
    const end = performance.now() + GIVE_UP_MS
    while (kids.size < 2 && performance.now() < end) await delay(50)
    await delay(PHASE_MS)
    running = false
    await load
    const old_kid = kidOf(old_token)
    if ((await listKeys(db)).find(({ kid }) => kid === old_kid)?.status !== 'retired')
      throw new Error('the key was not rotated')
    const begun = performance.now()
    await killKey(settings, old_kid)
    const gone = await Promise.all(
      [bench.gateway, other.pool].map(async (pool) => {
        while ((await get(pool, old_token)) !== 401) if (performance.now() - begun > GIVE_UP_MS) return Number.NaN
        return performance.now() - begun
      }),
    )
    const killed_ms = Math.max(...gone)
    printFigure({ figure: 'keys', served, refused, signing_keys: kids.size, killed_ms })
    return [
      ['valid tokens refused while the key rotates', String(refused), `${served} served`, 'aim 0'],
      ['killed key to refusal at every gateway', `${killed_ms.toFixed(0)} ms`, '', 'aim < 1000 ms'],
    ]
  } finally {
    running = false
    await close()
    await other.stop()
  }
}
