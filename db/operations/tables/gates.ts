import { sql } from 'drizzle-orm'
import { boolean, index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { Ballot } from '../../../apps/shared/contracts/operations/gates.ts'
import type { Actor, GateSubject, PlanGate } from '../../../apps/shared/contracts/operations/graph.ts'
import { at, count, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

export type Delegation = { user_id: string; name: string; by: Actor; until: string }

export const gates = t(
  'gates',
  {
    operation_id: uuid('operation_id').notNull(),
    gate_id: text('gate_id').notNull(),
    kind: text('kind').notNull().default('approval'),
    question: text('question').notNull(),
    policy: json<PlanGate['policy']>('policy').notNull(),
    guards: text('guards').array().notNull(),
    status: text('status').notNull().default('armed'),
    /** Counts openings; a decided round never changes. */
    round: integer('round').notNull().default(1),
    subject: json<GateSubject>('subject').notNull(),
    /** The digest of `subject`: a vote is bound to it, and the claim compares it with approved_digest. */
    digest: text('digest').notNull(),
    approved_digest: text('approved_digest'),
    consumed_at: at('consumed_at'),
    /** When identity was last asked about the voters of this approval; a time before the decision does not count. */
    standing_at: at('standing_at'),
    waiting_since: at('waiting_since'),
    deadline_at: at('deadline_at'),
    escalation_level: count('escalation_level'),
    /** People who may vote like members of the gate's groups, with who delegated to them and until when. */
    delegations: json<Delegation[]>('delegations').notNull().default([]),
    next_escalation_at: at('next_escalation_at'),
    decided_by: json<Actor>('decided_by'),
    decided_at: at('decided_at'),
    decided_command_id: uuid('decided_command_id'),
    /** The revision that added it: with the id it determines its position in the reducer, which never changes. */
    ordinal: integer('ordinal').notNull().default(1),
    updated_at: now('updated_at'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.gate_id] }),
    index().on(c.status, c.deadline_at),
    index('gates_approved').on(c.decided_at).where(sql`status = 'approved'`),
  ],
)

/** Proposed changes to a running graph (operations.md 2.6). */
export const patches = t(
  'patches',
  {
    operation_id: uuid('operation_id').notNull(),
    patch_id: uuid('patch_id').notNull(),
    /** awaiting_approval, approved, applied, rejected, not_applicable, expired, withdrawn. */
    status: text('status').notNull().default('awaiting_approval'),
    status_reason: text('status_reason'),
    base_revision: integer('base_revision').notNull(),
    applied_revision: integer('applied_revision'),
    changes: json<Record<string, unknown>[]>('changes').notNull(),
    reason: text('reason').notNull(),
    ticket: text('ticket'),
    proposer: json<Actor>('proposer').notNull(),
    proposer_id: text('proposer_id').notNull(),
    /** The digest of patch_id, base_revision, changes and result_hash, to which a vote is bound. */
    digest: text('digest').notNull(),
    result_hash: text('result_hash').notNull(),
    diff_graph: json<Record<string, unknown>>('diff_graph').notNull(),
    held_nodes: text('held_nodes').array().notNull().default(sql`'{}'`),
    rearmed_gates: text('rearmed_gates').array().notNull().default(sql`'{}'`),
    /** Policies of the gates that it touches: the votes must satisfy each of them. */
    required: json<PlanGate['policy'][]>('required').notNull(),
    rebase: json<Record<string, unknown>>('rebase'),
    decided_by: json<Actor>('decided_by'),
    decided_at: at('decided_at'),
    expires_at: at('expires_at').notNull(),
    created_at: now('created_at'),
    updated_at: now('updated_at'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.patch_id] }),
    index().on(c.expires_at).where(sql`status = 'awaiting_approval'`),
  ],
)

/** One person, one vote per patch; the newest counts. */
export const patch_votes = t(
  'patch_votes',
  {
    operation_id: uuid('operation_id').notNull(),
    patch_id: uuid('patch_id').notNull(),
    user_id: text('user_id').notNull(),
    decision: text('decision').$type<'approve' | 'reject'>().notNull(),
    comment: text('comment'),
    digest: text('digest').notNull(),
    /** The voter's groups at that moment, which decide for which policies the vote counts. */
    groups: text('groups').array().notNull().default(sql`'{}'`),
    actor: json<Actor>('actor').notNull(),
    command_id: uuid('command_id').notNull(),
    at: now('at'),
  },
  (c) => [primaryKey({ columns: [c.operation_id, c.patch_id, c.user_id] })],
)

/** Ballots that wait for a passkey, by their challenge; the vote with the answer removes the row. */
export const ballots = t(
  'ballots',
  {
    challenge: text('challenge').primaryKey(),
    ballot: json<Ballot>('ballot').notNull(),
    expires_at: at('expires_at').notNull(),
  },
  (c) => [index('ballots_expired').on(c.expires_at)],
)

/** One person, one vote per round; the newest counts. */
export const votes = t(
  'votes',
  {
    operation_id: uuid('operation_id').notNull(),
    gate_id: text('gate_id').notNull(),
    round: integer('round').notNull(),
    user_id: text('user_id').notNull(),
    decision: text('decision').$type<'approve' | 'reject'>().notNull(),
    comment: text('comment'),
    digest: text('digest').notNull(),
    group_key: text('group_key'),
    actor: json<Actor>('actor').notNull(),
    command_id: uuid('command_id').notNull(),
    voided: boolean('voided').notNull().default(false),
    at: now('at'),
  },
  (c) => [
    primaryKey({ columns: [c.operation_id, c.gate_id, c.round, c.user_id] }),
    /** One person's approvals, for checks when their rights change. */
    index('votes_approvals').on(c.user_id).where(sql`decision = 'approve' and not voided`),
  ],
)
