import { v5, v7 } from 'uuid'

const latest = { msecs: 0, seq: 0 }

/** Returns a new id: UUIDv7 as lower-case text, so that ids of a process sort in order of creation. */
export const uuidv7 = (): string => {
  const random = random128()
  const now = Date.now()
  if (now > latest.msecs) Object.assign(latest, { msecs: now, seq: Buffer.from(random.buffer).readUInt32BE(0) >>> 1 })
  else latest.seq += 1
  return v7({ random, ...latest })
}

/** Returns a name-based id: the same name in the same namespace (a UUID) gives the same id in every process. */
export const uuidv5 = (namespace: string, name: string): string => v5(Buffer.from(name), namespace)

const POOL_BYTES = 4096
let pool = new Uint8Array(0)
let drawn = 0

/** Returns 128 random bits of the system's generator, called for many of these at once. No two calls share a bit. */
export const random128 = (): Uint8Array => {
  if (drawn + 16 > pool.length) {
    pool = crypto.getRandomValues(new Uint8Array(POOL_BYTES))
    drawn = 0
  }
  drawn += 16
  return pool.slice(drawn - 16, drawn)
}

/** The id of a request, also a UUIDv7. */
export const requestId = (): string => v7({ random: random128() })

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** `<prefix>_<UUIDv7 in lower-case base32>`, 26 characters after the underscore. */
export const base32Id = (prefix: string): string => {
  let bits = BigInt(`0x${uuidv7().replaceAll('-', '')}`) << 2n
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = ALPHABET[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return `${prefix}_${text}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const isUuid = (text: string): boolean => UUID.test(text)
