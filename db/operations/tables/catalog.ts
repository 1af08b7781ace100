import { boolean, index, integer, text } from 'drizzle-orm/pg-core'
import { big, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

/** The catalog projection that planner and claims read; fed by NATS and by HTTP alike. */
export const catalog_resources = t(
  'catalog_resources',
  {
    resource_id: text('resource_id').primaryKey(),
    type_key: text('type_key').notNull(),
    type_version: integer('type_version').notNull(),
    name: text('name').notNull(),
    parent_id: text('parent_id'),
    version: big('version').notNull(),
    lifecycle_status: text('lifecycle_status').notNull(),
    health_status: text('health_status').notNull().default('unknown'),
    labels: json<Record<string, string>>('labels').notNull(),
    annotations: json<Record<string, string>>('annotations').notNull().default({}),
    desired_state: json<Record<string, unknown>>('desired_state').notNull(),
    observed_state: json<Record<string, unknown>>('observed_state').notNull(),
    /** Grows with each change of this projection, for tailing by the live stream of resources. */
    change_seq: big('change_seq').notNull().default(0),
    updated_at: now('updated_at'),
  },
  (c) => [index().on(c.type_key, c.name), index().on(c.parent_id), index().on(c.change_seq)],
)
export const catalog_relationships = t(
  'catalog_relationships',
  {
    relationship_id: text('relationship_id').primaryKey(),
    rev: integer('rev').notNull(),
    type_key: text('type_key').notNull(),
    from_id: text('from_id').notNull(),
    to_id: text('to_id').notNull(),
    properties: json<Record<string, unknown>>('properties').notNull().default({}),
    open: boolean('open').notNull().default(true),
  },
  (c) => [index().on(c.from_id, c.type_key), index().on(c.to_id, c.type_key)],
)
export const catalog_types = t('catalog_types', {
  type_key: text('type_key').primaryKey(),
  version: integer('version').notNull(),
  document: json<Record<string, unknown>>('document').notNull(),
  updated_at: now('updated_at'),
})

/** The last reported own health, apart from the resource's row: different events report the two, in any order. */
export const catalog_health = t('catalog_health', {
  resource_id: text('resource_id').primaryKey(),
  status: text('status').notNull(),
})
export const catalog_relationship_types = t('catalog_relationship_types', {
  type_key: text('type_key').primaryKey(),
  inverse_key: text('inverse_key'),
})

export const catalog_change_seq = operationsSchema.sequence('catalog_change_seq')
