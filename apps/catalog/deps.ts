import type pg from 'pg'
import type { Db } from '../../db/client.ts'
import type { Principals } from '../shared/auth/principals.ts'
import type { AccessVerifier } from '../shared/auth/user-tokens.ts'
import type { Clock } from '../shared/clock.ts'
import type { Pages } from '../shared/http/pages.ts'
import type { Registry as ServiceRegistry, ServiceSigner } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { createGraph } from './graph/follow.ts'
import type { createNats } from './nats.ts'
import type { Registry } from './packs/registry.ts'
import type { createProofs } from './projections/proofs.ts'

/** The trusted sources: user tokens, their principals, service tokens. Tests pass their own. */
export type Trust = {
  verifier: AccessVerifier
  principals: Principals
  services: ServiceRegistry
  /** Signs this app's own calls. */
  signer: ServiceSigner
  close: () => void
}

/** Everything that the catalog's modules work with; each function takes the part it needs. Built by wire.ts. */
export type CatalogDeps = {
  db: Db
  pool: pg.Pool
  clock: Clock
  telemetry: Telemetry
  registry: Registry
  /** Follows the log once `start` is called. */
  graph: ReturnType<typeof createGraph>
  /** The results of the last comparisons of the read models with the truth. */
  proofs: ReturnType<typeof createProofs>
  nats: ReturnType<typeof createNats>
  trust: Trust
  wake: () => void
  keys: { fingerprint: [Buffer, ...Buffer[]]; audit: Buffer }
  pages: Pages
  config: Limits & { projector_enabled: boolean; operations_url: string }
  close: () => Promise<void>
}
/** The part of the dependencies that a function works with. */
export type Uses<K extends keyof CatalogDeps> = Pick<CatalogDeps, K>
type Limits = Record<
  | 'tree_depth'
  | 'page_default'
  | 'page_max'
  | 'health_ttl_s'
  | 'sweep_ms'
  | 'retain_internal_d'
  | 'retain_public_d'
  | 'history_d'
  | 'observations_d'
  | 'stale_wait_ms'
  | 'graph_max_nodes',
  number
>
