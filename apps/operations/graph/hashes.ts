import type { PlanDocument } from '../../../db/operations/tables/index.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import type { TargetDiff } from './types.ts'

/** Identifies exactly the plan that was read, with its intent, packs, pins and policies (operations.md 3.3). */
export const planHash = (document: PlanDocument): string => digest(document)

/** Identifies the effect: the same without versions, pins and times, with the values before and after. */
export const semanticDigest = (document: PlanDocument, diff: TargetDiff[]): string => {
  const { catalog_pins: _pins, packs, nodes, gates, constraints, ...rest } = document
  const { not_before: _time, ...lasting } = constraints
  return digest({
    ...rest,
    packs: packs.map(({ pack }) => pack),
    nodes: nodes.map(({ step: _step, ...node }) => node),
    gates: gates.map(({ policy: { version: _version, ...policy }, ...gate }) => ({ ...gate, policy })),
    constraints: lasting,
    diff: diff.map(essenceOf),
  })
}

/** Returns the change of a target, without its name and without fields that make no difference. */
export const essenceOf = ({ resource_id, change, fields }: Pick<TargetDiff, 'resource_id' | 'change' | 'fields'>) => ({
  resource_id,
  change,
  fields: fields.filter((field) => !field.noise).map(({ path, before, after }) => ({ path, before, after })),
})

/** Digests a node's specification with plan-time values; the origin of its step does not count. */
export const specDigest = ({ step: _step, ...node }: PlanNode): string => digest(node)
