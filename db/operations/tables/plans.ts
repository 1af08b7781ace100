import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { Actor, PlanGate, PlanGraph, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { at, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

export const intents = t(
  'intents',
  {
    intent_id: uuid('intent_id').primaryKey(),
    status: text('status').notNull().default('open'),
    revision: integer('revision').notNull().default(1),
    kind: text('kind').notNull(),
    title: text('title').notNull(),
    reason: text('reason').notNull(),
    /** The request as received: targets, change, action or graph. */
    request: json<Record<string, unknown>>('request').notNull(),
    targets_resolved:
      json<{ resource_id: string; type_key: string; name: string; version: number }[]>('targets_resolved').notNull(),
    /** All targets, against which the scope of grants is checked. */
    resource_ids: text('resource_ids').array().notNull().default(sql`'{}'`),
    requester: json<Actor>('requester').notNull(),
    requester_id: text('requester_id').notNull(),
    labels: json<Record<string, string>>('labels').notNull(),
    constraints: json<Record<string, unknown>>('constraints').notNull(),
    ticket: text('ticket'),
    retry_of: uuid('retry_of'),
    latest_plan_id: uuid('latest_plan_id'),
    operation_id: uuid('operation_id'),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
    expires_at: at('expires_at').notNull(),
  },
  (c) => [index().on(c.requester_id, c.created_at), index().on(c.status, c.expires_at)],
)

export const plans = t(
  'plans',
  {
    plan_id: uuid('plan_id').primaryKey(),
    intent_id: uuid('intent_id').notNull(),
    status: text('status').notNull(),
    status_reason: text('status_reason'),
    /** Version of the aggregate on the outbox: one per change of status. */
    revision: integer('revision').notNull().default(1),
    plan_hash: text('plan_hash').notNull(),
    semantic_digest: text('semantic_digest').notNull(),
    /** What the hash covers and readers see: pins, packs, nodes, gates, leases, windows, constraints. */
    document: json<PlanDocument>('document').notNull(),
    /** What readers see besides: diff, counts, impact, risk, conflicts, policy_results, warnings, estimates. */
    report: json<Record<string, unknown>>('report').notNull(),
    graph: json<PlanGraph>('graph').notNull(),
    requester_id: text('requester_id').notNull(),
    operation_id: uuid('operation_id'),
    superseded_by: uuid('superseded_by'),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
    expires_at: at('expires_at').notNull(),
  },
  (c) => [index().on(c.intent_id, c.created_at), index().on(c.status, c.expires_at)],
)
export type PlanDocument = {
  intent_id: string
  kind: string
  packs: { pack: string; version: string; digest: string }[]
  catalog_pins: { resource_id: string; version: number }[]
  policies: { key: string; digest: string }[]
  nodes: PlanNode[]
  gates: PlanGate[]
  leases: { resource_id: string; mode: 'exclusive' | 'shared' }[]
  windows: string[]
  constraints: Record<string, unknown>
}

export const packs = t(
  'packs',
  {
    pack: text('pack').notNull(),
    version: text('version').notNull(),
    digest: text('digest').notNull(),
    document: json<Record<string, unknown>>('document').notNull(),
    loaded_at: now('loaded_at'),
  },
  (c) => [primaryKey({ columns: [c.pack, c.version] })],
)

/** Durations of past successes by step, for estimates. */
export const durations = t(
  'durations',
  {
    step: text('step').notNull(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    ms: integer('ms').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.step, c.operation_id, c.node_id] }), index().on(c.step, c.at), index().on(c.at)],
)
