import type { Redis } from 'ioredis'
import type { ProviderTrial } from '../../shared/contracts/session/sso.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { type Charge, type Federated, guarded, type NewSession } from './store.ts'

/** An app outside the browser that waits for a code: its redirect URI, its PKCE challenge and its own state. */
export type Native = { redirect_uri: string; code_challenge: string; state: string }

/** A sign-in that waits for the provider. `browser`: the hash of the cookie that must be returned with it. */
export type Flow = {
  provider_id: string
  purpose: 'sign_in' | 'reauth' | 'link' | 'trial'
  nonce: string
  verifier: string
  browser: string
  started_s: number
  return_to: string
  native?: Native
  /** The person who confirms or links, and the session in which it began. */
  session?: { user_id: string; session_id: string }
}

/** A person signed in by a provider, and the provider's data for the session. */
export type SignedIn = {
  user_id: string
  username: string
  provider_id: string
  /** The provider named no groups but a place to read them, so rights stayed as they were. */
  groups_elsewhere?: boolean
  /** The provider must name a second factor, and did. */
  mfa?: boolean
} & Required<Federated> &
  Pick<NewSession, 'begun_at'>

/** A sign-in that an app completes with its code's verifier. */
export type Offer = SignedIn & Pick<Native, 'redirect_uri' | 'code_challenge'>

/** The session that a code opened. */
export type SessionKey = { user_id: string; session_id: string }

/** How long a passkey may take to answer a challenge. */
export const CHALLENGE_S = 300

/** After a right password, before the second factor. `tries`: wrong codes; `left_s`: how long the password counts. */
export type HalfSignedIn = {
  user: Pick<NewSession, 'user_id' | 'username' | 'mode' | 'begun_at'> & { password_version: number }
  folded_name: string
  charge: Charge
  tries: number
  left_s: number
}

/** How long the link of a security message may end all sessions. */
const SIGN_OUT_S = 86_400

/** How long a sign-in through a provider may take. */
export const FLOW_S = 600
const CODE_S = 60
const SCAN_COUNT = 1000

/** Logout tokens may overtake each other: an earlier one must not lower the bound of a later one. */
const RAISE = `local ended = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1]))
redis.call('SET', KEYS[1], ended, 'EX', ARGV[2])`

/** What a sign-in, or a link, stores in Redis between two requests: found by the hash of a secret, used once. */
export const createFlows = (redis: Redis, prefix: string) => {
  const keyOf = (kind: string, secret: string) => `${prefix}${kind}:${sha256Hex(secret)}`
  const put = (key: string, row: object, seconds: number) => redis.set(key, JSON.stringify(row), 'EX', seconds)
  const take = async <T>(key: string): Promise<T | undefined> => {
    const row = await redis.getdel(key)
    return row === null ? undefined : (JSON.parse(row) as T)
  }
  /** Replaces a row that exists, and returns the one before. */
  const swap = async <T>(key: string, row: object): Promise<T | undefined> => {
    const before = await redis.set(key, JSON.stringify(row), 'EX', FLOW_S, 'XX', 'GET')
    return before === null ? undefined : (JSON.parse(before) as T)
  }
  const now = async () => {
    const [seconds, us] = await redis.time()
    return Number(seconds) * 1_000_000 + Number(us)
  }
  const sessionsIn = async (index: string) => {
    const members = await redis.smembers(`${prefix}osid:${index}`)
    return members.map((member) => {
      const [user_id = '', session_id = ''] = member.split(' ')
      return { user_id, session_id }
    })
  }
  return guarded({
    begin: (state: string, flow: Flow) => put(keyOf('oidc', state), flow, FLOW_S),
    take: (state: string) => take<Flow>(keyOf('oidc', state)),
    offer: async (code: string, offer: Offer) => put(keyOf('ocode', code), { ...offer, begun_at: await now() }, CODE_S),
    /** The first use of a code takes its offer; a later one finds the session that it opened, or another use's mark. */
    redeem: (code: string, mark: string) => swap<Offer | SessionKey | { mark: string }>(keyOf('ocode', code), { mark }),
    /** Remembers the session that a code opened. Returns false if the code was used again since this use's mark. */
    spend: async (code: string, mark: string, session: SessionKey) =>
      (await swap<{ mark?: string }>(keyOf('ocode', code), session))?.mark === mark,
    keepTrial: (name: string, trial: ProviderTrial) => put(keyOf('otrial', name), trial, FLOW_S),
    trial: async (name: string) => {
      const row = await redis.get(keyOf('otrial', name))
      return row === null ? undefined : (JSON.parse(row) as ProviderTrial)
    },
    ask: (challenge: string) => put(keyOf('passkey', challenge), {}, CHALLENGE_S),
    /** Whether the challenge is one of ours and still unanswered. */
    answer: async (challenge: string) => (await redis.del(keyOf('passkey', challenge))) === 1,
    halve: async (factor_token: string, row: HalfSignedIn) => {
      const user = { ...row.user, begun_at: row.user.begun_at ?? (await now()) }
      return put(keyOf('factor', factor_token), { ...row, user }, row.left_s)
    },
    complete: async (factor_token: string): Promise<HalfSignedIn | undefined> => {
      const key = keyOf('factor', factor_token)
      const left_s = Math.max(1, await redis.ttl(key))
      const half = await take<HalfSignedIn>(key)
      return half && { ...half, left_s }
    },
    offerSignOut: (token: string, user_id: string) => put(keyOf('leave', token), { user_id }, SIGN_OUT_S),
    /** Whose sessions the token ends. It stays until they have ended, so that a failed try can be repeated. */
    signOutOf: async (token: string) => {
      const row = await redis.get(keyOf('leave', token))
      return row === null ? undefined : (JSON.parse(row) as { user_id: string }).user_id
    },
    spendSignOut: (token: string) => redis.del(keyOf('leave', token)),
    /** Returns true the first time within these seconds. */
    once: async (name: string, seconds: number) =>
      (await redis.set(keyOf('ojti', name), '1', 'EX', seconds, 'NX')) === 'OK',
    remember: (name: string, seconds: number) => redis.set(keyOf('ojti', name), '1', 'EX', seconds),
    forget: (name: string) => redis.del(keyOf('ojti', name)),
    /** Our sessions of this provider's session or person; none vouched for until `ended_at` (seconds) opens later. */
    sessionsOf: async (index: string, ended_at: number) => {
      await redis.eval(RAISE, 1, `${prefix}oend:${index}`, ended_at, FLOW_S)
      return sessionsIn(index)
    },
    sessionsIn,
    /** Keys of `osid:` in parts; the last one leads to '0'. */
    indexesFrom: async (cursor: string) => {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}osid:*`, 'COUNT', SCAN_COUNT)
      return { next, indexes: keys.map((key) => key.slice(`${prefix}osid:`.length)) }
    },
  })
}
export type Flows = ReturnType<typeof createFlows>

/** Keys of `osid:`. */
export const indexOf = (provider_id: string, kind: 'sid' | 'sub', value: string): string =>
  `${provider_id}:${kind}:${sha256Hex(value)}`
export const providerIn = (index: string): string => index.split(':')[0] ?? ''
