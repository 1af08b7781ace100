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
  CATALOG__PACKS__ALLOW_CHANGE: Type.Boolean({
    default: false,
    description: 'Whether a type may change without a new version: for development.',
  }),
  CATALOG__TREE__MAX_DEPTH: settings.integer(
    'The most levels of containment, including the root.',
    MAX_DEPTH,
    1,
    MAX_DEPTH,
  ),
  CATALOG__LISTS__PAGE_DEFAULT: settings.integer(
    'How many entries a page of a list has if the request names no page_size.',
    50,
    1,
    500,
  ),
  CATALOG__LISTS__PAGE_MAX: settings.integer('The most entries of a page of a list.', 500, 1, 5000),
  CATALOG__HEALTH__DEFAULT_TTL_S: settings.integer(
    'For how many seconds an observation of health holds, where neither it nor the type says.',
    300,
    10,
    604_800,
  ),
  CATALOG__HEALTH__SWEEP_MS: settings.integer(
    'How often expired observations are looked for, in ms.',
    1000,
    20,
    60_000,
  ),
  CATALOG__COMMANDS__LOCK_TIMEOUT_MS: settings.integer(
    'How long a write waits for a row locked by another before 409 in_progress, in ms.',
    2000,
    10,
    4000,
  ),
  CATALOG__COMMANDS__RETAIN_INTERNAL_D: settings.integer(
    'For how many days the idempotency keys of services are kept.',
    30,
    1,
    400,
  ),
  CATALOG__COMMANDS__RETAIN_PUBLIC_D: settings.integer(
    'For how many days the idempotency keys of people and machines are kept.',
    7,
    1,
    400,
  ),
  CATALOG__HISTORY__RETAIN_D: settings.integer(
    'For how many days revisions and closed relationships are kept. The last one before that stays, so that every later time is complete.',
    400,
    1,
    4000,
  ),
  CATALOG__HISTORY__OBSERVATIONS_D: settings.integer('For how many days past observations are kept.', 30, 1, 4000),
  CATALOG__OPERATIONS__URL: settings.url('http://127.0.0.1:7152'),
  CATALOG__GRAPH__ENABLED: Type.Boolean({
    default: true,
    description: 'Whether graphs are kept in memory; false: SQL reads them, to depth 2.',
  }),
  CATALOG__GRAPH__COMPACT_AT: settings.integer('After how many changes the graph in memory is built anew.', 100_000, 1),
  CATALOG__GRAPH__COMPARE_S: settings.integer(
    'After how many seconds an unfinished verify or rebuild of the graph fails.',
    300,
    1,
    3600,
  ),
  CATALOG__PROJECTOR__ENABLED: Type.Boolean({
    default: true,
    description: 'Whether this process folds the events of operations into operations-summary; another one may.',
  }),
  CATALOG__PROJECTOR__POLL_MS: settings.integer('How often new events are looked for, in ms.', 50, 5, 10_000),
  CATALOG__PROJECTOR__BATCH: settings.integer('How many events are read and applied together.', 500, 1, 10_000),
  CATALOG__STALE__WAIT_MS: settings.integer(
    'How long a read that names a watermark waits until the catalog has reached it, in ms.',
    2000,
    0,
    7000,
  ),
  CATALOG__GRAPH__MAX_NODES: settings.integer('The most resources in the answer to a graph query.', 5000, 1, 5000),
  AUTH__RPC__IDENTITY_URL: settings.url('http://127.0.0.1:7112'),
  ...authSettings.tokens,
  ...authSettings.jwks,
  ...authSettings.services,
  SIGNALBOX__NATS__PREFIX: settings.prefix(),
})

export const loadCatalogConfig = (env?: NodeJS.ProcessEnv) => loadConfig(schema, env)
export type CatalogConfig = Type.Static<typeof schema>
