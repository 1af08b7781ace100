import type { PlanNode, Value } from '../../apps/shared/contracts/operations/graph.ts'
import { mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { isObject } from '../../apps/shared/data/pointer.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'
import { formsOf, resolveValue } from '../../apps/shared/expressions/values.ts'
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
