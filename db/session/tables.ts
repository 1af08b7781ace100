import { sql } from 'drizzle-orm'
import { index, pgSchema, text, unique, uuid } from 'drizzle-orm/pg-core'
import { auditColumns } from '../audit.ts'
import { at } from '../columns.ts'
import { idempotencyTable } from '../command/keys.ts'

/**
 * Rows of the session app. The sessions themselves live in Redis. These rows must outlive a Redis that was lost or is
 * outdated (auth.md 4, reliability.md 4.9). They include the audit log of logins and sessions.
 */
export const sessionSchema = pgSchema('session')

/** Sessions that ended early. Written by session along with the script, and by the relay from its stream. */
export const revocations = sessionSchema.table(
  'revocations',
  {
    session_id: uuid('session_id').primaryKey(),
    event_id: uuid('event_id').notNull().unique(),
    user_id: uuid('user_id').notNull(),
    reason: text('reason').notNull(),
    /** Until then an access token of the session could still be valid. */
    access_valid_until: at('access_valid_until').notNull(),
    occurred_at: at('occurred_at').notNull(),
    request_id: text('request_id'),
    actor_type: text('actor_type').notNull(),
    actor_id: text('actor_id'),
    /** Until then an old copy of Redis could contain the session's record: its longest lifetime after revocation. */
    expires_at: at('expires_at').notNull().default(sql`clock_timestamp() + interval '30 days'`),
  },
  (t) => [index().on(t.expires_at), index().on(t.user_id)],
)
export type Revocation = Omit<typeof revocations.$inferSelect, 'expires_at'>

/** A machine was refused a token: the words of the index, which a query must repeat. */
export const IS_REFUSAL = sql`action = 'machine_token' and outcome = 'denied'`

/** Logins, locks, replays, revocations (auth.md 9): the relay fills and seals it from the stream `auth:audit`. */
export const auth_events = sessionSchema.table(
  'auth_events',
  { ...auditColumns(), event_id: uuid('event_id').notNull().unique(), at: at('at').notNull(), mac: text('mac') },
  (t) => [
    unique().on(t.seal_seq),
    index().on(t.id).where(sql`seal_seq is null`),
    index().on(t.actor, t.id),
    index().on(t.object, t.id),
    index('auth_events_refusals').on(t.object, t.id).where(IS_REFUSAL),
    index().on(t.at),
  ],
)

export const idempotency = idempotencyTable(sessionSchema)
