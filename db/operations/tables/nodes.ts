import { sql } from 'drizzle-orm'
import { boolean, index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { Executed } from '../../../apps/shared/contracts/operations/common.ts'
import type { NodeError, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { at, big, count, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

export const nodes = t(
  'nodes',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    /** Position in rank order: equal data gives equal order everywhere. */
    ordinal: integer('ordinal').notNull(),
    name: text('name').notNull(),
    kind: text('kind').notNull(),
    executor: text('executor').notNull(),
    target_id: text('target_id'),
    group_id: text('group_id'),
    depends_on: text('depends_on').array().notNull().default(sql`'{}'`),
    gate_ids: text('gate_ids').array().notNull().default(sql`'{}'`),
    spec: json<PlanNode>('spec').notNull(),
    spec_digest: text('spec_digest').notNull(),
    state: text('state').notNull().default('pending'),
    generation: integer('generation').notNull().default(1),
    attempt: integer('attempt').notNull().default(0),
    hold_patch_id: uuid('hold_patch_id'),
    removed: boolean('removed').notNull().default(false),
    input_overrides: json<Record<string, unknown>>('input_overrides'),
    outputs: json<Record<string, unknown>>('outputs'),
    error: json<NodeError>('error'),
    exception: text('exception'),
    catalog: json<{ command_id: string; status: string; version?: number; detail?: string }>('catalog'),
    ready_at: at('ready_at'),
    gated_at: at('gated_at'),
    started_at: at('started_at'),
    ended_at: at('ended_at'),
    due_at: at('due_at'),
    updated_at: now('updated_at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id] }), index().on(c.operation_id, c.ordinal)],
)

/** One attempt at a node (role `run`) or at its compensation (role `undo`). Each attempt gets its own row. */
export const node_attempts = t(
  'node_attempts',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').$type<'run' | 'undo'>().notNull().default('run'),
    attempt: integer('attempt').notNull(),
    generation: integer('generation').notNull(),
    /** The newest fence; a result counts only under it. */
    fence: big('fence').notNull(),
    fences: text('fences').array().notNull().default(sql`'{}'`),
    phase: text('phase').notNull(),
    executor: text('executor').notNull(),
    pool: text('pool'),
    key: text('key').notNull(),
    inputs: json<Record<string, unknown>>('inputs'),
    outputs: json<Record<string, unknown>>('outputs'),
    error: json<NodeError>('error'),
    /** The approvals under which it started, as the claim found them. */
    gates: json<{ gate_id: string; round: number; digest: string }[]>('gates'),
    /** The program that its agent ran, for the evidence. */
    executed: json<Executed>('executed'),
    /** Where a sliced executor resumes; of a failed attempt, what the next one gets. */
    resume: json<Record<string, unknown>>('resume'),
    progress: json<Record<string, unknown>>('progress'),
    sequence: big('sequence').notNull().default(0),
    started_at: now('started_at'),
    ended_at: at('ended_at'),
    heartbeat_at: at('heartbeat_at'),
    deadline_at: at('deadline_at'),
    log_lines: count('log_lines'),
    log_bytes: count('log_bytes'),
    log_complete: boolean('log_complete').notNull().default(false),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.node_id, c.role, c.attempt] }),
    // Each claim for an agent counts the open attempts at agents.
    index('node_attempts_at_agents')
      .on(sql`coalesce(${c.pool}, 'default')`)
      .where(sql`${c.executor} = 'external' and ${c.phase} in ('dispatched', 'running')`),
  ],
)

/** Work that waits for a place at its pool's agents, because the maximum is in flight (places.ts). */
export const pool_waits = t(
  'pool_waits',
  {
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    pool: text('pool').notNull(),
    /** How many places the pool has. */
    places: integer('places').notNull(),
    since: now('since'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.node_id] }), index().on(c.pool, c.since)],
)

/**
 * Work handed to an external agent (operations.md 7.4): one row per dispatch, with the digest of its bearer token and
 * the agent's progress. The newest row of an attempt represents it until it is closed.
 */
export const executions = t(
  'executions',
  {
    token_sha256: text('token_sha256').primaryKey(),
    operation_id: uuid('operation_id').notNull(),
    node_id: text('node_id').notNull(),
    role: text('role').$type<'run' | 'undo'>().notNull().default('run'),
    attempt: integer('attempt').notNull(),
    generation: integer('generation').notNull(),
    fence: big('fence').notNull(),
    pool: text('pool').notNull(),
    heartbeat_s: integer('heartbeat_s').notNull(),
    start_before: at('start_before').notNull(),
    deadline_at: at('deadline_at').notNull(),
    started_at: at('started_at'),
    heartbeat_at: at('heartbeat_at'),
    /** The number of the agent's last message. */
    sequence: big('sequence').notNull().default(0),
    closed_at: at('closed_at'),
    created_at: now('created_at'),
    /** The number of the attempt's last line from earlier handovers: each agent numbers its lines from one. */
    lines_before: integer('lines_before').notNull().default(0),
    /** The agent that took it over the API. */
    agent: text('agent'),
  },
  (c) => [
    index().on(c.operation_id, c.node_id, c.attempt),
    index('executions_of_agents').on(c.agent).where(sql`${c.closed_at} is null`),
  ],
)

/** Agents that asked for work over the API; the identity of each is its machine, and the name that it gives itself. */
export const agents = t('agents', {
  agent: text('agent').primaryKey(),
  machine: text('machine').notNull(),
  pools: text('pools').array().notNull(),
  labels: json<Record<string, string>>('labels').notNull(),
  version: text('version'),
  concurrency: integer('concurrency'),
  draining: boolean('draining').notNull(),
  seen_at: now('seen_at'),
  since: now('since'),
})

/** Answers to agents' messages: a repeated message gets the same answer. */
export const execution_results = t(
  'execution_results',
  {
    token_sha256: text('token_sha256').notNull(),
    result_id: uuid('result_id').notNull(),
    fingerprint: text('fingerprint').notNull(),
    answer: json<Record<string, unknown>>('answer').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.token_sha256, c.result_id] })],
)
