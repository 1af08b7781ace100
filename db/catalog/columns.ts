import { sql } from 'drizzle-orm'
import { bigint, customType, integer, jsonb, timestamp } from 'drizzle-orm/pg-core'

/** Column kinds of the catalog. Row numbers stay text in code: a bigint does not fit a JavaScript number. */
export const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
export const ltree = customType<{ data: string }>({ dataType: () => 'ltree' })
export const tsvector = customType<{ data: string }>({ dataType: () => 'tsvector' })
/** Text that sorts by code point, the same on every server: ids, names, keys. */
export const key = customType<{ data: string }>({ dataType: () => 'text collate "C"' })
export const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
export const big = customType<{ data: string; driverData: string }>({ dataType: () => 'bigint' })
export const rowId = (name: string) => bigint(name, { mode: 'bigint' }).generatedAlwaysAsIdentity()
export const json = <T>(name: string) => jsonb(name).$type<T>()
export const object = (name: string) => json<Record<string, unknown>>(name).notNull().default(sql`'{}'`)
export const count = (name: string, start = 0) => integer(name).notNull().default(start)
