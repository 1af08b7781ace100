import type pg from 'pg'
import type { Logger } from '../apps/shared/telemetry.ts'
import type { Db } from '../db/client.ts'
import type { CatalogWriter } from './catalog.client.ts'
import type { AgentChannel } from './executors/agents/doors.ts'
import type { ExecutorPolicy } from './executors/policy.ts'
import type { Executor } from './executors/types.ts'
import type { StandingProver } from './standing.client.ts'

/** The dependencies of activities; the worker opens them, tests bring their own. */
export type ActivityDeps = {
  db: Db
  /** For statements prepared once: claims and results. */
  pool: pg.Pool
  log: Logger
  executors: ReadonlyMap<string, Executor>
  policy: ExecutorPolicy
  /** For pools whose agents are reached over NATS. */
  agents: AgentChannel
  secrets_dir: string
  env: NodeJS.ProcessEnv
  catalog: CatalogWriter
  /** Has the voters of gates proved before a node behind those gates starts. */
  standing: StandingProver
  /** Aborted when the worker stops: work that another worker can resume ends its slice. */
  leave: AbortSignal
  limits: { max_parallel: number; slice_s: number; force_grace_s: number; standing_s: number }
  /** Tells listeners that there is something to look at; best effort. */
  wake: (what: 'operations' | 'operations_outcome') => void
  /** Counts attempts by executor and result, and refused claims by reason. */
  observe: { attempt: (executor: string, result: string, seconds: number) => void; refused: (reason: string) => void }
}
