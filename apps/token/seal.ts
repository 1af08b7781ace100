import { createPrivateKey, type KeyObject } from 'node:crypto'
import { seal, unseal } from '../shared/codec/seal.ts'
import type { Kek } from './config.ts'

/** Seals a private key; the key id is bound in, so that no row's secret fits another row. */
export const sealPrivateKey = (kek: Kek, kid: string, key: KeyObject): Buffer =>
  seal(kek.key, kid, key.export({ type: 'pkcs8', format: 'der' }))

/** Opens what `sealPrivateKey` made. Throws when the key encryption key is not there or the row was changed. */
export const openPrivateKey = (
  keks: readonly Kek[],
  row: { kid: string; kek_id: string | null; private_key: Buffer },
): KeyObject => {
  const kek = keks.find(({ kek_id }) => kek_id === row.kek_id)
  if (!kek)
    throw new Error(`signing key ${row.kid} is sealed under ${row.kek_id}, which TOKEN__KEYS__KEK does not hold`)
  return createPrivateKey({ key: unseal(kek.key, row.kid, row.private_key), type: 'pkcs8', format: 'der' })
}
