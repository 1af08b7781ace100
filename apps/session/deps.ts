import type { Client } from '@connectrpc/connect'
import type { Redis } from 'ioredis'
import type { Db } from '../../db/client.ts'
import type { Principals } from '../shared/auth/principals.ts'
import type { Providers } from '../shared/auth/providers.ts'
import type { AccessVerifier, RefreshVerifier } from '../shared/auth/user-tokens.ts'
import type { Clock } from '../shared/clock.ts'
import type { Credential, Identity } from '../shared/contracts/gen/auth_pb.ts'
import type { Pages } from '../shared/http/pages.ts'
import type { JwksClient } from '../shared/jwt/jwks.ts'
import type { Registry } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { Csrf } from '../shared/web/csrf-token.ts'
import type { Devices } from '../shared/web/devices.ts'
import type { Origins } from '../shared/web/origins.ts'
import type { KeyNames } from '../shared/web/rates.ts'
import type { Cookies } from './browser/cookies.ts'
import type { SessionConfig } from './config.ts'
import type { Counts } from './counts.ts'
import type { Connections } from './sso/connections.ts'
import type { Audit } from './store/audit.ts'
import type { DeviceGrants } from './store/device-grants.ts'
import type { Flows } from './store/flows.ts'
import type { Revocations } from './store/revocations.ts'
import type { Store } from './store/store.ts'
import type { Issuer } from './token/issue.ts'

/** The dependencies of session; `wire.ts` builds them. */
export type SessionDeps = {
  config: SessionConfig
  telemetry: Telemetry
  clock: Clock
  db: Db
  redis: Redis
  store: Store
  flows: Flows
  deviceGrants: DeviceGrants
  providers: Providers
  connections: Connections
  audit: Audit
  revocations: Revocations
  registry: Registry
  identity: Client<typeof Identity>
  credential: Client<typeof Credential>
  issuer: Issuer
  jwks: JwksClient
  verifyAccess: AccessVerifier
  verifyRefresh: RefreshVerifier
  principals: Principals
  cookies: Cookies
  devices: Devices
  csrf: Csrf
  origins: Origins
  nameOf: KeyNames
  pages: Pages
  counts: Counts
  close: () => Promise<void>
}
export type Uses<K extends keyof SessionDeps> = Pick<SessionDeps, K>
