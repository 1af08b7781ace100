/** The claims of the three kinds of token (auth.md 5). Times are seconds since the epoch. */
type Common = { iss: string; aud: string; sub: string; iat: number; exp: number; jti: string }

export type AccessClaims = Common & {
  type: 'access'
  username: string
  session_id: string
  auth_time: number
  amr: string[]
  cm: 'json' | 'cookie' | 'machine'
  /** For a machine's token: its credential's permissions, and where they hold. For a person's: only `enrolment`. */
  scope?: string[]
  place?: Record<string, string>
}
export type RefreshClaims = Common & { type: 'refresh'; session_id: string }
export type ServiceClaims = Common & { type: 'service'; scope: string[] }

export type ClaimsOf = { access: AccessClaims; refresh: RefreshClaims; service: ServiceClaims }
export type TokenType = keyof ClaimsOf

/** The header and the lifetime in seconds of each kind. */
export const TOKEN_KINDS = {
  access: { alg: 'RS256', typ: 'at+jwt', lifetime_s: 900 },
  refresh: { alg: 'RS256', typ: 'rt+jwt', lifetime_s: 2_592_000 },
  service: { alg: 'EdDSA', typ: 'st+jwt', lifetime_s: 300 },
} as const satisfies Record<TokenType, { alg: 'RS256' | 'EdDSA'; typ: string; lifetime_s: number }>
