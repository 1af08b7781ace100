import { eq } from 'drizzle-orm'
import { first, type Queryable, type Tx } from '../client.ts'
import { projection } from './tables.ts'

/** Whether someone paused a projection; this holds for every process of this app. */
export const isPaused = async (db: Queryable, name: string): Promise<boolean> =>
  first(await db.select({ state: projection.state }).from(projection).where(eq(projection.name, name)))?.state ===
  'paused'

export const setPaused = async (tx: Tx, name: string, paused: boolean, at: string): Promise<void> => {
  const state = paused ? 'paused' : 'live'
  await tx
    .insert(projection)
    .values({ name, state, at })
    .onConflictDoUpdate({ target: projection.name, set: { state, at } })
}
