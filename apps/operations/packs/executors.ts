import { Value } from 'typebox/value'
import { ConfigError } from '../../shared/config.ts'
import { matcherOf } from '../../shared/data/pattern.ts'
import { isObject, readPointer } from '../../shared/data/pointer.ts'
import { Programs, programsOf } from '../../shared/data/programs.ts'
import { readPolicyFile } from '../../shared/web/executor-policy.ts'
import type { ProgramRules } from '../graph/executors.ts'

/** The machines that may take the work of a pool over the API. */
export type AgentRules = (pool: string) => ReadonlySet<string>
/** Whether these machines must run its jobs in a sandbox. */
export type SandboxRules = (pool: string) => boolean

/** Whether steps of a pool may resolve a reference to a secret. */
export type SecretRules = (pool: string, reference: string) => boolean

/**
 * Reads the part of the workers' executor policy about secrets and programs: which ones the steps of each pool may use.
 * With it a bad plan is refused before anyone reads it, instead of failing when it runs; the workers check again
 * (operations.md 7.2, 7.3).
 */
export const loadExecutorRules = (
  file: string,
): {
  mayResolve: SecretRules
  programs: ProgramRules
  agentsOf: AgentRules
  needsSandbox: SandboxRules
  hasPool: (pool: string) => boolean
  fetchesWork: (pool: string) => boolean
  agentPools: readonly string[]
} => {
  const document = readPolicyFile(file)
  const pools = readPointer(document, '/pools')
  if (!isObject(pools)) throw new ConfigError(`${file}/pools: must be an object.`)
  const rules = new Map(
    Object.entries(pools).map(([pool, own]) => {
      const secrets = readPointer(own, '/secrets')
      return [pool, (Array.isArray(secrets) ? secrets : []).map((pattern) => matcherOf(String(pattern)))]
    }),
  )
  const agents = new Map(
    Object.entries(pools).map(([pool, own]) => {
      const names = readPointer(own, '/agents')
      return [pool, new Set(Array.isArray(names) ? names.map(String) : [])]
    }),
  )
  const agentPools = Object.keys(pools).filter((pool) => readPointer(pools[pool], '/mode') !== undefined)
  return {
    agentPools,
    needsSandbox: (pool) => readPointer(pools[pool], '/min_sandbox') !== undefined,
    hasPool: (pool) => agentPools.includes(pool),
    /** Whether its agents ask for work or read the stream, and so are listed while they have none. */
    fetchesWork: (pool) => readPointer(pools[pool], '/mode') === 'nats',
    agentsOf: (pool) => agents.get(pool) ?? new Set(),
    mayResolve: (pool, reference) => (rules.get(pool) ?? []).some((matches) => matches(reference)),
    programs: programRules(file, readPointer(document, '/programs') ?? {}),
  }
}

const programRules = (file: string, given: unknown): ProgramRules => {
  const [fault] = Value.Errors(Programs, given)
  if (fault) throw new ConfigError(`${file}/programs${fault.instancePath}: ${fault.message}`)
  let programs: ReturnType<typeof programsOf>
  try {
    programs = programsOf(given as Parameters<typeof programsOf>[0])
  } catch (error) {
    throw new ConfigError(`${file}${(error as Error).message}`)
  }
  return (name, args) => {
    const program = programs.get(name)
    if (!program)
      return {
        pointer: '/program',
        message:
          programs.size === 0
            ? 'the executor "command" is off: no program is configured'
            : `there is no program "${name}"`,
      }
    const message = args && program.refuse(args)
    return message === undefined ? undefined : { pointer: '/args', message }
  }
}
