import { rewindMark } from '../../../db/inbox.ts'
import { CATALOG_CONSUMER } from '../../../db/operations/projection/many.ts'
import { clearProjection, type Truth } from '../../../db/operations/projection/refill.ts'
import { endFill, saveTypes, startFill } from '../../../db/operations/projection/rows.ts'
import { foldSnapshot } from '../../../db/operations/projection/snapshot.ts'
import { inboxOf } from '../../../db/operations/tables/index.ts'
import type { ApplyDeps } from './apply.ts'
import type { SnapshotPage } from './client.ts'

/** First fill: types, then every resource; the log is then followed from the watermark of the first page. */
export const fillAll = async ({ db, catalog, log }: Pick<ApplyDeps, 'db' | 'catalog' | 'log'>): Promise<void> => {
  const { types, relationship_types } = await catalog.types()
  await db.transaction((tx) => saveTypes(tx, types, relationship_types))
  // Reads the next page while this one is folded.
  for (let next: Promise<SnapshotPage> | undefined = catalog.snapshot(null); next; ) {
    const page: SnapshotPage = await next
    await startFill(db, page.watermark)
    next = page.next === null ? undefined : catalog.snapshot(page.next)
    next?.catch(() => {})
    if (page.items.length > 0) await db.transaction((tx) => foldSnapshot(tx, page.items))
  }
  await endFill(db)
  log.info('the projection of the catalog is filled')
}

/**
 * Rebuilds the projection in one transaction: readers see either the old rows or the new ones. For use after the
 * owner's database was restored (reliability.md 4.13). Events of the log that were not applied yet are read as before.
 */
export const refill = async (
  { db, catalog }: Pick<ApplyDeps, 'db' | 'catalog'>,
  truth: readonly Truth[],
): Promise<number> => {
  const { types, relationship_types } = await catalog.types()
  return db.transaction(async (tx) => {
    await clearProjection(tx, truth)
    await saveTypes(tx, types, relationship_types)
    let count = 0
    let end: string | undefined
    for (let next: string | null | undefined; next !== null; ) {
      const page: SnapshotPage = await catalog.snapshot(next ?? null)
      end ??= page.watermark
      if (page.items.length > 0) await foldSnapshot(tx, page.items)
      count += page.items.length
      next = page.next
    }
    await rewindMark(tx, inboxOf, CATALOG_CONSUMER, end ?? '0')
    return count
  })
}
