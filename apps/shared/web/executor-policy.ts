import { readFileSync } from 'node:fs'
import Type, { type Static } from 'typebox'
import { parse } from 'yaml'
import { ConfigError } from '../config.ts'
import { Closed } from '../contracts/shapes.ts'
import { Programs } from '../data/programs.ts'
import { Destination } from './egress.ts'

/** The policy of the executors: which addresses, secrets and programs the steps of each pool may use, and who takes its work. */
export const ExecutorPolicyFile = Closed({
  format: Type.Literal('signalbox/executor-policy@1'),
  programs: Type.Optional(Programs),
  pools: Type.Record(
    Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' }),
    Closed({
      destinations: Type.Array(Destination),
      secrets: Type.Array(Type.String({ pattern: '^secret://' })),
      /** How external agents take work: at `endpoint`, which the destinations must allow, or from stream EXECUTION. */
      mode: Type.Optional(Type.Enum(['http', 'nats'])),
      endpoint: Type.Optional(Type.String({ pattern: '^https?://' })),
      /** The machines that may take the pool's work over the public API; for a pool with mode nats. */
      agents: Type.Optional(Type.Array(Type.String({ pattern: '^machine:' }), { minItems: 1, maxItems: 1000 })),
      /** Agents that ask for work get some only if they run jobs so. */
      min_sandbox: Type.Optional(Type.Enum(['bwrap'])),
      /** How much of it may be in flight at once, across all workers and operations. */
      max_in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    }),
  ),
})
export type ExecutorPolicyFile = Static<typeof ExecutorPolicyFile>

/** Reads the file that `WORKER__EXECUTORS__POLICY_FILE` names, unchecked. */
export const readPolicyFile = (file: string): unknown => {
  try {
    return parse(readFileSync(file, 'utf8'), { schema: 'core' })
  } catch (error) {
    throw new ConfigError(
      `WORKER__EXECUTORS__POLICY_FILE names ${file}, which cannot be read: ${(error as Error).message}`,
    )
  }
}
