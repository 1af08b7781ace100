import { sql } from 'drizzle-orm'
import type { GatePolicy, GateStatus, PlanGate } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { rulesOf } from '../../../apps/shared/evidence/rules.ts'
import type { Change, RecordResult } from '../../../workflows/operation/state/events.ts'
import type { Tx } from '../../client.ts'
import { ENGINE, SYSTEM, type TimelineEvent } from '../facts/state.ts'
import { bindOutputs } from './bind.ts'
import { askedService } from './rows.ts'

export type GateChange = Extract<Change, { t: 'gate_open' | 'gate_expire' | 'gate_escalate' }>
type GateNow = RecordResult['gates'][number]
type Row = {
  gate_id: string
  status: GateStatus
  round: number
  deadline_at: string | null
  escalates_at: string | null
  level: number
  digest: string
  kind: PlanGate['kind']
  policy: GatePolicy
  moved: boolean
}

/**
 * Opens gates whose frontier is reached, expires overdue ones and escalates others, each by compare-and-swap. If a
 * person, a cancel or a newer round was faster, the gate stays, and its current row goes back to the reducer.
 */
export const moveGates = async (
  tx: Tx,
  operation_id: string,
  changes: readonly GateChange[],
): Promise<{ gates: GateNow[]; events: TimelineEvent[] }> => {
  const gates: GateNow[] = []
  const events: TimelineEvent[] = []
  for (const change of changes) {
    const row = await MOVES[change.t](tx, operation_id, change)
    if (!row) continue
    const { gate_id, status, round, deadline_at, escalates_at } = row
    gates.push({ gate_id, status, round, deadline_at, escalates_at })
    if (row.moved) events.push(...eventsOf(change, row))
  }
  return { gates, events }
}

/** Moves an armed gate to waiting. */
const open = async (tx: Tx, operation_id: string, { gate_id, round }: GateChange): Promise<Row | undefined> => {
  await bindOutputs(tx, operation_id, gate_id)
  const { rows } = await tx.execute<Row>(sql`
    with moved as (
      update operations.gates g set status = 'waiting',
        waiting_since = clock_timestamp(), updated_at = clock_timestamp(),
        deadline_at = clock_timestamp() + make_interval(secs => (g.policy ->> 'deadline_s')::double precision),
        escalation_level = 0, next_escalation_at = clock_timestamp() + make_interval(secs => (g.policy #>> '{escalation,0,after_s}')::double precision)
      where g.operation_id = ${operation_id} and g.gate_id = ${gate_id} and g.status = 'armed' and g.round = ${round}
      returning ${NOW_COLUMNS})
    ${nowOf(operation_id, gate_id)}`)
  return rows[0]
}

/** Silence approves only low risk, whatever the policy says. */
const ON_TIMEOUT = sql.raw(
  "(case when g.policy ->> 'on_timeout' = 'approve' and o.risk_level <> 'low' then 'reject' else g.policy ->> 'on_timeout' end)",
)

/** Applies the policy's `on_timeout`, by Postgres' clock: expired, waiting without a deadline, or approved. */
const expire = async (tx: Tx, operation_id: string, { gate_id, round }: GateChange): Promise<Row | undefined> => {
  const { rows } = await tx.execute<Row>(sql`
    with moved as (
      update operations.gates g set updated_at = clock_timestamp(),
        status = case ${ON_TIMEOUT} when 'hold' then 'waiting' when 'approve' then 'approved' else 'expired' end,
        deadline_at = case ${ON_TIMEOUT} when 'hold' then null else g.deadline_at end,
        approved_digest = case ${ON_TIMEOUT} when 'approve' then g.digest else g.approved_digest end,
        decided_at = case ${ON_TIMEOUT} when 'hold' then null else clock_timestamp() end,
        decided_by = case ${ON_TIMEOUT} when 'hold' then null else ${JSON.stringify(SYSTEM)}::jsonb end
      from operations.operations o
      where o.operation_id = g.operation_id and g.operation_id = ${operation_id} and g.gate_id = ${gate_id} and g.status = 'waiting' and g.round = ${round}
        and g.deadline_at <= clock_timestamp()
      returning ${NOW_COLUMNS})
    ${nowOf(operation_id, gate_id)}`)
  return rows[0]
}

/** Escalates one level: the next step's groups may decide, too. Times count from when the gate started waiting. */
const escalate = async (tx: Tx, operation_id: string, { gate_id, round }: GateChange): Promise<Row | undefined> => {
  const { rows } = await tx.execute<Row>(sql`
    with moved as (
      update operations.gates g set updated_at = clock_timestamp(), escalation_level = g.escalation_level + 1,
        next_escalation_at = g.waiting_since + make_interval(secs =>
          (g.policy -> 'escalation' -> (g.escalation_level + 1) ->> 'after_s')::double precision)
      where g.operation_id = ${operation_id} and g.gate_id = ${gate_id} and g.status = 'waiting' and g.round = ${round}
        and g.next_escalation_at <= clock_timestamp()
      returning ${NOW_COLUMNS})
    ${nowOf(operation_id, gate_id)}`)
  return rows[0]
}

const MOVES = { gate_open: open, gate_expire: expire, gate_escalate: escalate }

const NOW_COLUMNS = sql.raw(
  'g.gate_id, g.status, g.round, g.deadline_at, g.next_escalation_at, g.escalation_level, g.digest, g.kind, g.policy',
)
const nowOf = (operation_id: string, gate_id: string) => sql`
  select gate_id, status, round, operations.iso(deadline_at) as deadline_at, operations.iso(next_escalation_at) as escalates_at,
    escalation_level as level, digest, kind, policy, true as moved from moved
  union all select gate_id, status, round, operations.iso(deadline_at), operations.iso(next_escalation_at), escalation_level, digest, kind, policy, false
    from operations.gates where operation_id = ${operation_id} and gate_id = ${gate_id} and not exists (select from moved)`

const eventsOf = (
  change: GateChange,
  { gate_id, status, round, deadline_at, escalates_at, level, digest: subject, kind, policy }: Row,
): TimelineEvent[] => {
  const data = { round, digest: subject, ...(deadline_at !== null && { deadline_at }), ...askedService(policy) }
  if (change.t === 'gate_escalate')
    return [{ type: 'gate.escalated', actor: ENGINE, gate_id, data: { ...data, level, next_at: escalates_at } }]
  if (change.t === 'gate_open') {
    // Stated here, since the transaction of the preview holds its node and so cannot lock the history.
    const raised = policy.raised_by && {
      kind: 'policy_result' as const,
      statement: `Gate ${gate_id} asks for more: the preview is forbidden by ${policy.raised_by.join(', ')}`,
      subject: { type: 'gate', id: gate_id, rules: [rulesOf({ gate_id, kind, policy })] },
      subject_digest: policy.digest,
    }
    return [{ type: 'gate.waiting', actor: ENGINE, gate_id, data, ...(raised && { evidence: raised }) }]
  }
  if (status === 'waiting')
    return [{ type: 'gate.waiting', actor: SYSTEM, gate_id, data: { ...data, on_timeout: 'hold' } }]
  const evidence = {
    kind: 'gate_decision' as const,
    statement: `Gate ${gate_id} ${status} in round ${round}: its deadline passed`,
    subject: { type: 'gate', id: gate_id, round, status, digest: subject },
    subject_digest: digest({ gate_id, round, status, digest: subject }),
  }
  return [{ type: `gate.${status}`, actor: SYSTEM, gate_id, data, evidence }]
}
