import { sql } from 'drizzle-orm'
import { lastPubSeq } from '../../../db/catalog/resources/lists.ts'
import {
  changedAfter,
  foldSearch,
  readSearchPosition,
  ridsAfter,
  writeSearchPosition,
} from '../../../db/catalog/search/fold.ts'
import { tryLockOf } from '../../../db/locks.ts'
import { type Loop, startLoop } from '../../shared/process/repeat.ts'
import type { Uses } from '../deps.ts'

/** How many resources one statement folds at most. */
const FILL = 1000
let together = FILL
/** Each may name 500 relations. */
const EVENTS = 1000
/** A resource that changes several times within this period is folded once. */
const IDLE_MS = 2000

type Deps = Uses<'db' | 'telemetry'>

/**
 * One step of the search index, in one transaction with its position: the next resources of the initial load, then the
 * next events of the log. Returns true if there is more. Only one process at a time takes a step. Where a statement took
 * too long, as with much text in each resource, the next ones fold fewer, then slowly more again.
 */
export const followSearchOnce = async (deps: Deps): Promise<boolean> => {
  try {
    const more = await step(deps)
    together = Math.min(FILL, together + 1)
    return more
  } catch (error) {
    if (together === 1 || (error as { cause?: { code?: string } }).cause?.code !== '57014') throw error
    together = Math.ceil(together / 4)
    return true
  }
}

const step = ({ db }: Deps): Promise<boolean> =>
  db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ held: boolean }>(sql`select ${tryLockOf('catalogSearch')} as held`)
    if (!rows[0]?.held) return false
    const position = await readSearchPosition(tx)
    if (position === undefined) {
      await writeSearchPosition(tx, { pub_seq: await lastPubSeq(tx), filling_after: '0' })
      return true
    }
    if (position.filling_after !== null) {
      const rids = await ridsAfter(tx, position.filling_after, together)
      await foldSearch(tx, rids)
      await writeSearchPosition(tx, { ...position, filling_after: rids.at(-1) ?? null })
      return true
    }
    const { rids, pub_seq, events } = await changedAfter(tx, position.pub_seq, EVENTS)
    if (events === 0) return false
    for (let at = 0; at < rids.length; at += together) await foldSearch(tx, rids.slice(at, at + together))
    await writeSearchPosition(tx, { pub_seq, filling_after: null })
    return events === EVENTS
  })

/** Follows the log until stopped; retries after errors. */
export const startSearch = (deps: Deps): Loop =>
  startLoop('search', () => followSearchOnce(deps), {
    every_ms: IDLE_MS,
    failed: (err) => deps.telemetry.log.warn({ err }, 'search could not follow the log'),
  })
