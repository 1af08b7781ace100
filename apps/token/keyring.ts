import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Db } from '../../db/client.ts'
import { listKeys } from '../../db/token/queries.ts'
import type { KeyRow } from '../../db/token/tables.ts'
import type { Kek } from '../shared/codec/kek.ts'
import { sha256Hex } from '../shared/data/digest.ts'
import type { PrivateKey } from '../shared/service/keys.ts'
import { openPrivateKey } from './seal.ts'

/** How long a replaced private key stays in memory (ms), so that a proven retry can repeat its refresh token. */
const KEEP_MS = 120_000

export type KeyringOptions = { db: Db; keks: readonly Kek[]; monotonic?: () => number }

/** The keys of this process: the signing key, the verification keys, and the published set. Filled by `refresh`. */
export const createKeyring = ({ db, keks, monotonic = () => performance.now() }: KeyringOptions) => {
  let active: PrivateKey | undefined
  let former: { key: PrivateKey; until: number } | undefined
  let verifying: ReadonlyMap<string, KeyObject> = new Map()
  let published = { body: '{"keys":[]}', etag: '""' }
  let version = ''

  const take = (rows: KeyRow[]) => {
    const row = rows.find(({ status }) => status === 'active')
    if (row && row.kid !== active?.kid && row.private_key) {
      const fresh = { kid: row.kid, private_key: openPrivateKey(keks, { ...row, private_key: row.private_key }) }
      if (active) former = { key: active, until: monotonic() + KEEP_MS }
      active = fresh
    }
    const killed = new Set(rows.filter(({ status }) => status === 'killed').map(({ kid }) => kid))
    if (active && killed.has(active.kid)) active = undefined
    if (former && killed.has(former.key.kid)) former = undefined
    const alive = rows.filter(({ status }) => status !== 'killed')
    verifying = new Map(
      alive.map(({ kid, public_jwk }) => [kid, createPublicKey({ key: { ...public_jwk }, format: 'jwk' })]),
    )
    const body = JSON.stringify({
      keys: alive.map(({ public_jwk: { kty, n, e, kid, alg, use } }) => ({ kty, n, e, kid, alg, use })),
    })
    published = { body, etag: `"${sha256Hex(body).slice(0, 32)}"` }
  }

  const read = async () => {
    const rows = await listKeys(db)
    const found = rows.map(({ kid, status }) => `${kid}:${status}`).join()
    if (found === version) return
    take(rows)
    version = found
  }
  let reading = Promise.resolve()

  return {
    /** Rereads the keys; cheap if they are unchanged. One after the other: an older answer must not come last. */
    refresh: (): Promise<void> => {
      reading = reading.catch(() => {}).then(read)
      return reading
    },
    /** The key that signs new tokens; `undefined` before the first refresh or after it was killed. */
    active: (): PrivateKey | undefined => active,
    /** The key of this id if it may still sign: the active one, or its predecessor for a short while. */
    signing: (kid: string): PrivateKey | undefined => {
      if (kid === active?.kid) return active
      return former && kid === former.key.kid && monotonic() <= former.until ? former.key : undefined
    },
    verifying: (kid: string): KeyObject | undefined => verifying.get(kid),
    published: () => published,
  }
}
export type Keyring = ReturnType<typeof createKeyring>
