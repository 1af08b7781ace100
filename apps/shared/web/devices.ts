import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { deriveKeys, hmacSha256 } from '../data/digest.ts'

export const DEVICE_DAYS = 90
/** The cookie that holds a device token. The prefix makes browsers require Secure, Path=/ and no Domain. */
export const deviceCookie = (secure: boolean): string => (secure ? '__Host-device' : 'device')
const TOKEN = /^d1\.([A-Za-z0-9_-]{1,300})\.([A-Za-z0-9_-]{43})$/

/** `session`: the one that this browser began last; apps outside the browser have none here. */
type Payload = { id: string; user: string; name: string; iat: number; session?: string }

const macOf = (key: Buffer, body: string) => hmacSha256(key, `d1.${body}`).toString('base64url')

/**
 * Device tokens `d1.<payload>.<HMAC>`: proof of an earlier sign-in from this device, so that failures elsewhere do not
 * lock it out. Bound to the user and to the folded name, all that is known before the user lookup; both as HMACs.
 */
export const createDevices = (secrets: readonly [Buffer, ...Buffer[]], clock: Clock) => {
  const keys = deriveKeys(secrets, 'device')
  const owner = (key: Buffer, kind: 'user' | 'name', value: string) =>
    hmacSha256(key, `${kind}:${value}`).subarray(0, 16).toString('base64url')
  const now = () => Math.floor(clock.now().getTime() / 1000)

  const read = (token: string | undefined): { payload: Payload; key: Buffer } | undefined => {
    const [, body, mac] = TOKEN.exec(token ?? '') ?? []
    if (body === undefined || mac === undefined) return undefined
    const given = Buffer.from(mac)
    const key = keys.find((candidate) => timingSafeEqual(Buffer.from(macOf(candidate, body)), given))
    if (!key) return undefined
    const payload = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Payload
    return now() - payload.iat > DEVICE_DAYS * 86_400 ? undefined : { payload, key }
  }

  return {
    /** Returns the id of a device from which this name has signed in; `undefined` if there is none. */
    knownFor: (token: string | undefined, folded_name: string): string | undefined => {
      const found = read(token)
      return found && found.payload.name === owner(found.key, 'name', folded_name) ? found.payload.id : undefined
    },
    /** Returns the session that the browser with this token began last. */
    sessionOf: (token: string | undefined): string | undefined => read(token)?.payload.session,
    /** Issues a new token for the device, with the id that it already has for this user. */
    issue: (user_id: string, folded_name: string, previous: string | undefined, session?: string): string => {
      const key = keys[0]
      const found = read(previous)
      const same = found && found.payload.user === owner(found.key, 'user', user_id)
      const payload: Payload = {
        id: same ? found.payload.id : randomBytes(16).toString('base64url'),
        user: owner(key, 'user', user_id),
        name: owner(key, 'name', folded_name),
        iat: now(),
        ...(session !== undefined && { session }),
      }
      const body = Buffer.from(JSON.stringify(payload)).toString('base64url')
      return `d1.${body}.${macOf(key, body)}`
    },
  }
}
export type Devices = ReturnType<typeof createDevices>
