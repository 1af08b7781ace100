import Type from 'typebox'
import { authSettings } from '../shared/auth/settings.ts'
import { loadConfig, settings } from '../shared/config.ts'
import { MAX_DEPTH } from './rules/depth.ts'

export const schema = Type.Object({
  CATALOG__DATABASE__URL: settings.postgres(),
  CATALOG__NATS__URL: settings.nats(),
  /** Where it reports its health; without it no report is sent. */
  CATALOG__REDIS__URL: Type.Optional(settings.redis()),
  AUTH__REDIS__PREFIX: settings.prefix(),
  CATALOG__LISTEN__HOST: settings.host(),
  CATALOG__HTTP__PORT: settings.port(7141),
  CATALOG__INTERNAL__PORT: settings.port(7142),
  CATALOG__SECRET__KEYS: settings.secretKeys(),
  CATALOG__SERVICE__KEY_FILE: authSettings.keyFile('catalog'),
  CATALOG__PACKS__DIRS: Type.Array(Type.String(), {
    default: [],
    description: 'A JSON array of folders with the site’s own type packs.',
  }),
  CATALOG__PACKS__ALLOW_CHANGE: Type.Boolean({ default: false, description: 'true or false.' }),
  /** Levels of containment, including the root. */
  CATALOG__TREE__MAX_DEPTH: settings.integer(MAX_DEPTH, 1, MAX_DEPTH),
  CATALOG__LISTS__PAGE_DEFAULT: settings.integer(50, 1, 500),
  CATALOG__LISTS__PAGE_MAX: settings.integer(500, 1, 5000),
  CATALOG__HEALTH__DEFAULT_TTL_S: settings.integer(300, 10, 604_800),
  CATALOG__HEALTH__SWEEP_MS: settings.integer(1000, 20, 60_000),
  /** How long a write waits for a row locked by another before 409 `in_progress`. */
  CATALOG__COMMANDS__LOCK_TIMEOUT_MS: settings.integer(2000, 10, 4000),
  CATALOG__COMMANDS__RETAIN_INTERNAL_D: settings.integer(30, 1, 400),
  CATALOG__COMMANDS__RETAIN_PUBLIC_D: settings.integer(7, 1, 400),
  /** Revisions and closed relationships. The last one before the limit stays, so that every later time is complete. */
  CATALOG__HISTORY__RETAIN_D: settings.integer(400, 1, 4000),
  CATALOG__HISTORY__OBSERVATIONS_D: settings.integer(30, 1, 4000),
  CATALOG__OPERATIONS__URL: settings.url('http://127.0.0.1:7152'),
  /** False: SQL reads graphs, to depth 2. */
  CATALOG__GRAPH__ENABLED: Type.Boolean({ default: true, description: 'true or false.' }),
  CATALOG__GRAPH__COMPACT_AT: settings.integer(100_000, 1),
  /** After this time an unfinished verify or rebuild of the graph fails. */
  CATALOG__GRAPH__COMPARE_S: settings.integer(300, 1, 3600),
  /** False: another process of this app folds the operations app's events into operations-summary. */
  CATALOG__PROJECTOR__ENABLED: Type.Boolean({ default: true, description: 'true or false.' }),
  CATALOG__PROJECTOR__POLL_MS: settings.integer(50, 5, 10_000),
  /** Events that are read and applied together. */
  CATALOG__PROJECTOR__BATCH: settings.integer(500, 1, 10_000),
  CATALOG__STALE__WAIT_MS: settings.integer(2000, 0, 7000),
  CATALOG__GRAPH__MAX_NODES: settings.integer(5000, 1, 5000),
  AUTH__RPC__IDENTITY_URL: settings.url('http://127.0.0.1:7112'),
  ...authSettings.tokens,
  ...authSettings.jwks,
  ...authSettings.services,
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
})

export const loadCatalogConfig = (env?: NodeJS.ProcessEnv) => loadConfig(schema, env)
export type CatalogConfig = Type.Static<typeof schema>
