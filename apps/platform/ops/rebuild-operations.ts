import {
  type Difference,
  findDifferences,
  listOperationIds,
  repairTimeline,
} from '../../../db/operations/projection/rebuild.ts'
import { printTable, withDb } from './access.ts'

const PAGE = 200
const SHOWN = 50
const FIRST = '00000000-0000-0000-0000-000000000000'

/**
 * `rebuild operations [--apply]`: folds the events of every operation and compares the read models with them. With
 * --apply, timeline rows that are missing or differ are written again from the outbox. Any other difference is a row of
 * record that was edited by hand: it is reported, but never guessed at. Exits 3 if anything differs.
 */
export const rebuildOperations = (apply: boolean): Promise<number> => {
  return withDb('operations', async (db) => {
    const found: Difference[] = []
    let count = 0
    for (let ids = await listOperationIds(db, FIRST, PAGE); ids.length > 0; ) {
      for (const id of ids) {
        if (apply) await db.transaction((tx) => repairTimeline(tx, id))
        // One snapshot for all of it, because commands continue meanwhile.
        const snapshot = { isolationLevel: 'repeatable read', accessMode: 'read only' } as const
        found.push(...(await db.transaction((tx) => findDifferences(tx, id), snapshot)))
        count += 1
      }
      ids = await listOperationIds(db, ids.at(-1) ?? FIRST, PAGE)
    }
    const rows = found.slice(0, SHOWN).map(({ operation_id, model, what }) => [operation_id, model, what])
    printTable(['OPERATION', 'READ MODEL', 'DIFFERENCE'], rows)
    if (found.length > SHOWN) console.log(`… and ${found.length - SHOWN} more`)
    if (found.length === 0) console.log(`The read models of ${count} operations match their events.`)
    else if (!apply)
      console.log('With --apply the timeline is rewritten from the outbox; other differences need a person.')
    return found.length === 0 ? 0 : 3
  })
}
