import { sql } from 'drizzle-orm'
import { boolean, index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { at, big, count, json, key, object, tsvector } from './columns.ts'
import { catalogSchema } from './schema.ts'

/** Rows besides the truth: those that follow the log, and those of imports. */
const t = catalogSchema.table

/** The search index: folded from the log, so that a command does not wait for it. It can be dropped and refilled. */
export const search = t(
  'search',
  { rid: big('rid').primaryKey(), names: text('names').notNull(), document: tsvector('document').notNull() },
  (c) => [
    index('search_document').using('gin', c.document),
    index('search_names_trgm').using('gin', sql`names gin_trgm_ops`),
  ],
)

/** How far search has followed the log; `filling_after`: the last row of its initial load so far. */
export const search_position = t('search_position', {
  name: text('name').primaryKey(),
  pub_seq: big('pub_seq').notNull(),
  filling_after: big('filling_after'),
})

/** Operations that touched a resource, as the operations app reports them; shown by operations-summary. */
export const rm_resource_operation = t(
  'rm_resource_operation',
  {
    rid: big('rid').notNull(),
    operation_id: uuid('operation_id').notNull(),
    kind: text('kind').notNull(),
    title: text('title').notNull(),
    status: text('status').notNull(),
    created_at: at('created_at').notNull(),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
  },
  (c) => [
    primaryKey({ columns: [c.rid, c.operation_id] }),
    index('rm_resource_operation_at').on(c.rid, c.created_at),
    index('rm_resource_operation_operation').on(c.operation_id),
  ],
)

/** An import that runs in the background, chunk by chunk, each time with its owner's current rights. */
export const import_job = t(
  'import_job',
  {
    job_id: uuid('job_id').primaryKey(),
    user_id: uuid('user_id').notNull(),
    source: object('source'),
    options: object('options'),
    reason: text('reason'),
    request_id: text('request_id'),
    status: text('status').$type<'queued' | 'running' | 'done' | 'cancelled' | 'failed'>().notNull(),
    total: integer('total').notNull(),
    done: count('done'),
    counts: json<Record<string, number>>('counts').notNull().default(sql`'{}'`),
    /** How many consecutive attempts at a chunk have failed. */
    failures: count('failures'),
    problem: json<Record<string, unknown>>('problem'),
    created_at: at('created_at').notNull(),
    updated_at: at('updated_at').notNull(),
    ended_at: at('ended_at'),
  },
  (c) => [
    index('import_job_open').on(c.updated_at).where(sql`ended_at is null`),
    index('import_job_ended').on(c.ended_at).where(sql`ended_at is not null`),
  ],
)

/** The items of a job, in order. `again`: imported, but some of its targets come later in the job. */
export const import_job_item = t(
  'import_job_item',
  {
    job_id: uuid('job_id').notNull(),
    seq: integer('seq').notNull(),
    item: object('item'),
    result: json<Record<string, unknown>>('result'),
    again: boolean('again').notNull().default(false),
  },
  (c) => [
    primaryKey({ columns: [c.job_id, c.seq] }),
    index('import_job_item_open').on(c.job_id, c.seq).where(sql`result is null or again`),
  ],
)

/** The resource for an id of an import's source, and when the source last named it. */
export const import_ref = t(
  'import_ref',
  {
    source_name: key('source_name').notNull(),
    external_id: key('external_id').notNull(),
    rid: big('rid').notNull(),
    last_seen_at: at('last_seen_at').notNull(),
  },
  (c) => [primaryKey({ columns: [c.source_name, c.external_id] })],
)
