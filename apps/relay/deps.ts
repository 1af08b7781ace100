import type { Redis } from 'ioredis'
import type { NatsConnection } from 'nats'
import pg from 'pg'
import { createRedis } from '../../db/redis.ts'
import { Session } from '../shared/contracts/gen/auth_pb.ts'
import { connectNats } from '../shared/events/events.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { readKeyFile } from '../shared/service/keys.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry, type Telemetry } from '../shared/telemetry.ts'
import { createEngine } from './commands/temporal.ts'
import type { RelayConfig } from './config.ts'

/** NATS may be away at start and any time later: the connection is made in the background, and everybody asks for it. */
export const createNatsHolder = (url: string, telemetry: Telemetry) => {
  let connection: NatsConnection | undefined
  let stopped = false
  const listeners: ((nc: NatsConnection) => void)[] = []
  const run = async () => {
    while (!stopped && !connection) {
      try {
        const nc = await connectNats(url, 'relay')
        connection = nc
        for (const listener of listeners) listener(nc)
        watch(nc)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
    }
  }
  const watch = async (nc: NatsConnection) => {
    for await (const status of nc.status()) {
      if (status.type === 'reconnect') for (const listener of listeners) listener(nc)
      telemetry.log.debug({ status: status.type }, 'nats')
    }
  }
  void run()
  return {
    get: () => (connection && !connection.isClosed() ? connection : undefined),
    /** Called at the first connect and at each reconnect. */
    onConnect: (listener: (nc: NatsConnection) => void) => {
      listeners.push(listener)
      if (connection) listener(connection)
    },
    close: async () => {
      stopped = true
      await connection?.drain().catch(() => {})
    },
  }
}
export type NatsHolder = ReturnType<typeof createNatsHolder>

/** Opens what the relay works with. Nothing here waits for NATS, Temporal or session: their absence only holds back their part. */
export const createDeps = async (config: RelayConfig) => {
  const telemetry = createTelemetry('relay')
  const pool = new pg.Pool({
    connectionString: config.RELAY__DATABASE__URL,
    max: 16,
    application_name: 'relay',
    statement_timeout: 10_000,
    connectionTimeoutMillis: 2000,
  })
  pool.on('error', () => {})
  measurePool(telemetry, pool)
  // Two connections: a blocking read holds its own.
  const redis: Redis = createRedis(config.RELAY__REDIS__URL, { name: 'relay' })
  const redisReader: Redis = createRedis(config.RELAY__REDIS__URL, { name: 'relay-reader', timeout_ms: 10_000 })
  await Promise.allSettled([redis.connect(), redisReader.connect()])
  const audit_key = readKeyFile('RELAY__AUDIT__KEY_FILE', config.RELAY__AUDIT__KEY_FILE)
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
    nats: createNatsHolder(config.RELAY__NATS__URL, telemetry),
    engine: createEngine(config),
  }
}
export type RelayDeps = Awaited<ReturnType<typeof createDeps>>
