import { equals } from '../../../db/client.ts'
import { getUser, lostFactors } from '../../../db/identity/queries.ts'
import { users } from '../../../db/identity/tables.ts'
import type { Uses } from '../deps.ts'

type Deps = Uses<'credential' | 'db'>

/**
 * Ends in credential the factors that recoveries ended here; whoever lost theirs waits until credential has answered,
 * and nobody waits for someone else.
 */
export const endLostFactors = async (deps: Deps): Promise<void> => {
  let failed: { error: unknown } | undefined
  for (const lost of await lostFactors(deps.db)) {
    await endFactorsOf(deps, lost).catch((error: unknown) => {
      failed = { error }
    })
  }
  if (failed) throw failed.error
}

const endFactorsOf = async ({ db, credential }: Deps, { id, since }: { id: string; since: string }) => {
  // Another process may have ended them since the list was read, and the person set up new ones.
  const stillLost = async () => (await getUser(db, id))?.factors_ended_at
  // The password first: without the app it would sign in alone once passwords are open again.
  if (await stillLost()) await credential.endPassword({ userId: id })
  if (await stillLost()) await credential.removeTotp({ userId: id })
  await db
    .update(users)
    .set({ factors_ended_at: null })
    .where(equals(users, { id, factors_ended_at: since }))
}
