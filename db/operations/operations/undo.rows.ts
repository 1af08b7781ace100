import { sql } from 'drizzle-orm'
import { type Tx, updateRows } from '../../client.ts'
import { eachText } from '../expressions.ts'
import type { TimelineEvent } from '../facts/state.ts'
import { listStanding, nextRound, settleRestored, statusBefore, waitingBefore } from '../gates/rows.ts'
import { gates, nodes, operations } from '../tables/index.ts'

type Fact = Omit<TimelineEvent, 'actor'>

/** Restores gates to these rows, in a later round if people have decided since. Returns what moved as facts. */
export const restoreGates = async (
  tx: Tx,
  operation_id: string,
  before: readonly Record<string, unknown>[],
): Promise<Fact[]> => {
  const stood = await listStanding(tx, operation_id, before)
  await tx.execute(sql`
    update ${gates} g set status = ${statusBefore}, round = ${nextRound}, approved_digest = r.approved_digest, consumed_at = r.consumed_at, standing_at = null,
      ${waitingBefore}, decided_by = r.decided_by, decided_at = r.decided_at,
      decided_command_id = r.decided_command_id, updated_at = clock_timestamp(), guards = coalesce(r.guards, g.guards),
      subject = coalesce(r.subject, g.subject), digest = coalesce(r.digest, g.digest)
    from jsonb_populate_recordset(null::${gates}, ${JSON.stringify(before)}::jsonb) r
    where g.operation_id = ${operation_id} and g.gate_id = r.gate_id and g.status <> 'cancelled'`)
  return settleRestored(tx, operation_id, stood)
}

/** Rows from before a resume accepted the new values of moved targets. */
export type DriftUndo = {
  nodes?: Record<string, unknown>[]
  gates?: Record<string, unknown>[]
  drift?: {
    pins: Record<string, number | undefined>
    /** The targets whose changes moved, and those changes as they were. */
    resource_ids: string[]
    diff: object[]
  }
}

/** The new values were never accepted: nodes that have not begun hold those from before, and so do gates and pins. */
export const restoreDrift = async (
  tx: Tx,
  operation_id: string,
  { nodes: specs = [], gates: asked = [], drift }: DriftUndo,
): Promise<Fact[]> => {
  if (!drift) return []
  await tx.execute(sql`
    update ${nodes} n set spec = r.spec, spec_digest = r.spec_digest, gate_ids = r.gate_ids, updated_at = clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify(specs)}::jsonb) as r(node_id text, spec jsonb, spec_digest text, gate_ids text[])
    where n.operation_id = ${operation_id} and n.node_id = r.node_id and n.state in ('pending', 'gated', 'ready', 'backoff')`)
  await updateRows(tx, { operation_id }, operations, {
    pins: sql`${operations.pins} || ${JSON.stringify(drift.pins)}::jsonb`,
    diff_moved: sql`(select coalesce(jsonb_agg(d), '[]') from jsonb_array_elements(${operations.diff_moved}) d
      where d ->> 'resource_id' <> all (${eachText(drift.resource_ids)})) || ${JSON.stringify(drift.diff)}::jsonb`,
  })
  return restoreGates(tx, operation_id, asked)
}
