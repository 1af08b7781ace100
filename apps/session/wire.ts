import { createDb } from '../../db/client.ts'
import { pruneKeys } from '../../db/command/keys.ts'
import { startPruning } from '../../db/prune.ts'
import { createRedis } from '../../db/redis/redis.ts'
import { idempotency } from '../../db/session/tables.ts'
import { followKilledKeys } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf, providersOf, refreshVerifierOf, registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { Credential, Identity, Token } from '../shared/contracts/gen/auth_pb.ts'
import { deriveKeys } from '../shared/data/digest.ts'
import { createPages } from '../shared/http/pages.ts'
import { measurePool } from '../shared/process/pool.ts'
import { repeatUntilDone } from '../shared/process/repeat.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { audienceOf } from '../shared/service/scopes.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry } from '../shared/telemetry.ts'
import { createCsrf } from '../shared/web/csrf-token.ts'
import { createDevices } from '../shared/web/devices.ts'
import { createOrigins } from '../shared/web/origins.ts'
import { createKeyNames } from '../shared/web/rates.ts'
import { createCookies } from './browser/cookies.ts'
import type { SessionConfig } from './config.ts'
import { createCounts } from './counts.ts'
import type { SessionDeps } from './deps.ts'
import { createConnections } from './sso/connections.ts'
import { endRemoved } from './sso/removed.ts'
import { createAudit } from './store/audit.ts'
import { createDeviceGrants } from './store/device-grants.ts'
import { createFlows } from './store/flows.ts'
import { createRevocations, pruneRevocations } from './store/revocations.ts'
import { createStore } from './store/store.ts'
import { createIssuer } from './token/issue.ts'

/** Longer than credential takes to answer, shorter than this app does. */
const PASSWORD_MS = 7500

/** Creates session's dependencies without waiting: main.ts waits for Redis and Postgres. */
export const createDeps = (config: SessionConfig, { clock = systemClock }: { clock?: Clock } = {}): SessionDeps => {
  const telemetry = createTelemetry('session')
  const { db, pool, close: closeDb } = createDb(config.SESSION__DATABASE__URL, { app: 'session' })
  measurePool(telemetry, pool)
  const redis = createRedis(config.SESSION__REDIS__URL, {
    name: 'session',
    timeout_ms: config.SESSION__REDIS__TIMEOUT_MS,
  })
  // A script in flight when the connection broke may have run; sent again, it would look like a replay.
  redis.options.autoResendUnfulfilledCommands = false
  const seconds = telemetry.histogram('signalbox_redis_script_seconds', 'Time of a Lua script.', ['script'])
  const place = {
    prefix: config.AUTH__REDIS__PREFIX,
    observe: (script: string, time: number) => seconds.observe({ script }, time),
  }
  const idle_s = config.SESSION__IDLE__LIMIT_S
  const store = createStore(redis, { ...place, wait_replicas: config.SESSION__REDIS__WAIT_REPLICAS, idle_s })
  const nameOf = createKeyNames(config.auth_secrets)
  const audit = createAudit({ store, secrets: config.secrets, clock, log: telemetry.log })
  const revocations = createRevocations({ db, redis, store, audit, telemetry })
  const flows = createFlows(redis, config.AUTH__REDIS__PREFIX)
  const stopping = new AbortController()
  /** Also at each connection to Redis: it may be an older copy. */
  const follow = () =>
    void repeatUntilDone(endOrphaned, stopping.signal, (err) =>
      telemetry.log.warn({ err }, 'the sessions of removed providers cannot be ended yet'),
    )
  const providers = providersOf(config, telemetry, follow)
  const endOrphaned = () => endRemoved({ audit, flows, providers, revocations, store })
  redis.on('ready', follow)
  const stopPruning = startPruning([() => pruneKeys(db, idempotency), () => pruneRevocations(db), endOrphaned], (err) =>
    telemetry.log.warn({ err }, 'old rows or sessions cannot be removed'),
  )

  const signer = createServiceSigner({ name: 'session', key_file: config.SESSION__SERVICE__KEY_FILE })
  const rpc = (url: string, target: string) => ({ url, signer, audience: audienceOf(target), telemetry })
  const identity = createRpcClient(Identity, rpc(config.AUTH__RPC__IDENTITY_URL, 'identity'))
  const jwks = jwksOf(config, telemetry)
  const killed = followKilledKeys({
    url: config.SESSION__NATS__URL,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    name: 'session',
    keys: jwks,
    log: telemetry.log,
  })
  return {
    config,
    telemetry,
    clock,
    db,
    redis,
    store,
    flows,
    deviceGrants: createDeviceGrants(redis, { ...place, nameOf }),
    providers,
    connections: createConnections(telemetry.log),
    audit,
    revocations,
    registry: registryOf(config, telemetry),
    identity,
    credential: createRpcClient(Credential, {
      ...rpc(config.AUTH__RPC__CREDENTIAL_URL, 'credential'),
      timeout_ms: PASSWORD_MS,
    }),
    issuer: createIssuer(createRpcClient(Token, rpc(config.AUTH__RPC__TOKEN_URL, 'token')), {
      identity,
      roles: config.SESSION__SECOND_FACTOR__ROLES,
      always: config.break_glass !== undefined,
    }),
    jwks,
    verifyAccess: accessVerifierOf(config, jwks, clock),
    verifyRefresh: refreshVerifierOf(config, jwks, clock),
    principals: createPrincipals({ identityClient: identity, clock }),
    cookies: createCookies(config),
    devices: createDevices(config.auth_secrets, clock),
    csrf: createCsrf(config.auth_secrets),
    origins: createOrigins(
      config.GATEWAY__HTTP__PUBLIC_ORIGIN,
      config.TOKEN__CORS__ENABLED ? config.TOKEN__CORS__ALLOW_ORIGINS : [],
    ),
    nameOf,
    pages: createPages(deriveKeys(config.secrets, 'page')),
    counts: createCounts(telemetry),
    close: async () => {
      stopping.abort()
      stopPruning()
      providers.stop()
      jwks.close()
      await killed.stop()
      redis.disconnect()
      await closeDb()
    },
  }
}
