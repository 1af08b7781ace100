import { index, integer, pgSchema, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import { at, big, bytea, count, now } from '../columns.ts'
import { outboxTables } from '../outbox.ts'
import { NOW } from '../rows.ts'

/** Rows that only the credential app reads: password hashes, one-time enrolment tokens and authenticator apps. */
export const credentialSchema = pgSchema('credential')

/**
 * `version` grows with each set or change; `change_id` names the last one, so that a repeat is recognized. An ended
 * password has no hash.
 */
export const credentials = credentialSchema.table('credentials', {
  user_id: uuid('user_id').primaryKey(),
  password_hash: text('password_hash').notNull(),
  version: integer('version').notNull(),
  change_id: text('change_id').notNull(),
  changed_at: at('changed_at').notNull().default(NOW),
})

/** Only the id of a token is stored; the rest is derived. `used_by` is the change that used it up, or `superseded`. */
export const enrolment_tokens = credentialSchema.table(
  'enrolment_tokens',
  {
    token_id: uuid('token_id').primaryKey(),
    user_id: uuid('user_id').notNull(),
    change_id: text('change_id').notNull().unique(),
    created_at: at('created_at').notNull(),
    expires_at: at('expires_at').notNull(),
    used_at: at('used_at'),
    used_by: text('used_by'),
  },
  (t) => [index().on(t.user_id), index().on(t.expires_at)],
)
export type EnrolmentTokenRow = typeof enrolment_tokens.$inferSelect

/**
 * A person's authenticator app. The secret is sealed under the key encryption key `kek_id`. `last_step` is the newest
 * time step whose code was accepted: it and older ones no longer count. Wrong codes are counted since `failures_since`.
 */
export const totp_factors = credentialSchema.table('totp_factors', {
  user_id: uuid('user_id').primaryKey(),
  id: uuid('id').notNull(),
  secret: bytea('secret').notNull(),
  kek_id: text('kek_id').notNull(),
  last_step: big('last_step').notNull(),
  failures: count('failures'),
  failures_since: at('failures_since'),
  locked_until: at('locked_until'),
  created_at: at('created_at').notNull(),
  last_used_at: at('last_used_at'),
})
export type TotpRow = typeof totp_factors.$inferSelect

/** Setups whose app was removed: they are refused until they expire. */
export const totp_ended = credentialSchema.table(
  'totp_ended',
  { user_id: uuid('user_id').notNull(), setup_id: uuid('setup_id').notNull(), ended_at: now('ended_at') },
  (t) => [primaryKey({ columns: [t.user_id, t.setup_id] }), index().on(t.ended_at)],
)

export const { outbox, relay_state } = outboxTables(credentialSchema, { swept: true })
