import { sql } from 'drizzle-orm'
import { index, text, unique, uuid } from 'drizzle-orm/pg-core'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { at, big, count, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

/** Accepted commands: the relay's queue, in order of `seq` per operation (operations.md 1.3). */
export const operation_commands = t(
  'operation_commands',
  {
    command_id: uuid('command_id').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    kind: text('kind').notNull(),
    class: text('class').$type<'stop' | 'start' | 'edit'>().notNull(),
    payload: json<Record<string, unknown>>('payload').notNull(),
    actor: json<Actor>('actor').notNull(),
    reason: text('reason'),
    request_id: text('request_id'),
    trace: text('trace'),
    not_after: at('not_after'),
    /** awaiting (a second person), pending, sending, delivered, applied, refused, expired, superseded, withdrawn. */
    status: text('status').notNull().default('pending'),
    attempts: count('attempts'),
    next_try_at: at('next_try_at'),
    last_error: text('last_error'),
    outcome: json<{ [key in 'category' | 'code' | 'detail']?: string | undefined }>('outcome'),
    /** Rows that a withdrawal restores. */
    undo: json<Record<string, unknown>>('undo'),
    created_at: now('created_at'),
    outcome_at: at('outcome_at'),
  },
  (c) => [
    unique().on(c.operation_id, c.seq),
    index().on(c.operation_id, c.seq).where(sql`status in ('pending', 'sending')`),
    index().on(c.operation_id).where(sql`status = 'delivered'`),
    index().on(c.status, c.not_after),
  ],
)

export const engine_findings = t('engine_findings', {
  id: big('id').primaryKey().generatedAlwaysAsIdentity(),
  operation_id: uuid('operation_id').notNull(),
  found: text('found').notNull(),
  at: now('at'),
  handled_at: at('handled_at'),
})
