import { and, eq, inArray, sql } from 'drizzle-orm'
import { Value } from 'typebox/value'
import { type Tx, updateRows } from '../../../db/client.ts'
import { gates, operations } from '../../../db/operations/tables/index.ts'
import { kindOf, Preview } from '../../shared/contracts/client/preview.ts'
import type { GatePolicy, GateSubject, NodeError } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { placesOf, spreadOf } from './authority.ts'
import type { PreviewFacts } from './cedar.ts'
import type { JudgedPlan, PlanPolicies } from './plans.ts'

/** A preview as planning policies see it. Its list of changes is bounded, heaviest first; counts and kinds are of all. */
const previewFacts = ({ changes, changes_count, kinds = [], counts, unknowns, binding }: Preview): PreviewFacts => {
  const { create = 0, update = 0, replace = 0, delete: deletes = 0 } = counts
  return {
    ...{ create, update, replace, delete: deletes, unknowns, binding },
    kinds: [...new Set([...kinds, ...changes.map(({ action, id }) => kindOf(action, id))])],
    resources: changes.map(({ action, id }) => `${action} ${id}`),
    complete: changes.length === changes_count,
  }
}

/** All previews in a value: any pointer may bind one, so none is too deep, and one may lie inside another. */
const previewsIn = (value: unknown): Preview[] => {
  if (typeof value !== 'object' || value === null) return []
  return [...(Value.Check(Preview, value) ? [value] : []), ...Object.values(value).flatMap(previewsIn)]
}

export const holdsPreview = (value: unknown): boolean => previewsIn(value).length > 0

/**
 * Judges the previews among the outputs of a node by the hard and soft policies of planning (operations.md 7.5). A hard
 * one that forbids it fails the node. A soft one raises the demands of the gates that show it; it fails the node if no gate
 * does. A policy that forbids the plan as such was asked when the plan was made.
 */
export const judgePreviews = async (
  tx: Tx,
  { judge }: PlanPolicies,
  { operation_id, node_id }: { operation_id: string; node_id: string },
  outputs: Record<string, unknown>,
): Promise<NodeError | undefined> => {
  const previews = previewsIn(outputs)
  if (previews.length === 0) return undefined
  const [operation] = await tx
    .select({
      intent_id: operations.intent_id,
      requester: operations.requester_id,
      risk: operations.risk_level,
      labels: operations.labels,
    })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  if (!operation) return undefined
  const facts = { ...operation, ...spreadOf(await placesOf(tx, operation_id)) }
  const known = new Set(forbidding(judge(facts)).map(({ policy_id }) => policy_id))
  const found = previews
    .flatMap((preview) => forbidding(judge({ ...facts, preview: previewFacts(preview) })))
    .filter(({ policy_id }) => !known.has(policy_id))
  const hard = found.find(({ level }) => level === 'hard')
  if (hard) return denied(hard, 'No change was made. Change the plan, or ask the owners of the policy.')
  const [soft] = found
  if (!soft || (await raiseGates(tx, operation_id, node_id, found))) return undefined
  return denied(soft, 'No gate shows this preview. Plan again with a gate between the preview and its change.')
}

const forbidding = (results: JudgedPlan[]): JudgedPlan[] =>
  results.filter(({ level, result }) => level !== 'advisory' && result === 'forbids')

const denied = ({ policy_id, detail }: JudgedPlan, remedy: string): NodeError => ({
  class: 'policy_denied',
  message: `${detail} (policy ${policy_id}) ${remedy}`,
  retryable: false,
})

/** Raises the gates of people that bind outputs of a node; returns whether there are any. They ask again when they bind. */
const raiseGates = async (tx: Tx, operation_id: string, node_id: string, softs: JudgedPlan[]): Promise<boolean> => {
  const open = ['armed', 'waiting', 'approved'] as const
  const rows = await tx
    .select({ gate_id: gates.gate_id, policy: gates.policy, subject: gates.subject, question: gates.question })
    .from(gates)
    .where(
      and(
        eq(gates.operation_id, operation_id),
        inArray(gates.status, [...open]),
        sql`${gates.kind} <> 'external_check'`,
        sql`exists (select from jsonb_array_elements_text(${gates.policy} -> 'binds') b
          where split_part(b, '/', 2) = ${node_id} or starts_with(${node_id}, split_part(b, '/', 2) || '.'))`,
      ),
    )
  for (const { gate_id, policy, subject, question } of rows) {
    const raised = raise(policy, softs)
    const next: GateSubject = { ...subject, policy: { key: raised.key, digest: raised.digest } }
    const reasons = [...new Set(softs.map(({ detail }) => detail))].filter((detail) => !question.includes(detail))
    const set = { policy: raised, subject: next, question: [question, ...reasons].join(' ') }
    await updateRows(tx, { operation_id, gate_id }, gates, set)
  }
  return rows.length > 0
}

/** The policy of a gate with the demands of soft policies added. It never falls again, and silence rejects. */
const raise = ({ digest: _, version, ...content }: GatePolicy, softs: JudgedPlan[]): GatePolicy => {
  const named = softs.flatMap(({ approvers }) => approvers)
  const groups = [
    ...content.groups.map(({ group, min }) => ({ group, min: named.includes(group) ? Math.max(min, 1) : min })),
    ...[...new Set(named)].filter((one) => !content.groups.some(({ group }) => group === one)).map(once),
  ]
  const quorum = Math.max(content.quorum, ...softs.map((soft) => soft.quorum))
  const on_timeout = content.on_timeout === 'approve' ? ('reject' as const) : content.on_timeout
  const raised_by = [...new Set([...(content.raised_by ?? []), ...softs.map(({ policy_id }) => policy_id)])]
  const raised = { ...content, groups, quorum, on_timeout, raised_by }
  return { ...raised, digest: digest(raised), ...(version !== undefined && { version }) }
}
const once = (group: string) => ({ group, min: 1 })
