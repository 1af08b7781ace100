import { randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sha256Hex } from '../../shared/data/digest.ts'

/**
 * API keys of machines: `sbk_<id>_<secret><check>`. The prefix and the CRC-32 let secret scanners recognize a key with
 * certainty. The id finds its row; only the SHA-256 of the whole is stored (256 random bits need no slow hash).
 */
const KEY = /^sbk_([A-Za-z0-9_-]{22})_([A-Za-z0-9_-]{43})([0-9A-Za-z]{6})$/
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const checkOf = (text: string): string => {
  let check = ''
  for (let rest = crc32(text), n = 0; n < 6; n++, rest = Math.floor(rest / 62)) check = BASE62[rest % 62] + check
  return check
}

/** A new key with this UUID; show it only once. */
export const makeKey = (id: string): { key: string; secret_hash: string } => {
  const body = `sbk_${Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')}_${randomBytes(32).toString('base64url')}`
  const key = `${body}${checkOf(body)}`
  return { key, secret_hash: sha256Hex(key) }
}

/** The UUID in a key; `undefined` if it is not one of our keys. */
export const idOfKey = (key: string): string | undefined => {
  const [, id, , check] = KEY.exec(key) ?? []
  if (id === undefined || check !== checkOf(key.slice(0, -6))) return undefined
  return uuidOf(id)
}

/** The UUID in what may be a key that was cut or changed. */
export const idIn = (key: string): string => uuidOf(/^sbk_([A-Za-z0-9_-]{22})/.exec(key)?.[1] ?? '')

const uuidOf = (id: string): string =>
  Buffer.from(id, 'base64url')
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

export const isKey = (key: string, secret_hash: string): boolean =>
  timingSafeEqual(Buffer.from(sha256Hex(key)), Buffer.from(secret_hash))
