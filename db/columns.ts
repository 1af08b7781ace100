import { type SQL, sql } from 'drizzle-orm'
import { bigint, customType, integer, jsonb, timestamp } from 'drizzle-orm/pg-core'
import { NOW } from './rows.ts'

/** Columns common to all schemas. A time is text as Postgres prints it: a `Date` would lose microseconds. */
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
export const now = (name: string) => at(name).notNull().default(NOW)
export const json = <T>(name: string) => jsonb(name).$type<T>()
export const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
export const count = (name: string) => integer(name).notNull().default(0)
/** A 64-bit column read as a number: exact up to 2^53. */
export const big = (name: string) => bigint(name, { mode: 'number' })

/**
 * A collation to append to a text in a case-insensitive search. It lets `lower` and `ilike` handle letters beyond
 * ASCII, whatever the database's locale, if the sought text has any. Without it the search is faster.
 */
export const anyCase = (sought: string): SQL => (/^[ -~]*$/.test(sought) ? sql`` : sql` collate "und-x-icu"`)

/** A pattern of `like` for a part of a text. */
export const like = (text: string): string => `%${text.replace(/[\\%_]/g, (char) => `\\${char}`)}%`

/** A pattern of `like` for the end of an id, of which lists show six characters; null if the text is none. */
export const idEnding = (text: string): string | null =>
  /^[0-9a-f-]{4,36}$/i.test(text) ? `%${text.toLowerCase()}` : null
