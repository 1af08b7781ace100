import { createPrivateKey, type KeyObject } from 'node:crypto'
import { type Kek, unsealBy } from '../shared/codec/kek.ts'
import { seal } from '../shared/codec/seal.ts'

/** Seals a private key, bound to its key id, so that no row's secret fits another row. */
export const sealPrivateKey = (kek: Kek, kid: string, key: KeyObject): Buffer =>
  seal(kek.key, kid, key.export({ type: 'pkcs8', format: 'der' }))

/** Opens what `sealPrivateKey` sealed. Throws if the key encryption key is missing or the row was changed. */
export const openPrivateKey = (
  keks: readonly Kek[],
  row: { kid: string; kek_id: string | null; private_key: Buffer },
): KeyObject =>
  createPrivateKey({ key: unsealBy(keks, row.kek_id, row.kid, row.private_key), type: 'pkcs8', format: 'der' })
