import { createHash } from 'node:crypto'
import { forgetOperation, listIndexed, operationRows } from '../../../db/catalog/operations.ts'
import { inboxOf } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { lockVersion, rewindMark, setVersion } from '../../../db/inbox.ts'
import type { Envelope } from '../../shared/events/events.ts'
import type { Compared } from '../graph/compare.ts'
import { CONSUMER, type Follower, fetchEvents, fold, OPERATIONS_INDEX } from './follow.ts'

const SHOWN = 20
/** A younger event may still be in flight to us. */
const UNDER_WAY_MS = 30_000

/**
 * Folds the operations app's log again, operation by operation, and compares it with the index; with `swap`, rewrites
 * what differs. Held operations, and those whose log lost its beginning, are left alone and counted as skipped.
 */
export const compareIndex = async (deps: Follower, swap: boolean): Promise<Compared> => {
  const digests = { live: createHash('sha256'), truth: createHash('sha256') }
  const found: Compared = { compared: 0, differ: 0, skipped: 0, different: [], digests: { live: '', truth: '' } }
  for (const id of (await readLog(deps)).ids.sort()) {
    const rows = await compareOne(deps, id, swap)
    if (!rows) {
      found.skipped += 1
      continue
    }
    const [is, wanted] = rows
    found.compared += 1
    digests.live.update(is)
    digests.truth.update(wanted)
    if (is === wanted) continue
    found.differ += 1
    if (found.different.length < SHOWN) found.different.push(id)
  }
  found.digests = { live: digests.live.digest('hex').slice(0, 16), truth: digests.truth.digest('hex').slice(0, 16) }
  return found
}

/**
 * Rewrites the index from the log in one transaction, for a database whose other side was restored to an earlier state
 * (reliability.md 4.13). Operations whose log lost its beginning stay as they are. Returns the number of operations.
 */
export const refillIndex = async (deps: Follower): Promise<number> => {
  const logged = new Map<string, Envelope[]>()
  const { ids, end } = await readLog(deps)
  for (const id of ids) logged.set(id, await eventsOf(deps, id))
  return deps.db.transaction(async (tx) => {
    for (const [id, events] of logged) {
      if (events.length > 0 && events[0]?.agg_version !== 1) continue
      await lockVersion(tx, inboxOf, CONSUMER, 'operation', id)
      await forgetOperation(tx, id)
      for (const event of events) await fold(tx, event)
      await setVersion(tx, inboxOf, CONSUMER, 'operation', id, events.at(-1)?.agg_version ?? 0)
    }
    await rewindMark(tx, inboxOf, OPERATIONS_INDEX, end)
    return logged.size
  })
}

const eventsOf = async (deps: Follower, agg_id: string): Promise<Envelope[]> => {
  const events: Envelope[] = []
  for (;;) {
    const more = await fetchEvents(deps, { agg_id, after: events.at(-1)?.agg_version ?? 0 })
    if (more.length === 0) return events
    events.push(...more)
  }
}

/** All operations that the log or the index knows, and the end of the log. */
const readLog = async (deps: Follower): Promise<{ ids: string[]; end: string }> => {
  const ids = new Set(await listIndexed(deps.db))
  for (let end = '0'; ; ) {
    const items = await fetchEvents(deps, { after: end })
    for (const { agg_type, agg_id } of items) if (agg_type === 'operation' && agg_id) ids.add(agg_id)
    const last = items.at(-1)?.pub_seq
    if (!last) return { ids: [...ids], end }
    end = last
  }
}

/** The rows as stored and as folded from the log, or `undefined` if they cannot be compared. */
type Rows = readonly [string, string] | undefined

const compareOne = async (deps: Follower, operation_id: string, swap: boolean): Promise<Rows> => {
  const events = await eventsOf(deps, operation_id)
  if (events[0]?.agg_version !== 1) return undefined
  const refold = (tx: Tx) => refoldOne(tx, operation_id, events)
  const rows = await attempt(deps.db, refold)
  return !swap || rows?.[0] === rows?.[1] ? rows : deps.db.transaction(refold)
}

/** Folds the index of one operation from its events. */
const refoldOne = async (tx: Tx, operation_id: string, events: Envelope[]): Promise<Rows> => {
  const { ver, held } = await lockVersion(tx, inboxOf, CONSUMER, 'operation', operation_id)
  const last = events.at(-1)?.agg_version ?? 0
  // The follower has already written newer events than these.
  if (held || ver > last) return undefined
  const is = await operationRows(tx, operation_id)
  await forgetOperation(tx, operation_id)
  const settled = Date.now() - UNDER_WAY_MS
  const told = events.filter((event) => (event.agg_version ?? 0) <= ver || Date.parse(event.occurred_at) < settled)
  for (const event of told) await fold(tx, event)
  await setVersion(tx, inboxOf, CONSUMER, 'operation', operation_id, told.at(-1)?.agg_version ?? ver)
  return [is, await operationRows(tx, operation_id)]
}
