import { createHash } from 'node:crypto'
import { ConfigError, secretKeysOf } from '../config.ts'
import { unseal } from './seal.ts'

/** A key that seals secrets at rest. Its id is stored beside each of them. */
export type Kek = { kek_id: string; key: Buffer }

/** Reads a setting's key encryption keys: one in base64, or a JSON array, the sealing one first. */
export const keksOf = (text: string, variable: string): [Kek, ...Kek[]] => {
  const list = text.startsWith('[') ? parseList(text, variable) : [text]
  const [first, ...more] = secretKeysOf(list, variable).map((key) => ({
    kek_id: createHash('sha256').update(key).digest('hex').slice(0, 16),
    key,
  }))
  if (!first) throw new ConfigError(`${variable} holds no key.`)
  return [first, ...more]
}

const parseList = (text: string, variable: string): string[] => {
  try {
    return (JSON.parse(text) as unknown[]).map(String)
  } catch {
    throw new ConfigError(`${variable} is neither base64 nor a JSON array of base64 strings.`)
  }
}

/** Opens bytes that were sealed for `about`. Throws if none of the keys sealed them, or if the bytes were changed. */
export const unsealBy = (keks: readonly Kek[], kek_id: string | null, about: string, sealed: Buffer): Buffer => {
  const kek = keks.find((one) => one.kek_id === kek_id)
  if (!kek) throw new Error(`${about} is sealed with the key ${kek_id}, which no setting holds`)
  return unseal(kek.key, about, sealed)
}
