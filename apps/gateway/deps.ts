import type { Redis } from 'ioredis'
import type { RefreshVerifier } from '../shared/auth/user-tokens.ts'
import type { Checks } from '../shared/http/health.ts'
import type { Pressure } from '../shared/http/pressure.ts'
import type { JwksClient } from '../shared/jwt/jwks.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { Devices } from '../shared/web/devices.ts'
import type { KeyNames } from '../shared/web/rates.ts'
import type { GatewayConfig } from './config.ts'
import type { Cors, HeaderList, ReadAddress } from './edge/headers.ts'
import type { Turns } from './edge/turns.ts'
import type { StaticFiles } from './files/static.ts'
import type { Guard } from './guard/guard.ts'
import type { Denylist, DiskWatch } from './guard/limits.ts'
import type { Feed } from './guard/revocations.ts'
import type { Bodies } from './proxy/bodies.ts'
import type { UpstreamProxy } from './proxy/proxy.ts'
import type { Resting } from './proxy/resting.ts'
import type { Streams } from './proxy/streams.ts'
import type { Docs } from './routes/docs.ts'
import type { Own } from './routes/own.ts'
import type { Router } from './routes/router.ts'

/** The dependencies of the gateway; `wire.ts` builds them. */
export type GatewayDeps = {
  config: GatewayConfig
  telemetry: Telemetry
  redis: Redis
  jwks: JwksClient
  feed: Feed
  denylist: Denylist
  streams: Streams
  proxy: UpstreamProxy
  resting: Resting
  pressure: Pressure
  bodies: Bodies
  turns: Turns
  disk: DiskWatch
  checks: Checks
  nameOf: KeyNames
  limits: GatewayConfig['limits']
  devices: Devices
  verifyRefresh: RefreshVerifier
  /** This process's logins in flight, and how long they take. */
  logins: { under_way: number; average_ms: number }
  router: Router
  addressOf: ReadAddress
  securityHeaders: HeaderList
  cors: Cors
  files: StaticFiles
  docs: Docs
  own: Own
  guard: Guard
  /** Resolves when keys and Redis are ready, or after a moment without them: an outage must not keep the edge down. */
  settled: () => Promise<void>
  /** From here on the gateway reports that it is not ready. */
  drain: () => void
  close: () => Promise<void>
}
