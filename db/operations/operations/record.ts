import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { storableValue } from '../../../apps/shared/run/storable.ts'
import type { Change, RecordBatch, RecordResult, Report } from '../../../workflows/operation/state/events.ts'
import { DEADLINE } from '../../../workflows/operation/state/nodes.ts'
import { type Db, first, type Last, type Tx, together, transact, updateRows } from '../../client.ts'
import { readFence } from '../../restore.ts'
import { builtOnce, NOW, updateRow } from '../../rows.ts'
import { endWaits } from '../agents/executions.ts'
import { revisionNow } from '../commands/rows.ts'
import { ENGINE, HEAD, stateFacts, type TimelineEvent } from '../facts/state.ts'
import { moveGates } from '../gates/record.ts'
import { cancelGates } from '../gates/rows.ts'
import { moveLeases } from '../leases/rows.ts'
import { closeAttempts, evaluateWhens, nodeEvents, saveNodes } from '../nodes/record.ts'
import { closePatches, patchApplied } from '../patches/rows.ts'
import { planConfirmed } from '../plans/rows.ts'
import { operation_commands, operation_control, operations, resource_operation_index } from '../tables/index.ts'
import { passNumber, supersede, undoCommand } from './undo.ts'

export type EngineRef = { namespace: string; workflow_id: string; run_id: string }

/**
 * Records one batch of the reducer in one transaction: node states, gates, swaps of the control row, outcomes of
 * commands, timeline, evidence, status. A batch that is already recorded returns its stored answer without effect.
 */
export const recordChanges = (
  db: Db,
  operation_id: string,
  batch: RecordBatch,
  engine_ref: EngineRef,
): Promise<RecordResult> =>
  transact(db, async (tx, last) => {
    if (batch.changes.some(needsControl)) await lockControl(tx, operation_id)
    return recordBatch(tx, operation_id, batch, engine_ref, last)
  })

/**
 * `recordChanges` within a transaction that holds the control row if the batch needs it. Its facts are its last
 * statements.
 */
export const recordBatch = async (
  tx: Tx,
  operation_id: string,
  given: RecordBatch,
  engine_ref: EngineRef,
  last: Last,
): Promise<RecordResult> => {
  // A text of a target may have been cut within a character.
  const batch = storableValue(given)
  const row = await lockRow(tx, { operation_id }).then(first)
  if (!row) throw new Error(`no operation ${operation_id}`)
  if (row.record_seq >= batch.record_seq) return row.record_result as RecordResult
  if (batch.record_seq > row.record_seq + 1) await refuseLost(tx, operation_id)
  const result: RecordResult = { record_seq: batch.record_seq, gates: [], whens: {}, control: null }
  const { commands, facts, set } = await apply(tx, operation_id, batch, result)
  const ended = result.withdrawn === true
  const said = await withoutLatePause(tx, operation_id, batch.report)
  const report = ended ? {} : reportColumns(operation_id, said, row)
  const status = ended ? [] : await statusEvents(tx, operation_id, said, row)
  // An operation runs before its nodes do, and is blocked or paused after they have come to rest.
  const begins = said.engine_status === 'running'
  last(
    stateFacts(tx, operation_id, {
      events: begins ? [...commands, ...status, ...facts] : [...commands, ...facts, ...status],
      set: { ...set, ...report, record_seq: batch.record_seq, record_result: result, engine_ref },
      head: row.head,
    }),
  )
  return result
}

/** A report of a pause may be written after the resume. It must not count for a later pause. */
const withoutLatePause = async (tx: Tx, operation_id: string, report: Report): Promise<Report> => {
  if (report.engine_status !== 'paused') return report
  const { rows } = await tx.execute(sql`
    select from operations.node_attempts where operation_id = ${operation_id} and phase in ('dispatched', 'running') limit 1`)
  return rows.length > 0 ? { ...report, engine_status: 'running' } : report
}

/**
 * A restored database lacks batches that the engine has recorded. A later one would hide that from `reconcile`, so it
 * waits until a person has settled the operation.
 */
const refuseLost = async (tx: Tx, operation_id: string): Promise<void> => {
  const { epoch, held_since, unchecked } = await readFence(tx, 'operations')
  if (epoch > 0 || held_since !== null || unchecked.length > 0)
    throw new Error(`the restored database lacks earlier facts of ${operation_id}: reconcile it`)
}

const needsControl = (change: Change): boolean =>
  change.t === 'control' || change.t === 'leases' || (change.t === 'command' && change.status !== 'applied')

const lockControl = (tx: Tx, operation_id: string) =>
  tx
    .select({ operation_id: operation_control.operation_id })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
    .for('update')

const lockRow = builtOnce(['operation_id'], (tx, { operation_id }) =>
  tx
    .select({ ...pick(operations, 'record_seq', 'record_result', 'engine_status', 'started_at'), head: HEAD })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
    .for('update'),
)

/** Applies the batch by kind, each kind at once; events are in the order in which things happened. */
const apply = async (tx: Tx, operation_id: string, { changes }: RecordBatch, result: RecordResult) => {
  const of = <T extends Change['t']>(...kinds: T[]) =>
    changes.filter((change): change is Extract<Change, { t: T }> => (kinds as string[]).includes(change.t))
  const commands = await settleCommands(tx, operation_id, of('command'), result)
  // For an undone start, the whole batch is void.
  if (result.withdrawn) return { commands, facts: [], set: {} }
  const nodeChanges = of('node')
  const [toEvent] = await together(
    nodeEvents(tx, operation_id, nodeChanges),
    saveNodes(tx, operation_id, nodeChanges),
    closeAttempts(tx, operation_id, nodeChanges),
  )
  const swaps: TimelineEvent[] = []
  for (const swap of of('control')) swaps.push(...(await swapControl(tx, operation_id, swap, result)))
  const moved = await moveGates(tx, operation_id, of('gate_open', 'gate_expire', 'gate_escalate'))
  result.gates.push(...moved.gates)
  result.whens = await evaluateWhens(
    tx,
    operation_id,
    of('when').map(({ id }) => id),
  )
  const facts = changes.flatMap((change) =>
    change.t === 'node' && !change.again
      ? (toEvent(change) ?? [])
      : change.t === 'catalog'
        ? [catalogEvent(change)]
        : [],
  )
  const lent: TimelineEvent[] = []
  for (const { to } of of('leases')) {
    const { events, ...leases } = await moveLeases(tx, operation_id, to)
    result.leases = leases
    lent.push(...events)
  }
  const [deadline] = of('deadline').slice(-1)
  const passed_over = nodeChanges.filter(({ exception }) => exception === 'tolerate' || exception === 'skip_dependents')
  const exceptions = passed_over.map(({ id, exception, at }) => ({
    kind: exception,
    node_id: id,
    actor: ENGINE,
    at: new Date(at).toISOString(),
  }))
  const set = {
    ...(deadline && {
      deadline_at: sql`${new Date(deadline.deadline_at).toISOString()}::timestamptz + make_interval(secs => ${addedTime(operation_id)})`,
    }),
    ...(exceptions.length > 0 && { exceptions: sql`${operations.exceptions} || ${JSON.stringify(exceptions)}::jsonb` }),
  }
  return { commands, facts: [...facts, ...moved.events, ...lent, ...swaps], set }
}

const catalogEvent = ({ id, at, status, version, role }: Extract<Change, { t: 'catalog' }>): TimelineEvent => ({
  type: `catalog.${status}`,
  actor: ENGINE,
  at: new Date(at).toISOString(),
  node_id: id,
  data: { ...(version !== undefined && { version }), ...(role && { role }) },
  evidence: {
    kind: 'catalog_result',
    statement: `The catalog write of ${role ? 'the undo of ' : ''}node ${id}: ${status}`,
    subject: { type: 'node', id },
    subject_digest: digest({ node_id: id, status, version: version ?? null, ...(role && { role }) }),
  },
})

type CommandChange = Extract<Change, { t: 'command' }>

/**
 * Records outcomes of commands; undoes expired or refused ones immediately. An undone one may withdraw a later one of
 * the same batch, so a batch with one is taken in order.
 */
const settleCommands = async (
  tx: Tx,
  operation_id: string,
  changes: readonly CommandChange[],
  result: RecordResult,
): Promise<TimelineEvent[]> => {
  if (changes.every(({ status }) => status === 'applied')) return settleTogether(tx, operation_id, changes, result)
  const events: TimelineEvent[] = []
  for (const change of changes) events.push(...(await settleTogether(tx, operation_id, [change], result)))
  return events
}

const commandsByIds = builtOnce(['ids'], (tx, { ids }) =>
  tx.select().from(operation_commands).where(sql`${operation_commands.command_id} = any(${ids}::uuid[])`),
)

/** A condition in words of ours: the status is an activity's input, and must never be a part of a statement. */
const UNSETTLED: Record<CommandChange['status'], string> = {
  applied: `and status not in ('applied', 'withdrawn', 'superseded')`,
  refused: `and status not in ('refused', 'withdrawn', 'superseded')`,
  expired: `and status not in ('expired', 'withdrawn', 'superseded')`,
}

const settleTogether = async (
  tx: Tx,
  operation_id: string,
  changes: readonly CommandChange[],
  result: RecordResult,
): Promise<TimelineEvent[]> => {
  if (changes.length === 0) return []
  const ids = changes.map(({ command_id }) => command_id)
  const selected = commandsByIds(tx, { ids })
  const settled = changes.map(({ command_id, status, category, code, detail }) => {
    const outcome = status === 'refused' ? { category, code, detail } : null
    if (!Object.hasOwn(UNSETTLED, status)) throw new Error(`no command ends as ${status}`)
    const set = { status, outcome, outcome_at: NOW }
    return updateRow(tx, operation_commands, { command_id }, set, UNSETTLED[status])
  })
  const [rows] = await together(selected, ...settled)
  const events: TimelineEvent[] = []
  for (const { command_id, status } of changes) {
    const row = rows.find((candidate) => candidate.command_id === command_id)
    // A start that a stopped relay sends after it was taken back: the operation has ended, and stays so.
    const takenBack = row?.status === 'withdrawn' || row?.status === 'superseded'
    if (row?.kind === 'start' && takenBack) result.withdrawn = true
    // A later patch of an undone one is withdrawn, even if the engine took it.
    if (!row || takenBack) continue
    if (status === 'applied') {
      if (row.kind === 'start') await planConfirmed(tx, operation_id)
      if (row.kind === 'patch_applied') events.push(...(await patchTaken(tx, operation_id, row)))
      if (row.kind === 'intervene') events.push(interventionApplied(row))
      events.push({ type: 'command.applied', actor: ENGINE, command_id, data: { kind: row.kind, seq: row.seq } })
      continue
    }
    const undone = await undoCommand(tx, row, status)
    events.push(...undone)
    if (undone.some(({ type }) => type === 'command.withdrawn')) await passNumber(tx, operation_id)
    if (row.kind === 'start') result.withdrawn = true
    if (row.kind === 'patch_applied') {
      result.plan_revision = await revisionNow(tx, operation_id)
      for (const gate of undoneGates(row.undo)) result.gates.push(...(await gateNow(tx, operation_id, gate)))
    }
    if (row.kind === 'gate_decided') result.gates.push(...(await gateNow(tx, operation_id, row.payload)))
  }
  return events
}

type CommandRow = typeof operation_commands.$inferSelect

const interventionApplied = ({ command_id, payload }: CommandRow): TimelineEvent => {
  const { type, node_id = null } = payload as { type?: string; node_id?: string | null }
  return { type: 'intervention.applied', actor: ENGINE, command_id, node_id, data: { type } }
}

/** The reducer has adopted the new graph, so the patch is applied. */
const patchTaken = async (tx: Tx, operation_id: string, row: CommandRow): Promise<TimelineEvent[]> => {
  const { patch_id, plan_revision } = row.payload as { patch_id?: string; plan_revision?: number }
  if (patch_id === undefined || row.undo === null) return []
  await patchApplied(tx, operation_id, patch_id)
  return [{ type: 'patch.applied', actor: ENGINE, patch_id, data: { plan_revision } }]
}

const undoneGates = (undo: CommandRow['undo']) => (undo?.gates ?? []) as Record<string, unknown>[]

const gateNow = async (tx: Tx, operation_id: string, payload: Record<string, unknown>) => {
  const { rows } = await tx.execute<RecordResult['gates'][number]>(sql`
    select gate_id, status, round, operations.iso(deadline_at) as deadline_at, operations.iso(next_escalation_at) as escalates_at from operations.gates
    where operation_id = ${operation_id} and gate_id = ${String(payload.gate_id)}`)
  return rows
}

/** Seconds for the operation that are accepted, and on their way to the engine. */
const addedTime = (operation_id: string) => sql`(
  select coalesce(sum((k.payload #>> '{payload,add_s}')::float8), 0) from ${operation_commands} k where k.operation_id = ${operation_id}
  and k.kind = 'intervene' and k.payload ->> 'type' = 'extend_deadline' and k.payload ? 'payload' and k.status in ('pending', 'sending', 'delivered'))`

type ControlChange = Extract<Change, { t: 'control' }>

/** A pause or cancel by the engine: only from `run`, so that a person's earlier decision holds (operations.md 1.6). */
const swapControl = async (
  tx: Tx,
  operation_id: string,
  { to, mode, reason, by }: ControlChange,
  result: RecordResult,
): Promise<TimelineEvent[]> => {
  const from = by === undefined ? ['run'] : ['run', 'pause']
  const [swapped] = await tx
    .update(operation_control)
    .set({
      control: to,
      revision: sql`${operation_control.revision} + 1`,
      ...(to === 'pause'
        ? { pause_reason: reason }
        : { cancel_mode: mode ?? 'graceful', cancelled_at: NOW, pause_reason: null }),
    } as never)
    .where(
      and(
        eq(operation_control.operation_id, operation_id),
        inArray(operation_control.control, from as 'run'[]),
        ...(reason === DEADLINE ? [sql`${addedTime(operation_id)} = 0`] : []),
      ),
    )
    .returning({ seq: operation_control.command_seq })
  result.control = { swapped: swapped ? to : (result.control?.swapped ?? null), seq: await lastSeq(tx, operation_id) }
  if (!swapped) return []
  const actor: Actor = by === undefined ? ENGINE : { kind: 'engine', id: by, name: by }
  const data = { reason, ...(mode && { mode }) }
  if (to === 'pause') return [{ type: 'operation.pausing', actor, reason, data }]
  const { undone } = await supersede(tx, operation_id, actor)
  if (undone.length > 0) await passNumber(tx, operation_id)
  await endWaits(tx, operation_id)
  const gates = await cancelGates(tx, operation_id)
  const patches = await closePatches(tx, operation_id, 'operation_cancelled')
  return [
    { type: 'operation.cancelling', actor, reason, data },
    ...undone,
    ...patches.map((fact) => ({ ...fact, actor })),
    ...gates.map(({ gate_id, round }) => ({ type: 'gate.cancelled', actor, gate_id, data: { round } })),
  ]
}

const lastSeq = async (tx: Tx, operation_id: string): Promise<number> => {
  const { rows } = await tx.execute<{ seq: string }>(sql`
    select coalesce(max(seq), 0) as seq from operations.operation_commands
    where operation_id = ${operation_id} and status not in ('awaiting', 'withdrawn', 'superseded')`)
  return Number(rows[0]?.seq ?? 0)
}

const reportColumns = (operation_id: string, report: Report, row: { started_at: string | null }) => ({
  // A worker of another build may report more.
  ...pick(report, 'engine_status', 'blocked_on', 'total', 'done', 'running', 'failed', 'waiting'),
  // The engine does not know interventions that a second person must approve.
  open_gates: sql`${report.open_gates} + (select count(*)::int from operations.gates g
    where g.operation_id = ${operation_id} and g.kind = 'intervention' and g.status = 'waiting')`,
  // The first attempt has begun before the engine reports it; what was paused or cancelled before it is no start.
  ...(row.started_at === null && {
    started_at: sql`least(${goesOn(report) ? NOW : null}::timestamptz, (select min(a.started_at) from operations.node_attempts a where a.operation_id = ${operation_id}))`,
  }),
})

const goesOn = ({ engine_status }: Report): boolean => engine_status === 'running' || engine_status === 'blocked'

/** A status is a fact of its own if readers see it: under a pause only `paused`; a cancel was stated by its author. */
const statusEvents = async (
  tx: Tx,
  operation_id: string,
  report: Report,
  before: { engine_status: string; started_at: string | null },
): Promise<TimelineEvent[]> => {
  const { engine_status, blocked_on } = report
  if (engine_status === before.engine_status || engine_status === 'cancelling' || engine_status === 'queued') return []
  const data = { status: engine_status, ...(blocked_on.length > 0 && { blocked_on }) }
  if (before.started_at === null && goesOn(report)) {
    await updateRows(tx, { operation_id }, resource_operation_index, { status: 'running' })
    return [{ type: 'operation.started', actor: ENGINE, data }]
  }
  const [wanted] = await tx
    .select({ control: operation_control.control })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  const seen = (engine_status === 'paused' ? 'pause' : 'run') === wanted?.control
  return seen ? [{ type: `operation.${engine_status}`, actor: ENGINE, data }] : []
}
