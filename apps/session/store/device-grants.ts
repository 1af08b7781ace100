import type { Redis } from 'ioredis'
import { loadScripts, type ScriptObserver } from '../../../db/redis/scripts.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import type { KeyNames } from '../../shared/web/rates.ts'
import type { SessionKey } from './flows.ts'
import { guarded } from './store.ts'

/** How long a person has to approve a device, and how long the device waits between polls. */
export const DEVICE_S = 600
export const INTERVAL_S = 5
/** How long an ended grant is kept, so that its device learns why it ended. */
const REMEMBERED_S = 2 * DEVICE_S
/** A poll may be this much early, because network delays vary. */
const SLACK_MS = 500

/** A device that asks to be signed in, as shown to its person. Times are milliseconds since 1970. */
export type DeviceRequest = {
  client_id: string
  host: string
  ip_address: string
  user_agent: string
  asked_at: number
  expires_at: number
}
export type DeviceDecision = { decision: 'approved' | 'denied'; user_id: string; session_id: string }
export type Decided = 'ok' | 'same' | 'closed' | 'gone'
export type Claimed =
  | { outcome: 'approved'; user_id: string; session_id: string; host: string; decided_at: number }
  | { outcome: 'pending' | 'slow_down' | 'denied' | 'expired' }
  /** `opened`: the session of an earlier claim, which may not exist yet, or no longer. */
  | { outcome: 'gone'; opened?: SessionKey }

/**
 * Sign-ins that wait for a person's approval (RFC 8628). A device code has 256 bits and is stored as its hash; a user
 * code has too few for that and is stored as its HMAC. Decision and claim are one script each, so each has one winner.
 */
export const createDeviceGrants = (
  redis: Redis,
  { prefix, nameOf, observe }: { prefix: string; nameOf: KeyNames; observe: ScriptObserver },
) => {
  const file = (name: string) => new URL(`../scripts/${name}.lua`, import.meta.url)
  const scripts = loadScripts(redis, { decide: file('device_decide'), claim: file('device_claim') }, observe)
  const codeName = (user_code: string) => nameOf(`user_code:${user_code}`)
  const codeKey = (user_code: string) => `${prefix}dcode:${codeName(user_code)}`
  const grantKey = (device_code: string) => `${prefix}dgrant:${sha256Hex(device_code)}`
  return guarded({
    /** Stores a new request. Returns false if another one has this user code. */
    begin: async (codes: { device_code: string; user_code: string }, request: DeviceRequest): Promise<boolean> => {
      const id = sha256Hex(codes.device_code)
      if ((await redis.set(codeKey(codes.user_code), id, 'EX', DEVICE_S, 'NX')) === null) return false
      const expires_at = String(request.expires_at * 1000)
      const row = { status: 'pending', interval_s: INTERVAL_S, request: JSON.stringify(request), expires_at }
      const key = grantKey(codes.device_code)
      await redis.multi().hset(key, row).expire(key, REMEMBERED_S).exec()
      return true
    },
    find: async (user_code: string): Promise<DeviceRequest | undefined> => {
      const id = await redis.get(codeKey(user_code))
      if (id === null) return undefined
      const [status, request] = await redis.hmget(`${prefix}dgrant:${id}`, 'status', 'request')
      return status === 'pending' && request ? (JSON.parse(request) as DeviceRequest) : undefined
    },
    decide: async (user_code: string, decision: DeviceDecision) => {
      const input = { user_code: codeName(user_code), ...decision }
      return (await scripts.decide([], [prefix, JSON.stringify(input)])) as Decided
    },
    /**
     * The result of a poll; only one poll receives an approval, for the session `opening`. It is remembered before it
     * exists: if the process ends in between, the next poll can end it.
     */
    claim: async (device_code: string, opening: string): Promise<Claimed> => {
      const input = { id: sha256Hex(device_code), slack_ms: SLACK_MS, opening }
      const reply = (await scripts.claim([], [prefix, JSON.stringify(input)])) as [Claimed['outcome'], ...string[]]
      const [outcome, user_id = '', session_id = '', request = '{}', decided_at] = reply
      if (outcome === 'gone') return session_id ? { outcome, opened: { user_id, session_id } } : { outcome }
      if (outcome !== 'approved') return { outcome }
      const { host } = JSON.parse(request) as DeviceRequest
      return { outcome, user_id, session_id, host, decided_at: Number(decided_at) }
    },
    /** Undoes a claim because no session came of it, so that the next poll may try again. */
    release: (device_code: string) =>
      redis.multi().hset(grantKey(device_code), 'status', 'approved').hdel(grantKey(device_code), 'again').exec(),
    /** Returns false if the device code was sent again since its claim. */
    spend: async (device_code: string): Promise<boolean> => (await redis.hexists(grantKey(device_code), 'again')) === 0,
  })
}
export type DeviceGrants = ReturnType<typeof createDeviceGrants>
