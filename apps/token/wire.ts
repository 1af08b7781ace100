import type { Pool, PoolClient } from 'pg'
import { createDb } from '../../db/client.ts'
import { requireMigrations } from '../../db/migrate.ts'
import { wakeChannel } from '../../db/outbox.ts'
import { registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { keksOf } from '../shared/codec/kek.ts'
import { secretKeysOf } from '../shared/config.ts'
import { deriveKey } from '../shared/data/digest.ts'
import { insist, waitFor } from '../shared/http/lifecycle.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import type { TokenConfig } from './config.ts'
import type { TokenDeps } from './deps.ts'
import { createKeyring } from './keyring.ts'
import { type KeySettings, tendKeys } from './keys.service.ts'

/** The settings for changing keys; the admin verbs use them too. */
export const keySettingsOf = (config: TokenConfig, db: KeySettings['db'], clock: Clock = systemClock): KeySettings => ({
  db,
  clock,
  keks: keksOf(config.TOKEN__KEYS__KEK, 'TOKEN__KEYS__KEK'),
  audit_key: deriveKey(secretKeysOf(config.TOKEN__SECRET__KEYS)[0], 'audit'),
  rsa_bits: config.TOKEN__KEYS__RSA_BITS,
  rotate_every_s: config.TOKEN__KEYS__ROTATE_EVERY_S,
  publish_lead_s: config.TOKEN__KEYS__PUBLISH_LEAD_S,
})

const TEND_EVERY_MS = 60_000

/** Opens the database, ensures that keys exist, and keeps this process's copy of them fresh. */
export const createDeps = async (
  config: TokenConfig,
  { clock = systemClock }: { clock?: Clock } = {},
): Promise<TokenDeps> => {
  const telemetry = createTelemetry('token')
  const { db, pool, pooler, close } = createDb(config.TOKEN__DATABASE__URL, { app: 'token' })
  measurePool(telemetry, pool)
  const registry = registryOf(config, telemetry)
  const settings = keySettingsOf(config, db, clock)
  const keyring = createKeyring({ db, keks: settings.keks })
  await waitFor('Postgres', () => requireMigrations(pool, 'token'))
  await insist(() => tendKeys(settings))
  await insist(keyring.refresh)

  const every = (ms: number, what: string, run: () => Promise<void>) =>
    setInterval(() => run().catch((err: unknown) => telemetry.log.error({ err }, what)), ms).unref()
  const timers = [
    every(config.TOKEN__KEYS__POLL_MS, 'the signing keys cannot be read', keyring.refresh),
    every(TEND_EVERY_MS, 'the signing keys cannot be tended', () => tendKeys(settings)),
  ]
  const read = () =>
    keyring.refresh().catch((err: unknown) => telemetry.log.error({ err }, 'the signing keys cannot be read'))
  // Behind a pooler the notice reaches whoever has the connection at that moment: the poll alone finds a killed key.
  const stopListening = pooler ? async () => {} : listenForKeys(pool, read)
  return {
    config,
    telemetry,
    pool,
    registry,
    keyring,
    clock,
    close: async () => {
      for (const timer of timers) clearInterval(timer)
      await stopListening()
      registry.close()
      await close()
    },
  }
}
const LISTEN_AGAIN_MS = 1000

/** Rereads the keys when the database announces a killed one. The poll finds it too, so a lost notice costs 1 s. */
const listenForKeys = (pool: Pool, read: () => Promise<void>) => {
  let stopped = false
  let held: PoolClient | undefined
  const listen = async () => {
    const client = await pool.connect()
    if (stopped) return client.release(true)
    held = client
    client.on('notification', () => void read())
    client.once('end', again)
    try {
      await client.query(`listen ${wakeChannel('token')}`)
    } catch (error) {
      client.removeListener('end', again)
      client.release(true)
      throw error
    }
    await read()
  }
  const again = () => {
    held = undefined
    if (!stopped) setTimeout(() => void listen().catch(again), LISTEN_AGAIN_MS).unref()
  }
  const begun = listen().catch(again)
  return async () => {
    stopped = true
    await begun
    held?.release(true)
  }
}
