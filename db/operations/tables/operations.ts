import { sql } from 'drizzle-orm'
import { boolean, index, integer, jsonb, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core'
import type { Scope } from '../../../apps/shared/auth/scope.ts'
import type { Actor, BlockedOn } from '../../../apps/shared/contracts/operations/graph.ts'
import type { OperationCalendar } from '../../../apps/shared/data/calendar.ts'
import { at, big, count, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

/** `given_back` by a person until the resume; `released` while a gate waits; `waiting` for others to end. */
export type LeaseState = 'held' | 'given_back' | 'released' | 'waiting'

/** The desired state of an operation: written by command transactions (and by swaps from `run` in record_changes). */
export const operation_control = t('operation_control', {
  operation_id: uuid('operation_id').primaryKey(),
  control: text('control').$type<'run' | 'pause' | 'cancel'>().notNull().default('run'),
  cancel_mode: text('cancel_mode').$type<'graceful' | 'compensate' | 'force'>(),
  cancelled_at: at('cancelled_at'),
  pause_reason: text('pause_reason'),
  /** Counts decided changes; the first half of the ETag. */
  revision: big('revision').notNull().default(1),
  /** The last number given to a command of this operation. */
  command_seq: big('command_seq').notNull().default(0),
  ended: boolean('ended').notNull().default(false),
  lease_epoch: integer('lease_epoch').notNull().default(0),
  /** Whether it holds the leases it needs; anything but `held` refuses claims (leases.ts). */
  lease_state: text('lease_state').$type<LeaseState>().notNull().default('held'),
  /** The leases that patches need beyond those of the plan. */
  more_leases: json<{ resource_id: string; mode: 'exclusive' | 'shared' }[]>('more_leases').notNull().default([]),
  /** Windows and freezes that bind its nodes; null: none. The claim reads it. */
  calendar: jsonb('calendar').$type<OperationCalendar>(),
})

/**
 * A freeze as put by a control plane: `applies` is CEL over `target`, times are RFC 3339. `within` limits it to the
 * places where the person who made it may freeze.
 */
export type FreezeEntry = {
  title: string
  applies: string
  from: string
  to: string
  approvers: string[]
  within?: Scope[]
  /** It only lost time: an operation that has overridden it is not held by it again. */
  shortened?: true
}

/**
 * Freezes that control planes put in addition to those in the files (operations.md 9.3). A withdrawn one keeps its row,
 * so that running operations learn of it whatever dies in between: all changes up to `told_revision` have reached them.
 */
export const calendar_entries = t('calendar_entries', {
  freeze_id: text('freeze_id').primaryKey(),
  entry: json<FreezeEntry>('entry').notNull(),
  withdrawn: boolean('withdrawn').notNull().default(false),
  put_by: text('put_by').notNull(),
  revision: integer('revision').notNull().default(1),
  told_revision: integer('told_revision').notNull().default(0),
  updated_at: now('updated_at'),
})

/** Something that continued in spite of the plan; `command_id` refers to a person's decision. */
export type Exception = {
  kind: string
  freeze_id?: string
  node_id?: string
  gate_id?: string
  actor: Actor
  at: string
  command_id?: string
}

/** The reported state of an operation: written by record_changes and by the transactions that state a fact. */
export const operations = t(
  'operations',
  {
    operation_id: uuid('operation_id').primaryKey(),
    intent_id: uuid('intent_id').notNull(),
    plan_id: uuid('plan_id').notNull(),
    title: text('title').notNull(),
    kind: text('kind').notNull(),
    /** queued, running, blocked, paused, cancelling, or one of the ends; read through status_of(control, engine_status). */
    engine_status: text('engine_status').notNull().default('queued'),
    end_reason: text('end_reason'),
    blocked_on: json<BlockedOn[]>('blocked_on').notNull().default([]),
    total: count('total'),
    done: count('done'),
    running: count('running'),
    failed: count('failed'),
    waiting: count('waiting'),
    requester: json<Actor>('requester').notNull(),
    requester_id: text('requester_id').notNull(),
    starter_id: text('starter_id').notNull(),
    /** Users that four eyes excludes: requester, starter, proposers of patches. */
    involved: text('involved').array().notNull().default(sql`'{}'`),
    risk_level: text('risk_level').notNull(),
    environment: text('environment'),
    labels: json<Record<string, string>>('labels').notNull(),
    ticket: text('ticket'),
    retry_of: uuid('retry_of'),
    resource_ids: text('resource_ids').array().notNull().default(sql`'{}'`),
    open_gates: count('open_gates'),
    plan_revision: integer('plan_revision').notNull().default(1),
    plan_hash: text('plan_hash').notNull(),
    constraints: json<Record<string, unknown>>('constraints').notNull(),
    max_parallel: integer('max_parallel').notNull(),
    deadline_at: at('deadline_at'),
    pins: json<Record<string, number>>('pins').notNull(),
    /** Newer versions of targets that were checked and found to be drift. */
    drift_looked: json<Record<string, number>>('drift_looked').notNull().default({}),
    /** The plan's changes if a person has adopted newer values of the targets. */
    diff_moved: json<object[]>('diff_moved').notNull().default([]),
    exceptions: json<Exception[]>('exceptions').notNull().default([]),
    timeline_seq: big('timeline_seq').notNull().default(0),
    evidence_seq: big('evidence_seq').notNull().default(0),
    evidence_hash: text('evidence_hash').notNull(),
    /** Counts all changes that a reader can see; the second half of the ETag. */
    change_seq: big('change_seq').notNull().default(1),
    /** Version of the aggregate on the outbox: dense, one per transaction that states facts. */
    agg_version: big('agg_version').notNull().default(0),
    /** Guard of record_changes: the last recorded batch and its stored result. */
    record_seq: big('record_seq').notNull().default(0),
    record_result: json<Record<string, unknown>>('record_result'),
    engine_ref: json<{ namespace: string; workflow_id: string; run_id: string }>('engine_ref'),
    created_at: now('created_at'),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    updated_at: now('updated_at'),
    eta_at: at('eta_at'),
  },
  (c) => [
    // One operation per plan; a withdrawn start does not count.
    uniqueIndex().on(c.plan_id).where(sql`end_reason is distinct from 'start_withdrawn'`),
    index().on(c.created_at, c.operation_id),
    index().on(c.updated_at, c.operation_id),
    // Covers the overview's sums without reading the rows, which are wide.
    index('operations_ended').on(c.ended_at, c.engine_status, c.started_at).where(sql`ended_at is not null`),
    index('operations_open').on(c.created_at, c.operation_id).where(sql`ended_at is null`),
    index().on(c.engine_status, c.created_at),
    index().on(c.requester_id, c.created_at),
    index().using('gin', c.resource_ids),
  ],
)

export const leases = t(
  'leases',
  {
    resource_id: text('resource_id').notNull(),
    operation_id: uuid('operation_id').notNull(),
    mode: text('mode').$type<'exclusive' | 'shared'>().notNull(),
    since: now('since'),
  },
  (c) => [primaryKey({ columns: [c.resource_id, c.operation_id] }), index().on(c.operation_id)],
)
export const lease_waits = t('lease_waits', {
  operation_id: uuid('operation_id').primaryKey(),
  wanted: json<{ resource_id: string; mode: 'exclusive' | 'shared' }[]>('wanted').notNull(),
  since: now('since'),
})
