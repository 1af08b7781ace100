import { eq } from 'drizzle-orm'
import type { Preferences } from '../../apps/shared/contracts/identity/preferences.ts'
import { first, type Queryable, type Tx } from '../client.ts'
import { NOW } from '../rows.ts'
import { preferences } from './tables.ts'

/** A person's settings; empty until first saved. */
export const preferencesOf = async (db: Queryable, user_id: string): Promise<Preferences> =>
  (await db.select().from(preferences).where(eq(preferences.user_id, user_id)).then(first))?.settings ?? {}

export const savePreferences = (tx: Tx, user_id: string, settings: Preferences) =>
  tx
    .insert(preferences)
    .values({ user_id, settings })
    .onConflictDoUpdate({ target: preferences.user_id, set: { settings, changed_at: NOW } })
