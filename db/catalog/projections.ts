import { eq, inArray, sql } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../client.ts'
import { projection, projection_version } from './tables.ts'

/** Whether someone paused a projection; this holds for every process of this app. */
export const isPaused = async (db: Queryable, name: string): Promise<boolean> =>
  first(await db.select({ state: projection.state }).from(projection).where(eq(projection.name, name)))?.state ===
  'paused'

/** `at` of an existing row stays: it says how fresh the projection is. */
export const setPaused = async (tx: Tx, name: string, paused: boolean, at: string): Promise<void> => {
  const state = paused ? 'paused' : 'live'
  await tx
    .insert(projection)
    .values({ name, state, at })
    .onConflictDoUpdate({ target: projection.name, set: { state } })
}

/** A projection of another app's log counts as fresh when it first begins to follow. */
export const startMark = async (db: Queryable, name: string, at: string): Promise<void> => {
  await db
    .insert(projection)
    .values({ name, at })
    .onConflictDoUpdate({ target: projection.name, set: { at }, setWhere: sql`${projection.at} is null` })
}

/** The versions that a consumer has applied of these aggregates; a held one counts as applied. */
export const appliedVersions = async (
  db: Queryable,
  consumer: string,
  agg_ids: readonly string[],
): Promise<ReadonlyMap<string, number>> => {
  const rows = await db
    .select({ agg_id: projection_version.agg_id, ver: projection_version.ver, held: projection_version.held })
    .from(projection_version)
    .where(sql`${eq(projection_version.consumer, consumer)} and ${inArray(projection_version.agg_id, [...agg_ids])}`)
  return new Map(rows.map(({ agg_id, ver, held }) => [agg_id, held ? Number.POSITIVE_INFINITY : ver]))
}
