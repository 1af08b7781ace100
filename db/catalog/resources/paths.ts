import { type SQL, sql } from 'drizzle-orm'

/**
 * Whether a path is `top` or below it, as a range that a btree supports. Labels are numbers, so everything below `1.2`
 * sorts before `1.20`. A GiST index could split its pages endlessly over long paths.
 */
export const isBelow = (path: SQL, top: SQL): SQL => sql`(${path} >= ${top} and ${path} < (${top}::text || '0')::ltree)`

/** The row numbers of a path, from the root to the resource itself. */
export const ridsOf = (path: SQL): SQL => sql`string_to_array(${path}::text, '.')::bigint[]`
