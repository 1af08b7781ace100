import { and, asc, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type { Affected } from '../../../apps/shared/contracts/catalog/affected.ts'
import type {
  Actor,
  CancelMode,
  Control,
  GateStatus,
  GateSubject,
  PlanGate,
} from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx, updateRows } from '../../client.ts'
import { builtOnce, insertRow, NOW, updateRow } from '../../rows.ts'
import { PLANNED_AT } from '../commands/rows.ts'
import { iso } from '../expressions.ts'
import { gates, nodes, operation_control, operation_evidence_index, operations, plans, votes } from '../tables/index.ts'
import { OUTDATED, supersedeAwaiting } from './awaiting.ts'

export type Vote = {
  actor: Actor
  user_id: string
  decision: 'approve' | 'reject'
  comment: string | null
  digest: string
  at: string
  round: number
  group: string | null
}

/** All valid votes of every round, oldest first. */
const VOTES = sql<Vote[]>`coalesce((select jsonb_agg(jsonb_build_object('actor', v.actor, 'user_id', v.user_id,
    'decision', v.decision, 'comment', v.comment, 'digest', v.digest, 'at', operations.iso(v.at), 'round', v.round,
    'group', v.group_key) order by v.at, v.user_id)
  from ${votes} v where v.operation_id = ${gates.operation_id} and v.gate_id = ${gates.gate_id} and not v.voided), '[]'::jsonb)`

const gateColumns = {
  ...pick(gates, 'gate_id', 'operation_id', 'kind', 'question'),
  status: sql<GateStatus>`${gates.status}`,
  ...pick(gates, 'round', 'guards', 'policy', 'digest'),
  waiting_since: iso(gates.waiting_since),
  deadline_at: iso(gates.deadline_at),
  ...pick(gates, 'escalation_level', 'delegations'),
  next_escalation_at: iso(gates.next_escalation_at),
  consumed_at: iso(gates.consumed_at),
  decided_by: gates.decided_by,
  decided_at: iso(gates.decided_at),
  decided_command_id: gates.decided_command_id,
  changes: sql<GateSubject['changes']>`coalesce(${gates.subject} -> 'changes', '[]'::jsonb)`,
  votes: VOTES,
  /** The engine marks it as expired once it can. */
  overdue: sql<boolean>`coalesce(${gates.deadline_at} <= clock_timestamp() and case ${gates.policy} ->> 'on_timeout'
    when 'hold' then false when 'approve' then ${operations.risk_level} <> 'low' else true end, false)`,
  /** For a gate of kind intervention: who requested it. */
  author_id: sql<string | null>`${gates.subject} #>> '{intervention,author,id}'`,
  author_behind: sql<string[]>`coalesce(${gates.subject} #> '{intervention,author,behind}', '[]')`,
  intervention: sql<string | null>`${gates.subject} #>> '{intervention,type}'`,
  outdated: OUTDATED,
}
const operationColumns = {
  ...pick(operations, 'operation_id', 'title', 'engine_status'),
  control: sql<Control>`${operation_control.control}`,
  cancel_mode: sql<CancelMode | null>`${operation_control.cancel_mode}`,
  cancelled_at: iso(operation_control.cancelled_at),
  pause_reason: operation_control.pause_reason,
  ...pick(operations, 'requester_id', 'involved', 'resource_ids', 'risk_level', 'environment', 'labels'),
  planned_at: PLANNED_AT,
  revision: operation_control.revision,
  change_seq: operations.change_seq,
}

export const selectGates = <M extends Record<string, SQL>>(db: Queryable, more: M = {} as M) =>
  db
    .select({ gate: gateColumns, operation: operationColumns, ...more })
    .from(gates)
    .innerJoin(operations, eq(operations.operation_id, gates.operation_id))
    .innerJoin(operation_control, eq(operation_control.operation_id, gates.operation_id))
export type GateRow = Awaited<ReturnType<typeof selectGates<Record<never, SQL>>>>[number]

/** Gates of one operation by id, with their operation. */
export const listGates = (db: Queryable, operation_id: string, where: SQL | undefined, limit: number) =>
  selectGates(db)
    .where(and(eq(gates.operation_id, operation_id), where))
    .orderBy(asc(gates.gate_id))
    .limit(limit)

const gateByKey = builtOnce(['operation_id', 'gate_id'], (db, key) => selectGates(db).where(equals(gates, key)))
const gateToDecide = builtOnce(['operation_id', 'gate_id'], (db, key) =>
  selectGates(db).where(equals(gates, key)).for('update'),
)

export const getGate = (db: Queryable, operation_id: string, gate_id: string): Promise<GateRow | undefined> =>
  gateByKey(db, { operation_id, gate_id }).then(first)

/** Like `getGate`, for a decision: the row stays as it was read until the end of the transaction. */
export const lockGate = (tx: Tx, operation_id: string, gate_id: string): Promise<GateRow | undefined> =>
  gateToDecide(tx, { operation_id, gate_id }).then(first)

export const textArray = (values: readonly string[]): SQL => sql`${sql.param(values)}::text[]`

export type Swap = {
  operation_id: string
  gate_id: string
  /** The state on which the decision was based. */
  from: { status: GateStatus; round: number }
  set: PgUpdateSetSource<typeof gates>
}

/**
 * The one place that decides a gate. Swaps the row if it is unchanged since it was read and no node behind it has
 * started (`used`: or one has). Returns false if another decision, the expiry or a cancel came first.
 */
export const swapGate = async (tx: Tx, swap: Swap, { used = false } = {}): Promise<boolean> =>
  (await swapping(tx, swap, used)).rowCount === 1

/** The statement of `swapGate`, not sent yet; it succeeds on a row of `lockGate` that no node has used. */
export const swapping = (tx: Tx, { operation_id, gate_id, from, set }: Swap, used = false) =>
  updateRow(
    tx,
    gates,
    { operation_id, gate_id, ...from },
    { ...set, updated_at: NOW },
    used ? '' : 'and consumed_at is null',
  )

/** One person, one vote per round: the newest counts. */
export const saveVote = (tx: Tx, vote: typeof votes.$inferInsert) => insertRow(tx, votes, vote, REVOTED)
const REVOTED = `on conflict (operation_id, gate_id, round, user_id) do update set decision = excluded.decision, comment = excluded.comment,
  digest = excluded.digest, group_key = excluded.group_key, actor = excluded.actor, command_id = excluded.command_id, voided = false, at = clock_timestamp()`

/** Copies the valid votes of a round into the next one, except that of the person who changed their mind. */
export const carryVotes = (tx: Tx, operation_id: string, gate_id: string, round: number, but_user_id = '') =>
  tx.execute(sql`insert into ${votes} (operation_id, gate_id, round, user_id, decision, comment, digest, group_key, actor, command_id, at)
    select operation_id, gate_id, round + 1, user_id, decision, comment, digest, group_key, actor, command_id, at
    from ${votes} where operation_id = ${operation_id} and gate_id = ${gate_id} and round = ${round} and user_id <> ${but_user_id} and not voided`)

/** Invalidates the votes of these people in this round. */
export const voidVotes = (
  tx: Tx,
  { operation_id, gate_id, round }: Pick<GateRow['gate'], 'operation_id' | 'gate_id' | 'round'>,
  user_ids: readonly string[],
) =>
  tx
    .update(votes)
    .set({ voided: true })
    .where(and(equals(votes, { operation_id, gate_id, round }), inArray(votes.user_id, [...user_ids])))

/** For a gate `g` that is restored to `r`: if it has started waiting in the same round, that stays. */
const keptOpen = (column: string) =>
  `case when g.round = r.round and g.status = 'waiting' then g.${column} else r.${column} end`
export const statusBefore = sql.raw(keptOpen('status'))
export const waitingBefore = sql.raw(
  `waiting_since = ${keptOpen('waiting_since')}, deadline_at = ${keptOpen('deadline_at')}`,
)

/** The round of gate `g` when restored to `r`: one decided since, or closed with the gate, is over. */
export const nextRound = sql.raw(
  "g.round + (g.status = 'cancelled' or (g.round > r.round and g.status not in ('armed', 'waiting')))::int",
)

/** The gates that these undo rows restore, as they stand. */
export const listStanding = (tx: Tx, operation_id: string, before: readonly Record<string, unknown>[]) =>
  tx
    .select(pick(gates, 'gate_id', 'status', 'round', 'digest', 'policy'))
    .from(gates)
    .where(
      and(
        eq(gates.operation_id, operation_id),
        sql`${gates.gate_id} = any(${textArray(before.map(({ gate_id }) => String(gate_id)))})`,
      ),
    )
    .orderBy(asc(gates.gate_id))

/**
 * Adjusts votes after gates, which stood so before, were restored. A vote on another subject no longer counts, although
 * its round continues. A restored approval has its own votes again, except those withdrawn or lost since. Returns the
 * state of the gates that moved, for the timeline: of any other it would tell of a decision that no one made now.
 */
export const settleRestored = async (tx: Tx, operation_id: string, stood: Awaited<ReturnType<typeof listStanding>>) => {
  if (stood.length === 0) return []
  const were = new Map(stood.map((gate) => [gate.gate_id, gate]))
  const restored = and(
    eq(gates.operation_id, operation_id),
    sql`${gates.gate_id} = any(${textArray([...were.keys()])})`,
  )
  await tx.execute(sql`update ${votes} v set voided = true from ${gates} where ${restored} and v.operation_id = ${gates.operation_id}
    and v.gate_id = ${gates.gate_id} and v.round = ${gates.round} and v.digest <> ${gates.digest}`)
  await tx.execute(sql`insert into ${votes} as now (operation_id, gate_id, round, user_id, decision, comment, digest, group_key, actor, command_id, at)
    select distinct on (v.gate_id, v.user_id) v.operation_id, v.gate_id, ${gates.round}, v.user_id, v.decision, v.comment, v.digest, v.group_key, v.actor, v.command_id, v.at
    from ${gates} join ${votes} v on v.operation_id = ${gates.operation_id} and v.gate_id = ${gates.gate_id}
    where ${restored} and ${gates.status} = 'approved' and v.round < ${gates.round} and v.digest = ${gates.approved_digest} and not v.voided
    order by v.gate_id, v.user_id, v.round desc
    on conflict (operation_id, gate_id, round, user_id) do update set decision = excluded.decision, comment = excluded.comment,
      digest = excluded.digest, group_key = excluded.group_key, actor = excluded.actor, command_id = excluded.command_id, at = excluded.at, voided = false
    where now.digest <> excluded.digest`)
  await updateRows(tx, { operation_id }, operations, {
    open_gates: sql`(select count(*)::int from ${gates} where ${gates.operation_id} = ${operations.operation_id} and ${gates.status} = 'waiting')`,
  })
  const rows = await listStanding(tx, operation_id, stood)
  const moved = rows.filter(({ gate_id, status, round, digest }) => {
    const was = were.get(gate_id)
    return was?.status !== status || was.round !== round || (status === 'waiting' && was.digest !== digest)
  })
  return moved.map(({ gate_id, status, round, policy }) => ({
    type: status === 'waiting' ? 'gate.reopened' : `gate.${status}`,
    gate_id,
    data: { round, ...(status === 'waiting' && askedService(policy)) },
  }))
}

/** The member of a fact that tells the service of an external check that it must answer. */
export const askedService = ({ check }: PlanGate['policy']) => (check ? { service: check.service } : {})

/** Closes a cancelled operation's gates, and commands that await a second person; returns the gates that were open. */
export const cancelGates = async (tx: Tx, operation_id: string) => {
  await supersedeAwaiting(tx, operation_id)
  return tx
    .update(gates)
    .set({ status: 'cancelled', updated_at: NOW })
    .where(and(eq(gates.operation_id, operation_id), sql`${gates.status} in ('armed', 'waiting')`))
    .returning({ gate_id: gates.gate_id, round: gates.round })
}

/** Whether a refusal is the end of the operation, whatever happens before it takes effect. */
const IS_FINAL = sql<boolean>`(${gates.policy} ->> 'on_reject' = 'cancel_operation' and ${gates.status} in ('rejected', 'expired'))`

/** Gates of an operation that guard any of these nodes. */
export const listGuardingGates = (tx: Tx, operation_id: string, node_ids: readonly string[]) => {
  const ids = textArray(node_ids)
  const bound = sql<boolean>`exists (select from jsonb_array_elements_text(${gates.policy} -> 'binds') b, unnest(${ids}) n
    where n = split_part(b, '/', 2) or n like split_part(b, '/', 2) || '.%')`
  return tx
    .select({
      gate_id: gates.gate_id,
      status: sql<GateStatus>`${gates.status}`,
      ...pick(gates, 'round', 'guards', 'digest', 'approved_digest', 'consumed_at', 'waiting_since', 'deadline_at'),
      ...pick(gates, 'decided_by', 'decided_at', 'decided_command_id'),
      /** Whether it asked about outputs of these nodes. */
      bound,
      final: IS_FINAL,
      guards_reset: sql<boolean>`${gates.guards} && ${ids}`,
      guards_wait: sql<boolean>`exists (select from unnest(${gates.guards}) guarded(id) cross join lateral
        (select state from operations.nodes x where x.operation_id = ${operation_id} and x.node_id = guarded.id offset 0) n where n.state in ('pending', 'gated', 'ready'))`,
    })
    .from(gates)
    .where(and(eq(gates.operation_id, operation_id), sql`(${gates.guards} && ${ids} or ${bound})`))
    .orderBy(desc(gates.gate_id))
}

/** Every gate of a running operation, with the columns that a change of its graph needs. */
export const readRunningGates = (tx: Queryable, operation_id: string) =>
  tx
    .select({
      gate_id: gates.gate_id,
      kind: sql<PlanGate['kind']>`${gates.kind}`,
      ...pick(gates, 'question', 'policy', 'guards'),
      status: sql<GateStatus>`${gates.status}`,
      ...pick(gates, 'round', 'subject', 'digest', 'approved_digest'),
      consumed_at: iso(gates.consumed_at),
      waiting_since: iso(gates.waiting_since),
      deadline_at: iso(gates.deadline_at),
      decided_by: gates.decided_by,
      decided_at: iso(gates.decided_at),
      decided_command_id: gates.decided_command_id,
    })
    .from(gates)
    .where(eq(gates.operation_id, operation_id))
    .orderBy(asc(gates.ordinal), asc(gates.gate_id))
export type RunningGate = Awaited<ReturnType<typeof readRunningGates>>[number]

type UnpassedGate = { gate_id: string; status: GateStatus; guards: string[]; ended: boolean; final: boolean }

/**
 * Gates before a node, or before its prerequisites, that have not passed, by the claim's rules; a node skipped by its
 * condition needed none. `ended`: no node from that gate on is still to run, so that only a retry lets this one begin.
 */
export const listUnpassed = async (db: Queryable, operation_id: string, node_id: string): Promise<UnpassedGate[]> => {
  const { rows } = await db.execute<UnpassedGate>(sql`
    with recursive before (node_id, ended, counts) as (
      select ${node_id}::text, true, true
      union
      select n.node_id, b.ended and n.state in ('failed', 'skipped', 'compensated'), n.state <> 'skipped' or not n.spec ? 'when'
      from before b
        -- By the key, however small the planner believes an operation to be.
        cross join lateral (select unnest(depends_on) as node_id from operations.nodes where operation_id = ${operation_id} and node_id = b.node_id offset 0) d
        cross join lateral (select * from operations.nodes where operation_id = ${operation_id} and node_id = d.node_id offset 0) n
      where not n.removed and n.state <> 'succeeded')
    select gate_id, status, guards, ${IS_FINAL} as final, guards && array(select node_id from before where ended and counts) ended from ${gates}
    where operation_id = ${operation_id} and guards && array(select node_id from before where counts) and status <> 'cancelled'
      and (status = 'bypassed' or (status = 'approved' and digest = approved_digest)) is not true
    order by gate_id`)
  return rows
}

/** How many gates of an operation wait, counted afresh. */
export const waitingGates = (operation_id: string): SQL =>
  sql`(select count(*)::int from ${gates} g where g.operation_id = ${operation_id} and g.status = 'waiting')`

const EVIDENCE_SHOWN = 20

type GateContext = {
  subject: GateSubject | null
  as_of: string
  impact: { dependents: string[]; affected: Affected | null } | null
  policy_results: unknown[] | null
  rehearsal: unknown
  evidence: Pick<typeof operation_evidence_index.$inferSelect, 'seq' | 'kind' | 'statement' | 'at' | 'actor'>[]
  compensations: { node_id: string; name: string; executor: string }[]
}

/**
 * A gate's subject, and the context that a person weighs besides: the context may change and the digest does not cover
 * it (operations.md 5.5). Read apart from the gate, in one statement and for one gate only, because it may be large.
 */
export const getGateContext = async (db: Queryable, operation_id: string, gate_id: string) => {
  const { rows } = await db.execute<GateContext>(sql`
    select g.subject, operations.iso(clock_timestamp()) as as_of, p.report -> 'impact' as impact,
      p.report -> 'policy_results' as policy_results, p.report -> 'rehearsal' as rehearsal,
      (select coalesce(jsonb_agg(s order by s.seq), '[]') from (select e.seq, e.kind, e.statement, e.at, e.actor
        from ${operation_evidence_index} e where e.operation_id = ${operation_id} order by e.seq desc limit ${EVIDENCE_SHOWN}) s) as evidence,
      (select coalesce(jsonb_agg(jsonb_build_object('node_id', n.node_id, 'name', n.name,
          'executor', n.spec #>> '{compensate,executor}') order by n.ordinal), '[]')
        from unnest(g.guards) guarded(id) cross join lateral (select * from ${nodes} x where x.operation_id = ${operation_id} and x.node_id = guarded.id offset 0) n
        where n.spec -> 'compensate' is not null) as compensations
    from ${gates} g join ${operations} o using (operation_id) left join ${plans} p on p.plan_id = o.plan_id
    where g.operation_id = ${operation_id} and g.gate_id = ${gate_id}`)
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  const [row] = rows
  return {
    subject: row?.subject ?? null,
    context: {
      as_of: row?.as_of ?? '',
      impact: row?.impact ?? null,
      policy_results: list(row?.policy_results),
      rehearsal: row?.rehearsal ?? null,
      evidence: row?.evidence ?? [],
      compensations: row?.compensations ?? [],
    },
  }
}
