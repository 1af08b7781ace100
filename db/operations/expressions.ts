import { type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { bigint, boolean, integer, jsonb, type PgColumn, text, uuid } from 'drizzle-orm/pg-core'
import type {
  Actor,
  BlockedOn,
  CancelMode,
  Control,
  NodeError,
  NodeState,
  OperationStatus,
} from '../../apps/shared/contracts/operations/graph.ts'
import { operationsSchema } from './tables/index.ts'

/**
 * Read models that are views over rows written in the transaction that states the fact (operations.md 6.1). The
 * migration `views` contains their SQL, with the functions `iso`, `status_of` and `place_of`. Times are RFC 3339 text.
 */
export const operation_summary_view = operationsSchema
  .view('operation_summary_view', {
    operation_id: uuid('operation_id').notNull(),
    intent_id: uuid('intent_id').notNull(),
    plan_id: uuid('plan_id').notNull(),
    title: text('title').notNull(),
    kind: text('kind').notNull(),
    status: text('status').$type<OperationStatus>().notNull(),
    control: text('control').$type<Control>().notNull(),
    cancel_mode: text('cancel_mode').$type<CancelMode>(),
    cancelled_at: text('cancelled_at'),
    pause_reason: text('pause_reason'),
    end_reason: text('end_reason'),
    blocked_on: jsonb('blocked_on').$type<BlockedOn[]>().notNull(),
    progress: jsonb('progress').$type<Record<'total' | 'done' | 'running' | 'failed' | 'waiting', number>>().notNull(),
    requester: jsonb('requester').$type<Actor>().notNull(),
    requester_id: text('requester_id').notNull(),
    starter_id: text('starter_id').notNull(),
    involved: text('involved').array().notNull(),
    resource_ids: text('resource_ids').array().notNull(),
    risk_level: text('risk_level').notNull(),
    environment: text('environment'),
    labels: jsonb('labels').$type<Record<string, string>>().notNull(),
    ticket: text('ticket'),
    open_gates: integer('open_gates').notNull(),
    created_at: text('created_at').notNull(),
    started_at: text('started_at'),
    ended_at: text('ended_at'),
    updated_at: text('updated_at').notNull(),
    eta_at: text('eta_at'),
    revision: bigint('revision', { mode: 'number' }).notNull(),
    change_seq: bigint('change_seq', { mode: 'number' }).notNull(),
  })
  .existing()

export const operation_node_run_summary = operationsSchema
  .view('operation_node_run_summary', {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    ordinal: integer('ordinal').notNull(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    executor: text('executor').notNull(),
    target_id: text('target_id'),
    group_id: text('group_id'),
    state: text('state').$type<NodeState>().notNull(),
    generation: integer('generation').notNull(),
    attempt: integer('attempt').notNull(),
    error_class: text('error_class'),
    error_message: text('error_message'),
    error: jsonb('error').$type<NodeError>(),
    ready_at: text('ready_at'),
    gated_at: text('gated_at'),
    started_at: text('started_at'),
    ended_at: text('ended_at'),
    waited_ms: bigint('waited_ms', { mode: 'number' }),
    ran_ms: bigint('ran_ms', { mode: 'number' }),
    progress: jsonb('progress').$type<Record<string, unknown>>(),
    artifacts: integer('artifacts').notNull(),
    log_lines: integer('log_lines').notNull(),
    exception: text('exception'),
    held_by_patch: boolean('held_by_patch').notNull(),
  })
  .existing()

/** A time column as RFC 3339 UTC with microseconds: the wire format, never a Date. */
export function iso<C extends PgColumn>(column: C): SQL<C['_']['notNull'] extends true ? string : string | null>
export function iso(expression: SQL): SQL<string>
export function iso(column: SQLWrapper): SQL {
  return sql`operations.iso(${column})`
}

/** A page of a list, newest first: what a row must meet, and the key (time, id) of the last row before the page. */
export type Newest = { where: (SQL | undefined)[]; after: readonly (string | null)[] | undefined; limit: number }
export const olderThan = (created_at: PgColumn, id: PgColumn, after: Newest['after']): SQL | undefined =>
  after && sql`(${created_at}, ${id}) < (${after[0]}::timestamptz, ${after[1]}::uuid)`

/** Any number of ids as one parameter, each a row: for `in`. */
export const eachText = (ids: readonly string[]): SQL =>
  sql`(select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`

/**
 * The operation `o` ended that many days ago, so that it began earlier still. Ids are in the order of time: the rows of old
 * operations are found by an index that begins with their id, however many old operations there are.
 */
export const endedBefore = (days: number, operation_id: SQL): SQL => {
  const then = sql`now() - make_interval(days => ${days})`
  const least = sql`(lpad(to_hex((extract(epoch from ${then}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`
  return sql`(${operation_id} < ${least} and o.ended_at < ${then})`
}
