import { and, asc, count, eq, sql } from 'drizzle-orm'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { saved_views } from './tables.ts'

const of = (user_id: string, id: string) => equals(saved_views, { user_id, id })

/** A person's saved views, by name. */
export const viewsOf = (db: Queryable, user_id: string) =>
  db
    .select()
    .from(saved_views)
    .where(eq(saved_views.user_id, user_id))
    .orderBy(asc(sql`lower(${saved_views.name})`))

export const countViews = (db: Queryable, user_id: string): Promise<number> =>
  db
    .select({ n: count() })
    .from(saved_views)
    .where(eq(saved_views.user_id, user_id))
    .then((rows) => rows[0]?.n ?? 0)

export const lockView = (tx: Tx, user_id: string, id: string) =>
  tx.select().from(saved_views).where(of(user_id, id)).for('update').then(first)

/** Returns `undefined` if the person already has a view with this name. */
export const insertView = (tx: Tx, row: typeof saved_views.$inferInsert) =>
  tx.insert(saved_views).values(row).onConflictDoNothing().returning().then(first)

/** Whether another view of the person has this name. */
export const isViewName = async (tx: Tx, user_id: string, name: string, id: string): Promise<boolean> => {
  const same = sql`lower(${saved_views.name}) = lower(${name}) and ${saved_views.id} <> ${id}`
  return (
    (
      await tx
        .select({ id: saved_views.id })
        .from(saved_views)
        .where(and(eq(saved_views.user_id, user_id), same))
    ).length > 0
  )
}

export const updateView = (
  tx: Tx,
  id: string,
  set: Pick<typeof saved_views.$inferSelect, 'name' | 'filters' | 'version'>,
) => tx.update(saved_views).set(set).where(eq(saved_views.id, id)).returning().then(first)

export const deleteView = (tx: Tx, id: string) => tx.delete(saved_views).where(eq(saved_views.id, id))
