import { readFileSync } from 'node:fs'
import type pg from 'pg'
import type { Closure, GateStatus, NodeError, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { closureOf, type OperationCalendar } from '../../../apps/shared/data/calendar.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { Refusal } from '../../../workflows/operation/state/events.ts'
import { keyedLock } from '../../locks.ts'
import { named } from '../../rows.ts'
import { standingDue } from '../gates/standing.ts'
import { AFRESH } from './attempts.ts'

/**
 * The claim: permission for an attempt to take effect (operations.md 1.5, reliability.md 4.5). It shares the control
 * row with other claims and excludes commands. So no node starts after an acknowledged pause or cancel, whatever is
 * still in flight. One statement is one commit.
 */
export type ClaimInput = {
  operation_id: string
  node_id: string
  role: 'run' | 'undo'
  generation: number
  attempt: number
}
export type RefusedBy = Refusal['reason']

export type Claim =
  | {
      verdict: 'granted'
      fence: number
      spec: PlanNode
      input_overrides: Record<string, unknown> | null
      /** Where the attempt resumes if it returned "pending" or made a checkpoint. */
      resume: Record<string, unknown> | null
      /** Milliseconds since 1970 by Postgres' clock. */
      started_at: number
      now: number
      log_lines: number
      log_bytes: number
      /** An earlier try of it may have begun; otherwise this is a first start, and the claim has asked for everything. */
      repeated: boolean
    }
  | {
      verdict: 'refused'
      reason: RefusedBy
      repeated: boolean
      /** The operation's last command that was or will be sent. */
      seq: number
      generation: number
      gates: { gate_id: string; status: GateStatus; round: number }[]
      /** For frozen, window_closed, executor_busy, drifted and unproved: the cause, and until when. */
      closure?: Closure
    }
  | {
      /** The voters of these gates, or its target if none, were checked too long ago: check them, then claim again. */
      verdict: 'recheck'
      gate_ids: string[]
    }
  | {
      /** The attempt has already ended: this repeats its stored result. */
      verdict: 'ended'
      phase: string
      error: NodeError | null
      started_at: number
      ended_at: number
    }

/** The statement with numbered parameters, and their names in order. */
const CLAIM = named(
  readFileSync(new URL('./claim.sql', import.meta.url), 'utf8')
    .replace('{standing_due}', standingDue('g', ':standing_s::double precision', 'clock.now'))
    .replace('{afresh}', AFRESH),
)

const PLAIN = named(
  readFileSync(new URL('./claim.plain.sql', import.meta.url), 'utf8').replace(
    '{standing_due}',
    standingDue('g', ':standing_s::double precision', 'clock_timestamp()'),
  ),
)

type Row = {
  verdict:
    | 'granted'
    | 'ended'
    | 'unknown'
    | 'unlocked'
    | 'recheck'
    | 'calendar'
    | 'restored'
    | 'barred'
    | Exclude<RefusedBy, Bar['reason']>
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
 * Claims an attempt. A repeat of an open attempt is granted again under a new fence if the node is idempotent or its
 * effect is already done. Otherwise the attempt is closed here as unknown. An unknown operation or node is superseded.
 */
export const claimAttempt = async (pool: pg.Pool, input: ClaimInput, terms: Terms = {}): Promise<Claim> => {
  const plain = terms.proved || terms.bar ? undefined : await askPlain(pool, input, terms)
  if (plain?.verdict === 'granted') return claimOf(plain, terms)
  if (plain?.stale && terms.away === undefined) return claimOf({ ...plain, verdict: 'recheck' }, terms)
  let row = await (terms.proved || plain ? claimBehindLocks(pool, input, null, terms) : ask(pool, input, terms, null))
  let { bar } = terms
  // Only if the calendar may apply: it is evaluated here, and the claim verifies that it is still the current one.
  while (row?.calendar) {
    const { document, target_id, passed, digest } = row.calendar
    const closure = closureOf(document, target_id, passed, Number(row.now))
    if (closure) bar = { reason: closure.kind === 'freeze' ? 'frozen' : 'window_closed', closure }
    // An attempt that an agent has is closed by the claim itself.
    if (bar && row.phase !== 'running') return { ...refusalOf(row, bar.reason), closure: bar.closure }
    row = await ask(pool, input, { ...terms, bar }, digest)
  }
  return claimOf(row, { ...terms, bar })
}

/** A reason against the start that is found outside the claim. */
export type Bar = { reason: 'frozen' | 'window_closed' | 'drifted'; closure: Closure }

export type Terms = {
  /** How many attempts of each external pool may be open at once; further ones are refused and wait (places.ts). */
  places?: Readonly<Record<string, number>>
  /** The voters of its gates were just proved: the claim goes straight to the locked path. */
  proved?: boolean
  /** How many seconds old the proof of an approval's voters may be. */
  standing_s?: number
  /** When the catalog was asked about its target, by Postgres' clock. */
  asked_at?: string
  /** A claim that is refused for no other reason waits for this. */
  bar?: Bar | undefined
  /** The service that does not answer: a claim whose voters would need proof is refused. */
  away?: string | undefined
}
const STANDING_S = 5
/** A node asks for a place again after this long, in case the notification of a free place is lost. */
const PLACE_AGAIN_MS = 300_000
/** The same, while a database restore waits to be accepted. */
const RESTORED_AGAIN_MS = 15_000
/** A node asks after this long whether its voters can be proved again. */
const PROVE_AGAIN_MS = 5000

/** The claim of most nodes (claim.plain.sql), without whose lock a node with gates is `unlocked`. */
const askPlain = async (
  pool: pg.Pool,
  input: ClaimInput,
  { asked_at, standing_s = STANDING_S }: Terms,
): Promise<Row | undefined> => {
  if (input.role !== 'run') return undefined
  const known = pick(input, 'operation_id', 'node_id', 'generation', 'attempt')
  const values = PLAIN.values({ ...known, asked_at: asked_at ?? null, standing_s })
  const { rows } = await pool.query<Row>({ name: 'claim_plain', text: PLAIN.text, values })
  return rows[0]
}

/** The claim of a node without gates; `undefined` if the full claim is needed. */
export const claimPlain = async (pool: pg.Pool, input: ClaimInput, terms: Terms = {}): Promise<Claim | undefined> => {
  const row = await askPlain(pool, input, terms)
  return row?.verdict === 'granted' ? claimOf(row, terms) : undefined
}

const ask = async (
  pool: pg.Pool,
  input: ClaimInput,
  terms: Terms,
  calendar: string | null,
): Promise<Row | undefined> => {
  const row = await claim(pool, input, false, calendar, terms)
  if (row?.verdict !== 'unlocked') return row
  return row.stale ? { ...row, verdict: 'recheck' } : claimBehindLocks(pool, input, calendar, terms)
}

const claim = async (
  db: pg.Pool | pg.PoolClient,
  input: ClaimInput,
  locked: boolean,
  calendar: string | null,
  { places = {}, standing_s = STANDING_S, asked_at, bar, away }: Terms,
): Promise<Row | undefined> => {
  const { operation_id, node_id, role, attempt, generation } = input
  const values = CLAIM.values({
    operation_id,
    node_id,
    role,
    attempt,
    generation,
    locked,
    calendar,
    places,
    standing_s,
    asked_at: asked_at ?? null,
    barred: bar !== undefined,
    unproved: away !== undefined,
  })
  const { rows } = await db.query<Row>({ name: 'claim', text: CLAIM.text, values })
  return rows[0]
}

/** Serializes the claims of one external pool, so that its places are counted exactly. */
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
    // Sent together, executed in sequence: the claim's snapshot is taken once the locks are held.
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

const claimOf = (row: Row | undefined, { away = '', bar }: Terms): Claim => {
  if (!row) return { verdict: 'refused', reason: 'superseded', repeated: false, seq: 0, generation: 0, gates: [] }
  const times = { started_at: Number(row.started_at), ended_at: Number(row.ended_at) }
  switch (row.verdict) {
    case 'granted':
      return {
        verdict: 'granted',
        fence: Number(row.fence),
        ...pick(row, 'spec', 'input_overrides', 'resume'),
        started_at: times.started_at,
        now: Number(row.now),
        ...pick(row, 'log_lines', 'log_bytes'),
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
    case 'barred':
    case 'unlocked':
    case 'calendar':
      if (bar && row.verdict === 'barred') return { ...refusalOf(row, bar.reason), closure: bar.closure }
      throw new Error(`a repeated claim was answered with: ${row.verdict}`)
    case 'restored': {
      // Closed like a freeze that a person lifts; the node asks again without a notification.
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
  message: 'The worker was lost during the run; whether it took effect is unknown.',
  retryable: false,
}
