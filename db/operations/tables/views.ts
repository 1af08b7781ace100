import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { Actor, PlanGraph } from '../../../apps/shared/contracts/operations/graph.ts'
import { at, big, bytea, json, now } from '../../columns.ts'
import type { EvidenceSubject } from './evidence.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

export const operation_graph_view = t(
  'operation_graph_view',
  {
    operation_id: uuid('operation_id').notNull(),
    plan_revision: integer('plan_revision').notNull(),
    graph: json<PlanGraph>('graph').notNull(),
    plan_hash: text('plan_hash').notNull(),
    patch_id: uuid('patch_id'),
    created_at: now('created_at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.plan_revision] })],
)

export const operation_timeline_view = t(
  'operation_timeline_view',
  {
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    at: at('at').notNull(),
    type: text('type').notNull(),
    actor: json<Actor>('actor').notNull(),
    on_behalf_of: text('on_behalf_of'),
    reason: text('reason'),
    node_id: text('node_id'),
    gate_id: text('gate_id'),
    patch_id: text('patch_id'),
    command_id: uuid('command_id'),
    data: json<Record<string, unknown>>('data').notNull().default({}),
    evidence_seq: big('evidence_seq'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.seq] })],
)

/** One hash chain per operation (operations.md 6.3). */
export const operation_evidence_index = t(
  'operation_evidence_index',
  {
    operation_id: uuid('operation_id').notNull(),
    seq: big('seq').notNull(),
    kind: text('kind').notNull(),
    statement: text('statement').notNull(),
    subject: json<EvidenceSubject>('subject').notNull(),
    subject_digest: text('subject_digest').notNull(),
    actor: json<Actor>('actor').notNull(),
    /** As hashed: the text itself, because a driver may print a timestamp differently. */
    at: text('at').notNull(),
    prev_hash: text('prev_hash').notNull(),
    hash: text('hash').notNull(),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.seq] })],
)

export const log_chunks = t(
  'log_chunks',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').notNull().default('run'),
    attempt: integer('attempt').notNull(),
    chunk: integer('chunk').notNull(),
    lines:
      json<{ seq: number; time: string; stream: string; level: string; text: string; cut?: boolean }[]>(
        'lines',
      ).notNull(),
    /** The same lines as gzipped JSON once the log is archived; `lines` is then empty. */
    packed: bytea('packed'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt, c.chunk] }),
    index('log_chunks_hot').on(c.operation_id).where(sql`packed is null`),
  ],
)
export const operation_job_log_index = t(
  'operation_job_log_index',
  {
    /** Order of arrival over all logs of this database, for tailing by the live stream. */
    log_seq: big('log_seq').generatedAlwaysAsIdentity(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').notNull().default('run'),
    attempt: integer('attempt').notNull(),
    chunk: integer('chunk').notNull(),
    generation: integer('generation').notNull(),
    first_seq: big('first_seq').notNull(),
    last_seq: big('last_seq').notNull(),
    first_at: at('first_at').notNull(),
    last_at: at('last_at').notNull(),
    lines: integer('lines').notNull(),
    bytes: integer('bytes').notNull(),
    levels: text('levels').array().notNull().default(sql`'{}'`),
    /** hot, archive, or gone once it has expired. */
    storage: text('storage').notNull().default('hot'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt, c.chunk] }), index().on(c.log_seq)],
)

export const operation_artifact_index = t(
  'operation_artifact_index',
  {
    artifact_id: uuid('artifact_id').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    attempt: integer('attempt').notNull(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    media_type: text('media_type').notNull(),
    size: big('size').notNull(),
    sha256: text('sha256').notNull(),
    status: text('status').notNull(),
    uri: text('uri'),
    /** Small artifacts are stored in the row; larger ones in the content-addressed folder. */
    content: bytea('content'),
    created_at: now('created_at'),
    expires_at: at('expires_at'),
  },
  (c) => [
    index().on(c.operation_id, c.node_id),
    index().on(c.sha256),
    index('operation_artifact_index_kept').on(c.operation_id).where(sql`status = 'stored' and expires_at is null`),
  ],
)

export const resource_operation_index = t(
  'resource_operation_index',
  {
    resource_id: text('resource_id').notNull(),
    operation_id: uuid('operation_id').notNull(),
    relation: text('relation').notNull().default('target'),
    change: text('change'),
    version_from: big('version_from'),
    version_to: big('version_to'),
    status: text('status').notNull(),
    kind: text('kind').notNull(),
    title: text('title').notNull(),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    last_command_id: uuid('last_command_id'),
  },
  (c) => [primaryKey({ columns: [c.resource_id, c.operation_id] }), index().on(c.operation_id)],
)
