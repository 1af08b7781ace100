import { randomBytes, randomInt } from 'node:crypto'
import { type Caller, refuseStaleAuth } from '../../shared/auth/caller.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import { addressKey } from '../../shared/web/addresses.ts'
import { rateLimited } from '../../shared/web/rates.ts'
import { byPerson, type Client } from '../browser/client.ts'
import type { SessionDeps, Uses } from '../deps.ts'
import { DEVICE_S, type DeviceDecision, type DeviceRequest, INTERVAL_S } from '../store/device-grants.ts'

/** RFC 8628 6.1: no vowels, so no words, and no digits that look like letters. 34 bits. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const USER_CODE = new RegExp(`^[${LETTERS}]{8}$`)
/** How recently a person who approves a device must have signed in. */
const FRESH_S = 300
/** Lookups of user codes: enough for someone who mistypes, too few for someone who guesses among 20^8. */
const LOOKS = { count: 10, seconds: 600, burst: 10 }
const LOOKS_OF_ADDRESS = { count: 100, seconds: 600, burst: 100 }

type Context = { client: Client; request_id: string }
type ByPerson = Context & { caller: Caller; user_code: string }

/** Throws unless this installation offers the grant. */
const refuseIfOff = ({ config }: Uses<'config'>): void => {
  if (config.AUTH__DEVICE_GRANT === 'off')
    throw new AppError(
      'policy_denied',
      'device_grant_off',
      'Sign-in by device code is turned off in this installation.',
    )
}

/** Starts a sign-in of a device without a browser: the response of RFC 8628 3.2. */
export const beginDevice = async (deps: SessionDeps, asked: { client_id: string; host: string }, client: Client) => {
  refuseIfOff(deps)
  const asked_at = deps.clock.now().getTime()
  const { ip_address = '', user_agent = '' } = client
  const request = { ...asked, ip_address, user_agent, asked_at, expires_at: asked_at + DEVICE_S * 1000 }
  const device_code = randomBytes(32).toString('base64url')
  let user_code: string
  do user_code = Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join('')
  while (!(await deps.deviceGrants.begin({ device_code, user_code }, request)))
  const shown = spelled(user_code)
  const verification_uri = `${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/device`
  return {
    device_code,
    user_code: shown,
    verification_uri,
    verification_uri_complete: `${verification_uri}?code=${shown}`,
    expires_in: DEVICE_S,
    interval: INTERVAL_S,
  }
}

/** The pending request for this code, for the person who typed it. */
export const findDevice = async (deps: SessionDeps, request: ByPerson) => {
  const user_code = await typedCode(deps, request)
  const found = await deps.deviceGrants.find(user_code)
  if (!found) throw await unknownCode(deps, request)
  return viewOf(found, user_code, request.client)
}

/** Approves or refuses the request: the first decision counts, a repeat by the same session has no effect. */
export const decideDevice = async (
  deps: SessionDeps,
  request: ByPerson,
  decision: DeviceDecision['decision'],
): Promise<void> => {
  const { caller } = request
  const stale = decision === 'approved' ? refuseStaleAuth(caller, FRESH_S, deps.clock.now()) : undefined
  if (stale) throw stale
  const user_code = await typedCode(deps, request)
  const { user_id, session_id } = caller
  const outcome = await deps.deviceGrants.decide(user_code, { decision, user_id, session_id })
  if (outcome === 'gone') throw await unknownCode(deps, request)
  if (outcome === 'closed')
    throw new AppError('version_conflict', 'device_decided', 'This sign-in was approved or refused already.')
  if (outcome === 'ok') await note(deps, request, 'done', decision)
}

/** Gives an approval to one poll, which opens the session `opening`; later ones are `gone`. Throws the refusals of RFC 8628 3.5. */
export const claimDevice = async (deps: SessionDeps, device_code: string, opening: string) => {
  if (deps.config.AUTH__DEVICE_GRANT === 'off') throw pollRefused('unsupported_grant_type')
  const claimed = await deps.deviceGrants.claim(device_code, opening)
  if (claimed.outcome === 'approved' || claimed.outcome === 'gone') return claimed
  throw pollRefused(POLL[claimed.outcome])
}

const POLL = {
  pending: 'authorization_pending',
  slow_down: 'slow_down',
  denied: 'access_denied',
  expired: 'expired_token',
} as const
const DETAIL: Partial<Record<CodeOf<'validation_error'>, string>> = {
  authorization_pending: 'No one has approved the sign-in yet.',
  slow_down: 'The device polls too often.',
  access_denied: 'The sign-in was refused.',
  expired_token: 'No one approved the sign-in in time.',
  unsupported_grant_type: 'Sign-in by device code is turned off in this installation.',
}

export const pollRefused = (code: CodeOf<'validation_error'>) => {
  const detail = DETAIL[code] ?? ''
  return new AppError('validation_error', code, detail, {
    status: 400,
    extra: { error: code, error_description: detail },
  })
}

export const deviceCodeRefused = () =>
  new AppError('invalid_token', 'invalid_grant', 'The device code is not valid, or was used.', {
    headers: { 'www-authenticate': 'Bearer' },
    extra: { error: 'invalid_grant' },
  })

const spelled = (user_code: string): string => `${user_code.slice(0, 4)}-${user_code.slice(4)}`

/** The typed code without dashes or blanks, in one case. Charged before each lookup: no guess outruns the limit. */
const typedCode = async (deps: SessionDeps, request: ByPerson): Promise<string> => {
  refuseIfOff(deps)
  const { caller, client } = request
  const user_code = request.user_code.toUpperCase().replace(/[^A-Z]/g, '')
  const wait = await deps.store.limit([
    { key: `device_looks:${caller.user_id}`, rate: LOOKS },
    { key: `device_looks:${deps.nameOf(`user_code:${user_code}`)}`, rate: LOOKS },
    { key: `device_looks:${deps.nameOf(`address:${addressKey(client.ip_address ?? '')}`)}`, rate: LOOKS_OF_ADDRESS },
  ])
  if (wait !== undefined) {
    deps.counts.rate_limited.inc({ class: 'device' })
    throw rateLimited(wait)
  }
  if (USER_CODE.test(user_code)) return user_code
  throw await unknownCode(deps, request)
}

const unknownCode = async (deps: SessionDeps, request: ByPerson) => {
  await note(deps, request, 'denied', 'unknown_code')
  return new AppError('not_found', 'device_request', 'No device waits for this code.')
}

const viewOf = (found: DeviceRequest, user_code: string, { ip_address = '' }: Client) => ({
  user_code: spelled(user_code),
  client_id: found.client_id,
  host: found.host,
  ip_address: found.ip_address || null,
  user_agent: found.user_agent || null,
  asked_at: new Date(found.asked_at).toISOString(),
  expires_at: new Date(found.expires_at).toISOString(),
  same_address: addressKey(found.ip_address) === addressKey(ip_address),
})

const note = (deps: SessionDeps, request: ByPerson, outcome: 'done' | 'denied', reason: string): Promise<void> =>
  deps.audit({ action: 'device_grant', outcome, reason, ...byPerson(request) })
