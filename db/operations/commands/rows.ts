import { and, asc, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { CommandView } from '../../../apps/shared/contracts/operations/common.ts'
import type { Actor, CancelMode, Control } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { equals, first, type Queryable, type Tx } from '../../client.ts'
import { runOf } from '../../restore.ts'
import { builtOnce, inOne, insertRow, NOW, updateRow } from '../../rows.ts'
import { iso } from '../expressions.ts'
import { HEAD, SYSTEM } from '../facts/state.ts'
import { lease_waits, nodes, operation_commands, operation_control, operations, relay_state } from '../tables/index.ts'

/** When the plan of an operation was made: no participant knew of it earlier. */
export const PLANNED_AT = sql<string>`coalesce((select operations.iso(p.created_at) from operations.plans p where p.plan_id = ${operations.plan_id}), operations.iso(${operations.created_at}))`

/**
 * What a command reads from its operation; both rows stay locked until the end of the transaction. Unknown outcomes are
 * left to those who need them (`countUnknown`): a statement that waited for the lock would count those of before.
 */
export const lockOperation = (tx: Tx, operation_id: string) => operationToDecide(tx, { operation_id }).then(first)
const operationToDecide = builtOnce(['operation_id'], (tx, { operation_id }) =>
  tx
    .select({
      ...pick(operations, 'operation_id', 'intent_id', 'plan_id'),
      planned_at: PLANNED_AT,
      ...pick(operations, 'title', 'engine_status', 'requester_id', 'involved', 'resource_ids', 'risk_level'),
      ...pick(operations, 'environment', 'labels', 'pins', 'constraints', 'exceptions', 'plan_revision'),
      ...pick(operations, 'max_parallel', 'kind'),
      control: sql<Control>`${operation_control.control}`,
      cancel_mode: sql<CancelMode | null>`${operation_control.cancel_mode}`,
      cancelled_at: iso(operation_control.cancelled_at),
      ...pick(operation_control, 'pause_reason', 'lease_state', 'revision'),
      now: iso(NOW),
      head: HEAD,
      unknown_nodes: sql<number>`0`,
    })
    .from(operation_control)
    .innerJoin(operations, eq(operations.operation_id, operation_control.operation_id))
    .where(eq(operation_control.operation_id, operation_id))
    .for('update'),
)
export type LockedOperation = NonNullable<Awaited<ReturnType<typeof lockOperation>>>

/** How many nodes have an unknown outcome; the caller has locked the operation. */
export const countUnknown = (tx: Tx, operation_id: string): Promise<number> =>
  tx.$count(nodes, equals(nodes, { operation_id, state: 'outcome_unknown' }))

/** The revision of an operation's graph. */
export const revisionNow = async (db: Queryable, operation_id: string): Promise<number> => {
  const [row] = await db
    .select({ plan_revision: operations.plan_revision })
    .from(operations)
    .where(eq(operations.operation_id, operation_id))
  return row?.plan_revision ?? 0
}

export type NewCommand = {
  command_id: string
  operation_id: string
  kind: string
  class: 'stop' | 'start' | 'edit'
  /** The signal's payload; null: complete in Postgres, never sent. */
  payload: Record<string, unknown> | null
  actor: Actor
  reason: string | null
  request_id: string | null
  trace: string | null
  undo: Record<string, unknown> | null
  /** Start-class commands never fire later than this many seconds from now. */
  deadline_s: number
  /** Whether it changed anything: the revision counts decided changes. */
  decided: boolean
  /** Whether a second person must review it before it is sent (awaiting.ts). */
  awaits?: boolean
}

/** Whether the start of an operation is held until its leases are granted (leases.ts): the engine does not know it yet. */
export const startHeld = (operation_id: SQL | string) =>
  sql<boolean>`exists (select from operations.operation_commands s where s.operation_id = ${operation_id}
    and s.kind = 'start' and s.status = 'pending' and s.next_try_at = 'infinity')`

/** The same, asked now. */
export const isStartHeld = async (tx: Queryable, operation_id: string): Promise<boolean> => {
  const { rows } = await tx.execute<{ held: boolean }>(sql`select ${startHeld(operation_id)} as held`)
  return rows[0]?.held ?? false
}

/**
 * Until when a start-class command may be sent. Behind a start that is held for leases its time begins with that start
 * (leases.ts), because it cannot be sent earlier.
 */
export const dispatchEnd = (operation_id: string, deadline_s: number) =>
  sql`case when not ${startHeld(operation_id)} then clock_timestamp() + make_interval(secs => ${deadline_s}) end`

/**
 * The next number of a command. The engine may know numbers that a restored database has lost and drops them as old:
 * each restore, from its first moment, begins far above them (reliability.md 4.13).
 */
export const NEXT_SEQ = sql<number>`greatest(${operation_control.command_seq}, 1000000 * (
  select coalesce(max(r.epoch) filter (where r.name = 'restored'), 0)
    + coalesce(bool_or(case when r.name = 'restored' then r.stream_created is not null
        else r.name like 'checked %' and r.stream_created is distinct from ${sql.raw(runOf('operations'))} end), false)::int
  from ${relay_state} r)) + 1`

/** Adds a command to the relay's queue under the next number of its operation; the caller holds the control row. */
export const appendCommand = async (
  tx: Tx,
  { deadline_s, decided, awaits = false, payload, ...command }: NewCommand,
): Promise<number> => {
  const { operation_id } = command
  const numbered = updateRow(
    tx,
    operation_control,
    { operation_id },
    { command_seq: NEXT_SEQ, ...(decided && { revision: NEXT_REVISION }) },
    'returning command_seq',
  )
  const dispatched = command.class === 'start' && payload && !awaits
  // The start of an operation that waits for leases is held until they are granted (leases.ts).
  const held = command.kind === 'start' && sql`exists (select from ${lease_waits} where operation_id = ${operation_id})`
  const end = dispatched && dispatchEnd(operation_id, deadline_s)
  const row = {
    ...command,
    seq: NUMBERED,
    payload: payload ?? {},
    ...(end && { not_after: held ? sql`case when not ${held} then ${end} end` : end }),
    ...(held && { next_try_at: sql`case when ${held} then 'infinity'::timestamptz end` }),
    ...(awaits && { status: 'awaiting' }),
    ...(payload === null && { status: 'applied', outcome_at: NOW }),
  }
  const queued = insertRow(tx, operation_commands, row as never, 'returning seq')
  const { rows } = await inOne(numbered, queued)
  return Number(rows[0]?.seq ?? 0)
}

const NEXT_REVISION = sql`${operation_control.revision} + 1`
/** The number that the first statement of the same write returns. */
const NUMBERED = sql`(select command_seq from w0)`

/** Tells the engine a decision that no command made, in the order of commands. The caller holds the control row. */
export const tellEngine = (
  tx: Tx,
  operation_id: string,
  kind: string,
  payload: Record<string, unknown>,
  given: Partial<Pick<NewCommand, 'command_id' | 'class' | 'actor' | 'reason' | 'decided'>> = {},
): Promise<number> =>
  appendCommand(tx, {
    command_id: uuidv7(),
    operation_id,
    kind,
    class: 'edit',
    payload,
    actor: SYSTEM,
    reason: null,
    request_id: null,
    trace: null,
    undo: null,
    deadline_s: 0,
    decided: false,
    ...given,
  })

/** To clients a command is accepted until its outcome is known; if it never fired, withdrawn (operations.md 1.3). */
const WIRE_STATUS: SQL<CommandView['status']> = sql`case ${operation_commands.status}
  when 'applied' then 'applied' when 'refused' then 'refused'
  when 'expired' then 'withdrawn' when 'superseded' then 'withdrawn' when 'withdrawn' then 'withdrawn' else 'accepted' end`

const commandColumns = {
  ...pick(operation_commands, 'command_id', 'kind', 'seq'),
  status: WIRE_STATUS,
  code: sql<string | null>`coalesce(${operation_commands.outcome} ->> 'code',
    case when ${operation_commands.status} in ('expired', 'superseded', 'withdrawn') then ${operation_commands.status} end)`,
  accepted_at: iso(operation_commands.created_at),
  not_after: iso(operation_commands.not_after),
}

/** The command as readers see it, with its operation and outcome. */
export const getCommand = (db: Queryable, command_id: string) => commandById(db, { command_id }).then(first)
const commandById = builtOnce(['command_id'], (db, { command_id }) =>
  db
    .select({
      command: commandColumns,
      awaits: sql<boolean>`${operation_commands.status} = 'awaiting'`,
      ...pick(operation_commands, 'outcome', 'payload', 'operation_id'),
    })
    .from(operation_commands)
    .where(eq(operation_commands.command_id, command_id)),
)
export type AcceptedCommand = NonNullable<Awaited<ReturnType<typeof getCommand>>>

export type Steering = { kind: 'pause' | 'resume' | 'cancel'; actor: Actor; reason: string | null; accepted_at: string }

/** The newest command that stops or resumes a whole operation, other than refused or withdrawn ones. */
export const lastSteering = (db: Queryable, operation_id: string): Promise<Steering | undefined> =>
  db
    .select({
      kind: sql<Steering['kind']>`${operation_commands.kind}`,
      ...pick(operation_commands, 'actor', 'reason'),
      accepted_at: iso(operation_commands.created_at),
    })
    .from(operation_commands)
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        inArray(operation_commands.kind, ['pause', 'resume', 'cancel']),
        inArray(operation_commands.status, ['pending', 'sending', 'delivered', 'applied']),
      ),
    )
    .orderBy(desc(operation_commands.seq))
    .limit(1)
    .then(first)

/** Accepted commands of an operation whose outcome is still unknown. */
export const listPendingCommands = (db: Queryable, operation_id: string): Promise<CommandView[]> =>
  db
    .select(commandColumns)
    .from(operation_commands)
    .where(
      and(
        eq(operation_commands.operation_id, operation_id),
        inArray(operation_commands.status, ['awaiting', 'pending', 'sending', 'delivered']),
      ),
    )
    .orderBy(asc(operation_commands.seq))

export type CommandState = Awaited<ReturnType<typeof listCommandStates>>[number]

/** The states of these commands: one query for all pending ones. */
export const listCommandStates = (db: Queryable, command_ids: readonly string[]) => statesByIds(db, { command_ids })
const statesByIds = builtOnce(['command_ids'], (db, { command_ids }) =>
  db
    .select({
      ...pick(operation_commands, 'command_id', 'kind', 'status', 'outcome'),
      held: startHeld(sql`operations.operation_commands.operation_id`),
    })
    .from(operation_commands)
    .where(sql`${operation_commands.command_id} = any(${command_ids}::uuid[])`),
)

/** Unsent start-class commands: those that a cancel supersedes and the sweeper withdraws. */
export const lockUnsentStarts = (tx: Tx, operation_id: string) =>
  tx
    .select()
    .from(operation_commands)
    .where(equals(operation_commands, { operation_id, class: 'start', status: 'pending', attempts: 0 }))
    .orderBy(sql`${operation_commands.seq} desc`)
    .for('update')

/**
 * Start-class commands that are past their deadline and have no effect: those that were never sent, and all on an
 * operation that the engine has lost. Its own start stays: nodes may have run, and only a cancel ends it.
 */
const OVERDUE = sql`${operation_commands.class} = 'start' and ${operation_commands.not_after} < clock_timestamp()
  and ${operation_commands.status} in ('pending', 'sending', 'delivered')
  and (${operation_commands.status} = 'pending' and ${operation_commands.attempts} = 0
    or ${operation_commands.kind} <> 'start' and exists (select from ${operation_control}
      where ${operation_control.operation_id} = ${operation_commands.operation_id} and ${operation_control.pause_reason} = 'engine_lost'))`

export const listOverdueStarts = (tx: Tx, limit: number) =>
  tx
    .select(pick(operation_commands, 'command_id', 'operation_id'))
    .from(operation_commands)
    .where(OVERDUE)
    .orderBy(operation_commands.not_after)
    .limit(limit)

/** One overdue start-class command; `undefined` if it was sent, or has its outcome, meanwhile. */
export const lockOverdueStart = (tx: Tx, command_id: string) =>
  tx
    .select()
    .from(operation_commands)
    .where(and(equals(operation_commands, { command_id }), OVERDUE))
    .for('update')
    .then(first)
