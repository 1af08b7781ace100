import type { Db } from '../../db/client.ts'
import { type Difference, findDifferences, listOperationIds } from '../../db/operations/projection/rebuild.ts'

/** Where read models of a test's operations differ from their events; each operation is read at one moment. */
export const readModelDifferences = async (db: Db): Promise<Difference[]> => {
  const found: Difference[] = []
  for (const id of await listOperationIds(db, '00000000-0000-0000-0000-000000000000', 1000))
    found.push(
      ...(await db.transaction((tx) => findDifferences(tx, id), {
        isolationLevel: 'repeatable read',
        accessMode: 'read only',
      })),
    )
  return found
}
