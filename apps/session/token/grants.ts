import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { DEVICE_GRANT } from '../../shared/contracts/session/devices.ts'
import { Assertion } from '../../shared/contracts/session/passkeys.ts'
import { TotpCode } from '../../shared/contracts/session/totp.ts'
import { AppError, type CodeOf } from '../../shared/errors.ts'
import type { SessionDeps } from '../deps.ts'
import type { CodeGrant } from './code.ts'
import type { SecondFactor } from './second-factor.ts'

/** Maximum body size of the auth endpoints, in bytes. */
export const BODY_LIMIT = 16_384
/** Shorter keys could be guessed. */
export const RETRY_KEY_MIN = 22

export type Mode = 'json' | 'cookie'

export const Password = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'At most 128 characters and 512 bytes.',
})
const Username = Type.String({ minLength: 1, maxLength: 128 })
const RefreshToken = Type.String({ minLength: 1, maxLength: 4096 })
const Device = {
  device_token: Type.Optional(Type.String({ maxLength: 512 })),
  remember_device: Type.Optional(Type.Boolean({ description: 'Ask for a device token in the reply (JSON mode).' })),
}

/** For an app outside the browser: the code that its sign-in through a provider returned. */
const Code = {
  code: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  code_verifier: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._~-]{43,128}$' })),
  redirect_uri: Type.Optional(Type.String({ maxLength: 255 })),
}

const SIGN_IN = { username: 'olga', password: 'Tr0mbone-Glacier-Napkin' }
const closed = (example: unknown) => ({ additionalProperties: false, examples: [example] })
export const TokenBody = Type.Object(
  {
    grant_type: Type.Optional(
      Type.Enum(['password', 'refresh_token', 'authorization_code', 'passkey', 'second_factor', DEVICE_GRANT]),
    ),
    username: Type.Optional(Username),
    password: Type.Optional(Password),
    refresh_token: Type.Optional(RefreshToken),
    ...Code,
    device_code: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    client_id: Type.Optional(Type.Enum(['signalbox-cli'])),
    assertion: Type.Optional(Assertion),
    totp: Type.Optional(TotpCode),
    factor_token: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    ...Device,
  },
  closed({ grant_type: 'password', ...SIGN_IN }),
)
export const LoginBody = Type.Object({ username: Username, password: Password, ...Device }, closed(SIGN_IN))
export const RefreshBody = Type.Object(
  { refresh_token: RefreshToken },
  closed({ refresh_token: 'eyJhbGciOiJSUzI1NiIsImtpZCI6Ik56Yk…' }),
)
/** Exactly one of the three. */
export const ReauthBody = Type.Object(
  { password: Type.Optional(Password), assertion: Type.Optional(Assertion), totp: Type.Optional(TotpCode) },
  closed({ password: SIGN_IN.password }),
)

type Grant = Type.Static<typeof TokenBody>

/** The fields by which each grant proves itself; the others name the client or the device. */
const PROOFS = {
  password: ['username', 'password'],
  refresh_token: ['refresh_token'],
  authorization_code: ['code', 'code_verifier', 'redirect_uri'],
  [DEVICE_GRANT]: ['device_code'],
  passkey: ['assertion'],
  second_factor: ['factor_token', 'assertion', 'totp'],
} as const

/** Throws if a body has a proof of another grant: its sender would believe that it was checked. */
const refuseOthers = (body: Grant, grant: keyof typeof PROOFS, mode: Mode): void => {
  // In cookie mode a refresh token in the body does not count.
  const own: readonly string[] = [...PROOFS[grant], ...(mode === 'cookie' ? PROOFS.refresh_token : [])]
  const other = Object.values(PROOFS)
    .flat()
    .find((field) => body[field] !== undefined && !own.includes(field))
  if (other === undefined) return
  throw invalid('ambiguous_grant', `The request holds ${other} beside the fields of its grant.`, 'Send one grant.')
}

const invalid = (code: CodeOf<'validation_error'>, detail: string, hint: string) =>
  new AppError('validation_error', code, detail, { hint })

/** The mode of `response_mode`; JSON if absent, so that older clients keep working. */
export const modeFrom = (text: string | undefined): Mode => {
  if (text === undefined || text === 'json' || text === 'cookie') return text ?? 'json'
  throw invalid(
    'unknown_response_mode',
    `There is no response mode ${JSON.stringify(text.slice(0, 32))}.`,
    'Use json or cookie.',
  )
}

/** The kind of grant in a body. Both or none is refused; in cookie mode a refresh token in the body does not count. */
export const grantKind = (body: Grant, mode: Mode): 'password' | 'refresh_token' => {
  const password = body.username !== undefined || body.password !== undefined
  const refreshing = mode === 'cookie' ? !password : body.refresh_token !== undefined
  const kind = password ? 'password' : 'refresh_token'
  if (password && body.grant_type === 'refresh_token') refuseOthers(body, 'refresh_token', 'json')
  if ((!password && !refreshing) || (body.grant_type !== undefined && body.grant_type !== kind)) {
    throw invalid(
      'missing_grant',
      'The request holds neither a password nor a refresh token for its grant.',
      'Send username and password, or a refresh token.',
    )
  }
  if (password && (body.username === undefined || body.password === undefined)) {
    throw invalid('schema_violation', 'username and password belong together.', 'Send both.')
  }
  refuseOthers(body, kind, mode)
  return kind
}

/** The grant of an app, which stores its tokens: JSON mode only, without other grants. `undefined` for other grants. */
export const codeGrantOf = (body: Grant, mode: Mode): CodeGrant | undefined => {
  const { grant_type, code, code_verifier, redirect_uri } = body
  if (grant_type !== 'authorization_code') return undefined
  refuseOthers(body, grant_type, mode)
  if (mode === 'cookie') throw onlyInJson('A code')
  if (code === undefined || code_verifier === undefined || redirect_uri === undefined)
    throw invalid('missing_grant', 'code, code_verifier and redirect_uri belong together.', 'Send all three.')
  return { code, code_verifier, redirect_uri }
}

/** The poll of a device without a browser, which stores its own tokens like an app; `undefined` for other grants. */
export const deviceCodeOf = (body: Grant, mode: Mode): string | undefined => {
  if (body.grant_type !== DEVICE_GRANT) return undefined
  refuseOthers(body, DEVICE_GRANT, mode)
  if (mode === 'cookie') throw onlyInJson('A device code')
  if (body.device_code === undefined) throw invalid('missing_grant', 'device_code is missing.', 'Send it.')
  return body.device_code
}

const onlyInJson = (what: string) =>
  invalid('ambiguous_grant', `${what} is redeemed in JSON mode.`, 'Leave out response_mode.')

/** A passkey alone, or a second factor after a password. */
export type FactorGrant = { assertion: Assertion } | { factor_token: string; factor: SecondFactor }

/** The grant of a passkey or of a second factor; `undefined` for the other grants. */
export const factorGrantOf = (body: Grant, mode: Mode): FactorGrant | undefined => {
  const { grant_type, assertion, totp, factor_token } = body
  if (grant_type !== 'passkey' && grant_type !== 'second_factor') return undefined
  refuseOthers(body, grant_type, mode)
  if (assertion !== undefined && totp !== undefined)
    throw invalid('ambiguous_grant', 'The request holds two factors.', 'Send assertion or totp.')
  if (grant_type === 'passkey' && assertion) return { assertion }
  const factor = assertion ? { assertion } : totp === undefined ? undefined : { totp }
  if (grant_type === 'second_factor' && factor && factor_token !== undefined) return { factor_token, factor }
  throw invalid(
    'missing_grant',
    'The request lacks a field of its grant.',
    'Send assertion; with grant_type second_factor send factor_token, and assertion or totp.',
  )
}

/** Each mode reads only its own place. In cookie mode without `grant_type`, no cookie means that no grant was sent. */
export const tokenFrom = (deps: SessionDeps, req: FastifyRequest, body: Grant, mode: Mode): string => {
  if (mode === 'json') return body.refresh_token ?? ''
  const token = deps.cookies.readRefresh(req.headers.cookie)
  if (token === undefined && body.grant_type === undefined) {
    throw invalid('missing_grant', 'There is no refresh cookie.', 'Sign in with username and password.')
  }
  return token ?? ''
}

export const refuseLongPassword = (password: string): void => {
  if (Buffer.byteLength(password) > 512)
    throw invalid('schema_violation', 'A password has at most 512 bytes.', 'Send a shorter password.')
}

/** The Idempotency-Key, which proves that a refresh repeats a request: it must be too long to guess. */
export const retryKeyOf = (req: FastifyRequest): string | undefined => {
  const key = req.headers['idempotency-key']
  if (typeof key !== 'string') return undefined
  if (key.length >= RETRY_KEY_MIN && key.length <= 255) return key
  throw invalid(
    'retry_key_too_short',
    `An Idempotency-Key on refresh must have ${RETRY_KEY_MIN} to 255 characters.`,
    'Make a new random key for each refresh, such as a UUID.',
  )
}
