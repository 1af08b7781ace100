import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createRedis } from '../../db/redis.ts'
import { readKeysWhileDeaf } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { Identity } from '../shared/contracts/gen/auth_pb.ts'
import type { Checks } from '../shared/http/health.ts'
import { createPressure, loadBounds } from '../shared/http/pressure.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry, type Telemetry } from '../shared/telemetry.ts'
import { createCsrf } from '../shared/web/csrf.ts'
import { createDevices } from '../shared/web/devices.ts'
import { createOrigins } from '../shared/web/origins.ts'
import { createKeyNames } from '../shared/web/rates.ts'
import type { GatewayConfig } from './config.ts'
import { createAddressReader } from './edge/address.ts'
import { createCors } from './edge/cors.ts'
import { createSecurityHeaders } from './edge/headers.ts'
import { createStaticFiles } from './files/static.ts'
import { createDenylist, type Denylist } from './guard/denylist.ts'
import { createGuard } from './guard/guard.ts'
import { createLocalLimits, createRedisGate } from './guard/limits.ts'
import { type Feed, startFeed } from './guard/revocations.ts'
import { createProxy, type Upstreams } from './proxy/proxy.ts'
import { createStreams, type Streams } from './proxy/streams.ts'
import { createDiskWatch } from './routes/disk.ts'
import { createDocs } from './routes/docs.ts'
import { createOwn } from './routes/own.ts'
import { createRouter } from './routes/router.ts'
import { ROUTES } from './routes/table.ts'

const PROBE_MS = 500
const SETTLE_MS = 3000

/** Opens what the gateway works with. Nothing here waits (but `settled`): what is away at first is found later. */
export const createDeps = (
  config: GatewayConfig,
  { version, clock = systemClock }: { version: string; clock?: Clock },
) => {
  const telemetry = createTelemetry('gateway')
  const { log } = telemetry
  const counts = createCounts(telemetry)
  const redis = createRedis(config.GATEWAY__REDIS__URL, {
    name: 'gateway',
    timeout_ms: config.GATEWAY__REDIS__TIMEOUT_MS,
  })
  redis.options.autoResendUnfulfilledCommands = false
  const connected = redis.connect().catch(() => {})

  const streams = createStreams()
  const denylist = createDenylist({
    onDenied: streams.end,
    onDropped: () => log.error('the denylist is full: the oldest entry went'),
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
    onKey: jwks.drop,
  })
  const stopReadingKeys = readKeysWhileDeaf(jwks, () => feed.isLive())

  const signer = createServiceSigner({ name: 'gateway', key_file: config.GATEWAY__SERVICE__KEY_FILE })
  const identity = createRpcClient(Identity, {
    telemetry,
    url: config.AUTH__RPC__IDENTITY_URL,
    signer,
    audience: audienceOf('identity'),
  })
  const origins = createOrigins(
    config.GATEWAY__HTTP__PUBLIC_ORIGIN,
    config.TOKEN__CORS__ENABLED ? config.TOKEN__CORS__ALLOW_ORIGINS : [],
  )
  const nameOf = createKeyNames(config.auth_secrets)
  const upstreams: Upstreams = {
    session: config.GATEWAY__UPSTREAM__SESSION_URL,
    identity: config.GATEWAY__UPSTREAM__IDENTITY_URL,
    token: config.GATEWAY__UPSTREAM__TOKEN_URL,
    catalog: config.GATEWAY__UPSTREAM__CATALOG_URL,
    operations: config.GATEWAY__UPSTREAM__OPERATIONS_URL,
  }
  const connection = {
    connect_ms: config.GATEWAY__UPSTREAM__CONNECT_MS,
    reply_ms: config.GATEWAY__UPSTREAM__REPLY_MS,
    seats: config.seats,
    queues: config.queues,
  }
  const proxy = createProxy(upstreams, connection, telemetry)
  const pressure = createPressure(
    telemetry,
    loadBounds({ in_flight: config.GATEWAY__PRESSURE__IN_FLIGHT, delay_ms: config.GATEWAY__PRESSURE__DELAY_MS }),
  )
  const disk = createDiskWatch({ redis, prefix: config.AUTH__REDIS__PREFIX, log })
  const checks: Checks = {
    ...createChecks({ jwks, redis, feed, upstreams }),
    disk: { critical: false, run: disk.check },
  }
  watchGauges(telemetry, { denylist, feed, streams })
  let draining = false
  const prefix = config.AUTH__REDIS__PREFIX
  return {
    config,
    telemetry,
    redis,
    jwks,
    feed,
    denylist,
    streams,
    proxy,
    pressure,
    disk,
    checks,
    nameOf,
    limits: config.limits,
    devices: createDevices(config.auth_secrets, clock),
    /** Logins that this process has under way, and how long they take. */
    logins: { under_way: 0, average_ms: 0 },
    router: createRouter(ROUTES),
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
    docs: createDocs(),
    own: createOwn({
      checks,
      isDraining: () => draining,
      redis,
      prefix,
      principals: createPrincipals({ identityClient: identity, clock }),
    }),
    guard: createGuard({
      limits: config.limits,
      verify: accessVerifierOf(config, jwks, clock),
      redisGate: createRedisGate(redis, {
        prefix,
        observe: (script, time) => counts.script_seconds.observe({ script }, time),
      }),
      localLimits: createLocalLimits(),
      denylist,
      isFeedLive: feed.isLive,
      csrf: createCsrf(config.auth_secrets),
      origins,
      nameOf,
      onRejected: (cause) => counts.rejected.inc({ cause }),
      onLimited: (limit) => counts.limited.inc({ class: limit }),
      onCsrf: () => counts.csrf_errors.inc(),
      onFallback: (active) => counts.fallback.set(active ? 1 : 0),
    }),
    /** Resolves when keys and Redis are there, or after a moment without them: an outage must not keep the edge down. */
    settled: async () => {
      await Promise.race([Promise.all([jwks.start(), connected]), delay(SETTLE_MS, undefined, { ref: false })])
    },
    /** From here on the gateway says that it is not ready. */
    drain: () => {
      draining = true
    },
    close: async () => {
      stopReadingKeys()
      jwks.close()
      denylist.close()
      disk.close()
      await feed.stop()
      redis.disconnect()
      await proxy.close()
    },
  }
}
export type GatewayDeps = ReturnType<typeof createDeps>

const createCounts = (telemetry: Telemetry) => ({
  rejected: telemetry.counter('token_rejected_total', 'Tokens refused.', ['cause']),
  limited: telemetry.counter('rate_limited_total', 'Requests over a limit.', ['class']),
  csrf_errors: telemetry.counter('csrf_errors_total', 'Requests refused by the CSRF rule.'),
  fallback: telemetry.gauge(
    'redis_fallback_active',
    'Whether limits and revocations are local, because Redis is away.',
  ),
  script_seconds: telemetry.histogram('redis_script_seconds', 'Time of a Lua script.', ['script']),
  revocation_delay: telemetry.histogram('revocation_delay_seconds', 'From a revocation to its event here.'),
})

type Watched = {
  denylist: Denylist
  feed: Feed
  streams: Streams
}

/** Gauges that are read when the metrics are. */
const watchGauges = (telemetry: Telemetry, { denylist, feed, streams }: Watched) => {
  const watch = (name: string, help: string, read: () => number) => {
    const gauge = telemetry.gauge(name, help)
    Object.assign(gauge, { collect: () => gauge.set(read()) })
  }
  watch('denylist_entries', 'Revoked sessions known here.', denylist.size)
  watch('revocation_feed_age_seconds', 'Since the last event of the feed.', feed.age_s)
  watch('sse_streams', 'Open event streams.', streams.size)
}

type Checked = {
  jwks: { isReady: () => boolean }
  redis: { ping: () => Promise<unknown> }
  feed: Feed
  upstreams: Upstreams
}

/** Unready without keys, or without any way to know of revocations; degraded while another part is away. */
const createChecks = ({ jwks, redis, feed, upstreams }: Checked): Checks => ({
  keys: {
    critical: true,
    run: async () => (jwks.isReady() ? undefined : Promise.reject(new Error('no keys of token yet'))),
  },
  revocations: { critical: true, run: async () => (feed.isLive() ? undefined : redis.ping()) },
  redis: { critical: false, run: () => redis.ping() },
  nats: {
    critical: false,
    run: async () => (feed.isLive() ? undefined : Promise.reject(new Error('the feed is not live'))),
  },
  ...Object.fromEntries(
    Object.entries(upstreams).map(([name, url]) => [name, { critical: false, run: () => probe(url) }]),
  ),
})

const probe = (url: string) =>
  new Promise<void>((resolve, reject) => {
    const { hostname, port, protocol } = new URL(url)
    const socket = connect({
      host: hostname,
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
      timeout: PROBE_MS,
    })
    socket.on('connect', () => resolve(void socket.destroy()))
    socket.on('timeout', () => socket.destroy(new Error(`no answer in ${PROBE_MS} ms`)))
    socket.on('error', reject)
  })
