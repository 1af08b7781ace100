import type pg from 'pg'
import type { PlanNode, Value } from '../../apps/shared/contracts/operations/graph.ts'
import { mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { isObject } from '../../apps/shared/data/pointer.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'
import { formsOf, resolveValue } from '../../apps/shared/expressions/values.ts'
import { ageOf } from '../../db/operations/nodes/attempts.ts'
import { namesIn } from '../../db/operations/nodes/record.ts'

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
  const age_s = await ageOf(pool, operation_id, made_by)
  if (age_s <= most_s) return
  const old = `The preview is ${Math.ceil(age_s / 60)} min old, and this step allows ${Math.floor(most_s / 60)} min.`
  throw new PreviewStale(`${old} No change was made. Retry the preview: the gate asks with the new plan.`)
}
