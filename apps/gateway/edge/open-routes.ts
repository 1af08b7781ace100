import type { IncomingMessage, ServerResponse } from 'node:http'
import { foldUsername } from '../../shared/auth/username.ts'
import { DEVICE_GRANT } from '../../shared/contracts/session/devices.ts'
import { AppError, loginBusy } from '../../shared/errors.ts'
import { TokenRejected } from '../../shared/jwt/verifier.ts'
import { onlyCookie } from '../../shared/web/cookies.ts'
import { deviceCookie } from '../../shared/web/devices.ts'
import type { GatewayDeps } from '../deps.ts'
import type { Route } from '../routes/table.ts'
import type { Exchange } from './answers.ts'
import type { ClientAddress } from './headers.ts'

export const AUTH_BODY = 16_384
/** Sign-ins without a name. A person reads pages before each, so one limit is enough for both. */
const NAMELESS: ReadonlySet<unknown> = new Set(['passkey', 'second_factor', 'authorization_code'])

/** Seats reserved for known devices, so that a flood of strangers leaves room for them. */
const KNOWN_SEATS = 2
/** The weight of the latest login in the average. */
const LATEST = 0.2

/** Limits of routes without sign-in. The body of a login is read for its name; the same bytes are passed on. */
export const chargeOpenRoute = async (
  deps: GatewayDeps,
  exchange: Exchange,
  route: Route,
  client: ClientAddress,
): Promise<Buffer | undefined> => {
  if (route.class === 'none') return undefined
  const { guard, limits, nameOf } = deps
  const { req } = exchange
  const address = nameOf(`address:${client.key}`)
  guard.refuseForeign(req)
  const charge = (limit: AddressLimit, owner = address) =>
    guard.charge(limit, [{ key: `${limit}:${owner}`, rate: limits[limit] }])
  if (route.class === 'page') await charge('page', await sessionOf(deps, req))
  else if (route.class !== 'token' && route.class !== 'login') await charge(route.class as AddressLimit)
  if (route.class !== 'token' && route.class !== 'login') return undefined
  refuseMediaType(req)
  const body = await deps.bodies.read(req, AUTH_BODY, client.key)
  const login = readLogin(body)
  // Polls are frequent by nature; they must not use up the refreshes of their neighbors.
  if (route.class === 'login' || login.username !== undefined) await chargeLogin(deps, exchange, login, address)
  else if (login.grant_type === DEVICE_GRANT) await charge('machine')
  // Anyone can use up the refreshes of an address by tokens that do not verify.
  else if (NAMELESS.has(login.grant_type)) await charge('page', await sessionOf(deps, req))
  else await charge('refresh', await sessionOf(deps, req, login.refresh_token))
  return body
}

/** Limits that count by address, unless the request proves its session. */
type AddressLimit = 'refresh' | 'page' | 'sso' | 'jwks' | 'enrol' | 'machine' | 'logout' | 'device' | 'work'

type Login = {
  username: string | undefined
  refresh_token: string | undefined
  device_token: string | undefined
  grant_type: unknown
}

/**
 * Returns the session whose refresh token the request holds, if it verifies. It has a bucket of its own: anyone can use
 * up that of an address, and a whole office may share one.
 */
const sessionOf = async (deps: GatewayDeps, { headers }: IncomingMessage, given?: string) => {
  const token = given ?? onlyCookie(headers.cookie, deps.config.TOKEN__TOKENS__COOKIE_NAME)
  if (token === undefined) return undefined
  try {
    return `session:${(await deps.verifyRefresh(token)).session_id}`
  } catch (error) {
    // While the keys cannot be read, no token proves anything; session answers the request.
    if (error instanceof TokenRejected || error instanceof AppError) return undefined
    throw error
  }
}

/**
 * Charges one attempt. A device that has signed in with this name before has only its own bucket, so no one else can
 * use up its attempts. All others share the buckets of the name and of their address.
 */
const chargeLogin = async (deps: GatewayDeps, { req, res }: Exchange, login: Login, address: string): Promise<void> => {
  const { guard, limits, nameOf } = deps
  const name = login.username === undefined ? undefined : foldUsername(login.username)
  const device = name === undefined ? undefined : knownDevice(deps, req, login, name)
  enterLogin(deps, res, device !== undefined)
  if (device !== undefined) return guard.charge('login', [{ key: `login_device:${device}`, rate: limits.login_device }])
  const by_name = name === undefined ? [] : [{ key: `login_name:${nameOf(name)}`, rate: limits.login_name }]
  return guard.charge('login', [{ key: `login_ip:${address}`, rate: limits.login_ip }, ...by_name], address)
}

/** Returns the id of the device if its token is ours and for this name, wherever the login mode keeps the token. */
const knownDevice = ({ devices }: GatewayDeps, { headers }: IncomingMessage, { device_token }: Login, name: string) => {
  const kept = [device_token, ...[true, false].map((secure) => onlyCookie(headers.cookie, deviceCookie(secure)))]
  for (const token of kept) {
    const device = devices.knownFor(token, name)
    if (device !== undefined) return device
  }
  return undefined
}

/**
 * Admits a bounded number of logins and tells the others at once that it is busy. In a flood, credential would refuse
 * most of them anyway, after limits, look-ups and connections that slow down everyone who is signed in.
 */
const enterLogin = ({ logins, config }: GatewayDeps, res: ServerResponse, known: boolean): void => {
  if (logins.under_way >= config.GATEWAY__LOGIN__AT_ONCE + (known ? KNOWN_SEATS : 0)) throw loginBusy(logins.average_ms)
  logins.under_way += 1
  const begun = performance.now()
  res.once('close', () => {
    logins.under_way -= 1
    logins.average_ms += LATEST * (performance.now() - begun - logins.average_ms)
  })
}

const refuseMediaType = ({ headers }: IncomingMessage) => {
  const { 'content-type': type, 'content-length': length, 'transfer-encoding': coding } = headers
  const empty = length === '0' || (length === undefined && coding === undefined)
  if (type === undefined ? empty : /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) return
  throw new AppError('validation_error', 'unsupported_media_type', 'This content type is not accepted here.')
}

/**
 * Reads the name and the device of a login. A body that cannot be read here goes no further: session might read it, and
 * a login would then be charged as something else.
 */
const readLogin = (body: Buffer): Login => {
  const textOf = (member: unknown, most: number) => (typeof member === 'string' ? member.slice(0, most) : undefined)
  const { username, refresh_token, device_token, grant_type } = body.length === 0 ? {} : membersOf(body)
  return {
    username: textOf(username, 256),
    refresh_token: textOf(refresh_token, 4096),
    device_token: textOf(device_token, 512),
    grant_type,
  }
}

const membersOf = (body: Buffer): { [member: string]: unknown } => {
  try {
    return (JSON.parse(body.toString('utf8')) as { [member: string]: unknown } | null) ?? {}
  } catch {
    throw new AppError('validation_error', 'malformed_json', 'The body is not valid JSON.')
  }
}
