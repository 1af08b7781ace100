import type { Client } from '@connectrpc/connect'
import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import type { Principals } from '../shared/auth/principals.ts'
import type { Providers } from '../shared/auth/providers.ts'
import type { AccessVerifier } from '../shared/auth/user-tokens.ts'
import type { Clock } from '../shared/clock.ts'
import type { Credential } from '../shared/contracts/gen/auth_pb.ts'
import type { JwksClient } from '../shared/jwt/jwks.ts'
import type { Registry } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { IdentityConfig } from './config.ts'
import type { Issuers } from './machines/foreign.ts'

/** The dependencies of identity; each function takes the part it needs. Built by wire.ts. */
export type IdentityDeps = {
  config: IdentityConfig
  telemetry: Telemetry
  clock: Clock
  issuers: Issuers
  db: Db
  pool: pg.Pool
  keys: { fingerprint: [Buffer, ...Buffer[]]; audit: Buffer; page: [Buffer, ...Buffer[]] }
  registry: Registry
  providers: Providers
  jwks: JwksClient
  verifier: AccessVerifier
  principals: Principals
  credential: Client<typeof Credential>
  close: () => Promise<void>
}
export type Uses<K extends keyof IdentityDeps> = Pick<IdentityDeps, K>

/** For reading and paging. */
export type ReadDeps = Uses<'clock' | 'db' | 'keys'>
/** For changing rights and credentials: once, audited, under the rules of dual control. */
export type ChangeDeps = ReadDeps & Uses<'config' | 'credential' | 'providers'>
