import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Saved plans hold secrets in clear: they leave the agent sealed, by a key that agents of one pool share as a file. */
const MAGIC = Buffer.from('sbx1')
const IV = 12
const TAG = 16

const keyOf = (state_dir: string): Buffer => {
  const path = join(state_dir, 'seal.key')
  mkdirSync(state_dir, { recursive: true })
  try {
    writeFileSync(path, randomBytes(32), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(path)
}

/** Sealed for one operation: in another one it does not open. */
export const seal = (state_dir: string, operation_id: string, bytes: Buffer): Buffer => {
  const iv = randomBytes(IV)
  const cipher = createCipheriv('aes-256-gcm', keyOf(state_dir), iv).setAAD(Buffer.from(operation_id))
  const body = Buffer.concat([cipher.update(bytes), cipher.final()])
  return Buffer.concat([MAGIC, iv, cipher.getAuthTag(), body])
}

/** The bytes, or undefined when another key sealed them, for another operation, or they were changed. */
export const unseal = (state_dir: string, operation_id: string, sealed: Buffer): Buffer | undefined => {
  if (!sealed.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const at = (from: number, length?: number) =>
    sealed.subarray(MAGIC.length + from, length === undefined ? undefined : MAGIC.length + from + length)
  const decipher = createDecipheriv('aes-256-gcm', keyOf(state_dir), at(0, IV), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(operation_id)).setAuthTag(at(IV, TAG))
  try {
    return Buffer.concat([decipher.update(at(IV + TAG)), decipher.final()])
  } catch {
    return undefined
  }
}
