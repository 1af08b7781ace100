import type { Static } from 'typebox'
import { Value } from 'typebox/value'
import { ConfigError } from '../../apps/shared/config.ts'
import { matcherOf } from '../../apps/shared/data/pattern.ts'
import { type Program, type Programs, programsOf } from '../../apps/shared/data/programs.ts'
import { fits, type Rule, ruleOf } from '../../apps/shared/web/egress.ts'
import { ExecutorPolicyFile, readPolicyFile } from '../../apps/shared/web/executor-policy.ts'

type Pool = ExecutorPolicyFile['pools'][string]
/** How the agents of a pool are reached. */
export type AgentDoor = { mode: 'http'; endpoint: string } | { mode: 'nats' }

/** Which addresses and secrets the steps of each pool may use, and which programs exist. */
export type ExecutorPolicy = {
  /** The pool's rules that match this URL; if none does, the URL must not be called. */
  rulesFor: (pool: string, url: URL) => readonly Rule[]
  mayResolve: (pool: string, reference: string) => boolean
  /** How the agents of a pool take work; undefined if it has none. */
  agentsOf: (pool: string) => AgentDoor | undefined
  /** How much work of each pool with agents may be in flight at once. */
  places: Readonly<Record<string, number>>
  programOf: (name: string) => Program | undefined
}

/** Reads the policy file; an invalid one stops the start with one line that names it. */
export const loadPolicy = (file: string): ExecutorPolicy => {
  const document = readPolicyFile(file)
  const [fault] = Value.Errors(ExecutorPolicyFile, document)
  if (fault) throw new ConfigError(`${file}${fault.instancePath}: ${fault.message}`)
  const { pools, programs: given = {} } = document as ExecutorPolicyFile
  const programs = readPrograms(file, given)
  const rules = new Map(
    Object.entries(pools).map(([pool, { destinations }]) => [pool, destinations.map((d) => ruleOf(file, d))]),
  )
  const doors = new Map(Object.entries(pools).flatMap(([name, pool]) => doorOf(file, name, pool)))
  const secrets = new Map(Object.entries(pools).map(([pool, own]) => [pool, own.secrets.map(matcherOf)]))
  return {
    rulesFor: (pool, url) => (rules.get(pool) ?? []).filter((rule) => fits(rule, url)),
    agentsOf: (pool) => doors.get(pool),
    places: Object.fromEntries([...doors.keys()].map((name) => [name, pools[name]?.max_in_flight ?? 0])),
    programOf: (name) => programs.get(name),
    mayResolve: (pool, reference) => (secrets.get(pool) ?? []).some((matches) => matches(reference)),
  }
}

/** A pool with agents states how they take work and how much; a pool without agents omits it. */
const doorOf = (file: string, name: string, pool: Pool): [string, AgentDoor][] => {
  const { mode, endpoint, max_in_flight, agents, min_sandbox } = pool
  const fault = (key: string, says: string) => new ConfigError(`${file}/pools/${name}/${key}: ${says}`)
  if (endpoint !== undefined && mode !== 'http') throw fault('endpoint', 'is for a pool with mode http.')
  if (agents !== undefined && mode !== 'nats') throw fault('agents', 'is for a pool with mode nats.')
  if (min_sandbox !== undefined && agents === undefined) throw fault('min_sandbox', 'is for a pool with agents.')
  if (mode === undefined) {
    if (max_in_flight !== undefined) throw fault('max_in_flight', 'is for a pool with a mode.')
    return []
  }
  if (max_in_flight === undefined)
    throw fault('max_in_flight', 'is missing: it limits how much work may be out at once.')
  if (mode === 'nats') return [[name, { mode }]]
  if (endpoint === undefined) throw fault('endpoint', 'is missing: it says where the agent takes work.')
  return [[name, { mode, endpoint: endpoint.replace(/\/+$/, '') }]]
}

const readPrograms = (file: string, given: Static<typeof Programs>) => {
  try {
    return programsOf(given)
  } catch (error) {
    throw new ConfigError(`${file}${(error as Error).message}`)
  }
}
