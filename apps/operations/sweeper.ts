import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Db, Tx } from '../../db/client.ts'
import { stateFacts } from '../../db/operations/changes.ts'
import { lockOperation, lockOverdueStart } from '../../db/operations/commands.ts'
import { expireDue } from '../../db/operations/plans.ts'
import {
  engine_findings,
  idempotency,
  nodes,
  operation_commands,
  operation_control,
} from '../../db/operations/tables.ts'
import { SYSTEM, type TimelineEvent } from '../../db/operations/timeline.ts'
import { withdraw } from '../../db/operations/undo.ts'
import type { OperationsDeps } from './deps.ts'

const LOCK = 727_310
const BATCH = 50
const PRUNE_EVERY_MS = 60_000
const KEPT_DAYS = 7

/**
 * What only time brings about: start-class commands that were never sent in time are taken back, findings about the
 * engine are acted on, plans and intents expire. One process at a time, by an advisory lock of the turn's transaction.
 */
export const startSweeper = (deps: OperationsDeps) => {
  const { db, config, telemetry } = deps
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let pruned_at = Number.NEGATIVE_INFINITY

  const turn = async () => {
    const changed = await sweep(db)
    if (changed > 0) deps.nats.wake('operations')
    if (performance.now() - pruned_at > PRUNE_EVERY_MS) {
      pruned_at = performance.now()
      await pruneKeys(db)
    }
  }
  const loop = () => {
    running = turn()
      .catch((error: unknown) => telemetry.log.warn({ err: error }, 'a turn of the sweeper failed'))
      .finally(() => {
        if (!stopped) timer = setTimeout(loop, config.OPERATIONS__SWEEP__INTERVAL_MS)
      })
  }
  loop()
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}

/** One turn; does nothing while another process holds the lock. Returns how many things it changed. */
export const sweep = async (db: Db): Promise<number> => {
  const overdue = await db.transaction(async (tx) => {
    if (!(await isLeader(tx))) return undefined
    const commands = await listOverdue(tx)
    const findings = await listFindings(tx)
    await expireDue(tx)
    return { commands, findings }
  })
  if (!overdue) return 0
  // Each in a transaction of its own: one that cannot be done holds nothing else back.
  for (const { command_id, operation_id } of overdue.commands)
    await db.transaction((tx) => withdrawOverdue(tx, operation_id, command_id))
  for (const finding of overdue.findings) await db.transaction((tx) => actOnFinding(tx, finding))
  return overdue.commands.length + overdue.findings.length
}

const isLeader = async (tx: Tx): Promise<boolean> => {
  const { rows } = await tx.execute<{ held: boolean }>(sql`select pg_try_advisory_xact_lock(${LOCK}) as held`)
  return rows[0]?.held ?? false
}

const listOverdue = (tx: Tx) =>
  tx
    .select({ command_id: operation_commands.command_id, operation_id: operation_commands.operation_id })
    .from(operation_commands)
    .where(
      and(
        eq(operation_commands.status, 'pending'),
        eq(operation_commands.attempts, 0),
        eq(operation_commands.class, 'start'),
        sql`${operation_commands.not_after} < clock_timestamp()`,
      ),
    )
    .orderBy(operation_commands.not_after)
    .limit(BATCH)

/** Takes back one command that is still unsent and past its time, with its decision (operations.md 1.4). */
const withdrawOverdue = async (tx: Tx, operation_id: string, command_id: string): Promise<void> => {
  const operation = await lockOperation(tx, operation_id)
  const command = operation && (await lockOverdueStart(tx, command_id))
  if (!command) return
  const events = await withdraw(tx, command)
  await bump(tx, operation_id)
  await stateFacts(tx, operation_id, { events, request_id: command.request_id, trace: command.trace })
}

const bump = (tx: Tx, operation_id: string) =>
  tx
    .update(operation_control)
    .set({ revision: sql`${operation_control.revision} + 1` })
    .where(eq(operation_control.operation_id, operation_id))

type Finding = { id: number; operation_id: string; found: string }

const listFindings = (tx: Tx): Promise<Finding[]> =>
  tx
    .select({ id: engine_findings.id, operation_id: engine_findings.operation_id, found: engine_findings.found })
    .from(engine_findings)
    .where(isNull(engine_findings.handled_at))
    .orderBy(engine_findings.id)
    .limit(BATCH)

/**
 * The engine no longer has an operation: one that has ended refuses what still waits; a live one is paused as
 * engine_lost, and the end of what was in flight is unknown.
 */
const actOnFinding = async (tx: Tx, { id, operation_id }: Finding): Promise<void> => {
  await tx
    .update(engine_findings)
    .set({ handled_at: sql`clock_timestamp()` as never })
    .where(eq(engine_findings.id, id))
  const operation = await lockOperation(tx, operation_id)
  if (!operation) return
  const [control] = await tx
    .select({ ended: operation_control.ended })
    .from(operation_control)
    .where(eq(operation_control.operation_id, operation_id))
  const ended = control?.ended ?? false
  if (!ended && operation.pause_reason === 'engine_lost') return
  const events = ended ? await refuseWaiting(tx, operation_id) : await markLost(tx, operation_id)
  if (events.length === 0) return
  await bump(tx, operation_id)
  await stateFacts(tx, operation_id, { events, ...(!ended && { set: { engine_status: 'paused' } }) })
}

const refuseWaiting = async (tx: Tx, operation_id: string): Promise<TimelineEvent[]> => {
  const outcome = {
    category: 'invalid_state_transition',
    code: 'operation_terminal',
    detail: 'The operation ended before this reached it.',
  }
  const rows = await tx
    .update(operation_commands)
    .set({ status: 'refused', outcome, outcome_at: sql`clock_timestamp()` as never })
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        sql`${operation_commands.status} in ('pending', 'sending', 'delivered')`,
      ),
    )
    .returning({ command_id: operation_commands.command_id, kind: operation_commands.kind })
  return rows.map(({ command_id, kind }) => ({
    type: 'command.refused',
    actor: SYSTEM,
    command_id,
    data: { kind, ...outcome },
  }))
}

const markLost = async (tx: Tx, operation_id: string): Promise<TimelineEvent[]> => {
  await tx
    .update(operation_control)
    .set({ control: 'pause', pause_reason: 'engine_lost' })
    .where(and(eq(operation_control.operation_id, operation_id), sql`${operation_control.control} <> 'cancel'`))
  const unknown = await tx
    .update(nodes)
    .set({ state: 'outcome_unknown', updated_at: sql`clock_timestamp()` as never })
    .where(and(eq(nodes.operation_id, operation_id), sql`${nodes.state} in ('dispatched', 'running', 'compensating')`))
    .returning({ node_id: nodes.node_id })
  const reason = 'The workflow engine does not know this operation any more.'
  return [
    { type: 'operation.paused', actor: SYSTEM, reason, data: { pause_reason: 'engine_lost' } },
    ...unknown.map(({ node_id }) => ({ type: 'node.outcome_unknown', actor: SYSTEM, reason, node_id })),
  ]
}

/** Idempotency keys are kept for a week. */
const pruneKeys = (db: Db) =>
  db.execute(sql`delete from ${idempotency} where ctid = any(array(
    select ctid from ${idempotency} where created_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}) limit 1000))`)
