import type { Pool } from 'pg'
import type { Clock } from '../shared/clock.ts'
import type { Registry } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { TokenConfig } from './config.ts'
import type { Keyring } from './keyring.ts'

/** The dependencies of token; `wire.ts` builds them. */
export type TokenDeps = {
  config: TokenConfig
  telemetry: Telemetry
  pool: Pool
  registry: Registry
  keyring: Keyring
  clock: Clock
  close: () => Promise<void>
}
