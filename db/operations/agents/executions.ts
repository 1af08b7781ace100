import { sql } from 'drizzle-orm'
import type pg from 'pg'
import type { NodeError } from '../../../apps/shared/contracts/operations/graph.ts'
import type { Tx } from '../../client.ts'
import { tellEngine } from '../commands/rows.ts'
import { type AttemptRef, BEGIN_BEFORE, withdrawnBefore } from '../nodes/attempts.ts'

/** How often an attempt that may be repeated is handed over at most. */
export const HANDOVERS = 5

/** One handover of an attempt to an external agent (operations.md 7.4). */
export type Execution = {
  fence: number
  generation: number
  pool: string
  started: boolean
  closed: boolean
  /** By Postgres' clock. */
  start_due: boolean
  /** An agent that asked for it was given it a while ago, and has not begun: the answer to it may be lost. */
  unbegun: boolean
  silent: boolean
  overdue: boolean
  /** A cancel was accepted: no agent begins the work (operations.md 7.4). An undo continues. */
  cancelled: boolean
  /** Of the whole attempt: how many there were, and whether an agent began any of them. */
  handovers: number
  begun: boolean
  /** Seconds until the end of the work that an agent began; negative afterwards. */
  left_s: number | null
  /** Seconds that an agent has to begin, by the first handover. */
  start_left_s: number
  /** Seconds until the next check is due. */
  look_after_s: number
}

const START = `(select a.started_at from operations.node_attempts a
    where a.operation_id = $1 and a.node_id = $2 and a.attempt = $3 and a.role = $4)`

const SELECT = `
select fence, generation, pool, started_at is not null as started, closed_at is not null as closed, start_before <= clock_timestamp() as start_due,
  started_at is null and heartbeat_at is not null and least(${BEGIN_BEFORE}, start_before) <= clock_timestamp() as unbegun,
  started_at is not null and heartbeat_at + make_interval(secs => 3 * heartbeat_s) <= clock_timestamp() as silent,
  deadline_at <= clock_timestamp() as overdue,
  e.role = 'run' and exists (select from operations.operation_control c where c.operation_id = $1 and c.control = 'cancel') as cancelled, count(*) over ()::int as handovers, bool_or(started_at is not null) over () as begun,
  extract(epoch from max(deadline_at) filter (where started_at is not null) over () - clock_timestamp())::double precision as left_s,
  extract(epoch from min(start_before) over () - clock_timestamp())::double precision as start_left_s,
  greatest(1, ceil(extract(epoch from least(deadline_at, case when started_at is null then least(start_before, ${BEGIN_BEFORE}, clock_timestamp() + greatest(deadline_at - start_before, interval '10 s'))
    else heartbeat_at + make_interval(secs => 3 * heartbeat_s) end) - clock_timestamp())))::int as look_after_s
from operations.executions e where operation_id = $1 and node_id = $2 and attempt = $3 and role = $4
  and ${withdrawnBefore('e', START)} is not true`

type Row = Omit<Execution, 'fence'> & { fence: string }

/** The newest handover of an attempt, without those that a claim withdrew before its start. */
export const newestExecution = async (
  pool: pg.Pool,
  { operation_id, node_id, attempt, role }: Omit<AttemptRef, 'fence'>,
): Promise<Execution | undefined> => {
  const { rows } = await pool.query<Row>({
    name: 'execution_newest',
    text: `${SELECT} order by fence desc limit 1`,
    values: [operation_id, node_id, attempt, role],
  })
  return rows[0] && { ...rows[0], fence: Number(rows[0].fence) }
}

export type NewExecution = AttemptRef & {
  token_sha256: string
  generation: number
  pool: string
  start_s: number
  heartbeat_s: number
  /** Seconds that the work may take from its start. */
  left_s: number
}

/** `deadline_at`: for work that begins at once; the answer to "started" tells how much time it has. */
type Handover = { start_before: string; deadline_at: string }

/** Records a handover before the agent learns of it, and that the attempt waits; closes every earlier one. It may be repeated. */
export const insertExecution = async (pool: pg.Pool, e: NewExecution): Promise<Handover> => {
  const { rows } = await pool.query<Handover>({
    name: 'execution_insert',
    text: `
with earlier as (
  update operations.executions set closed_at = clock_timestamp()
  where operation_id = $2 and node_id = $3 and attempt = $4 and role = $11 and fence < $6 and closed_at is null),
waits as (
  update operations.node_attempts set progress = jsonb_build_object('message',
    format('Waiting for an agent of the pool "%s" until %s.', $7::text, operations.iso(date_trunc('second', clock_timestamp() + make_interval(secs => $9)))))
  where operation_id = $2 and node_id = $3 and attempt = $4 and role = $11)
insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at, role, lines_before)
values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp() + make_interval(secs => $9), clock_timestamp() + make_interval(secs => $9::double precision + $10::double precision), $11,
  (select coalesce(max(last_seq), 0) from operations.operation_job_log_index where operation_id = $2 and node_id = $3 and attempt = $4 and role = $11))
on conflict (token_sha256) do update set token_sha256 = excluded.token_sha256
returning operations.iso(start_before) as start_before, operations.iso(clock_timestamp() + (deadline_at - start_before)) as deadline_at`,
    values: [
      e.token_sha256,
      e.operation_id,
      e.node_id,
      e.attempt,
      e.generation,
      e.fence,
      e.pool,
      e.heartbeat_s,
      e.start_s,
      e.left_s,
      e.role,
    ],
  })
  const [row] = rows
  if (!row) throw new Error('an execution was not written')
  return row
}

/**
 * What the last attempt that an agent ended has left for the next one. It counts no longer once the node's preview, or
 * another node that it depends on, has run again.
 */
export const leftFor = async (
  pool: pg.Pool,
  { operation_id, node_id, attempt }: Omit<AttemptRef, 'fence'>,
): Promise<Record<string, unknown> | undefined> => {
  const { rows } = await pool.query<{ resume: Record<string, unknown> | null }>({
    name: 'execution_left',
    text: `
select case when a.phase = 'failed' and not exists (select from operations.nodes p where p.operation_id = $1 and p.ended_at > a.started_at
    and (jsonb_exists(n.spec -> 'depends_on', p.node_id) or p.node_id = split_part(n.spec #>> '{with,inputs,preview,$from}', '/', 2))) then a.resume end as resume
from operations.node_attempts a join operations.nodes n using (operation_id, node_id)
where a.operation_id = $1 and a.node_id = $2 and a.role = 'run' and a.attempt < $3
  and not (a.phase = 'failed' and coalesce(jsonb_exists(a.resume, 'handed_over'), false))
order by a.attempt desc limit 1`,
    values: [operation_id, node_id, attempt],
  })
  return rows[0]?.resume ?? undefined
}

/**
 * Gives up an attempt whose agent is silent, at a person's request: it ends as failed, and later messages of the agent
 * are refused. Returns false if the agent was heard from, or the attempt ended, meanwhile.
 */
export const giveUpExecution = async (
  tx: Tx,
  { operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number },
  error: NodeError,
): Promise<boolean> => {
  const closed = await tx.execute(sql`
    update operations.executions set closed_at = clock_timestamp()
    where operation_id = ${operation_id} and node_id = ${node_id} and role = 'run' and attempt = ${attempt} and closed_at is null
      and coalesce(heartbeat_at, created_at) + make_interval(secs => heartbeat_s) < clock_timestamp()`)
  if (closed.rowCount === 0) return false
  const ended = await tx.execute(sql`
    update operations.node_attempts set phase = 'failed', error = ${JSON.stringify(error)}::jsonb, ended_at = clock_timestamp()
    where operation_id = ${operation_id} and node_id = ${node_id} and role = 'run' and attempt = ${attempt}
      and phase in ('dispatched', 'running')`)
  return ended.rowCount === 1
}

/** Gives up all open attempts of an operation, whatever their agents do: their later messages are refused. */
export const giveUpAttempts = async (tx: Tx, operation_id: string, error: NodeError): Promise<void> => {
  await tx.execute(sql`
    update operations.executions set closed_at = clock_timestamp() where operation_id = ${operation_id} and closed_at is null`)
  await tx.execute(sql`
    update operations.node_attempts set phase = 'outcome_unknown', error = ${JSON.stringify(error)}::jsonb, ended_at = clock_timestamp()
    where operation_id = ${operation_id} and phase in ('dispatched', 'running')`)
}

/**
 * No agent may begin now: the engine looks at such work at once, not at the end of the time to begin. The caller holds
 * the control row.
 */
export const endWaits = async (tx: Tx, operation_id: string): Promise<void> => {
  const { rows } = await tx.execute<{ node_id: string; attempt: number; fence: number }>(sql`
    select node_id, attempt, fence::float8 as fence from operations.executions
    where operation_id = ${operation_id} and role = 'run' and started_at is null and closed_at is null`)
  for (const work of rows) await tellEngine(tx, operation_id, 'node_result', { ...work, role: 'run', status: 'again' })
}

/** Closes an open handover, unless the agent was heard from meanwhile. Returns false if it was. */
export const closeExecution = async (
  pool: pg.Pool,
  ref: Omit<AttemptRef, 'role'>,
  because: 'not_started' | 'silent' | 'over',
): Promise<boolean> => {
  const still = {
    not_started: 'started_at is null',
    silent: 'heartbeat_at + make_interval(secs => 3 * heartbeat_s) <= clock_timestamp()',
    over: 'true',
  }[because]
  const { rowCount } = await pool.query(
    `update operations.executions set closed_at = clock_timestamp()
     where operation_id = $1 and node_id = $2 and attempt = $3 and fence = $4 and closed_at is null and ${still}`,
    [ref.operation_id, ref.node_id, ref.attempt, ref.fence],
  )
  return rowCount === 1
}

/** How an attempt has ended, if it has: the agent's message may have arrived while a slice was checking. */
export const readEnd = async (pool: pg.Pool, { operation_id, node_id, role, attempt }: AttemptRef) => {
  const { rows } = await pool.query<{ phase: string; error: NodeError | null; started_at: string; ended_at: string }>(
    `select phase, error, extract(epoch from started_at) * 1000 as started_at, extract(epoch from ended_at) * 1000 as ended_at
     from operations.node_attempts where operation_id = $1 and node_id = $2 and role = $3 and attempt = $4
       and phase in ('succeeded', 'failed', 'outcome_unknown')`,
    [operation_id, node_id, role, attempt],
  )
  const [row] = rows
  return row && { ...row, started_at: Number(row.started_at), ended_at: Number(row.ended_at) }
}
