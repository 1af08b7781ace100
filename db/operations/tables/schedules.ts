import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import type { ScheduleBody, When } from '../../../apps/shared/contracts/operations/schedules.ts'
import { at, big, json, now } from '../../columns.ts'
import { NOW } from '../../rows.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

/** Intents that are stated again at set times, with their owner's rights at that time. */
export const schedules = t(
  'schedules',
  {
    schedule_id: uuid('schedule_id').primaryKey(),
    status: text('status').$type<'active' | 'paused' | 'ended'>().notNull().default('active'),
    status_reason: text('status_reason'),
    owner: json<Actor>('owner').notNull(),
    requester_id: text('requester_id').notNull(),
    when: json<When>('when').notNull(),
    intent: json<ScheduleBody['intent']>('intent').notNull(),
    proceed: text('proceed').$type<'plan' | 'start'>().notNull(),
    /** The targets at its creation, which decide who may see it. */
    resource_ids: text('resource_ids').array().notNull(),
    /** The resources that met its condition at the last check. */
    matched: text('matched').array().notNull().default(sql`'{}'`),
    /** The position of the catalog projection at that check. */
    seen: big('seen').notNull().default(-1),
    /** Null while it is not active, and for a condition. */
    next_at: at('next_at'),
    /** The number of the secret that signs its webhook, 0 if none; the previous one is valid until `previous_until`. */
    secret_number: integer('secret_number').notNull().default(0),
    previous_until: at('previous_until'),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
  },
  (c) => [index('schedules_due').on(c.next_at), index().on(c.created_at, c.schedule_id)],
)

/** One row per due time. `leased_until`: a process works on it. */
export const schedule_runs = t(
  'schedule_runs',
  {
    schedule_id: uuid('schedule_id').notNull(),
    due_at: at('due_at').notNull(),
    state: text('state').$type<'begun' | 'planned' | 'started' | 'skipped' | 'refused'>().notNull().default('begun'),
    detail: text('detail'),
    /** The resources that started to meet the condition. */
    targets: text('targets').array(),
    intent_id: uuid('intent_id'),
    plan_id: uuid('plan_id'),
    operation_id: uuid('operation_id'),
    leased_until: at('leased_until'),
    /** When it was first tried, which may be long after it was due. */
    begun_at: at('begun_at').notNull().default(NOW),
  },
  (c) => [primaryKey({ columns: [c.schedule_id, c.due_at] }), index('schedule_runs_state').on(c.state, c.due_at)],
)

/** Received webhooks, each counted once, with their outcomes; rows older than this column have no `status`. */
export const schedule_deliveries = t(
  'schedule_deliveries',
  {
    schedule_id: uuid('schedule_id').notNull(),
    delivery_id: text('delivery_id').notNull(),
    at: now('at'),
    status: text('status').$type<'accepted' | 'ignored'>(),
    detail: text('detail'),
    /** The number of the secret that signed it. */
    secret_number: integer('secret_number'),
  },
  (c) => [primaryKey({ columns: [c.schedule_id, c.delivery_id] }), index().on(c.schedule_id, c.at)],
)
