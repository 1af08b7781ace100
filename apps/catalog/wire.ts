import { createDb } from '../../db/client.ts'
import { requireMigrations } from '../../db/migrate.ts'
import { followKilledKeys } from '../shared/auth/killed-keys.ts'
import { createPrincipals } from '../shared/auth/principals.ts'
import { accessVerifierOf, jwksOf, registryOf } from '../shared/auth/trust.ts'
import { type Clock, systemClock } from '../shared/clock.ts'
import { secretKeysOf } from '../shared/config.ts'
import { Identity } from '../shared/contracts/gen/auth_pb.ts'
import { deriveKey, deriveKeys } from '../shared/data/digest.ts'
import { insist, waitFor } from '../shared/http/lifecycle.ts'
import { createPages } from '../shared/http/pages.ts'
import { measurePool } from '../shared/process/pool.ts'
import { createRpcClient } from '../shared/rpc/client.ts'
import { createServiceSigner } from '../shared/service/tokens.ts'
import { createTelemetry, type Telemetry } from '../shared/telemetry.ts'
import type { CatalogConfig } from './config.ts'
import type { CatalogDeps, Trust } from './deps.ts'
import { createGraph } from './graph/follow.ts'
import { createNats } from './nats.ts'
import { loadPacks, SHIPPED_PACKS } from './packs/library.ts'
import { createRegistry } from './packs/registry.ts'
import { storePacks } from './packs/store.ts'
import { createProofs } from './projections/proofs.ts'

type DepsOptions = { telemetry?: Telemetry; clock?: Clock }

/** Everything the catalog's modules work with, built from one configuration. Stores the packs and loads the types. */
export const createDeps = async (
  config: CatalogConfig,
  trust: Trust,
  options: DepsOptions = {},
): Promise<CatalogDeps> => {
  const { telemetry = createTelemetry('catalog'), clock = systemClock } = options
  const model = loadPacks([SHIPPED_PACKS, ...config.CATALOG__PACKS__DIRS])
  const {
    db,
    pool,
    close: closeDb,
  } = createDb(config.CATALOG__DATABASE__URL, {
    app: 'catalog',
    max: 20,
    statement_timeout_ms: 5000,
    lock_timeout_ms: config.CATALOG__COMMANDS__LOCK_TIMEOUT_MS,
  })
  measurePool(telemetry, pool)
  await waitFor('Postgres', () => requireMigrations(pool, 'catalog'))
  const allow_change = config.CATALOG__PACKS__ALLOW_CHANGE
  const loaded = await insist(() => storePacks(db, model, { clock, allow_change }))
  if (loaded.length > 0) telemetry.log.info({ packs: loaded }, 'type packs loaded')
  const onError = (error: unknown) => telemetry.log.warn({ err: error }, 'types could not be reloaded')
  const registry = await insist(() => createRegistry(db, onError))
  const nats = createNats(config.CATALOG__NATS__URL, config.SIGNALBOX__NATS__PREFIX, telemetry.log)
  const graph = createGraph({
    db,
    url: config.CATALOG__DATABASE__URL,
    registry,
    telemetry,
    enabled: config.CATALOG__GRAPH__ENABLED,
    poll_ms: config.CATALOG__PROJECTOR__POLL_MS,
    batch: config.CATALOG__PROJECTOR__BATCH,
    compact_at: config.CATALOG__GRAPH__COMPACT_AT,
    compare_ms: config.CATALOG__GRAPH__COMPARE_S * 1000,
  })
  const secrets = secretKeysOf(config.CATALOG__SECRET__KEYS)
  return {
    db,
    pool,
    clock,
    telemetry,
    registry,
    graph,
    proofs: createProofs({ clock, telemetry }),
    nats,
    trust,
    wake: nats.wake,
    keys: { fingerprint: deriveKeys(secrets, 'fingerprint'), audit: deriveKey(secrets[0], 'audit') },
    pages: createPages(deriveKeys(secrets, 'page')),
    config: {
      tree_depth: config.CATALOG__TREE__MAX_DEPTH,
      page_default: config.CATALOG__LISTS__PAGE_DEFAULT,
      page_max: config.CATALOG__LISTS__PAGE_MAX,
      health_ttl_s: config.CATALOG__HEALTH__DEFAULT_TTL_S,
      sweep_ms: config.CATALOG__HEALTH__SWEEP_MS,
      retain_internal_d: config.CATALOG__COMMANDS__RETAIN_INTERNAL_D,
      retain_public_d: config.CATALOG__COMMANDS__RETAIN_PUBLIC_D,
      history_d: config.CATALOG__HISTORY__RETAIN_D,
      observations_d: config.CATALOG__HISTORY__OBSERVATIONS_D,
      projector_enabled: config.CATALOG__PROJECTOR__ENABLED,
      stale_wait_ms: config.CATALOG__STALE__WAIT_MS,
      graph_max_nodes: config.CATALOG__GRAPH__MAX_NODES,
      operations_url: config.CATALOG__OPERATIONS__URL,
    },
    close: async () => {
      await graph.stop()
      registry.close()
      trust.close()
      await nats.close()
      await closeDb()
    },
  }
}
/** Trust as in production: token's keys, identity's principals, the registry of services. */
export const createTrust = (config: CatalogConfig, telemetry: Telemetry): Trust => {
  const jwks = jwksOf(config, telemetry)
  void jwks.start()
  const killed = followKilledKeys({
    url: config.CATALOG__NATS__URL,
    prefix: config.SIGNALBOX__NATS__PREFIX,
    name: 'catalog-keys',
    keys: jwks,
    log: telemetry.log,
  })
  const signer = createServiceSigner({ name: 'catalog', key_file: config.CATALOG__SERVICE__KEY_FILE })
  const services = registryOf(config, telemetry)
  const identityClient = createRpcClient(Identity, {
    telemetry,
    url: config.AUTH__RPC__IDENTITY_URL,
    signer,
    audience: 'identity-internal',
  })
  return {
    verifier: accessVerifierOf(config, jwks),
    principals: createPrincipals({ identityClient, outage: 'internal_error' }),
    services,
    signer,
    close: () => {
      jwks.close()
      void killed.stop()
      services.close()
    },
  }
}
