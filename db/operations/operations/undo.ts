import { and, isNull, ne, sql } from 'drizzle-orm'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, type Tx, updateRows } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { lockUnsentStarts, revisionNow, tellEngine } from '../commands/rows.ts'
import { SYSTEM, type TimelineEvent } from '../facts/state.ts'
import { FIRST_ESCALATION } from '../gates/ask.ts'
import { cancelApproved } from '../gates/awaiting.ts'
import { askedService, cancelGates } from '../gates/rows.ts'
import { releaseLeases, setLeaseState } from '../leases/rows.ts'
import { undoRevision } from '../patches/apply.ts'
import { closePatches } from '../patches/rows.ts'
import { startWithdrawn } from '../plans/rows.ts'
import { gates, type LeaseState, nodes, operation_commands, operation_control, operations } from '../tables/index.ts'
import { type DriftUndo, restoreDrift, restoreGates } from './undo.rows.ts'

/**
 * Undoes the decisions of start-class commands that never took effect (operations.md 1.4): withdrawn by the sweeper,
 * superseded by a cancel, expired or refused by the reducer. Runs in the caller's transaction, which holds the control
 * row; the caller states the returned events as facts.
 */
export type Undoable = Pick<
  typeof operation_commands.$inferSelect,
  'command_id' | 'operation_id' | 'kind' | 'payload' | 'undo' | 'actor'
> & {
  /** Whether the engine may have taken it. */
  sent?: boolean
}
export type UndoneAs = 'withdrawn' | 'superseded' | 'expired' | 'refused'

/** Marks a command as never carried out and undoes its decision. */
export const undoCommand = async (
  tx: Tx,
  command: Undoable,
  as: UndoneAs,
  actor: Actor = SYSTEM,
  reason = REASONS[as],
): Promise<TimelineEvent[]> => {
  if (as !== 'refused')
    await updateRows(tx, { command_id: command.command_id }, operation_commands, { status: as, outcome_at: NOW })
  const { command_id, kind, operation_id } = command
  const said = { actor, command_id, reason }
  const later = as === 'superseded' ? [] : await withdrawLater(tx, command)
  const events = (await UNDO[kind]?.(tx, command, as)) ?? []
  return [
    ...later,
    { ...said, type: `command.${as}`, data: { kind }, ...evidenceOf(command, as, operation_id) },
    ...events.map((event) => ({ ...said, ...event, ...(STANDS_AGAIN.test(event.type) && { actor: SYSTEM }) })),
  ]
}

/** A decision that stands again is not that of whoever undoes the command. */
const STANDS_AGAIN = /^gate\.(approved|rejected|expired|bypassed)$/

/** Undo data of both commands name the same node or gate. */
const shared = (path: string) =>
  sql`exists (select jsonb_path_query(later.undo, ${path}::jsonpath) intersect select jsonb_path_query(own.undo, ${path}::jsonpath))`

/**
 * Withdraws later commands that were decided on what this one had written, newest first: patches on its graph, and
 * patches, values and accepted drift for its nodes or behind its gates. Else those would run on an approval of something
 * else. The engine may have taken one already: the claims go by the rows. A retry that it may have taken stays, for its
 * nodes may run.
 */
const withdrawLater = async (tx: Tx, { command_id }: Undoable): Promise<TimelineEvent[]> => {
  const { rows } = await tx.execute<Undoable>(sql`
    select later.command_id, later.operation_id, later.kind, later.payload, later.undo, later.actor,
      later.status <> 'pending' or later.attempts > 0 as sent
    from ${operation_commands} own join ${operation_commands} later on later.operation_id = own.operation_id and later.seq > own.seq
    where own.command_id = ${command_id} and own.undo is not null and later.status in ('pending', 'sending', 'delivered')
      and case when later.kind = 'patch_applied' and own.kind = 'patch_applied' then true
        when later.kind in ('patch_applied', 'resume') or later.payload ->> 'type' in ('set_input', 'set_output')
          or (later.kind = 'retry_node' and later.status = 'pending' and later.attempts = 0)
        then ${shared('$.nodes[*].node_id')} or ${shared('$.gates[*].gate_id')} end
    order by later.seq desc for update of later`)
  const events: TimelineEvent[] = []
  for (const later of rows)
    events.push(...(await undoCommand(tx, later, 'withdrawn', SYSTEM, 'It was decided on one that never took effect.')))
  return events
}

/** The effect of a cancel on start-class commands that were never sent; returns them with the facts. */
export const supersede = async (tx: Tx, operation_id: string, actor: Actor) => {
  const unsent = await lockUnsentStarts(tx, operation_id)
  const undone: TimelineEvent[] = []
  for (const row of unsent) undone.push(...(await undoCommand(tx, row, 'superseded', actor)))
  return { unsent, undone }
}

/** The sweeper's handling of commands that were not sent in time. */
export const withdraw = async (tx: Tx, command: Undoable): Promise<TimelineEvent[]> => {
  const events = await undoCommand(tx, command, 'withdrawn')
  if (command.kind !== 'start') await passNumber(tx, command.operation_id)
  return events
}

/** Sends the engine a later number than those of commands that it will never receive, for which its end may wait. */
export const passNumber = (tx: Tx, operation_id: string) => tellEngine(tx, operation_id, 'place_free', { node_ids: [] })

const REASONS: Record<UndoneAs, string> = {
  withdrawn: 'It could not be sent within its time.',
  superseded: 'The operation was cancelled before it was sent.',
  expired: 'It reached the engine after its time.',
  refused: 'The operation had moved on before it arrived.',
}

const evidenceOf = ({ command_id, kind, actor, payload }: Undoable, as: UndoneAs, operation_id: string) => ({
  evidence: {
    kind: 'command' as const,
    statement: `Command ${[kind, payload?.type, payload?.node_id].filter(Boolean).join(' ')} by ${actor.name} did not take effect: ${as} (${command_id})`,
    subject: { type: 'operation', id: operation_id },
    subject_digest: digest({ command_id, kind, as }),
  },
})

type Fact = Omit<TimelineEvent, 'actor'>
type Undo = (tx: Tx, command: Undoable, as: UndoneAs) => Promise<Fact[]>

/** The operation never existed: it ends as cancelled, and its plan can be started again. */
const undoStart: Undo = async (tx, { operation_id }) => {
  await updateRows(tx, { operation_id }, operation_control, {
    ended: true,
    revision: sql`${operation_control.revision} + 1`,
  })
  await updateRows(tx, { operation_id }, operations, {
    engine_status: 'cancelled',
    end_reason: 'start_withdrawn',
    blocked_on: [],
    open_gates: 0,
    done: sql`${operations.total}`,
    ended_at: NOW,
  })
  const never = await tx
    .update(nodes)
    .set({ state: 'cancelled', ended_at: NOW })
    .where(and(equals(nodes, { operation_id }), ne(nodes.state, 'removed')))
    .returning({ node_id: nodes.node_id })
  const closed = await cancelGates(tx, operation_id)
  const patches = await closePatches(tx, operation_id, 'operation_ended', ['awaiting_approval', 'approved'])
  await startWithdrawn(tx, operation_id)
  // No one is left to receive the decisions made on it meanwhile.
  await tx
    .update(operation_commands)
    .set({ status: 'superseded', outcome_at: NOW })
    .where(and(equals(operation_commands, { operation_id, status: 'pending' }), ne(operation_commands.kind, 'start')))
  const data = { status: 'cancelled', end_reason: 'start_withdrawn' }
  return [
    { type: 'operation.cancelled', data },
    ...patches,
    ...closed.map(({ gate_id, round }) => ({ type: 'gate.cancelled', gate_id, data: { round } })),
    ...never.map(({ node_id }) => ({ type: 'node.cancelled', node_id, data: {} })),
    { type: 'operation.ended', data, evidence: endedUnstarted(operation_id) },
  ]
}

const endedUnstarted = (operation_id: string) => ({
  kind: 'end' as const,
  statement: 'The operation ended: cancelled (start_withdrawn)',
  subject: { type: 'operation', id: operation_id, status: 'cancelled' },
  subject_digest: digest({ operation_id, status: 'cancelled', end_reason: 'start_withdrawn' }),
})

/** The exceptions of an operation but for the one that this command made. */
const exceptionsWithout = (command_id: string) =>
  sql`(select coalesce(jsonb_agg(e), '[]'::jsonb) from jsonb_array_elements(${operations.exceptions}) e
    where e ->> 'command_id' is distinct from ${command_id})`

/** The gate asks again: next round, the same time to decide. A gate used since stays. */
const undoDecision: Undo = async (tx, { command_id, operation_id, payload }) => {
  const { gate_id, round, status } = payload as { gate_id: string; round: number; status: string }
  const again = await tx
    .update(gates)
    .set({
      status: 'waiting',
      round: sql`${gates.round} + 1`,
      approved_digest: null,
      decided_by: null,
      decided_at: null,
      decided_command_id: null,
      deadline_at: sql`clock_timestamp() + (${gates.deadline_at} - ${gates.waiting_since})`,
      waiting_since: NOW,
      escalation_level: 0,
      next_escalation_at: FIRST_ESCALATION,
      updated_at: NOW,
    })
    .where(and(equals(gates, { operation_id, gate_id, round, status }), isNull(gates.consumed_at)))
    .returning(pick(gates, 'round', 'digest', 'policy'))
  if (again.length > 0)
    await updateRows(tx, { operation_id }, operations, {
      open_gates: sql`${operations.open_gates} + 1`,
      exceptions: exceptionsWithout(command_id),
    })
  return again.map(({ policy, ...gate }) => ({
    type: 'gate.reopened',
    gate_id,
    data: { round: gate.round, ...askedService(policy) },
    evidence: {
      kind: 'gate_decision',
      statement: `Gate ${gate_id} asks again in round ${gate.round}: its decision never took effect`,
      subject: { type: 'gate', id: gate_id, status: 'waiting', kept: [], ...gate },
      subject_digest: gate.digest,
    },
  }))
}

type ResumeUndo = { pause_reason?: string | null; lease_state?: LeaseState } & DriftUndo

/** Whether a later command of this kind replaced the value; undone too, it restores the value from before both. */
const isReplaced = async (tx: Tx, { command_id }: Undoable, value: Record<string, unknown>): Promise<boolean> => {
  const { rowCount } = await tx.execute(sql`
    update ${operation_commands} set undo = undo || ${JSON.stringify(value)}::jsonb where command_id = (
      select later.command_id from ${operation_commands} later join ${operation_commands} own using (operation_id, kind)
      where own.command_id = ${command_id} and later.seq > own.seq and later.payload ->> 'type' is not distinct from own.payload ->> 'type'
        and later.status in ('pending', 'sending', 'delivered', 'applied') order by later.seq limit 1)`)
  return rowCount === 1
}

/**
 * Paused again; leases that it took back are free again, and values that it accepted must be accepted again. If a later
 * resume lets the operation run, only the values go back: a claim is refused on a target that is not as planned.
 */
const undoResume: Undo = async (tx, command) => {
  const { operation_id, undo, sent } = command
  const { pause_reason: reason, lease_state, ...before } = (undo ?? {}) as ResumeUndo
  const pause_reason = reason ?? 'operator'
  const restored = await restoreDrift(tx, operation_id, before)
  if (await isReplaced(tx, command, lease_state === 'given_back' ? { lease_state } : {})) return restored
  const [row] = await tx
    .update(operation_control)
    .set({ control: 'pause', pause_reason, revision: sql`${operation_control.revision} + 1` })
    .where(equals(operation_control, { operation_id, control: 'run' }))
    .returning({ operation_id: operation_control.operation_id })
  if (!row) return restored
  if (sent) await tellEngine(tx, operation_id, 'pause', {}, { class: 'stop', reason: REASONS.withdrawn })
  const paused = [{ type: 'operation.pausing', data: { pause_reason } }, ...restored]
  if (lease_state !== 'given_back') return paused
  const resources = await releaseLeases(tx, operation_id)
  await setLeaseState(tx, operation_id, 'given_back')
  return [...paused, { type: 'lease.released', data: { resources } }]
}

type RowsBefore = {
  nodes?: Record<string, unknown>[]
  gates?: Record<string, unknown>[]
  max_parallel?: number
  /** Seconds that were added to the operation's time. */
  added_s?: number
  /** Seconds that were added to a gate's time, in this round. */
  gate_time?: { gate_id: string; round: number; added_s: number }
}

/** The state that the command itself wrote to its node; any other state came from the engine later, and holds. */
const writtenBy = ({ kind, payload }: Undoable): string | null =>
  kind === 'retry_node' ? 'pending' : payload?.type === 'trigger_compensation' ? 'compensating' : null

/** Restores rows; generations and rounds only grow, so messages in flight stay refused. */
const undoRows: Undo = async (tx, command) => {
  const { command_id, operation_id, undo } = command
  const rows = (undo ?? {}) as RowsBefore
  const { nodes: before = [], gates: gatesBefore = [], max_parallel, added_s = 0, gate_time } = rows
  if (gate_time)
    await updateRows(tx, { operation_id, gate_id: gate_time.gate_id, round: gate_time.round }, gates, {
      deadline_at: sql`${gates.deadline_at} - make_interval(secs => ${gate_time.added_s})`,
    })
  await updateRows(tx, { operation_id }, operations, {
    exceptions: exceptionsWithout(command_id),
    deadline_at: sql`${operations.deadline_at} - make_interval(secs => ${added_s})`,
    ...(max_parallel !== undefined && !(await isReplaced(tx, command, { max_parallel })) && { max_parallel }),
  })
  const nodesBefore = sql`jsonb_populate_recordset(null::${nodes}, ${JSON.stringify(before)}::jsonb) r`
  await tx.execute(sql`
    update ${nodes} n set outputs = r.outputs, exception = r.exception, updated_at = clock_timestamp(),
      gate_ids = coalesce(r.gate_ids, n.gate_ids), spec_digest = coalesce(r.spec_digest, n.spec_digest),
      input_overrides = case when r.spec_digest is null then n.input_overrides else r.input_overrides end
    from ${nodesBefore} where n.operation_id = ${operation_id} and n.node_id = r.node_id`)
  const { rows: back } = await tx.execute<{ node_id: string; state: string }>(sql`
    update ${nodes} n set state = r.state, error = r.error, catalog = r.catalog, started_at = r.started_at, ended_at = r.ended_at
    from ${nodesBefore} where n.operation_id = ${operation_id} and n.node_id = r.node_id and n.state = ${writtenBy(command)}
    returning n.node_id, n.state`)
  const closed = command.kind === 'intervene' ? await cancelApproved(tx, operation_id, command_id) : []
  return [
    ...back.map(({ node_id, state }) => ({ type: `node.${state}`, node_id, data: {} })),
    ...closed.map(({ gate_id, round }) => ({ type: 'gate.cancelled', gate_id, data: { round } })),
    ...(await restoreGates(tx, operation_id, gatesBefore)),
  ]
}

/** Restores the previous graph. If the engine never learned of the approval, it is told to release the held nodes. */
const undoPatch: Undo = async (tx, { operation_id, undo }, as) => {
  // A vote that completed no quorum had no other effect.
  if (!undo) return []
  const facts = await undoRevision(tx, operation_id, undo as Parameters<typeof undoRevision>[2], as)
  if (as !== 'withdrawn') return facts
  const closed = { patch_id: undo.patch_id, plan_revision: await revisionNow(tx, operation_id) }
  await tellEngine(tx, operation_id, 'patch_closed', closed, { reason: REASONS[as] })
  return facts
}

const UNDO: Record<string, Undo> = {
  start: undoStart,
  gate_decided: undoDecision,
  resume: undoResume,
  retry_node: undoRows,
  intervene: undoRows,
  patch_applied: undoPatch,
}
