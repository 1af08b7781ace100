import { and, eq, isNull, type SQL, sql } from 'drizzle-orm'
import { type Db, type Tx, updateRows } from '../../../db/client.ts'
import { pruneKeys } from '../../../db/command/keys.ts'
import { pruneInbox } from '../../../db/inbox.ts'
import { tryLockOf } from '../../../db/locks.ts'
import { expireArtifacts } from '../../../db/operations/agents/artifacts.ts'
import { giveUpAttempts } from '../../../db/operations/agents/executions.ts'
import { pruneAnswers } from '../../../db/operations/agents/results.ts'
import { pruneAgents } from '../../../db/operations/agents/rows.ts'
import { offerPlaces } from '../../../db/operations/commands/places.ts'
import { listOverdueStarts, lockOperation, lockOverdueStart } from '../../../db/operations/commands/rows.ts'
import { bumpRevision, SYSTEM, stateFacts, type TimelineEvent } from '../../../db/operations/facts/state.ts'
import { closeIntervention, listDeadInterventions } from '../../../db/operations/gates/awaiting.ts'
import { archiveLogs, expireLogs } from '../../../db/operations/history/archive.ts'
import { grantLeases } from '../../../db/operations/leases/rows.ts'
import { pauseMismatched } from '../../../db/operations/nodes/mismatch.ts'
import { pruneDeliveries } from '../../../db/operations/notifications/deliveries.ts'
import { pruneRemoved } from '../../../db/operations/notifications/destinations.ts'
import { closeOperation } from '../../../db/operations/operations/close.ts'
import { undoCommand, withdraw } from '../../../db/operations/operations/undo.ts'
import { closePatch } from '../../../db/operations/patches/close.ts'
import { listExpiredPatches } from '../../../db/operations/patches/rows.ts'
import { pruneDrafts } from '../../../db/operations/plans/prune.ts'
import { expireDue } from '../../../db/operations/plans/rows.ts'
import { pruneHookDeliveries } from '../../../db/operations/plans/schedules.ts'
import {
  engine_findings,
  idempotency,
  inboxOf,
  nodes,
  operation_commands,
  operation_control,
  operations,
} from '../../../db/operations/tables/index.ts'
import { NOW } from '../../../db/rows.ts'
import { pick } from '../../shared/data/pick.ts'
import { startLoop } from '../../shared/process/repeat.ts'
import { tellUntold } from '../calendar/freezes.ts'
import { passOverFreezes } from '../calendar/over.ts'
import type { AcceptDeps, PlanningDeps, PolicyDeps, Uses } from '../deps.ts'
import { createDriftWatch, rethrow } from './drift.ts'

const BATCH = 50
const PRUNE_EVERY_MS = 60_000
const ARCHIVE_EVERY_MS = 3_600_000

/**
 * Work that only time triggers. It withdraws start-class commands that had no effect in time and acts on findings about
 * the engine. It expires plans and intents, and grants leases and places that became free. Changes of calendar and
 * catalog reach running operations, and old logs are packed. One process works at a time, by an advisory lock of the
 * turn's transaction.
 */
export const startSweeper = (deps: AcceptDeps & PlanningDeps & PolicyDeps & Uses<'artifacts'>) => {
  const { db, config, telemetry } = deps
  const watchDrift = createDriftWatch(deps)
  let pruned_at = Number.NEGATIVE_INFINITY
  let archived_at = Number.NEGATIVE_INFINITY

  const cannot = (error: unknown): 0 => {
    telemetry.log.error({ err: error }, 'the sweeper cannot do this')
    return 0
  }

  const turn = async () => {
    const deadline_s = config.OPERATIONS__COMMANDS__DISPATCH_DEADLINE_S
    // What fails for one operation holds up no other work.
    const changed =
      (await sweep(db, cannot)) +
      (await grantLeases(db, { deadline_s }).catch(cannot)) +
      (await offerPlaces(db).catch(cannot)) +
      (await tellUntold(deps).catch(cannot)) +
      (await passOverFreezes(deps, cannot).catch(cannot)) +
      (await watchDrift(cannot).catch(cannot))
    if (changed > 0) deps.nats.wake('operations')
    if (performance.now() - pruned_at > PRUNE_EVERY_MS) {
      pruned_at = performance.now()
      await pruneKeys(db, idempotency)
      await pruneDeliveries(db)
      await pruneRemoved(db)
      await pruneHookDeliveries(db)
    }
    if (performance.now() - archived_at > ARCHIVE_EVERY_MS) {
      archived_at = performance.now()
      await archiveLogs(db, config.OPERATIONS__LOGS__HOT_DAYS)
      await expireLogs(db, config.OPERATIONS__LOGS__ARCHIVE_DAYS)
      await expireArtifacts(db, config.OPERATIONS__ARTIFACTS__DAYS, deps.artifacts.remove)
      await pruneInbox(db, inboxOf)
      await pruneDrafts(db)
      await pruneAgents(db)
      await pruneAnswers(db)
    }
  }
  return startLoop('sweep', turn, {
    every_ms: config.OPERATIONS__SWEEP__INTERVAL_MS,
    failed: (error) => telemetry.log.warn({ err: error }, 'a turn of the sweeper failed'),
  })
}

/** Runs one turn; returns at once while another process holds the lock. Returns how many things it changed. */
export const sweep = async (db: Db, failed: (error: unknown) => void = rethrow): Promise<number> => {
  const overdue = await db.transaction(async (tx) => {
    if (!(await isLeader(tx))) return undefined
    const commands = await listOverdueStarts(tx, BATCH)
    const findings = await listFindings(tx)
    await expireDue(tx)
    return {
      commands,
      findings,
      patches: await listExpiredPatches(tx, BATCH),
      asked: await listDeadInterventions(tx, BATCH),
    }
  })
  if (!overdue) return 0
  // Each in a separate transaction, so that one failure holds no other back.
  const apart = (act: (tx: Tx) => Promise<unknown>) => db.transaction(act).catch(failed)
  for (const { command_id, operation_id } of overdue.commands)
    await apart((tx) => withdrawOverdue(tx, operation_id, command_id))
  for (const finding of overdue.findings) {
    const lost = await apart((tx) => actOnFinding(tx, finding))
    if (lost === 'cancelled') await closeOperation(db, finding.operation_id, CANCELLED_ON_ROWS).catch(failed)
  }
  for (const { operation_id, patch_id } of overdue.patches)
    await apart((tx) => closePatch(tx, operation_id, patch_id, 'expired', 'expired'))
  for (const { operation_id, gate_id } of overdue.asked) await apart((tx) => closeAsked(tx, operation_id, gate_id))
  return overdue.commands.length + overdue.findings.length + overdue.patches.length + overdue.asked.length
}

/** Withdraws an intervention that no second person reviewed in time, or whose subject has changed since. */
const closeAsked = async (tx: Tx, operation_id: string, gate_id: string): Promise<void> => {
  if (!(await lockOperation(tx, operation_id))) return
  const events = await closeIntervention(tx, operation_id, gate_id)
  if (events.length === 0) return
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, { events, set: { open_gates: sql`greatest(${operations.open_gates} - 1, 0)` } })
}

const isLeader = async (tx: Tx): Promise<boolean> => {
  const { rows } = await tx.execute<{ held: boolean }>(sql`select ${tryLockOf('sweeper')} as held`)
  return rows[0]?.held ?? false
}

/** Withdraws one command that is past its time and has no effect, with its decision (operations.md 1.4). */
const withdrawOverdue = async (tx: Tx, operation_id: string, command_id: string): Promise<void> => {
  const operation = await lockOperation(tx, operation_id)
  const command = operation && (await lockOverdueStart(tx, command_id))
  if (!command) return
  // A lost engine takes no number; one that knows the operation again gets a later one with its pause.
  const events = await (operation.pause_reason === 'engine_lost'
    ? undoCommand(tx, command, 'withdrawn')
    : withdraw(tx, command))
  await bumpRevision(tx, operation_id)
  await stateFacts(tx, operation_id, { events, request_id: command.request_id, trace: command.trace })
}

type Finding = { id: number; operation_id: string; found: string }

const listFindings = (tx: Tx): Promise<Finding[]> =>
  tx
    .select({ id: engine_findings.id, operation_id: engine_findings.operation_id, found: engine_findings.found })
    .from(engine_findings)
    .where(isNull(engine_findings.handled_at))
    .orderBy(engine_findings.id)
    .limit(BATCH)

const FOUND_AGAIN = 'The workflow engine knows this operation again.'

/** Nothing else will end this operation: only its rows are left. */
const CANCELLED_ON_ROWS = { status: 'cancelled', end_reason: 'engine_lost', last_seq: Number.MAX_SAFE_INTEGER } as const

/**
 * The engine no longer has the operation. If it ended, its waiting commands are refused. If it is live, it is paused as
 * engine_lost, and the outcome of attempts in flight is unknown. If it is being canceled, it ends on its rows. An
 * operation that the engine knows again stays paused, and a person may resume it.
 */
const actOnFinding = async (tx: Tx, { id, operation_id, found }: Finding): Promise<'cancelled' | undefined> => {
  await updateRows(tx, { id }, engine_findings, { handled_at: NOW })
  const operation = await lockOperation(tx, operation_id)
  if (!operation) return undefined
  const [control] = await tx
    .select({ ended: operation_control.ended })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  const ended = control?.ended ?? false
  const cancelled = !ended && operation.control === 'cancel'
  const lost = !ended && operation.pause_reason === 'engine_lost'
  if (lost !== (found === 'running')) return undefined
  const events = lost
    ? await pauseMismatched(tx, operation_id, true, FOUND_AGAIN)
    : [
        ...(ended ? [] : await markLost(tx, operation_id, cancelled)),
        ...(ended || cancelled ? await settleWaiting(tx, operation_id) : []),
      ]
  if (events.length > 0) {
    await bumpRevision(tx, operation_id)
    await stateFacts(tx, operation_id, { events, ...(!ended && !cancelled && { set: { engine_status: 'paused' } }) })
  }
  return cancelled ? 'cancelled' : undefined
}

/** Settles commands that wait for a lost engine: the rows carry out a cancel, all others are refused. */
const settleWaiting = async (tx: Tx, operation_id: string): Promise<TimelineEvent[]> => {
  const outcome = {
    category: 'invalid_state_transition',
    code: 'operation_terminal',
    detail: 'The operation ended before this reached it.',
  }
  const refused = sql`${operation_commands.kind} <> 'cancel'`
  const rows = await tx
    .update(operation_commands)
    .set({
      status: sql`case when ${refused} then 'refused' else 'applied' end`,
      outcome: sql`case when ${refused} then ${JSON.stringify(outcome)}::jsonb end`,
      outcome_at: NOW,
    })
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        sql`${operation_commands.status} in ('pending', 'sending', 'delivered')`,
      ),
    )
    .returning({ ...pick(operation_commands, 'command_id', 'kind', 'status') })
  return rows.map(({ command_id, kind, status }) => ({
    type: `command.${status}`,
    actor: SYSTEM,
    command_id,
    data: status === 'refused' ? { kind, ...outcome } : { kind },
  }))
}

const IN_FLIGHT = sql`${nodes.state} in ('dispatched', 'running', 'compensating')`
const NOT_BEGUN = sql`${nodes.state} in ('pending', 'gated', 'ready', 'backoff')`

const markLost = async (tx: Tx, operation_id: string, cancelled: boolean): Promise<TimelineEvent[]> => {
  const reason = 'The workflow engine no longer knows this operation.'
  const said = { actor: SYSTEM, reason }
  if (!cancelled)
    await updateRows(tx, { operation_id }, operation_control, { control: 'pause', pause_reason: 'engine_lost' })
  const unknown = await moveNodes(tx, operation_id, IN_FLIGHT, 'outcome_unknown')
  // No one is left who would close them, and each holds a place of its pool.
  await giveUpAttempts(tx, operation_id, { class: 'cancelled', message: reason, retryable: false })
  const dropped = cancelled ? await moveNodes(tx, operation_id, NOT_BEGUN, 'cancelled') : []
  return [
    ...(cancelled ? [] : [{ ...said, type: 'operation.paused', data: { pause_reason: 'engine_lost' } }]),
    ...unknown.map(({ node_id }) => ({ ...said, type: 'node.outcome_unknown', node_id })),
    ...dropped.map(({ node_id }) => ({ ...said, type: 'node.cancelled', node_id })),
  ]
}

const moveNodes = (tx: Tx, operation_id: string, from: SQL, state: string) =>
  tx
    .update(nodes)
    .set({ state, updated_at: NOW })
    .where(and(eq(nodes.operation_id, operation_id), from))
    .returning({ node_id: nodes.node_id })
