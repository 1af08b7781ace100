import { sql } from 'drizzle-orm'
import { check, integer, jsonb, pgSchema, text, uniqueIndex } from 'drizzle-orm/pg-core'
import { auditTable } from '../audit.ts'
import { at, bytea } from '../columns.ts'
import { outboxTables } from '../outbox.ts'

/** Rows of the token app: its signing keys and their events (auth.md 5). */
export const tokenSchema = pgSchema('token')

export type KeyStatus = 'next' | 'active' | 'retired' | 'killed'
/** The public half of an RSA key, as published. */
export type PublicJwk = { kty: 'RSA'; n: string; e: string; kid: string; alg: 'RS256'; use: 'sig' }

/**
 * `next` is only published, `active` signs, `retired` verifies until `verify_until`, `killed` is unused. The private
 * part is sealed under the key encryption key `kek_id` and is deleted as soon as the key no longer signs.
 */
export const keys = tokenSchema.table(
  'keys',
  {
    kid: text('kid').primaryKey(),
    status: text('status').$type<KeyStatus>().notNull(),
    bits: integer('bits').notNull(),
    public_jwk: jsonb('public_jwk').$type<PublicJwk>().notNull(),
    private_key: bytea('private_key'),
    kek_id: text('kek_id'),
    published_at: at('published_at').notNull(),
    activated_at: at('activated_at'),
    retired_at: at('retired_at'),
    verify_until: at('verify_until'),
    killed_at: at('killed_at'),
  },
  (t) => [
    uniqueIndex('keys_one_active').on(t.status).where(sql`status = 'active'`),
    uniqueIndex('keys_one_next').on(t.status).where(sql`status = 'next'`),
    check('keys_status', sql`${t.status} in ('next', 'active', 'retired', 'killed')`),
  ],
)
export type KeyRow = typeof keys.$inferSelect

export const key_events = auditTable(tokenSchema, 'key_events')
export const { outbox, relay_state } = outboxTables(tokenSchema)
