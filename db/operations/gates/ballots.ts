import { and, eq, gt, sql } from 'drizzle-orm'
import type { Ballot } from '../../../apps/shared/contracts/operations/gates.ts'
import { first, type Tx } from '../../client.ts'
import { NOW } from '../../rows.ts'
import { ballots } from '../tables/index.ts'

/** Stores a ballot for its lifetime, and deletes other expired ones. */
export const insertBallot = async (tx: Tx, challenge: string, ballot: Ballot): Promise<void> => {
  await tx.execute(sql`delete from ${ballots} where ${ballots.expires_at} < clock_timestamp()`)
  await tx.insert(ballots).values({ challenge, ballot, expires_at: ballot.expires_at })
}

/** Removes and returns the ballot of a challenge; `undefined` if it was used or has expired. */
export const spendBallot = (tx: Tx, challenge: string): Promise<Ballot | undefined> =>
  tx
    .delete(ballots)
    .where(and(eq(ballots.challenge, challenge), gt(ballots.expires_at, NOW)))
    .returning()
    .then((rows) => first(rows)?.ballot)
