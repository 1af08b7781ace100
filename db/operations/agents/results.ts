import { sql } from 'drizzle-orm'
import type { Executed } from '../../../apps/shared/contracts/operations/common.ts'
import type { Control, NodeError, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import type { Db, Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { lockHead } from '../facts/state.ts'
import { type LogLine, withdrawnBefore } from '../nodes/attempts.ts'
import { operation_timeline_view } from '../tables/index.ts'

/** A handover, its attempt and its node, locked against other messages and against the executor's checks. */
export type Handed = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  attempt: number
  generation: number
  fence: number
  pool: string
  agent: string | null
  heartbeat_s: number
  sequence: number
  started: boolean
  closed: boolean
  start_due: boolean
  expired: boolean
  newest: boolean
  lines_before: number
  /** Of the whole attempt: how many handovers there were, and whether an agent began an earlier one. */
  handovers: number
  begun_before: boolean
  left_s: number
  phase: string | null
  ended_s: number | null
  node_state: string
  node_attempt: number
  node_generation: number
  spec: PlanNode
  log_lines: number
  log_bytes: number
  control: Control
  cancel_mode: string | null
  deadline_at: string
}

/** Late messages are answered for ten minutes. */
const TOKEN_EXPIRED = sql`e.deadline_at + interval '10 min' <= clock_timestamp()`

/**
 * The seconds that the work has: from its start, while no agent has begun it. A worker of an earlier version let the wait
 * use them up; the time of the step is then due all the same.
 */
const LEFT = sql`extract(epoch from case when e.started_at is not null then e.deadline_at - clock_timestamp()
  when h.begun_before then e.deadline_at - e.start_before
  else greatest(e.deadline_at - e.start_before, make_interval(secs => (n.spec -> 'timeouts' ->> 'run_s')::float8)) end)::int`

const WITHDRAWN = sql.raw(withdrawnBefore('o', 'a.started_at'))

/** Control before attempts, as everywhere; messages that end no attempt share the control row with claims. */
export const lockExecution = async (tx: Tx, token_sha256: string, may_end: boolean): Promise<Handed | undefined> => {
  const { rows } = await tx.execute<Handed>(sql`
    with control as materialized (
      select c.operation_id, c.control, c.cancel_mode from operations.operation_control c
      where c.operation_id = (select operation_id from operations.executions where token_sha256 = ${token_sha256})
      ${may_end ? sql`for update` : sql`for share`})
    select e.operation_id, e.node_id, e.role, e.attempt, e.generation, e.fence::float8 as fence, e.pool, e.agent, e.heartbeat_s, e.sequence::float8 as sequence,
      e.started_at is not null as started, e.closed_at is not null as closed, e.start_before <= clock_timestamp() as start_due,
      ${TOKEN_EXPIRED} as expired,
      not exists (select from operations.executions o where o.operation_id = e.operation_id and o.node_id = e.node_id
        and o.role = e.role and o.attempt = e.attempt and o.fence > e.fence) as newest,
      e.lines_before, h.handovers, h.begun_before, ${LEFT} as left_s,
      a.phase, extract(epoch from clock_timestamp() - a.ended_at)::int as ended_s, a.log_lines, a.log_bytes::int as log_bytes,
      n.state as node_state, case e.role when 'run' then n.attempt else (select max(u.attempt) from operations.node_attempts u
        where u.operation_id = e.operation_id and u.node_id = e.node_id and u.role = 'undo') end as node_attempt, n.generation as node_generation, n.spec,
      c.control, c.cancel_mode, operations.iso(e.deadline_at) as deadline_at
    from control c, operations.executions e
    join operations.nodes n on n.operation_id = e.operation_id and n.node_id = e.node_id
    left join operations.node_attempts a on a.operation_id = e.operation_id and a.node_id = e.node_id and a.role = e.role and a.attempt = e.attempt
    cross join lateral (select (count(*) filter (where ${WITHDRAWN} is not true))::int as handovers, coalesce(bool_or(o.started_at is not null and o.fence < e.fence), false) as begun_before
      from operations.executions o where o.operation_id = e.operation_id and o.node_id = e.node_id and o.role = e.role and o.attempt = e.attempt) h
    where e.token_sha256 = ${token_sha256} for update of e, n`)
  return rows[0]
}

type Key = Pick<Handed, 'operation_id' | 'node_id' | 'role' | 'attempt'>
const ofAttempt = ({ operation_id, node_id, role, attempt }: Key) =>
  sql`operation_id = ${operation_id} and node_id = ${node_id} and role = ${role} and attempt = ${attempt}`

/** Records a sign of life, with its progress. The first one begins the time of the work, of which the wait used none. */
export const noteMessage = async (
  tx: Tx,
  token_sha256: string,
  key: Key & Pick<Handed, 'left_s'>,
  { sequence, progress, started }: { sequence: number; progress: unknown; started: boolean },
): Promise<void> => {
  await tx.execute(sql`
    update operations.executions set sequence = ${sequence}, heartbeat_at = clock_timestamp(),
      started_at = ${started ? NOW : sql`started_at`},
      deadline_at = ${started ? sql`clock_timestamp() + make_interval(secs => ${key.left_s})` : sql`deadline_at`} where token_sha256 = ${token_sha256}`)
  // Until it starts, the progress is that it waits for an agent.
  await tx.execute(sql`
    update operations.node_attempts set heartbeat_at = clock_timestamp(),
      deadline_at = ${started ? sql`(select deadline_at from operations.executions where token_sha256 = ${token_sha256})` : sql`deadline_at`},
      progress = coalesce(${progress === undefined ? null : JSON.stringify(progress)}::jsonb, ${started ? sql`null` : sql`progress`}) where ${ofAttempt(key)}`)
}

/** No chunk of an agent's log is longer: the lines of a message, and the one that says where the log was cut. */
const LONGEST = 1001

/**
 * Appends log lines that are new, each run of consecutive numbers as a chunk. Returns the number of a line that already
 * exists with another text.
 */
export const appendLines = async (
  tx: Tx,
  key: Key,
  generation: number,
  lines: readonly LogLine[],
): Promise<number | undefined> => {
  if (lines.length === 0) return undefined
  const given = JSON.stringify(lines)
  const seqs = lines.map(({ seq }) => seq)
  const { rows } = await tx.execute<{ seq: number; same: boolean }>(sql`
    select (g ->> 'seq')::int as seq, l ->> 'text' = g ->> 'text' as same
    from jsonb_array_elements(${given}::jsonb) g
    join operations.log_chunks c on c.operation_id = ${key.operation_id} and c.node_id = ${key.node_id} and c.role = ${key.role} and c.attempt = ${key.attempt}
      and c.chunk > ${Math.min(...seqs) - LONGEST} and c.chunk <= ${Math.max(...seqs)}
    cross join lateral jsonb_array_elements(c.lines) l where l ->> 'seq' = g ->> 'seq'`)
  const other = rows.find(({ same }) => !same)
  if (other) return other.seq
  const known = new Set(rows.map(({ seq }) => seq))
  const own = new Map<number, LogLine>()
  for (const line of lines) {
    if ((own.get(line.seq) ?? line).text !== line.text) return line.seq
    if (!known.has(line.seq)) own.set(line.seq, line)
  }
  if (own.size === 0) return undefined
  const fresh = JSON.stringify([...own.values()])
  await tx.execute(sql`
    with line as (
      select l as line, (l ->> 'seq')::int as seq, (l ->> 'seq')::int - row_number() over (order by (l ->> 'seq')::int) as run,
        (l ->> 'time')::timestamptz as at, octet_length(l ->> 'text') as bytes
      from jsonb_array_elements(${fresh}::jsonb) l),
    run as (
      select min(seq) as first_seq, max(seq) as last_seq, jsonb_agg(line order by seq) as lines, count(*) as count, min(at) as first_at,
        max(at) as last_at, sum(bytes) as bytes, array_agg(distinct line ->> 'level') as levels from line group by run),
    chunk as (
      insert into operations.log_chunks (operation_id, node_id, role, attempt, chunk, lines)
      select ${key.operation_id}, ${key.node_id}, ${key.role}, ${key.attempt}, first_seq, lines from run),
    indexed as (
      insert into operations.operation_job_log_index (operation_id, node_id, role, attempt, chunk, generation, first_seq, last_seq, first_at, last_at, lines, bytes, levels)
      select ${key.operation_id}, ${key.node_id}, ${key.role}, ${key.attempt}, first_seq, ${generation}, first_seq, last_seq, first_at, last_at, count, bytes, levels from run)
    update operations.node_attempts set log_lines = log_lines + ${own.size}, log_bytes = log_bytes + (select sum(bytes) from run) where ${ofAttempt(key)}`)
  return undefined
}

/** Ends the attempt as the agent reports, by compare-and-swap, so that one terminal phase wins. */
export const endExecution = async (
  tx: Tx,
  token_sha256: string,
  key: Key,
  end: {
    phase: 'succeeded' | 'failed' | 'outcome_unknown'
    outputs: Record<string, unknown> | null
    resume: Record<string, unknown> | null
    error: NodeError | null
    executed: Executed | null
  },
): Promise<boolean> => {
  const { rows } = await tx.execute(sql`
    with ended as (
      update operations.node_attempts set phase = ${end.phase}, outputs = ${end.outputs === null ? null : JSON.stringify(end.outputs)}::jsonb,
        error = ${end.error === null ? null : JSON.stringify(end.error)}::jsonb, resume = ${end.resume === null ? null : JSON.stringify(end.resume)}::jsonb,
        executed = coalesce(${end.executed === null ? null : JSON.stringify(end.executed)}::jsonb, executed), ended_at = clock_timestamp(), log_complete = true
      where ${ofAttempt(key)} and phase in ('dispatched', 'running')
      returning ended_at, outputs, error),
    node as (
    update operations.nodes n set outputs = coalesce(ended.outputs, n.outputs), error = ended.error, updated_at = clock_timestamp(),
      state = case when ${end.phase} = 'succeeded' and n.spec -> 'catalog' is null then 'succeeded' else n.state end,
      ended_at = case when ${end.phase} = 'succeeded' and n.spec -> 'catalog' is null then ended.ended_at end
    from ended where ${key.role} = 'run' and n.operation_id = ${key.operation_id} and n.node_id = ${key.node_id})
    select from ended`)
  if (rows.length === 0) return false
  await closeHandover(tx, token_sha256)
  return true
}

/** Keeps what a handover has run, in case that later ones of the attempt run no program. */
export const keepExecuted = async (tx: Tx, key: Key, executed: Executed): Promise<void> => {
  await tx.execute(
    sql`update operations.node_attempts set executed = ${JSON.stringify(executed)}::jsonb where ${ofAttempt(key)}`,
  )
}

/** Ends a handover. If its attempt is open, the next slice hands it over again. */
export const closeHandover = async (tx: Tx, token_sha256: string): Promise<void> => {
  await tx.execute(
    sql`update operations.executions set closed_at = clock_timestamp() where token_sha256 = ${token_sha256}`,
  )
}

export const knownAnswer = async (tx: Tx, token_sha256: string, result_id: string) => {
  const { rows } = await tx.execute<{ fingerprint: string; answer: Record<string, unknown> }>(sql`
    select fingerprint, answer from operations.execution_results where token_sha256 = ${token_sha256} and result_id = ${result_id}`)
  return rows[0]
}

export const keepAnswer = (tx: Tx, token_sha256: string, result_id: string, fingerprint: string, answer: object) =>
  tx.execute(sql`
    insert into operations.execution_results (token_sha256, result_id, fingerprint, answer)
    values (${token_sha256}, ${result_id}, ${fingerprint}, ${JSON.stringify(answer)}::jsonb)`)

/** Events of a history among which a repeat is looked for: it comes soon. */
const RECENT = 500

/** Whether the end of the history, which is locked, has such an event. */
export const isNoted = async (
  tx: Tx,
  operation_id: string,
  { type, node_id, data, reason }: { type: string; node_id: string; data: object; reason: string },
): Promise<boolean> => {
  await lockHead(tx, operation_id)
  const { rows } = await tx.execute(sql`
    with recent as (
      select type, node_id, data, reason from ${operation_timeline_view} where operation_id = ${operation_id} order by seq desc limit ${RECENT})
    select from recent where type = ${type} and node_id = ${node_id} and data = ${JSON.stringify(data)}::jsonb and reason = ${reason} limit 1`)
  return rows.length > 0
}

const BATCH = 1000

/** Deletes the answers under tokens that have expired, because no message can ask for them again. */
export const pruneAnswers = async (db: Db): Promise<void> => {
  // Tokens are found one after the other in the index, and only until a batch is full.
  const expired = sql`
    with recursive token as (
      select min(token_sha256) as token_sha256 from operations.execution_results
      union all select (select min(r.token_sha256) from operations.execution_results r where r.token_sha256 > t.token_sha256)
      from token t where t.token_sha256 is not null)
    select r.ctid from token t
    cross join lateral (select from operations.executions e where e.token_sha256 = t.token_sha256 and ${TOKEN_EXPIRED} offset 0) e
    cross join lateral (select r.ctid from operations.execution_results r where r.token_sha256 = t.token_sha256 offset 0) r limit ${BATCH}`
  for (let removed = BATCH; removed === BATCH; ) {
    const { rowCount } = await db.execute(
      sql`delete from operations.execution_results where ctid = any(array(${expired}))`,
    )
    removed = rowCount ?? 0
  }
}
