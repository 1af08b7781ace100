import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../client.ts'
import { array, rowsOf } from './resources.ts'
import { provider } from './tables.ts'

export type ProviderRow = typeof provider.$inferSelect

/** What a resource offers now. */
export const openProviders = (db: Queryable, rid: string): Promise<ProviderRow[]> =>
  db
    .select()
    .from(provider)
    .where(and(eq(provider.rid, rid), isNull(provider.withdrawn_at)))
    .orderBy(provider.provider_id)

export const saveProvider = (tx: Tx, row: typeof provider.$inferInsert) => tx.insert(provider).values(row)

export const updateProvider = (tx: Tx, provider_id: string, set: Partial<typeof provider.$inferInsert>) =>
  tx
    .update(provider)
    .set({ ...set, rev: sql`${provider.rev} + 1` })
    .where(eq(provider.provider_id, provider_id))

export const withdrawProviders = (tx: Tx, rid: string, at: string, command_id: string | null) =>
  tx
    .update(provider)
    .set({ withdrawn_at: at, last_command_id: command_id, rev: sql`${provider.rev} + 1` })
    .where(and(eq(provider.rid, rid), isNull(provider.withdrawn_at)))

/** How many capabilities each of these resources offers now. */
export const countProviders = async (db: Queryable, rids: readonly string[]): Promise<Map<string, number>> => {
  const rows = await rowsOf<{ rid: string; n: number }>(
    db,
    sql`select rid, count(*)::int as n from catalog.provider
        where rid = any(${array(rids, 'bigint')}) and withdrawn_at is null group by rid`,
  )
  return new Map(rows.map(({ rid, n }) => [rid, n]))
}
