import { equals } from '../../../db/client.ts'
import { lostFactors } from '../../../db/identity/queries.ts'
import { users } from '../../../db/identity/tables.ts'
import type { Uses } from '../deps.ts'

/** Ends in credential the factors that recoveries ended here; whoever lost theirs waits until credential has answered. */
export const endLostFactors = async ({ db, credential }: Uses<'credential' | 'db'>): Promise<void> => {
  for (const { id, since } of await lostFactors(db)) {
    // The password first: without the app it would sign in alone once passwords are open again.
    await credential.endPassword({ userId: id })
    await credential.removeTotp({ userId: id })
    await db
      .update(users)
      .set({ factors_ended_at: null })
      .where(equals(users, { id, factors_ended_at: since }))
  }
}
