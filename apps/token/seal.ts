import { createCipheriv, createDecipheriv, createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Kek } from './config.ts'

const IV_BYTES = 12
const TAG_BYTES = 16

/** Seals a private key with AES-256-GCM; the key id is bound in, so that no row's secret fits another row. */
export const sealPrivateKey = (kek: Kek, kid: string, key: KeyObject): Buffer => {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', kek.key, iv).setAAD(Buffer.from(kid))
  const sealed = Buffer.concat([cipher.update(key.export({ type: 'pkcs8', format: 'der' })), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed])
}

/** Opens what `sealPrivateKey` made. Throws when the key encryption key is not there or the row was changed. */
export const openPrivateKey = (
  keks: readonly Kek[],
  row: { kid: string; kek_id: string | null; private_key: Buffer },
): KeyObject => {
  const kek = keks.find(({ kek_id }) => kek_id === row.kek_id)
  if (!kek)
    throw new Error(`signing key ${row.kid} is sealed under ${row.kek_id}, which TOKEN__KEYS__KEK does not hold`)
  const iv = row.private_key.subarray(0, IV_BYTES)
  const tag = row.private_key.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', kek.key, iv).setAAD(Buffer.from(row.kid)).setAuthTag(tag)
  const der = Buffer.concat([decipher.update(row.private_key.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
  return createPrivateKey({ key: der, type: 'pkcs8', format: 'der' })
}
