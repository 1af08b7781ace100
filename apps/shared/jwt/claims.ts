/** The claims of the four kinds of token (auth.md 5). Times are seconds since the epoch. */
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
export type ExecutionClaims = Common & {
  type: 'execution'
  scope: string[]
  operation_id: string
  node_id: string
  attempt: number
}

export type ClaimsOf = {
  access: AccessClaims
  refresh: RefreshClaims
  service: ServiceClaims
  execution: ExecutionClaims
}
export type TokenType = keyof ClaimsOf

/** The header and lifetime of each kind. `lifetime_s` is exact; for execution tokens it is the maximum. */
export const TOKEN_KINDS = {
  access: { alg: 'RS256', typ: 'at+jwt', lifetime_s: 900, exact: true },
  refresh: { alg: 'RS256', typ: 'rt+jwt', lifetime_s: 2_592_000, exact: true },
  service: { alg: 'EdDSA', typ: 'st+jwt', lifetime_s: 300, exact: true },
  execution: { alg: 'EdDSA', typ: 'et+jwt', lifetime_s: 86_400, exact: false },
} as const satisfies Record<TokenType, { alg: 'RS256' | 'EdDSA'; typ: string; lifetime_s: number; exact: boolean }>
