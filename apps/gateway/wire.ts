import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { createRedis } from '../../db/redis/redis.ts'
import { readKeysWhileDeaf } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf, refreshVerifierOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { Identity } from '../shared/contracts/gen/auth_pb.ts'
import type { Checks } from '../shared/http/health.ts'
import { createPressure, loadBounds } from '../shared/http/pressure.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry, type Telemetry } from '../shared/telemetry.ts'
import { createCsrf } from '../shared/web/csrf-token.ts'
import { createDevices } from '../shared/web/devices.ts'
import { createOrigins, type Origins } from '../shared/web/origins.ts'
import { createKeyNames } from '../shared/web/rates.ts'
import { createChecks } from './checks.ts'
import type { GatewayConfig } from './config.ts'
import { type Counts, createCounts, watchGauges } from './counts.ts'
import type { GatewayDeps } from './deps.ts'
import { createAddressReader, createCors, createSecurityHeaders } from './edge/headers.ts'
import { createTurns } from './edge/turns.ts'
import { createStaticFiles } from './files/static.ts'
import { createGuard } from './guard/guard.ts'
import { createDenylist, createDiskWatch, createLocalLimits, createRedisGate } from './guard/limits.ts'
import { cutForeign, recheckStreams } from './guard/recheck.ts'
import { startFeed } from './guard/revocations.ts'
import { createBodies } from './proxy/bodies.ts'
import { createProxy, type Upstreams } from './proxy/proxy.ts'
import { createResting } from './proxy/resting.ts'
import { createStreams } from './proxy/streams.ts'
import { createDocs } from './routes/docs.ts'
import { createOwn } from './routes/own.ts'
import { createRouter } from './routes/router.ts'
import { ROUTES, SCIM_ROUTES } from './routes/table.ts'

const SETTLE_MS = 3000

/** Opens the gateway's dependencies. Only `settled` waits: it connects later to a server that is away at first. */
export const createDeps = (
  config: GatewayConfig,
  { version, clock = systemClock }: { version: string; clock?: Clock },
): GatewayDeps => {
  const telemetry = createTelemetry('gateway')
  const counts = createCounts(telemetry)
  const redis = createRedis(config.GATEWAY__REDIS__URL, {
    name: 'gateway',
    timeout_ms: config.GATEWAY__REDIS__TIMEOUT_MS,
  })
  redis.options.autoResendUnfulfilledCommands = false
  const connected = redis.connect().catch(() => {})
  const revocations = followRevocations(config, telemetry, counts)
  const { streams, denylist, jwks, feed } = revocations
  const origins = originsOf(config)
  const nameOf = createKeyNames(config.auth_secrets)
  const upstreams = upstreamsOf(config)
  const proxy = openProxy(config, upstreams, telemetry)
  const pressure = createPressure(
    telemetry,
    loadBounds({ in_flight: config.GATEWAY__PRESSURE__IN_FLIGHT, delay_ms: config.GATEWAY__PRESSURE__DELAY_MS }),
  )
  const prefix = config.AUTH__REDIS__PREFIX
  const disk = createDiskWatch({ redis, prefix, log: telemetry.log })
  const checks: Checks = {
    ...createChecks({ jwks, redis, feed, upstreams }),
    disk: { critical: false, run: disk.check },
  }
  watchGauges(telemetry, { denylist, disk, feed, streams })
  const redisGate = redisGateOf(redis, prefix, counts)
  const stopRechecks = recheckStreams(streams, { redisGate, jwks, log: telemetry.log })
  let draining = false
  const principals = createPrincipals({ identityClient: identityOf(config, telemetry), clock })
  return {
    config,
    telemetry,
    redis,
    jwks,
    feed,
    denylist,
    streams,
    proxy,
    resting: createResting(),
    pressure,
    bodies: createBodies(pressure),
    turns: createTurns(),
    disk,
    checks,
    nameOf,
    limits: config.limits,
    devices: createDevices(config.auth_secrets, clock),
    verifyRefresh: refreshVerifierOf(config, jwks, clock),
    logins: { under_way: 0, average_ms: 0 },
    ...edgeOf(config, origins, version),
    own: createOwn({ checks, isDraining: () => draining, redis, prefix, principals }),
    guard: createGuard({
      ...countedBy(counts),
      limits: config.limits,
      verify: accessVerifierOf(config, jwks, clock),
      redisGate,
      localLimits: createLocalLimits(),
      denylist,
      isFeedLive: feed.isLive,
      csrf: createCsrf(config.auth_secrets),
      origins,
      nameOf,
    }),
    settled: async () => {
      await Promise.race([Promise.all([jwks.start(), connected]), delay(SETTLE_MS, undefined, { ref: false })])
    },
    drain: () => {
      draining = true
    },
    close: async () => {
      disk.close()
      stopRechecks()
      await revocations.stop()
      redis.disconnect()
      await proxy.close()
    },
  }
}

const redisGateOf = (redis: Redis, prefix: string, counts: Counts) =>
  createRedisGate(redis, { prefix, observe: (script, time) => counts.script_seconds.observe({ script }, time) })

const countedBy = (counts: Counts) => ({
  onRejected: (cause: string) => counts.rejected.inc({ cause }),
  onLimited: (limit: string) => counts.limited.inc({ class: limit }),
  onCsrf: () => counts.csrf_errors.inc(),
  onFallback: (active: boolean) => counts.fallback.set(active ? 1 : 0),
})

/** Keys and revocations: learned from the feed, and read again while it is silent. */
const followRevocations = (config: GatewayConfig, telemetry: Telemetry, counts: Counts) => {
  const { log } = telemetry
  const streams = createStreams()
  const denylist = createDenylist({
    onDenied: streams.end,
    onDropped: () => log.error('the denylist is full: the oldest entry was dropped'),
  })
  const jwks = jwksOf(config, telemetry)
  const feed = startFeed({
    url: config.GATEWAY__NATS__URL,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    log,
    onSession: ({ session_id, access_valid_until, occurred_at }) => {
      denylist.add(session_id ?? '', access_valid_until)
      counts.revocation_delay.observe(Math.max(0, (Date.now() - Date.parse(occurred_at)) / 1000))
    },
    onKey: (kid) => {
      jwks.drop(kid)
      cutForeign(streams, jwks)
    },
  })
  const stopReadingKeys = readKeysWhileDeaf(jwks, () => feed.isLive())
  const stop = async () => {
    stopReadingKeys()
    jwks.close()
    denylist.close()
    await feed.stop()
  }
  return { streams, denylist, jwks, feed, stop }
}

const identityOf = (config: GatewayConfig, telemetry: Telemetry) =>
  createRpcClient(Identity, {
    telemetry,
    url: config.AUTH__RPC__IDENTITY_URL,
    signer: createServiceSigner({ name: 'gateway', key_file: config.GATEWAY__SERVICE__KEY_FILE }),
    audience: audienceOf('identity'),
  })

const originsOf = (config: GatewayConfig) =>
  createOrigins(
    config.GATEWAY__HTTP__PUBLIC_ORIGIN,
    config.TOKEN__CORS__ENABLED ? config.TOKEN__CORS__ALLOW_ORIGINS : [],
  )

const upstreamsOf = (config: GatewayConfig): Upstreams => ({
  session: config.GATEWAY__UPSTREAM__SESSION_URL,
  identity: config.GATEWAY__UPSTREAM__IDENTITY_URL,
  token: config.GATEWAY__UPSTREAM__TOKEN_URL,
  catalog: config.GATEWAY__UPSTREAM__CATALOG_URL,
  operations: config.GATEWAY__UPSTREAM__OPERATIONS_URL,
})

const openProxy = (config: GatewayConfig, upstreams: Upstreams, telemetry: Telemetry) => {
  const connection = {
    connect_ms: config.GATEWAY__UPSTREAM__CONNECT_MS,
    reply_ms: config.GATEWAY__UPSTREAM__REPLY_MS,
    seats: config.seats,
    queues: config.queues,
  }
  return createProxy(upstreams, connection, telemetry)
}

/** The parts of an exchange that come from the configuration, before any guard. */
const edgeOf = (config: GatewayConfig, origins: Origins, version: string) => ({
  router: createRouter([...ROUTES, ...SCIM_ROUTES]),
  addressOf: createAddressReader(config.GATEWAY__HTTP__TRUSTED_PROXIES),
  securityHeaders: createSecurityHeaders(config.GATEWAY__HTTP__PUBLIC_ORIGIN),
  cors: createCors(origins, {
    enabled: config.TOKEN__CORS__ENABLED,
    credentials: config.TOKEN__CORS__ALLOW_CREDENTIALS,
  }),
  files: createStaticFiles(config.GATEWAY__CONSOLE__DIR, {
    environment: config.GATEWAY__CONSOLE__ENVIRONMENT,
    tier: config.GATEWAY__CONSOLE__TIER,
    version,
  }),
  docs: createDocs(config.GATEWAY__HTTP__BASE_PATH),
})
