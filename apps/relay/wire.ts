import { createDb } from '../../db/client.ts'
import { createRedis } from '../../db/redis/redis.ts'
import { Session } from '../shared/contracts/gen/auth_pb.ts'
import { holdNats } from '../shared/events/holder.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { readKeyFile } from '../shared/service/keys.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { receiverOf } from './audit/siem.ts'
import { createEngine } from './commands/temporal.ts'
import type { RelayConfig } from './config.ts'
import type { RelayDeps } from './deps.ts'

/** Opens the relay's dependencies without waiting for NATS, Temporal or session: an outage delays only its own part. */
export const createDeps = async (config: RelayConfig): Promise<RelayDeps> => {
  const telemetry = createTelemetry('relay')
  const { pool } = createDb(config.RELAY__DATABASE__URL, { app: 'relay', statement_timeout_ms: 10_000 })
  measurePool(telemetry, pool)
  // Two connections, because a blocking read holds its own.
  const redis = createRedis(config.RELAY__REDIS__URL, { name: 'relay' })
  const redisReader = createRedis(config.RELAY__REDIS__URL, { name: 'relay-reader', timeout_ms: 10_000 })
  await Promise.allSettled([redis.connect(), redisReader.connect()])
  const audit_key = readKeyFile('RELAY__AUDIT__KEY_FILE', config.RELAY__AUDIT__KEY_FILE)
  const siem = receiverOf(config)
  const signer = createServiceSigner({ name: 'relay', key_file: config.RELAY__SERVICE__KEY_FILE })
  const session = createRpcClient(Session, {
    telemetry,
    url: config.AUTH__RPC__SESSION_URL,
    signer,
    audience: 'session-internal',
    timeout_ms: 2000,
  })
  return {
    config,
    telemetry,
    pool,
    redis,
    redisReader,
    session,
    audit_key,
    siem,
    nats: holdNats(config.RELAY__NATS__URL, 'relay', telemetry.log),
    engine: createEngine(config),
  }
}
