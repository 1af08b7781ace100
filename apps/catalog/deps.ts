import type { Db } from '../../db/client.ts'
import type { Principals } from '../shared/auth/principals.ts'
import type { Registry as ServiceRegistry } from '../shared/auth/service.ts'
import type { AccessVerifier } from '../shared/auth/user-tokens.ts'
import type { Clock } from '../shared/clock.ts'
import { deriveKey } from '../shared/digest.ts'
import type { Checks } from '../shared/health.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import { createPages, type Pages } from './pages.ts'
import type { Registry } from './types.registry.ts'

/** The bounds that a deployment may set (catalog.md 14). */
export type CatalogSettings = {
  page_default: number
  page_max: number
  health_ttl_s: number
  retain_internal_d: number
  retain_public_d: number
  graph_max_nodes: number
}

/** Everything that routes and services use; only main.ts makes it from the environment. */
export type CatalogDeps = {
  db: Db
  clock: Clock
  telemetry: Telemetry
  config: CatalogSettings
  registry: Registry
  verifier: AccessVerifier
  principals: Principals
  services: ServiceRegistry
  checks: Checks
  /** Tells the relay that the outbox has something; best effort. */
  wake: () => void
  keys: { fingerprint: Buffer; audit: Buffer }
  pages: Pages
}

/** One key per purpose, from the configured secrets: the first signs, all verify page tokens. */
export const keysOf = (secrets: readonly [Buffer, ...Buffer[]]) => {
  const [first, ...older] = secrets
  const page = (secret: Buffer) => deriveKey(secret, 'page')
  return {
    keys: { fingerprint: deriveKey(first, 'fingerprint'), audit: deriveKey(first, 'audit') },
    pages: createPages([page(first), ...older.map(page)]),
  }
}
