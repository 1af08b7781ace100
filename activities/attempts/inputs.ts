import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import type { PlanNode, Value } from '../../apps/shared/contracts/operations/graph.ts'
import { mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { isObject } from '../../apps/shared/data/pointer.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'
import { formsOf, resolveValue } from '../../apps/shared/expressions/values.ts'
import { ageOf } from '../../db/operations/nodes/attempts.ts'
import { namesIn } from '../../db/operations/nodes/record.ts'
import type { ExecutorPolicy } from '../executors/policy.ts'
import { patiently } from './target.ts'

/** Returns the ids of the nodes whose outputs a value refers to. */
export const nodesNamedIn = (value: unknown): string[] => [
  ...new Set(
    formsOf(value)
      .references.filter(({ root }) => root === 'nodes')
      .map(({ pointer }) => pointer.split('/')[1] ?? ''),
  ),
]

export type Work = {
  executor: string
  pool: string
  with: Value
  when: string | undefined
  secrets: Record<string, Value>
}

/** Returns an attempt's work: the node's own work with a person's overrides, or its compensation. */
export const workOf = (spec: PlanNode, role: 'run' | 'undo', overrides: Record<string, unknown> | null): Work => {
  const { pool = 'default', secrets = {}, compensate } = spec
  if (role === 'run')
    return {
      executor: spec.executor,
      pool,
      secrets,
      // `record_changes` decides the condition of a node before its gates.
      when: undefined,
      with: overrides === null ? spec.with : mergePatch(spec.with, overrides),
    }
  if (!compensate) throw new Error(`node ${spec.node_id} has no compensation`)
  return { executor: compensate.executor, pool, secrets, when: compensate.when, with: compensate.with }
}

export const namesOfWork = (work: Work): string[] => [
  ...new Set([...nodesNamedIn(work.with), ...(work.when === undefined ? [] : namesIn(work.when))]),
]

type Outputs = Record<string, { outputs: Record<string, unknown> }>

export const isWanted = ({ when }: Work, nodes: Outputs): boolean =>
  when === undefined || compileCel(when, ['nodes']).test({ nodes })

/** Fills in the outputs: with secrets for the executor, without them for the record. */
export const inputsOf = (work: Work, nodes: Outputs, secrets?: Record<string, string>): Record<string, unknown> => {
  const value = resolveValue(work.with, { nodes, ...(secrets && { secrets }) })
  return isObject(value) ? value : {}
}

/** A preview that is older is stale, unless the step allows another age. */
const MAX_AGE_S = 86_400

/** Thrown before any work begins: the preview that the step carries out is older than the step allows. */
export class PreviewStale extends Error {}

/** Checked by the clock of Postgres, so neither the agent's clock nor its preview can say otherwise. */
export const refuseOldPreview = async (pool: pg.Pool, operation_id: string, work: Work, max_age_s: unknown) => {
  const given = isObject(work.with) && isObject(work.with.inputs) ? work.with.inputs.preview : undefined
  const made_by = work.executor === 'external' ? nodesNamedIn(given) : []
  if (made_by.length === 0) return
  const most_s = typeof max_age_s === 'number' ? max_age_s : MAX_AGE_S
  const age_s = await patiently(() => ageOf(pool, operation_id, made_by))
  if (age_s <= most_s) return
  const old = `The preview is ${Math.ceil(age_s / 60)} min old, and this step allows ${Math.floor(most_s / 60)} min.`
  throw new PreviewStale(`${old} No change was made. Retry the preview: the gate asks with the new plan.`)
}

/** A reference that cannot be resolved, or that the pool may not resolve. */
export class SecretError extends Error {
  readonly kind: 'secret_missing' | 'refused'
  constructor(kind: SecretError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

type Source = { secrets_dir: string; env: NodeJS.ProcessEnv; policy: ExecutorPolicy }
const REFERENCE = /^secret:\/\/(file|env)\/([A-Za-z0-9][A-Za-z0-9._-]*)#([A-Za-z0-9][A-Za-z0-9._-]*)$/

/**
 * Reads the values of a node's secrets at the last moment. `secret://file/name#version` is the file
 * `<secrets_dir>/name.version`, `secret://env/NAME#version` the variable NAME. Only those that the pool's policy lists.
 */
export const resolveSecrets = async (
  references: Record<string, unknown>,
  pool: string,
  source: Source,
): Promise<Record<string, string>> => {
  const resolved: Record<string, string> = {}
  for (const [name, reference] of Object.entries(references))
    resolved[name] = await resolve(String(reference), pool, source)
  return resolved
}

/** Throws a SecretError unless this pool's agents may resolve these references in the worker's place. */
export const allowSecrets = (references: Record<string, unknown>, pool: string, policy: ExecutorPolicy): void => {
  for (const reference of Object.values(references))
    if (!policy.mayResolve(pool, String(reference)))
      throw new SecretError('refused', `Pool ${pool} may not resolve ${reference}`)
}

const resolve = async (reference: string, pool: string, { secrets_dir, env, policy }: Source): Promise<string> => {
  const [, provider, name = '', version = ''] = REFERENCE.exec(reference) ?? []
  if (!provider) throw new SecretError('secret_missing', `"${reference}" is not a reference to a secret`)
  allowSecrets({ reference }, pool, policy)
  const value = provider === 'env' ? env[name] : await readSecret(join(secrets_dir, `${name}.${version}`), reference)
  if (value === undefined) throw new SecretError('secret_missing', `There is no secret ${reference}`)
  return value
}

const readSecret = async (file: string, reference: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new SecretError('secret_missing', `The worker cannot read ${reference}: ${code}`)
  }
}
