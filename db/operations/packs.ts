import { desc, type SQL, sql } from 'drizzle-orm'
import { pick } from '../../apps/shared/data/pick.ts'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { iso } from './expressions.ts'
import { operations, packs, plans, schedules } from './tables/index.ts'

export type PackRecord = { pack: string; version: string; digest: string; document: Record<string, unknown> }

/** Records what plans may refer to. Returns the first pack whose version is known with other content: do not use it. */
export const recordPacks = async (tx: Tx, records: readonly PackRecord[]): Promise<PackRecord | undefined> => {
  for (const { pack, version, digest, document } of records) {
    await tx.insert(packs).values({ pack, version, digest, document }).onConflictDoNothing()
    const [known] = await tx.select({ digest: packs.digest }).from(packs).where(equals(packs, { pack, version }))
    if (known?.digest !== digest) return { pack, version, digest, document }
  }
  return undefined
}

/** What a version that was ever loaded says. */
export const getPack = (db: Queryable, { pack, version }: Pick<PackRecord, 'pack' | 'version'>) =>
  db.select(pick(packs, 'document')).from(packs).where(equals(packs, { pack, version })).then(first)

/** Every version that was ever loaded, the newest load first. */
export const listPackVersions = (db: Queryable) =>
  db
    .select({ ...pick(packs, 'pack', 'version', 'digest'), loaded_at: iso(packs.loaded_at) })
    .from(packs)
    .orderBy(desc(packs.loaded_at))

export type PackUse = { pack: string; version: string; operations: number }

/** How many visible unended operations were planned with each version. */
export const listPackUses = async (db: Queryable, visible: SQL | undefined): Promise<PackUse[]> => {
  const { rows } = await db.execute<PackUse>(sql`
    select used ->> 'pack' as pack, used ->> 'version' as version, count(*)::int as operations
    from ${operations} join ${plans} on ${plans.plan_id} = ${operations.plan_id}
      cross join lateral jsonb_array_elements(${plans.document} -> 'packs') as used
    where ${operations.ended_at} is null and ${visible ?? sql`true`}
    group by 1, 2`)
  return rows
}

/** How many visible unended schedules use a runbook of each pack. */
export const listScheduledPacks = async (db: Queryable, visible: SQL | undefined): Promise<Map<string, number>> => {
  const { rows } = await db.execute<{ pack: string; schedules: number }>(sql`
    select ${schedules.intent} -> 'runbook' ->> 'pack' as pack, count(*)::int as schedules from ${schedules}
    where ${schedules.status} <> 'ended' and ${schedules.intent} -> 'runbook' is not null and ${visible ?? sql`true`}
    group by 1`)
  return new Map(rows.map(({ pack, schedules: count }) => [pack, count]))
}
