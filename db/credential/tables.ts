import { sql } from 'drizzle-orm'
import { index, integer, pgSchema, text, uuid } from 'drizzle-orm/pg-core'
import { at } from '../columns.ts'
import { outboxTables } from '../outbox.ts'

/** Rows of the credential app: password hashes and one-time enrolment tokens (auth.md 8). Nobody else reads them. */
export const credentialSchema = pgSchema('credential')

/** `version` moves with each set or change; `change_id` names the last one, so that its repeat is recognised. */
export const credentials = credentialSchema.table('credentials', {
  user_id: uuid('user_id').primaryKey(),
  password_hash: text('password_hash').notNull(),
  version: integer('version').notNull(),
  change_id: text('change_id').notNull(),
  changed_at: at('changed_at').notNull().default(sql`clock_timestamp()`),
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

export const { outbox, relay_state } = outboxTables(credentialSchema)
