import { sql } from 'drizzle-orm'
import { boolean, index, integer, primaryKey, smallint, text, unique, uniqueIndex, uuid } from 'drizzle-orm/pg-core'
import type { Capability, RelationshipType, ResourceType } from '../../apps/shared/contracts/catalog/types.ts'
import { auditTable } from '../audit.ts'
import { inboxTables } from '../inbox.ts'
import { outboxTables } from '../outbox.ts'
import { at, big, bytea, count, json, key, ltree, object, rowId } from './columns.ts'
import { catalogSchema } from './schema.ts'

export { catalogSchema }

/** Catalog rows (catalog.md 9). The truth is `resource`, `resource_state`, `relationship`; the rest is derived. */
const t = catalogSchema.table

export const { outbox, relay_state } = outboxTables(catalogSchema)
export const inboxOf = inboxTables(catalogSchema)
export const { inbox, projection_version, dead_letter, projection } = inboxOf

/** Loaded packs; `load_no` grows with each load that changes something, so that processes notice it. */
export const pack = t(
  'pack',
  {
    pack: text('pack').notNull(),
    version: text('version').notNull(),
    checksum: text('checksum').notNull(),
    document: object('document'),
    load_no: count('load_no'),
    loaded_at: at('loaded_at').notNull(),
  },
  (c) => [primaryKey({ columns: [c.pack, c.version] })],
)
/** One row per version; `id` stands for the key and is the same in all versions. `retired`: removed from the files. */
export const type = t(
  'type',
  {
    id: smallint('id').notNull(),
    type_key: key('type_key').notNull(),
    version: integer('version').notNull(),
    checksum: text('checksum').notNull(),
    retired: boolean('retired').notNull().default(false),
    document: json<ResourceType>('document').notNull(),
  },
  (c) => [primaryKey({ columns: [c.id, c.version] }), unique().on(c.type_key, c.version)],
)
export const relationship_type = t('relationship_type', {
  id: smallint('id').primaryKey(),
  type_key: key('type_key').notNull().unique(),
  checksum: text('checksum').notNull(),
  retired: boolean('retired').notNull().default(false),
  document: json<RelationshipType>('document').notNull(),
})
export const capability_def = t(
  'capability_def',
  {
    id: smallint('id').notNull(),
    capability_key: key('capability_key').notNull(),
    version: text('version').notNull(),
    checksum: text('checksum').notNull(),
    retired: boolean('retired').notNull().default(false),
    document: json<Capability>('document').notNull(),
  },
  (c) => [primaryKey({ columns: [c.id, c.version] }), unique().on(c.capability_key, c.version)],
)

/** The identity of a resource: changes rarely and carries the indexes. */
export const resource = t(
  'resource',
  {
    rid: rowId('rid').primaryKey(),
    resource_id: key('resource_id').notNull().unique(),
    type_id: smallint('type_id').notNull(),
    type_version: integer('type_version').notNull(),
    name: key('name').notNull(),
    display_name: text('display_name').notNull(),
    owner: text('owner'),
    labels: json<Record<string, string>>('labels').notNull().default(sql`'{}'`),
    annotations: json<Record<string, string>>('annotations').notNull().default(sql`'{}'`),
    parent_rid: big('parent_rid'),
    /** Row numbers from the root to this one. */
    path: ltree('path').notNull(),
    desired_state: object('desired_state'),
    /** Who last set which field: managers by pointer (catalog.md 7.4). */
    field_owners: json<Record<string, string>>('field_owners').notNull().default(sql`'{}'`),
    identity_hash: bytea('identity_hash'),
    /** False once the lifecycle has ended: name and natural identity are then free again. */
    is_open: boolean('is_open').notNull().default(true),
    created_at: at('created_at').notNull(),
    created_by: text('created_by').notNull(),
  },
  (c) => [
    uniqueIndex('resource_name_key').on(c.type_id, c.parent_rid, c.name).where(sql`is_open`),
    uniqueIndex('resource_identity_key').on(c.type_id, c.identity_hash).where(sql`is_open`),
    index('resource_path_key').on(c.path),
    index('resource_desired_gin').using('gin', sql`desired_state jsonb_path_ops`),
    index('resource_labels_gin').using('gin', sql`labels jsonb_path_ops`),
    index('resource_name_trgm').using('gin', sql`name gin_trgm_ops`),
    index('resource_name').on(c.name, c.rid),
    index('resource_type_name').on(c.type_id, c.name, c.rid),
    index('resource_parent').on(c.parent_rid, c.name),
  ],
)

/** A resource's state: it changes with every command, so its only index is its primary key (all updates stay HOT). */
export const resource_state = t('resource_state', {
  rid: big('rid').primaryKey(),
  version: integer('version').notNull(),
  generation: integer('generation').notNull(),
  observed_generation: integer('observed_generation').notNull(),
  lifecycle_status: text('lifecycle_status').notNull(),
  observed_state: object('observed_state'),
  health_status: text('health_status').notNull().default('unknown'),
  health_reason: text('health_reason').notNull().default('never_observed'),
  /** When own health may change by time alone: the next expiry of a check. */
  health_expires_at: at('health_expires_at'),
  health_revision: count('health_revision'),
  capability_revision: count('capability_revision'),
  drift_status: text('drift_status').notNull(),
  drift_paths: json<string[]>('drift_paths').notNull().default(sql`'[]'`),
  lifecycle_at: at('lifecycle_at').notNull(),
  drift_at: at('drift_at').notNull(),
  health_at: at('health_at').notNull(),
  last_operation_id: uuid('last_operation_id'),
  last_command_id: uuid('last_command_id'),
  last_operation_at: at('last_operation_at'),
  updated_at: at('updated_at').notNull(),
  updated_by: text('updated_by').notNull(),
})

const edge = {
  src: big('src').notNull(),
  reltype_id: smallint('reltype_id').notNull(),
  dst: big('dst').notNull(),
  rev: count('rev', 1),
  properties: object('properties'),
  valid_from: at('valid_from').notNull(),
  command_id: uuid('command_id'),
  operation_id: uuid('operation_id'),
  /** The imports and managers that state it, else the kinds of writers, a line each; `:in`: of `dst`. Null: older. */
  stated_by: text('stated_by'),
}
/** Open edges. `rel_no` is never reused: a closed and reopened edge is a new one. */
export const relationship = t('relationship', { ...edge, rel_no: rowId('rel_no').unique() }, (c) => [
  primaryKey({ columns: [c.src, c.reltype_id, c.dst] }),
  uniqueIndex('relationship_in').on(c.dst, c.reltype_id, c.src),
  index('relationship_expires').on(sql`(properties->>'expires_at')`).where(sql`properties->>'expires_at' is not null`),
])
export const relationship_history = t(
  'relationship_history',
  { ...edge, rel_no: big('rel_no').notNull(), valid_to: at('valid_to').notNull() },
  (c) => [
    primaryKey({ columns: [c.rel_no, c.rev] }),
    index('relationship_history_src').on(c.src, c.valid_from),
    index('relationship_history_dst').on(c.dst, c.valid_from),
    index('relationship_history_to').on(c.valid_to),
  ],
)

/** Each version as a merge patch from the previous one, every 20th as a whole. Partitioned by rid. */
export const revision = t(
  'revision',
  {
    rid: big('rid').notNull(),
    version: integer('version').notNull(),
    at: at('at').notNull(),
    kind: text('kind').$type<'snapshot' | 'delta'>().notNull(),
    doc: object('doc'),
    changed_paths: json<string[]>('changed_paths').notNull(),
    lifecycle_status: text('lifecycle_status').notNull(),
    actor: text('actor').notNull(),
    command_id: uuid('command_id'),
    operation_id: uuid('operation_id'),
  },
  (c) => [primaryKey({ columns: [c.rid, c.version] }), index('revision_at').on(c.rid, c.at)],
)

/** Every command once, with its first answer byte for byte (catalog.md 8), including commands with public keys. */
export const command_log = t(
  'command_log',
  {
    command_id: uuid('command_id').primaryKey(),
    scope: text('scope').notNull(),
    idempotency_key: text('idempotency_key').notNull(),
    fingerprint: bytea('fingerprint').notNull(),
    resource_id: text('resource_id'),
    status: integer('status'),
    headers: json<Record<string, string>>('headers'),
    body: bytea('body'),
    created_at: at('created_at').notNull(),
    retain_until: at('retain_until').notNull(),
  },
  (c) => [
    unique('command_log_scope_key').on(c.scope, c.idempotency_key),
    index('command_log_retain_until').on(c.retain_until),
  ],
)

/** Which operation made which change: only the reference, never the operation's history. */
export const resource_operation = t(
  'resource_operation',
  {
    rid: big('rid').notNull(),
    operation_id: uuid('operation_id').notNull(),
    command_id: uuid('command_id').notNull(),
    version_from: integer('version_from').notNull(),
    version_to: integer('version_to').notNull(),
    at: at('at').notNull(),
  },
  (c) => [
    primaryKey({ columns: [c.command_id, c.rid] }),
    index('resource_operation_at').on(c.rid, c.at),
    index('resource_operation_operation').on(c.operation_id),
  ],
)
export const evidence_ref = t(
  'evidence_ref',
  {
    id: rowId('id').primaryKey(),
    rid: big('rid').notNull(),
    command_id: uuid('command_id').notNull(),
    operation_id: uuid('operation_id'),
    at: at('at').notNull(),
    ref: object('ref'),
  },
  (c) => [index('evidence_ref_at').on(c.rid, c.at), index('evidence_ref_operation').on(c.operation_id)],
)

/** Offers. `withdrawn` rows are history; one is open per resource, capability, version. `swept`: expiry was emitted. */
export const provider = t(
  'provider',
  {
    provider_id: key('provider_id').primaryKey(),
    rid: big('rid').notNull(),
    capability_id: smallint('capability_id').notNull(),
    version: text('version').notNull(),
    attributes: object('attributes'),
    capacity: json<{ total?: number; used?: number }>('capacity'),
    priority: count('priority', 100),
    expires_at: at('expires_at'),
    withdrawn_at: at('withdrawn_at'),
    swept: boolean('swept').notNull().default(false),
    last_command_id: uuid('last_command_id'),
    rev: count('rev', 1),
    /** The start of its current state; unknown for rows older than this column. */
    valid_from: at('valid_from').notNull().default(sql`'-infinity'`),
  },
  (c) => [
    uniqueIndex('provider_open').on(c.rid, c.capability_id, c.version).where(sql`withdrawn_at is null`),
    index('provider_capability').on(c.capability_id, c.rid),
    index('provider_expires').on(c.expires_at).where(sql`withdrawn_at is null and not swept`),
  ],
)

/** Former states of providers, for queries about the past. */
export const provider_history = t(
  'provider_history',
  {
    provider_id: key('provider_id').notNull(),
    rid: big('rid').notNull(),
    capability_id: smallint('capability_id').notNull(),
    version: text('version').notNull(),
    attributes: object('attributes'),
    capacity: json<{ total?: number; used?: number }>('capacity'),
    priority: integer('priority').notNull(),
    expires_at: at('expires_at'),
    last_command_id: uuid('last_command_id'),
    rev: integer('rev').notNull(),
    valid_from: at('valid_from').notNull(),
    valid_to: at('valid_to').notNull(),
  },
  (c) => [
    primaryKey({ columns: [c.provider_id, c.rev] }),
    index('provider_history_rid').on(c.rid, c.valid_from),
    index('provider_history_capability').on(c.capability_id, c.valid_from),
    index('provider_history_to').on(c.valid_to),
  ],
)

/** The latest observation of each check. `swept`: its expiry was stored and emitted. */
export const observation_latest = t(
  'observation_latest',
  {
    rid: big('rid').notNull(),
    source: text('source').notNull(),
    check_key: text('check_key').notNull(),
    status: text('status').notNull(),
    observed_at: at('observed_at').notNull(),
    expires_at: at('expires_at').notNull(),
    swept: boolean('swept').notNull().default(false),
    summary: text('summary'),
    attributes: object('attributes'),
    evidence_refs: json<Record<string, unknown>[]>('evidence_refs').notNull().default(sql`'[]'`),
    command_id: uuid('command_id').notNull(),
  },
  (c) => [
    primaryKey({ columns: [c.rid, c.source, c.check_key] }),
    index('observation_expires').on(c.expires_at).where(sql`not swept`),
  ],
)

/** Every observation of every check, including late ones; kept for 30 days. */
export const observation_history = t(
  'observation_history',
  {
    id: rowId('id').primaryKey(),
    rid: big('rid').notNull(),
    source: text('source').notNull(),
    check_key: text('check_key').notNull(),
    status: text('status').notNull(),
    observed_at: at('observed_at').notNull(),
    expires_at: at('expires_at').notNull(),
    summary: text('summary'),
    evidence_refs: json<Record<string, unknown>[]>('evidence_refs').notNull().default(sql`'[]'`),
    command_id: uuid('command_id').notNull(),
    operation_id: uuid('operation_id'),
    /** The numbers of the metrics that the type declared at that time, by key. */
    metrics: json<Record<string, number>>('metrics'),
  },
  (c) => [
    index('observation_history_at').on(c.rid, c.observed_at, c.id),
    index('observation_history_observed_at').on(c.observed_at),
  ],
)

/** One row per write and per 403, in its transaction; the relay seals it afterwards (reliability.md 5.4). */
export const audit = auditTable(catalogSchema, 'audit')

export * from './beside.ts'
