import type { Pool } from 'pg'
import type { Clock } from '../shared/clock.ts'
import type { Registry } from '../shared/service/tokens.ts'
import type { Telemetry } from '../shared/telemetry.ts'
import type { TokenConfig } from './config.ts'
import type { Keyring } from './keyring.ts'

/** What token works with; `wire.ts` builds it. */
export type TokenDeps = {
  config: TokenConfig
  telemetry: Telemetry
  pool: Pool
  registry: Registry
  keyring: Keyring
  clock: Clock
  close: () => Promise<void>
}
