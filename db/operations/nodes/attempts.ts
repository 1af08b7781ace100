import type pg from 'pg'
import type { NodeError } from '../../../apps/shared/contracts/operations/graph.ts'
import { storableJson } from '../../../apps/shared/run/storable.ts'

/** An attempt and its fence: the holder of a newer fence acts for the attempt. */
export type AttemptRef = { operation_id: string; node_id: string; role: 'run' | 'undo'; attempt: number; fence: number }
export type LogLine = { seq: number; time: string; stream: string; level: string; text: string; cut?: boolean }
export type Artifact = {
  artifact_id: string
  name: string
  kind: string
  media_type: string
  size: number
  sha256: string
  content: string
}
export type AttemptEnd = {
  phase: 'succeeded' | 'failed' | 'outcome_unknown'
  /** As resolved for this attempt, without secrets. */
  inputs: unknown
  outputs: Record<string, unknown> | null
  error: NodeError | null
  lines: readonly LogLine[]
  artifacts: readonly Artifact[]
}

/** An agent that asked for work begins it at once, so this much later it has not heard of it. */
const BEGIN_S = 30
/** SQL: the end of that time for a handover `e`. */
export const BEGIN_BEFORE = `e.heartbeat_at + interval '${BEGIN_S} s'`

/**
 * SQL over all handovers `e` of an attempt `k`: none began the work, and the agent that has it never will. So its next
 * start is a first one.
 */
export const AFRESH = `coalesce(bool_and(e.started_at is null and (k.phase = 'cancelled' or e.closed_at is not null
    or coalesce(${BEGIN_BEFORE} <= clock_timestamp(), false))), false)`

/** SQL: a claim withdrew the handover `e` before the attempt started at `start`. It counts as none of the attempt. */
export const withdrawnBefore = (e: string, start: string): string =>
  `(${e}.started_at is null and ${e}.closed_at is not null and ${e}.created_at < ${start})`

const LOGS = `
chunk as (
  select min((l ->> 'seq')::int) as chunk, jsonb_agg(l order by (l ->> 'seq')::int) as lines, min((l ->> 'seq')::int) as first_seq,
    max((l ->> 'seq')::int) as last_seq, min((l ->> 'time')::timestamptz) as first_at, max((l ->> 'time')::timestamptz) as last_at,
    count(*)::int as count, sum(octet_length(l ->> 'text'))::int as bytes, array_agg(distinct l ->> 'level') as levels
  from jsonb_array_elements($6::jsonb) l having count(*) > 0),
log as (
  insert into operations.log_chunks (operation_id, node_id, role, attempt, chunk, lines)
  select $1, $2, $3, $4, c.chunk, c.lines from chunk c, mine on conflict do nothing),
log_index as (
  insert into operations.operation_job_log_index (operation_id, node_id, role, attempt, chunk, generation, first_seq, last_seq, first_at, last_at, lines, bytes, levels)
  select $1, $2, $3, $4, c.chunk, mine.generation, c.first_seq, c.last_seq, c.first_at, c.last_at, c.count, c.bytes, c.levels from chunk c, mine on conflict do nothing)`

/** Lines are numbered without gaps. Those of an earlier try, whose answer was lost, are sent again and count once. */
const COUNTED = `log_lines = greatest(log_lines, (select max((l ->> 'seq')::int) from jsonb_array_elements($6::jsonb) l)),
    log_bytes = log_bytes + (select coalesce(sum(octet_length(l ->> 'text')), 0) from jsonb_array_elements($6::jsonb) l where (l ->> 'seq')::int > a.log_lines)`

/**
 * The result: one statement, one commit. It counts only under the newest fence and while the attempt is open. What the
 * node promised to the catalog must still be written before the node has succeeded.
 */
const endOf = (further: string) => `
with mine as (
  update operations.node_attempts a set phase = $7, inputs = $8, outputs = $9, error = $10, resume = null, ended_at = clock_timestamp(),
    ${COUNTED}, log_complete = true
  where a.operation_id = $1 and a.node_id = $2 and a.role = $3 and a.attempt = $4 and a.fence = $5 and a.phase in ('dispatched', 'running')
  returning a.generation, a.started_at, a.ended_at),
node as (
  update operations.nodes n set outputs = coalesce($9, n.outputs), error = $10, updated_at = clock_timestamp(),
    ended_at = case when $7 = 'succeeded' and n.spec -> 'catalog' is null then mine.ended_at end,
    state = case when $7 = 'succeeded' and n.spec -> 'catalog' is null then 'succeeded' else n.state end
  from mine where $3 = 'run' and n.operation_id = $1 and n.node_id = $2 and n.generation = mine.generation
  returning n.spec ->> 'step' as step),
took as (
  insert into operations.durations (step, operation_id, node_id, ms)
  select node.step, $1, $2, extract(epoch from mine.ended_at - mine.started_at) * 1000 from node, mine
  where $7 = 'succeeded' and node.step is not null
  on conflict (step, operation_id, node_id) do update set ms = excluded.ms, at = clock_timestamp())
${further}
select extract(epoch from started_at) * 1000 as started_at, extract(epoch from ended_at) * 1000 as ended_at from mine`

const END = endOf('')
/** Each further table costs as much as work on it, even if there is none. */
const END_WITH_RECORDS = endOf(`,
${LOGS},
artifact as (
  insert into operations.operation_artifact_index (artifact_id, operation_id, node_id, attempt, name, kind, media_type, size, sha256, status, content)
  select r.artifact_id, $1, $2, $4, r.name, r.kind, r.media_type, r.size, r.sha256, 'stored', decode(r.content, 'base64')
  from mine, jsonb_to_recordset($11::jsonb) r(artifact_id uuid, name text, kind text, media_type text, size bigint, sha256 text, content text))`)

/** Whether an earlier try of ours, whose answer was lost, wrote an end. */
const ENDED = `
select extract(epoch from started_at) * 1000 as started_at, extract(epoch from ended_at) * 1000 as ended_at from operations.node_attempts
where operation_id = $1 and node_id = $2 and role = $3 and attempt = $4 and fence = $5 and phase = $6`

type Times = { started_at: string; ended_at: string }

/** Ends an attempt; repeatable. Returns `undefined` if another took over or closed it: its result does not count. */
export const endAttempt = async (
  pool: pg.Pool,
  ref: AttemptRef,
  end: AttemptEnd,
): Promise<{ started_at: number; ended_at: number } | undefined> => {
  const records = end.lines.length + end.artifacts.length > 0
  const { rows } = await pool.query<Times>({
    ...(records ? { name: 'attempt_end_records', text: END_WITH_RECORDS } : { name: 'attempt_end', text: END }),
    values: [
      ...keyOf(ref),
      json(end.lines),
      end.phase,
      json(end.inputs),
      json(end.outputs),
      json(end.error),
      ...(records ? [json(end.artifacts)] : []),
    ],
  })
  const row = rows[0] ?? (await pool.query<Times>({ text: ENDED, values: [...keyOf(ref), end.phase] })).rows[0]
  return row && { started_at: Number(row.started_at), ended_at: Number(row.ended_at) }
}

const NOTE = `
with mine as (
  update operations.node_attempts a set heartbeat_at = clock_timestamp(), resume = coalesce($7, a.resume), progress = coalesce($8, a.progress),
    inputs = coalesce($9, a.inputs), ${COUNTED}
  where a.operation_id = $1 and a.node_id = $2 and a.role = $3 and a.attempt = $4 and a.fence = $5 and a.phase in ('dispatched', 'running')
  returning a.generation),
${LOGS}
select generation from mine`

export type AttemptNote = {
  lines?: readonly LogLine[]
  /** From here on a repeat resumes after the effect instead of before it. */
  resume?: Record<string, unknown>
  progress?: Record<string, unknown>
  inputs?: unknown
}

/** Stores heartbeat, log lines and checkpoint of an open attempt. Returns false if it is no longer ours. */
export const noteAttempt = async (pool: pg.Pool, ref: AttemptRef, note: AttemptNote): Promise<boolean> => {
  const { rowCount } = await pool.query({
    name: 'attempt_note',
    text: NOTE,
    values: [
      ...keyOf(ref),
      json(note.lines ?? []),
      json(note.resume ?? null),
      json(note.progress ?? null),
      json(note.inputs ?? null),
    ],
  })
  return rowCount === 1
}

const keyOf = ({ operation_id, node_id, role, attempt, fence }: AttemptRef) => [
  operation_id,
  node_id,
  role,
  attempt,
  fence,
]

const json = (value: unknown) => (value === null || value === undefined ? null : storableJson(value))

/** Outputs of nodes named in an expression or reference. */
export const outputsOf = async (
  pool: pg.Pool,
  operation_id: string,
  node_ids: readonly string[],
): Promise<Record<string, { outputs: Record<string, unknown> }>> => {
  if (node_ids.length === 0) return {}
  const { rows } = await pool.query<{ node_id: string; outputs: Record<string, unknown> | null }>({
    name: 'node_outputs',
    text: 'select node_id, outputs from operations.nodes where operation_id = $1 and node_id = any($2)',
    values: [operation_id, node_ids],
  })
  return Object.fromEntries(rows.map(({ node_id, outputs }) => [node_id, { outputs: outputs ?? {} }]))
}

/** How many seconds ago the nodes of the oldest of these outputs ended. */
export const ageOf = async (pool: pg.Pool, operation_id: string, node_ids: readonly string[]): Promise<number> => {
  const { rows } = await pool.query<{ age_s: number | null }>({
    name: 'node_age',
    text: `select extract(epoch from clock_timestamp() - min(ended_at))::double precision as age_s
           from operations.nodes where operation_id = $1 and node_id = any($2)`,
    values: [operation_id, node_ids],
  })
  return rows[0]?.age_s ?? 0
}

/** The target of an attempt that is about to start, with the version that its plan is based on. */
type Aim = {
  target_id: string
  version: number
  /** Postgres' time before the catalog is asked. */
  asked_at: string
}

/**
 * The target of an attempt, at the version that its operation has pinned or written itself. `nothing` if no version
 * counts: the node has no target, it ignores drift, the attempt has started, or its claim will be refused anyway.
 * `never` if the whole operation has no target.
 */
const AIM = `
select o.pins = '{}' as aimless, n.target_id, greatest((o.pins ->> n.target_id)::bigint, coalesce(i.version_to, 0)) as version,
  operations.iso(clock_timestamp()) as asked_at,
  coalesce(o.pins ? n.target_id and c.control = 'run' and o.constraints ->> 'on_drift' is distinct from 'ignore'
    and (coalesce(k.phase, 'cancelled') = 'cancelled' or h.afresh), false) as counts
from operations.nodes n
  join operations.operations o using (operation_id)
  join operations.operation_control c using (operation_id)
  left join operations.resource_operation_index i on i.operation_id = $1 and i.resource_id = n.target_id
  left join operations.node_attempts k on k.operation_id = $1 and k.node_id = $2 and k.role = 'run' and k.attempt = $3
  cross join lateral (select ${AFRESH} as afresh from operations.executions e
    where e.operation_id = $1 and e.node_id = $2 and e.role = 'run' and e.attempt = $3) h
where n.operation_id = $1 and n.node_id = $2`

type Row = { aimless: boolean; counts: boolean; target_id: string; version: string; asked_at: string }

export const readAim = async (
  pool: pg.Pool,
  { operation_id, node_id, attempt }: { operation_id: string; node_id: string; attempt: number },
): Promise<Aim | 'nothing' | 'never'> => {
  const { rows } = await pool.query<Row>({ name: 'aim', text: AIM, values: [operation_id, node_id, attempt] })
  const [row] = rows
  if (row?.aimless) return 'never'
  if (!row?.counts) return 'nothing'
  const { target_id, version, asked_at } = row
  return { target_id, version: Number(version), asked_at }
}
