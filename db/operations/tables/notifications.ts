import { sql } from 'drizzle-orm'
import { boolean, index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type {
  DestinationKind,
  NotifyEvent,
  SecurityEvent,
} from '../../../apps/shared/contracts/notifications/notifications.ts'
import type { NotifyRules } from '../../../apps/shared/contracts/notifications/rules.ts'
import { at, bytea, count, json, now } from '../../columns.ts'
import { operationsSchema } from './schema.ts'

const t = operationsSchema.table

/** How people are reached. `owner` is user:<id> or group:<key>; addresses and secrets are sealed. */
export const notify_destinations = t(
  'notify_destinations',
  {
    destination_id: uuid('destination_id').primaryKey(),
    owner: text('owner').notNull(),
    kind: text('kind').$type<DestinationKind>().notNull(),
    name: text('name').notNull(),
    /** For kind push: the session of its browser, with which it ends. */
    session_id: uuid('session_id'),
    address: bytea('address').notNull(),
    /** The part of the address that is shown: an email address, or the origin of a URL. */
    shown: text('shown').notNull(),
    /** For a webhook: the secret that signs its messages. */
    secret: bytea('secret'),
    /** The one before, which signs too until then. */
    previous_secret: bytea('previous_secret'),
    previous_until: at('previous_until'),
    /** unconfirmed, active, disabled. */
    status: text('status').$type<'unconfirmed' | 'active' | 'disabled'>().notNull(),
    status_reason: text('status_reason'),
    /** Wrong codes so far. */
    tries: count('tries'),
    /** A removed mail address, which hears of its account for a week more. */
    removed_at: at('removed_at'),
    created_at: now('created_at'),
  },
  (c) => [index().on(c.owner), index().on(c.session_id)],
)

/** One row per owner of a destination; the notifier locks it, so that one process at a time checks for them. */
export const notify_rules = t(
  'notify_rules',
  {
    owner: text('owner').primaryKey(),
    rules: json<NotifyRules>('rules').notNull(),
    looked_at: at('looked_at'),
    updated_at: now('updated_at'),
  },
  (c) => [index().on(c.looked_at)],
)

/** An event on an account, at `at`; with the client, if a request of the owner caused it. */
export type SecurityFact = {
  event: SecurityEvent
  at: string
  ip_address?: string
  user_agent?: string
  /** Of events of a key: which credential of which machine, until when it works or who left. The emergency account; the network; who bypassed which gate. */
  about?: string
  /** The page of the console, if the event has one of its own. */
  path?: string
  /** The day's limit is reached: further ones of this kind are only in the audit log. */
  last?: true
}

/** In place of a user_id: every administrator. */
export const ADMINISTRATORS = 'administrators'

/** What people must hear of their accounts. The relay adds it once; the notifier makes messages of it and takes it away. */
export const notify_security = t('notify_security', {
  /** The log and the position in it. */
  key: text('key').primaryKey(),
  user_id: text('user_id').notNull(),
  fact: json<SecurityFact>('fact').notNull(),
  added_at: now('added_at'),
})

/** A decision as notices identify it; `object` is gate:<id> or patch:<id>. */
export type DecisionKey = { operation_id: string; object: string; round: number }

/** One message to one destination. `leased_until`: a process is sending it; `tried_since`: when the first took it. */
export const notify_deliveries = t(
  'notify_deliveries',
  {
    delivery_id: uuid('delivery_id').primaryKey(),
    destination_id: uuid('destination_id').notNull(),
    owner: text('owner').notNull(),
    purpose: text('purpose').$type<'notices' | 'outcome' | 'code' | 'test' | 'security'>().notNull(),
    /** For a message of purpose `security`: the event that it reports. */
    fact: json<SecurityFact | null>('fact'),
    /** For a message of purpose `outcome`: the decision whose notification it replaces. */
    decision: json<DecisionKey | null>('decision'),
    state: text('state').$type<'queued' | 'sent' | 'dead' | 'obsolete'>().notNull().default('queued'),
    attempts: count('attempts'),
    last_error: text('last_error'),
    next_at: at('next_at').notNull(),
    leased_until: at('leased_until'),
    tried_since: at('tried_since'),
    created_at: now('created_at'),
    ended_at: at('ended_at'),
  },
  (c) => [
    index('notify_deliveries_due').on(c.next_at).where(sql`state = 'queued'`),
    index().on(c.owner, c.created_at, c.delivery_id),
    index().on(c.ended_at),
    index().on(c.destination_id, c.created_at),
  ],
)

/** The subjects of a message: each round of a gate, each escalation and each patch, once per owner and destination. */
export const notify_notices = t(
  'notify_notices',
  {
    destination_id: uuid('destination_id').notNull(),
    operation_id: uuid('operation_id').notNull(),
    /** gate:<id> or patch:<id>. */
    object: text('object').notNull(),
    round: integer('round').notNull(),
    escalation: integer('escalation').notNull(),
    delivery_id: uuid('delivery_id').notNull(),
    event: text('event').$type<NotifyEvent>().notNull(),
    /** It does not wait for the end of quiet hours. */
    urgent: boolean('urgent').notNull(),
    /** Whether a device shows a notification of it alone, which its outcome replaces. */
    shown: boolean('shown').notNull().default(false),
  },
  (c) => [
    primaryKey({ columns: [c.destination_id, c.operation_id, c.object, c.round, c.escalation] }),
    index().on(c.delivery_id),
    index('notify_notices_shown').on(c.destination_id).where(sql`shown`),
  ],
)
