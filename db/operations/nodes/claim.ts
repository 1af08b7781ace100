import type pg from 'pg'
import type { Closure, GateStatus, NodeError, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { closureOf, type OperationCalendar } from '../../../apps/shared/data/calendar.ts'
import { keyedLock } from '../../locks.ts'
import { standingDue } from '../gates/standing.ts'

/**
 * The claim: permission for an attempt to take effect (operations.md 1.5, reliability.md 4.5). It shares the control
 * row with other claims and excludes commands, so nothing begins after an acknowledged pause or cancel, whatever is
 * still on its way. One statement is one commit.
 */
export type ClaimInput = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  generation: number
  attempt: number
}
export type RefusedBy =
  | 'stopped'
  | 'superseded'
  | 'held'
  | 'gate_open'
  | 'lease_lost'
  | 'frozen'
  | 'window_closed'
  | 'executor_busy'
  | 'unproved'

export type Claim =
  | {
      verdict: 'granted'
      fence: number
      spec: PlanNode
      input_overrides: Record<string, unknown> | null
      /** Where the attempt goes on when it said "pending" or made a checkpoint. */
      resume: Record<string, unknown> | null
      /** Milliseconds since 1970 by the clock of Postgres. */
      started_at: number
      now: number
      log_lines: number
      log_bytes: number
      repeated: boolean
    }
  | {
      verdict: 'refused'
      reason: RefusedBy
      repeated: boolean
      /** The last command of the operation that will be or was sent. */
      seq: number
      generation: number
      gates: { gate_id: string; status: GateStatus; round: number }[]
      /** Of frozen, window_closed, executor_busy and unproved: by what, and until when. */
      closure?: Closure
    }
  | {
      /** The voters of these gates were proved too long ago: once they are proved, the claim is asked again. */
      verdict: 'recheck'
      gate_ids: string[]
    }
  | {
      /** The attempt has ended already: its stored result is told again. */
      verdict: 'ended'
      phase: string
      error: NodeError | null
      started_at: number
      ended_at: number
    }

/** Fences of a future that a restore lost stay below those of the epoch after it: no host that knows them refuses ours. */
const FENCE_LIFT = `coalesce((select epoch from operations.relay_state where name = 'restored'), 0) * (2 ^ 40)::bigint`

/**
 * $1 operation, $2 node, $3 role, $4 attempt, $5 generation, $6 whether the control row, and that of an external pool
 * also its places, are locked by a statement before this one, $7 the digest of the calendar that was found to let the
 * node start, $8 the places of each pool, $9 how many seconds ago voters may have been proved, $10 whether nobody can
 * prove them now. Gates are read, not locked: a command that opens one again holds the control row. So a node with gates
 * needs the lock first, else this statement's snapshot may be older than the lock; and so does one whose pool is counted.
 */
const CLAIM = `
with control as materialized (
  select control, cancel_mode, calendar, lease_state from operations.operation_control where operation_id = $1 for share),
node as materialized (
  select n.* from control, operations.nodes n where n.operation_id = $1 and n.node_id = $2 for no key update of n),
gate as materialized (
  select g.gate_id, g.status, g.round, g.digest, g.status = 'bypassed' or (g.status = 'approved' and g.digest = g.approved_digest) as passed,
    ${standingDue('g', '$9::double precision', 'clock.now')} as stale, operations.iso(g.standing_at) as standing_at, operations.iso(clock.now) as at
  from node n join operations.gates g on g.operation_id = $1 and g.gate_id = any(n.gate_ids), lateral (select clock_timestamp() as now) clock),
known as materialized (
  select a.* from node, operations.node_attempts a
  where a.operation_id = $1 and a.node_id = $2 and a.role = $3 and a.attempt = $4 for no key update of a),
outside as materialized (
  select coalesce(n.spec ->> 'pool', 'default') as pool, ($8::jsonb ->> coalesce(n.spec ->> 'pool', 'default'))::int as places
  from node n left join known k on true
  where coalesce(k.phase, 'cancelled') not in ('dispatched', 'running')
    and case $3 when 'run' then n.spec ->> 'executor' else n.spec -> 'compensate' ->> 'executor' end = 'external'),
verdict as materialized (
  select n.spec, n.input_overrides, n.target_id, c.calendar, n.generation, k.phase, k.error, k.resume, k.started_at, k.ended_at, k.log_lines, k.log_bytes,
    k.phase in ('dispatched', 'running', 'cancelled') as repeated,
    case
      when k.phase is not null and k.phase not in ('dispatched', 'running', 'cancelled') then 'ended'
      when k.phase in ('dispatched', 'running') and k.resume is not null then 'granted'
      when not $6 and (n.gate_ids <> '{}' or exists (select from outside where places is not null)) then 'unlocked'
      when k.phase in ('dispatched', 'running') and not case $3 when 'run' then (n.spec ->> 'idempotent')::boolean
        else coalesce((n.spec -> 'compensate' ->> 'idempotent')::boolean, false) end then 'unknown'
      when case when $3 = 'run' then c.control <> 'run' when c.control = 'cancel' then c.cancel_mode <> 'compensate'
        else n.state <> 'compensating' end then 'stopped'
      when n.removed or n.generation <> $5 or k.generation <> $5
        or (k.phase is null and exists (select from operations.node_attempts o
            where o.operation_id = $1 and o.node_id = $2 and o.role = $3 and o.attempt > $4)) then 'superseded'
      when n.hold_patch_id is not null then 'held'
      when $3 = 'run' and exists (select from gate where not passed) then 'gate_open'
      when c.lease_state <> 'held' then 'lease_lost'
      when c.calendar is not null and $3 = 'run' and coalesce(k.phase, 'cancelled') = 'cancelled'
        and md5(c.calendar::text) is distinct from $7::text then 'calendar'
      when (select places from outside) <= (select count(*) from operations.node_attempts o
        where o.executor = 'external' and coalesce(o.pool, 'default') = (select pool from outside)
          and o.phase in ('dispatched', 'running')) then 'executor_busy'
      when exists (select from operations.relay_state where name = 'restored' and stream_created is not null) then 'restored'
      when $3 = 'run' and exists (select from gate where stale) then case when $10 then 'unproved' else 'recheck' end
      else 'granted' end as verdict
  from control c, node n left join known k on true),
granted as (
  insert into operations.node_attempts as a (operation_id, node_id, role, attempt, generation, fence, fences, phase, executor, pool, key, deadline_at, gates)
  select $1, $2, $3, $4, $5, f.fence, array[f.fence::text], 'running',
    case $3 when 'run' then spec ->> 'executor' else spec -> 'compensate' ->> 'executor' end, spec ->> 'pool',
    $1 || ':' || $2 || case $3 when 'run' then ':' else ':c' end || $4,
    clock_timestamp() + make_interval(secs => (spec -> 'timeouts' ->> 'run_s')::double precision),
    case $3 when 'run' then (select jsonb_agg(jsonb_build_object('gate_id', gate_id, 'round', round, 'digest', digest, 'at', at, 'standing_at', standing_at) order by gate_id) from gate) end
  from verdict, lateral (select nextval('operations.fence_seq') + ${FENCE_LIFT} as fence) f where verdict = 'granted'
  on conflict (operation_id, node_id, role, attempt) do update
    set fence = excluded.fence, fences = a.fences || excluded.fences, phase = 'running', error = null, ended_at = null, heartbeat_at = clock_timestamp(),
      gates = case when a.resume is null then excluded.gates else a.gates end
  returning a.fence, a.started_at),
begun as (
  update operations.nodes n set state = 'running', attempt = greatest(n.attempt, $4), started_at = coalesce(v.started_at, clock_timestamp()),
    ended_at = null, error = null, due_at = null, updated_at = clock_timestamp()
  from verdict v where v.verdict = 'granted' and $3 = 'run' and v.resume is null and n.operation_id = $1 and n.node_id = $2),
consumed as (
  update operations.gates g set consumed_at = clock_timestamp(), updated_at = clock_timestamp()
  from verdict v where v.verdict = 'granted' and $3 = 'run' and g.operation_id = $1 and g.gate_id in (select gate_id from gate) and g.consumed_at is null),
waits as (
  insert into operations.pool_waits (operation_id, node_id, pool, places)
  select $1, $2, o.pool, o.places from verdict v, outside o where v.verdict = 'executor_busy'
  on conflict (operation_id, node_id) do update set pool = excluded.pool, places = excluded.places),
served as (
  delete from operations.pool_waits w using verdict v, outside
  where v.verdict = 'granted' and w.operation_id = $1 and w.node_id = $2),
closed as (
  update operations.node_attempts a set ended_at = clock_timestamp(),
    phase = case v.verdict when 'unknown' then 'outcome_unknown' else 'cancelled' end,
    error = jsonb_build_object('class', 'cancelled', 'retryable', false, 'message',
      case v.verdict when 'unknown' then 'The worker was lost while it ran; whether it took effect is not known.'
                     else 'The worker was lost while it ran; it goes on when the operation does.' end)
  from verdict v where v.repeated and v.verdict not in ('granted', 'unlocked', 'recheck', 'calendar', 'ended')
    and a.operation_id = $1 and a.node_id = $2 and a.role = $3 and a.attempt = $4)
select v.verdict, v.repeated, v.generation, v.phase, v.error, v.resume, coalesce(v.log_lines, 0) as log_lines, coalesce(v.log_bytes, 0) as log_bytes,
  extract(epoch from coalesce(g.started_at, v.started_at)) * 1000 as started_at, extract(epoch from v.ended_at) * 1000 as ended_at,
  extract(epoch from clock_timestamp()) * 1000 as now, g.fence,
  case when v.verdict = 'granted' then v.spec end as spec, case when v.verdict = 'granted' then v.input_overrides end as input_overrides,
  case when v.verdict in ('stopped', 'superseded', 'held', 'gate_open', 'lease_lost', 'calendar', 'executor_busy', 'restored', 'unproved') then (select coalesce(max(seq), 0) from operations.operation_commands
    where operation_id = $1 and status not in ('awaiting', 'withdrawn', 'superseded')) end as seq,
  case when v.verdict = 'executor_busy' then (select pool from outside) end as pool,
  case when v.verdict = 'gate_open' then (select jsonb_agg(jsonb_build_object('gate_id', gate_id, 'status', status, 'round', round)) from gate) end as gates,
  case when v.verdict = 'recheck' then (select array_agg(gate_id order by gate_id) from gate where stale) end as stale,
  case when v.verdict = 'calendar' then jsonb_build_object('target_id', v.target_id, 'document', v.calendar, 'digest', md5(v.calendar::text),
    'passed', (select coalesce(jsonb_agg(policy ->> 'key'), '[]') from operations.gates
      where operation_id = $1 and kind = 'freeze' and status in ('approved', 'bypassed'))) end as calendar
from verdict v left join granted g on true`

type Row = {
  verdict:
    | 'granted'
    | 'ended'
    | 'unknown'
    | 'unlocked'
    | 'recheck'
    | 'calendar'
    | 'restored'
    | Exclude<RefusedBy, 'frozen' | 'window_closed'>
  repeated: boolean | null
  generation: number
  phase: string
  error: NodeError | null
  resume: Record<string, unknown> | null
  log_lines: number
  log_bytes: number
  started_at: string
  ended_at: string
  now: string
  fence: string
  spec: PlanNode
  input_overrides: Record<string, unknown> | null
  seq: string
  gates: { gate_id: string; status: GateStatus; round: number }[] | null
  stale: string[] | null
  pool: string | null
  calendar: { target_id: string | null; document: OperationCalendar; digest: string; passed: string[] } | null
}

/**
 * Claims an attempt. A repeat of an open one is granted again under a new fence where the node is idempotent or its
 * effect is behind it; else the attempt is closed as unknown here. An unknown operation or node is superseded.
 */
export const claimAttempt = async (pool: pg.Pool, input: ClaimInput, terms: Terms = {}): Promise<Claim> => {
  let row = await ask(pool, input, terms, null)
  // Only where the calendar says something: looked at here, and proved by the claim to be the one that still holds.
  while (row?.calendar) {
    const { document, target_id, passed, digest } = row.calendar
    const closure = closureOf(document, target_id, passed, Number(row.now))
    if (closure) return { ...refusalOf(row, closure.kind === 'freeze' ? 'frozen' : 'window_closed'), closure }
    row = await ask(pool, input, terms, digest)
  }
  return claimOf(row, terms.away)
}

export type Terms = {
  /** How many attempts of each external pool may be open at once; one more is refused, and waits (places.ts). */
  places?: Readonly<Record<string, number>>
  /** How many seconds ago the voters of an approval may have been proved. */
  standing_s?: number
  /** Who does not answer: a claim whose voters would have to be proved is refused. */
  away?: string | undefined
}
const STANDING_S = 5
/** After so long a node asks again for a place by itself, should nobody tell it that one is free. */
const PLACE_AGAIN_MS = 300_000
/** The same, while a restore of the database waits to be accepted. */
const RESTORED_AGAIN_MS = 15_000
/** After so long a node asks whether its voters can be proved again. */
const PROVE_AGAIN_MS = 5000

const ask = async (
  pool: pg.Pool,
  input: ClaimInput,
  terms: Terms,
  calendar: string | null,
): Promise<Row | undefined> => {
  const row = await claim(pool, input, false, calendar, terms)
  return row?.verdict === 'unlocked' ? claimBehindLocks(pool, input, calendar, terms) : row
}

const claim = async (
  db: pg.Pool | pg.PoolClient,
  input: ClaimInput,
  locked: boolean,
  calendar: string | null,
  { places = {}, standing_s = STANDING_S, away }: Terms,
): Promise<Row | undefined> => {
  const { operation_id, node_id, role, attempt, generation } = input
  const unproved = away !== undefined
  const values = [operation_id, node_id, role, attempt, generation, locked, calendar, places, standing_s, unproved]
  const { rows } = await db.query<Row>({ name: 'claim', text: CLAIM, values })
  return rows[0]
}

/** Claims of one external pool take turns, so that its places are counted exactly. */
const LOCK_PLACES = `
select ${keyedLock('places', "coalesce(spec ->> 'pool', 'default')")} from operations.nodes
where operation_id = $1 and node_id = $2 and case $3 when 'run' then spec ->> 'executor' else spec -> 'compensate' ->> 'executor' end = 'external'`

const claimBehindLocks = async (
  pool: pg.Pool,
  input: ClaimInput,
  calendar: string | null,
  terms: Terms,
): Promise<Row | undefined> => {
  const client = await pool.connect()
  try {
    // Sent together, carried out one after the other: the claim's snapshot is taken once the locks are held.
    const [, , , row] = await Promise.all([
      client.query('begin'),
      client.query({
        name: 'claim_lock',
        text: 'select from operations.operation_control where operation_id = $1 for share',
        values: [input.operation_id],
      }),
      client.query({
        name: 'claim_places',
        text: LOCK_PLACES,
        values: [input.operation_id, input.node_id, input.role],
      }),
      claim(client, input, true, calendar, terms),
      client.query('commit'),
    ])
    return row
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}

const claimOf = (row: Row | undefined, away = ''): Claim => {
  if (!row) return { verdict: 'refused', reason: 'superseded', repeated: false, seq: 0, generation: 0, gates: [] }
  const times = { started_at: Number(row.started_at), ended_at: Number(row.ended_at) }
  switch (row.verdict) {
    case 'granted':
      return {
        verdict: 'granted',
        fence: Number(row.fence),
        spec: row.spec,
        input_overrides: row.input_overrides,
        resume: row.resume,
        started_at: times.started_at,
        now: Number(row.now),
        log_lines: row.log_lines,
        log_bytes: row.log_bytes,
        repeated: row.repeated ?? false,
      }
    case 'unknown':
      return { verdict: 'ended', phase: 'outcome_unknown', error: LOST, ...times }
    case 'ended':
      return { verdict: 'ended', phase: row.phase, error: row.error, ...times }
    case 'recheck':
      return { verdict: 'recheck', gate_ids: row.stale ?? [] }
    case 'unproved': {
      const closure: Closure = { kind: 'identity', id: away, until: Number(row.now) + PROVE_AGAIN_MS }
      return { ...refusalOf(row, 'unproved'), closure }
    }
    case 'unlocked':
    case 'calendar':
      throw new Error(`a claim asked again for what it was given: ${row.verdict}`)
    case 'restored': {
      // Closed like a freeze that a person lifts; the node asks again by itself.
      const closure: Closure = { kind: 'freeze', id: 'restored', until: Number(row.now) + RESTORED_AGAIN_MS }
      return { ...refusalOf(row, 'frozen'), closure }
    }
    case 'executor_busy': {
      const closure: Closure = { kind: 'executor', id: row.pool ?? '', until: Number(row.now) + PLACE_AGAIN_MS }
      return { ...refusalOf(row, 'executor_busy'), closure }
    }
    default:
      return refusalOf(row, row.verdict)
  }
}

const refusalOf = (row: Row, reason: RefusedBy): Extract<Claim, { verdict: 'refused' }> => ({
  verdict: 'refused',
  reason,
  repeated: row.repeated ?? false,
  seq: Number(row.seq),
  generation: row.generation,
  gates: row.gates ?? [],
})

const LOST: NodeError = {
  class: 'cancelled',
  message: 'The worker was lost while it ran; whether it took effect is not known.',
  retryable: false,
}
