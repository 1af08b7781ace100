import { asc, sql } from 'drizzle-orm'
import type { PlanGate } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { fillGate } from '../../../workflows/operation/rules/gates.ts'
import { coneOf } from '../../../workflows/operation/rules/nodes.ts'
import { equals, type Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { ASKED_AGAIN } from '../gates/ask.ts'
import { gates, patch_votes, votes } from '../tables/index.ts'
import type { GateNow, Revision } from './rows.ts'

/**
 * Used gates whose subject a patch moves (operations.md 2.5). If the patch's own votes satisfy the gate's rule, they
 * count as votes for what it releases now. They approve it in a new round, and the record says so. Any other gate asks
 * again before what the patch changes behind it starts.
 */
export type UsedGate = { gate_id: string; round: number } & ({ votes: PatchApproval[] } | { guards: string[] })
type PatchApproval = typeof patch_votes.$inferSelect & { group_key: string | null }

/** The outcome for each used gate that the revision concerns, and for those that the patch's votes open. */
export const usedGates = async (tx: Tx, revision: Revision): Promise<Map<string, UsedGate>> => {
  const { operation_id, patch_id, running, opened } = revision
  const known = new Map(running.gates.map((row) => [row.gate_id, row]))
  const moved = revision.gates.flatMap((gate) => {
    const row = known.get(gate.gate_id)
    const used = row?.consumed_at && (row.status === 'approved' || row.status === 'bypassed')
    if (!row) return opened.includes(gate.gate_id) ? [{ gate, round: 1 }] : []
    return used && row.digest !== gate.digest ? [{ gate, round: row.round + 1 }] : []
  })
  if (moved.length === 0) return new Map()
  const approvals = await tx
    .select()
    .from(patch_votes)
    .where(equals(patch_votes, { operation_id, patch_id, decision: 'approve' }))
    .orderBy(asc(patch_votes.at), asc(patch_votes.user_id))
  return new Map(
    moved.map(({ gate, round }) => {
      const filled = gate.kind === 'external_check' ? undefined : fillGate(gate.policy, approvals)
      const used = { gate_id: gate.gate_id, round }
      return [gate.gate_id, filled ? { ...used, votes: filled } : { ...used, guards: changedBehind(revision, gate) }]
    }),
  )
}

/** Nodes behind a gate that the patch changes or adds and that the gate does not guard yet. */
const changedBehind = ({ running, nodes, removed }: Revision, { guards }: PlanGate): string[] => {
  const changed = new Map(nodes.map((node) => [node.node_id, node]))
  const left = running.nodes.filter((row) => !row.removed && !removed.includes(row.node_id))
  const graph = [
    ...left
      .filter(({ node_id }) => !changed.has(node_id))
      .map(({ node_id, spec }) => ({ node_id, depends_on: spec.depends_on })),
    ...changed.values(),
  ]
  const behind = new Set(guards.flatMap((id) => coneOf(graph, id)).map(({ node_id }) => node_id))
  return [...changed.keys()].filter((id) => behind.has(id) && !guards.includes(id))
}

/** The columns of such a gate, besides its new subject. */
export const usedColumns = (used: UsedGate, digest: string) => {
  if (!('votes' in used)) return { ...ASKED_AGAIN, status: 'armed', round: used.round }
  const last = used.votes.at(-1)
  return {
    status: 'approved',
    round: used.round,
    approved_digest: digest,
    decided_by: last?.actor ?? null,
    decided_at: NOW,
    decided_command_id: last?.command_id ?? null,
  }
}

/** The gate's new state for the engine, and its event for history. */
export const usedFacts = (
  { patch_id }: Revision,
  used: UsedGate,
  digest: string,
): { now: GateNow; event: Omit<TimelineEvent, 'actor'> } => {
  const { gate_id, round } = used
  const data = { round, digest }
  if (!('votes' in used))
    return {
      now: { status: 'armed', round, deadline_at: null },
      event: { type: 'gate.armed', gate_id, patch_id, data },
    }
  return {
    now: { status: 'approved', round, deadline_at: null },
    event: {
      type: 'gate.approved',
      gate_id,
      patch_id,
      data: { ...data, patch_id },
      evidence: {
        kind: 'gate_decision',
        statement: `The votes for patch ${patch_id} approve gate ${gate_id} in round ${round} for the changes behind it`,
        subject: {
          type: 'gate',
          id: gate_id,
          round,
          status: 'approved',
          digest,
          patch_id,
          votes: used.votes.map(({ user_id, group_key }) => ({ voter: user_id, group: group_key })),
        },
        subject_digest: digest,
      },
    },
  }
}

/** Saves the patch's votes as votes of the gate: their voters are proved again like any other. */
export const saveUsedVotes = async (tx: Tx, operation_id: string, used: UsedGate, digest: string): Promise<void> => {
  if (!('votes' in used)) return
  await tx
    .insert(votes)
    .values(
      used.votes.map(({ patch_id: _, groups: __, ...vote }) => ({
        ...vote,
        operation_id,
        ...pick(used, 'gate_id', 'round'),
        digest,
      })),
    )
}

/** After an undone patch: a gate used under it approved another graph, so it asks again. `before`: previous gates. */
export const askAfterUndo = (tx: Tx, operation_id: string, before: readonly Record<string, unknown>[]) =>
  tx.execute(sql`
    update ${gates} g set round = g.round + 1, status = 'armed', guards = r.guards, subject = r.subject, digest = r.digest,
      approved_digest = null, consumed_at = null, standing_at = null, waiting_since = null, deadline_at = null, decided_by = null,
      decided_at = null, decided_command_id = null, escalation_level = 0, next_escalation_at = null, updated_at = clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify(before)}::jsonb) as r(gate_id text, guards text[], subject jsonb, digest text, consumed_at timestamptz)
    where g.operation_id = ${operation_id} and g.gate_id = r.gate_id and g.consumed_at is not null and r.consumed_at is null and g.digest <> r.digest`)
