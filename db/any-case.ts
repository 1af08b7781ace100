import { type SQL, sql } from 'drizzle-orm'

/**
 * A collation to append to a text in a case-insensitive search. It lets `lower` and `ilike` handle letters beyond
 * ASCII, whatever the database's locale, if the sought text has any. Without it the search is faster.
 */
export const anyCase = (sought: string): SQL => (/^[ -~]*$/.test(sought) ? sql`` : sql` collate "und-x-icu"`)
