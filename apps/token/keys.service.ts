import { createHash, generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { appendAuditTo } from '../../db/audit.ts'
import type { Db, Tx } from '../../db/client.ts'
import { appendOutbox, wakeRelay } from '../../db/outbox.ts'
import { getKey, listKeys, lockKeys, moveKey, removeExpiredKeys, saveKey } from '../../db/token/queries.ts'
import { type KeyRow, key_events, outbox, type PublicJwk } from '../../db/token/tables.ts'
import type { Clock } from '../shared/clock.ts'
import type { Kek } from '../shared/codec/kek.ts'
import { uuidv7 } from '../shared/ids.ts'
import { MAX_KEYS } from '../shared/jwt/jwks.ts'
import { VERIFY_S } from './config.ts'
import { openPrivateKey, sealPrivateKey } from './seal.ts'

export type KeySettings = {
  db: Db
  /** The first seals. */
  keks: readonly [Kek, ...Kek[]]
  audit_key: Buffer
  clock: Clock
  rsa_bits: number
  rotate_every_s: number
  publish_lead_s: number
}

/**
 * Brings the keys into the required state: one `next` and one `active` (created at the first start). The active key is
 * not older than the rotation time, and expired keys are removed. It is not replaced while verifiers take no more keys.
 * What an older key encryption key sealed is sealed anew. One process at a time; harmless to repeat.
 */
export const tendKeys = (settings: KeySettings): Promise<void> =>
  settings.db.transaction(async (tx) => {
    await lockKeys(tx)
    const now = settings.clock.now()
    for (const { kid } of await removeExpiredKeys(tx, now.toISOString())) await record(tx, settings, 'remove', kid)
    const rows = await listKeys(tx)
    const active = rows.find((row) => row.status === 'active')
    const full = rows.filter(({ status }) => status !== 'killed').length >= MAX_KEYS
    const next = rows.find((row) => row.status === 'next') ?? (await addKey(tx, settings, 'next'))
    if (!active) await addKey(tx, settings, 'active')
    else if (
      !full &&
      isDue(active.activated_at, settings.rotate_every_s, now) &&
      isDue(next.published_at, settings.publish_lead_s, now)
    ) {
      await retire(tx, settings, active)
      await promote(tx, settings, next)
    }
    await reseal(tx, settings)
  })

/** Leaves what no key of this process opens: that is told where the key is needed. */
const reseal = async (tx: Tx, { keks: [newest, ...older] }: KeySettings): Promise<void> => {
  for (const { kid, status, kek_id, private_key } of await listKeys(tx)) {
    if (!private_key || !older.some((one) => one.kek_id === kek_id)) continue
    const sealed = sealPrivateKey(newest, kid, openPrivateKey(older, { kid, kek_id, private_key }))
    await moveKey(tx, kid, status, { status, private_key: sealed, kek_id: newest.kek_id })
  }
}

const isDue = (since: string | null, after_s: number, now: Date): boolean =>
  since !== null && new Date(since).getTime() + after_s * 1000 <= now.getTime()

/**
 * Ends a key immediately and permanently: its tokens are refused, `next` takes over if it was signing, and verifiers
 * are notified. Returns the existing key ids if there is no such key, and `already_killed` for a repeat.
 */
export const killKey = async (settings: KeySettings, kid: string): Promise<Killed> => {
  const outcome = await settings.db.transaction((tx) => kill(tx, settings, kid))
  if (outcome === 'killed') await wakeRelay(settings.db, 'token')
  return outcome
}

type Killed = 'killed' | 'already_killed' | { known: string[] }

const kill = async (tx: Tx, settings: KeySettings, kid: string): Promise<Killed> => {
  await lockKeys(tx)
  const key = await getKey(tx, kid)
  if (!key) return { known: (await listKeys(tx)).map((row) => row.kid) }
  if (key.status === 'killed') return 'already_killed'
  const killed_at = settings.clock.now().toISOString()
  await moveKey(tx, kid, key.status, { status: 'killed', killed_at, private_key: null, kek_id: null })
  await record(tx, settings, 'kill', kid)
  if (key.status === 'next') await addKey(tx, settings, 'next')
  if (key.status === 'active') {
    const next = (await listKeys(tx)).find((row) => row.status === 'next')
    if (next) await promote(tx, settings, next)
    else await addKey(tx, settings, 'active')
  }
  await appendOutbox(tx, outbox, {
    event_id: uuidv7(),
    agg_type: 'key',
    agg_id: kid,
    agg_version: 1,
    type: 'auth.key.revoked.v1',
    payload: { kid, actor: { type: 'system', id: 'admin' } },
  })
  return 'killed'
}

const retire = async (tx: Tx, settings: KeySettings, key: KeyRow): Promise<void> => {
  const now = settings.clock.now()
  await moveKey(tx, key.kid, 'active', {
    status: 'retired',
    retired_at: now.toISOString(),
    verify_until: new Date(now.getTime() + VERIFY_S * 1000).toISOString(),
    private_key: null,
    kek_id: null,
  })
  await record(tx, settings, 'retire', key.kid)
}

const promote = async (tx: Tx, settings: KeySettings, next: KeyRow): Promise<void> => {
  await moveKey(tx, next.kid, 'next', { status: 'active', activated_at: settings.clock.now().toISOString() })
  await record(tx, settings, 'activate', next.kid)
  await addKey(tx, settings, 'next')
}

const generate = promisify(generateKeyPair)

const addKey = async (tx: Tx, settings: KeySettings, status: 'next' | 'active'): Promise<KeyRow> => {
  const { publicKey, privateKey } = await generate('rsa', { modulusLength: settings.rsa_bits })
  const { n = '', e = '' } = publicKey.export({ format: 'jwk' })
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url') // RFC 7638
  const public_jwk: PublicJwk = { kty: 'RSA', n, e, kid, alg: 'RS256', use: 'sig' }
  const now = settings.clock.now().toISOString()
  const row: KeyRow = {
    kid,
    status,
    bits: settings.rsa_bits,
    public_jwk,
    private_key: sealPrivateKey(settings.keks[0], kid, privateKey),
    kek_id: settings.keks[0].kek_id,
    published_at: now,
    activated_at: status === 'active' ? now : null,
    retired_at: null,
    verify_until: null,
    killed_at: null,
  }
  await saveKey(tx, row)
  await record(tx, settings, status === 'active' ? 'create_active' : 'create_next', kid)
  return row
}

const record = (tx: Tx, { audit_key }: KeySettings, action: string, kid: string) =>
  appendAuditTo(tx, key_events, audit_key, {
    actor: 'system',
    action: `key.${action}`,
    object: `key:${kid}`,
    outcome: 'done',
  })
