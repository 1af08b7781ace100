import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../shared/auth/caller.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { groupsOf } from '../../shared/web/addresses.ts'

/** Data about the client of a request: a hint, never a proof. */
export type Client = {
  user_agent: string | undefined
  ip_address: string | undefined
  ua_hash: string
  ua_family: string
  ip_prefix: string | undefined
}

/** Where a request came from, for its audit row. */
export const whereOf = ({ request_id, client }: { client: Client; request_id: string }) => ({
  request_id,
  ip_address: client.ip_address,
  user_agent: client.user_agent,
})

/** The signed-in person who acts in a request, and where it came from, for its audit row. */
export const byPerson = (request: { caller: Caller; client: Client; request_id: string }) => {
  const { user_id, session_id } = request.caller
  return { actor: `user:${user_id}`, user_id, session_id, ...whereOf(request) }
}

const MAX_AGENT = 512

/** The client as the gateway describes it, with one address in x-forwarded-for. */
export const clientOf = (req: FastifyRequest): Client => {
  const forwarded = req.headers['x-forwarded-for']
  return describeClient(req.headers['user-agent'], typeof forwarded === 'string' ? forwarded : undefined)
}

export const describeClient = (user_agent: string | undefined, ip_address: string | undefined): Client => ({
  // The cut may split a character.
  user_agent: user_agent?.slice(0, MAX_AGENT).toWellFormed(),
  ip_address,
  ua_hash: sha256Hex(user_agent ?? ''),
  ua_family: familyOf(user_agent ?? ''),
  ip_prefix: ip_address && prefixOf(ip_address),
})

// In this order, because agents of the earlier ones also contain later names.
const FAMILIES = ['Edg', 'OPR', 'SamsungBrowser', 'Firefox', 'Chrome', 'Safari', 'curl', 'signalbox']

/** The family of a browser or client, which stays the same across updates. */
const familyOf = (agent: string): string =>
  FAMILIES.find((family) => agent.includes(`${family}/`)) ?? (agent.split('/')[0] || 'none').slice(0, 32)

/** The network of an address: /24 for IPv4, /56 for IPv6. */
const prefixOf = (address: string): string =>
  address.includes(':')
    ? groupsOf(address)
        .map((group) => group.padStart(4, '0'))
        .join('')
        .slice(0, 14)
    : address.split('.').slice(0, 3).join('.')
