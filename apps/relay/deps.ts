import type { Client } from '@connectrpc/connect'
import type { Redis } from 'ioredis'
import type { Pool } from 'pg'
import type { Session } from '../shared/contracts/gen/auth_pb.ts'
import type { NatsHolder } from '../shared/events/holder.ts'
import type { PrivateKey } from '../shared/service/keys.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { Receiver } from './audit/siem.ts'
import type { Engine } from './commands/temporal.ts'
import type { RelayConfig } from './config.ts'

/** The dependencies of the relay; `wire.ts` builds them. */
export type RelayDeps = {
  config: RelayConfig
  telemetry: Telemetry
  pool: Pool
  redis: Redis
  /** A blocking read holds its own connection. */
  redisReader: Redis
  session: Client<typeof Session>
  audit_key: PrivateKey
  /** Where audit rows go too. */
  siem: Receiver | undefined
  nats: NatsHolder
  engine: Engine
}
