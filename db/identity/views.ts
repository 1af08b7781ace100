import { and, asc, count, eq, ne, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { equals, first, type Queryable, type Tx } from '../client.ts'
import { group_members, saved_views, users } from './tables.ts'

const of = (user_id: string, id: string) => equals(saved_views, { user_id, id })

/** A person's saved views, by name. */
export const viewsOf = (db: Queryable, user_id: string) =>
  db
    .select()
    .from(saved_views)
    .where(eq(saved_views.user_id, user_id))
    .orderBy(asc(sql`lower(${saved_views.name})`))

/** Views of other people, by name, with the owner: those of groups that both the owner and this person belong to. */
export const sharedViewsOf = (db: Queryable, user_id: string, limit: number) => {
  const [mine, theirs] = [alias(group_members, 'mine'), alias(group_members, 'theirs')]
  const { group_key, name } = saved_views
  return db
    .select({ view: saved_views, owner: users.username })
    .from(saved_views)
    .innerJoin(mine, and(eq(mine.group_key, group_key), eq(mine.user_id, user_id)))
    .innerJoin(theirs, and(eq(theirs.group_key, group_key), eq(theirs.user_id, saved_views.user_id)))
    .innerJoin(users, eq(users.id, saved_views.user_id))
    .where(ne(saved_views.user_id, user_id))
    .orderBy(asc(sql`lower(${name})`), asc(saved_views.id))
    .limit(limit)
}

/** Whether a person belongs to a group; the membership stays until the transaction ends. */
export const isMember = async (tx: Tx, user_id: string, group_key: string): Promise<boolean> => {
  const rows = await tx.select().from(group_members).where(equals(group_members, { user_id, group_key })).for('share')
  return rows.length > 0
}

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
  set: Pick<typeof saved_views.$inferSelect, 'name' | 'filters' | 'group_key' | 'version'>,
) => tx.update(saved_views).set(set).where(eq(saved_views.id, id)).returning().then(first)

export const deleteView = (tx: Tx, id: string) => tx.delete(saved_views).where(eq(saved_views.id, id))
