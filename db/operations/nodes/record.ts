import { sql } from 'drizzle-orm'
import { roomFor } from '../../../apps/shared/contracts/engine/texts.ts'
import type { Executed } from '../../../apps/shared/contracts/operations/common.ts'
import type { NodeError, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { CEL_LIMITS, compileCel, withinTime } from '../../../apps/shared/expressions/cel.ts'
import { storableText } from '../../../apps/shared/run/storable.ts'
import type { Change } from '../../../workflows/operation/state/events.ts'
import type { Tx } from '../../client.ts'
import { ENGINE, type TimelineEvent } from '../facts/state.ts'
import type { EvidenceFact } from '../tables/evidence.ts'
import { nodes } from '../tables/index.ts'

export type NodeChange = Extract<Change, { t: 'node' }>

/**
 * Whether a valid command has reset the node since the reducer's report. A command that only increased the generation
 * wrote no state, so the report still holds.
 */
const begunAnew = sql.raw(`exists (select from operations.operation_commands c
        where c.operation_id = n.operation_id and c.status not in ('refused', 'expired', 'withdrawn', 'superseded')
          and case when c.kind in ('retry_node', 'patch_applied') then (c.payload -> 'generations' ->> n.node_id)::int
            when c.payload ->> 'type' = 'trigger_compensation' and c.payload ->> 'node_id' = n.node_id then (c.payload ->> 'generation')::int
            end > r.generation)`)

/**
 * Advances node rows. Claims and results write rows on their own and may be ahead of this batch. Such a row (a newer
 * generation or attempt, or an open one) stays.
 */
export const saveNodes = async (tx: Tx, operation_id: string, changes: readonly NodeChange[]): Promise<void> => {
  const rows = new Map<string, Record<string, unknown>>()
  for (const { id, state, at, generation, attempt, role, error, due, exception } of changes) {
    if (state === 'dispatched') continue
    const time = new Date(at).toISOString()
    rows.set(id, {
      ...rows.get(id),
      node_id: id,
      state,
      generation,
      attempt: role === 'undo' ? null : attempt,
      error: error ?? null,
      due_at: due === undefined ? null : new Date(due).toISOString(),
      ...(exception !== undefined && { exception }),
      ...(state === 'ready' && { ready_at: time }),
      ...(state === 'gated' && { gated_at: time }),
      ...(STARTS.has(state) && { started_at: time }),
      ended_at: ENDS.has(state) ? time : null,
    })
  }
  if (rows.size === 0) return
  await tx.execute(sql`
    update ${nodes} n set state = r.state, error = case when r.state = 'succeeded' then null else coalesce(r.error, n.error) end,
      exception = coalesce(n.exception, r.exception), due_at = r.due_at, ready_at = coalesce(r.ready_at, n.ready_at),
      gated_at = coalesce(r.gated_at, n.gated_at), started_at = coalesce(n.started_at, r.started_at),
      ended_at = case when r.state = n.state then coalesce(n.ended_at, r.ended_at) else r.ended_at end, updated_at = clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify([...rows.values()])}::jsonb) as r(node_id text, state text, generation int, attempt int, error jsonb,
      exception text, due_at timestamptz, ready_at timestamptz, gated_at timestamptz, started_at timestamptz, ended_at timestamptz)
    where n.operation_id = ${operation_id} and n.node_id = r.node_id and (n.state <> r.state or r.exception is not null)
      and (r.attempt is null or r.state = 'cancelled' or (n.attempt <= r.attempt and (n.generation <= r.generation or not ${begunAnew})))
      and (r.state not in ('ready', 'gated') or not exists (select from operations.node_attempts a
        where a.operation_id = n.operation_id and a.node_id = n.node_id and a.role = 'run' and a.generation = n.generation and a.phase in ('dispatched', 'running')))`)
}

const STARTS: ReadonlySet<NodeState> = new Set<NodeState>(['running'])
const ENDS: ReadonlySet<NodeState> = new Set<NodeState>([
  'succeeded',
  'failed',
  'outcome_unknown',
  'skipped',
  'cancelled',
  'compensated',
  'compensation_failed',
])

/** Closes attempts that the reducer has given up (no answer, forced cancel), so that a late result does not count. */
export const closeAttempts = async (tx: Tx, operation_id: string, changes: readonly NodeChange[]): Promise<void> => {
  const given_up = changes
    .filter(({ state }) => state === 'outcome_unknown' || state === 'compensation_failed')
    .map(({ id, attempt, role = 'run', error }) => ({ node_id: id, attempt, role, error }))
  if (given_up.length === 0) return
  await tx.execute(sql`
    update operations.node_attempts a set phase = 'outcome_unknown', error = coalesce(a.error, r.error), ended_at = clock_timestamp()
    from jsonb_to_recordset(${JSON.stringify(given_up)}::jsonb) as r(node_id text, attempt int, role text, error jsonb)
    where a.operation_id = ${operation_id} and a.node_id = r.node_id and a.role = r.role and a.attempt = r.attempt and a.phase in ('dispatched', 'running')`)
}

type AttemptRow = {
  node_id: string
  role: string
  attempt: number
  started_at: string
  outputs: unknown
  error: NodeError | null
  gates: { gate_id: string; round: number; digest: string }[] | null
  executed: Executed | null
}

const attemptKey = (node_id: string, role: string, attempt: number) => `${role} ${attempt} ${node_id}`

/**
 * The history of node changes: one event each, with evidence if it decided something about the world. There is none for
 * an attempt that was sent after the operation was stopped: its claim is refused.
 */
export const nodeEvents = async (
  tx: Tx,
  operation_id: string,
  changes: readonly NodeChange[],
): Promise<(change: NodeChange) => TimelineEvent | undefined> => {
  const keys = changes.map(({ id, attempt, role = 'run' }) => ({ node_id: id, attempt, role }))
  const attempts = new Map<string, AttemptRow>()
  if (keys.length > 0) {
    const { rows } = await tx.execute<AttemptRow>(sql`
      select a.node_id, a.role, a.attempt, operations.iso(a.started_at) as started_at, a.outputs, a.error, a.gates, a.executed
      from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as r(node_id text, attempt int, role text)
      join operations.node_attempts a on a.operation_id = ${operation_id} and a.node_id = r.node_id and a.role = r.role and a.attempt = r.attempt`)
    for (const row of rows) attempts.set(attemptKey(row.node_id, row.role, row.attempt), row)
  }
  const rowOf = ({ id, role = 'run', attempt }: NodeChange) => attempts.get(attemptKey(id, role, attempt))
  const onItsWay = (change: NodeChange) => change.state === 'dispatched' && !rowOf(change)
  const stopped = changes.some(onItsWay) && (await isStopped(tx, operation_id))
  return (change) => (stopped && onItsWay(change) ? undefined : eventOf(change, rowOf(change)))
}

const isStopped = async (tx: Tx, operation_id: string): Promise<boolean> => {
  const { rows } = await tx.execute<{ control: string }>(
    sql`select control from operations.operation_control where operation_id = ${operation_id}`,
  )
  return rows[0]?.control !== 'run'
}

const eventOf = (change: NodeChange, row: AttemptRow | undefined): TimelineEvent => {
  const { id, state, at, generation, attempt, role = 'run', error, due, exception } = change
  // A granted claim means running; the time is the attempt's own.
  const begun = state === 'dispatched' && row !== undefined
  const said = PROVEN[state]
  return {
    type: `node.${begun ? 'running' : state}`,
    actor: ENGINE,
    at: begun ? row.started_at : new Date(at).toISOString(),
    node_id: id,
    data: {
      generation,
      ...(attempt > 0 && { attempt }),
      ...(role === 'undo' && { role }),
      ...(error && { error }),
      ...(due !== undefined && { due_at: new Date(due).toISOString() }),
      ...(exception !== undefined && { exception }),
      ...(row && !begun && { started_at: row.started_at }),
    },
    evidence: said === undefined ? undefined : evidenceOf(change, said, row),
  }
}

const PROVEN: Partial<Record<NodeState, string>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  outcome_unknown: 'ended nobody knows how',
  skipped: 'was skipped',
  compensated: 'was undone',
  compensation_failed: 'could not be undone',
}

const evidenceOf = (change: NodeChange, said: string, row: AttemptRow | undefined): EvidenceFact => {
  const { id, state, generation, attempt, role = 'run', error, exception } = change
  const outputs = row?.outputs ?? null
  return {
    kind: exception === undefined ? 'node_result' : 'exception',
    statement: `Node ${id} ${said}${error ? `, ${error.class}` : ''}${attempt > 0 ? ` (attempt ${attempt})` : ''}`,
    subject: {
      ...{ type: 'node', id, ...(row?.gates && { began_at: row.started_at, gates: row.gates }) },
      ...(row?.executed && { executed: row.executed }),
    },
    subject_digest: digest({ node_id: id, state, generation, attempt, role, outputs, error: error ?? null }),
  }
}

const MAX_MESSAGE = 300

/** Evaluates conditions of nodes over the outputs of the nodes that they name: true, false, or why this fails. */
export const evaluateWhens = async (
  tx: Tx,
  operation_id: string,
  node_ids: readonly string[],
): Promise<Record<string, boolean | string>> => {
  if (node_ids.length === 0) return {}
  const { rows } = await tx.execute<{ node_id: string; when: string | null }>(sql`
    select node_id, spec ->> 'when' as "when" from ${nodes} where operation_id = ${operation_id} and node_id = any(${sql.param(node_ids)})`)
  const named = new Set(rows.flatMap(({ when }) => (when === null ? [] : namesIn(when))))
  const { rows: known } = await tx.execute<{ node_id: string; outputs: Record<string, unknown> | null }>(sql`
    select node_id, outputs from ${nodes} where operation_id = ${operation_id} and node_id = any(${sql.param([...named])})`)
  const context = {
    nodes: Object.fromEntries(known.map(({ node_id, outputs }) => [node_id, { outputs: outputs ?? {} }])),
  }
  const room = Math.min(MAX_MESSAGE, roomFor(rows.length))
  return withinTime(CEL_LIMITS.record_ms, () =>
    Object.fromEntries(rows.map(({ node_id, when }) => [node_id, test(when, context, room)])),
  )
}

/** Node ids that an expression names, as nodes["id"] or nodes.id. */
export const namesIn = (source: string): string[] =>
  [...source.matchAll(/nodes\s*(?:\[\s*["']([^"']+)["']\s*\]|\.\??([A-Za-z_]\w*))/g)].map(
    ([, quoted, plain]) => quoted ?? plain ?? '',
  )

const test = (source: string | null, context: Record<string, unknown>, room: number): boolean | string => {
  if (source === null) return true
  try {
    return compileCel(source, ['nodes']).test(context)
  } catch (error) {
    return storableText((error as Error).message.slice(0, room))
  }
}
