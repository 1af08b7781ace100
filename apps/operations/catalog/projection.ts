import { lockVersion } from '../../../db/inbox.ts'
import { isPlain } from '../../../db/operations/projection/events.ts'
import { CATALOG_CONSUMER } from '../../../db/operations/projection/many.ts'
import type { Truth } from '../../../db/operations/projection/refill.ts'
import { moveWatermark, parkEvent, readWatermark } from '../../../db/operations/projection/rows.ts'
import { inboxOf } from '../../../db/operations/tables/index.ts'
import type { CatalogEvent } from '../../shared/contracts/catalog/events.ts'
import { apart } from '../../shared/process/deadline.ts'
import { isOutage } from '../../shared/process/outage.ts'
import { type ApplyDeps, apply, applyTogether, bring, tryToApply } from './apply.ts'
import { fillAll, refill } from './fill.ts'

/** The catalog's projection here, by NATS and HTTP alike: equal events give equal rows in any order and repetition. */
export const createCatalogProjection = (deps: ApplyDeps) => {
  let running: Promise<void> | undefined
  let followed = 0n
  const passed = (pub_seq: string) => {
    followed = BigInt(pub_seq)
  }
  /** Brings the projection to the end of the catalog's log; concurrent callers share one run. */
  const catchUp = (): Promise<void> => {
    running ??= apart(() => follow(deps, passed)).finally(() => {
      running = undefined
    })
    return running
  }

  return {
    apply: (event: CatalogEvent) => apply(deps, event),
    bring: (event: CatalogEvent) => bring(deps, event),
    catchUp,
    /** Whether the log has already brought an event: NATS delivers it much later when many arrive at once. */
    hasRead: ({ pub_seq }: CatalogEvent): boolean => pub_seq !== null && BigInt(pub_seq) <= followed,
    refill: (truth: readonly Truth[]) => refill(deps, truth),
    park: (event: CatalogEvent, error: Error, tries: number) => park(deps, event, error, tries),
    followOne: (agg_type: string, agg_id: string) => followOne(deps, agg_type, agg_id),
    lag: () => lagOf(deps),
    watermark: () => readWatermark(deps.db),
  }
}
export type CatalogProjection = ReturnType<typeof createCatalogProjection>

const follow = async (deps: ApplyDeps, passed: (pub_seq: string) => void): Promise<void> => {
  if (!(await readWatermark(deps.db))) await fillAll(deps)
  for (;;) {
    const asked_at = new Date().toISOString()
    const from = (await readWatermark(deps.db))?.pub_seq ?? '0'
    const { items } = await deps.catalog.eventsAfter(from)
    for (const run of runsOf(items)) {
      if (run.length > 1 && (await applyTogether(deps, run))) continue
      for (const event of run) await applyOrPark(deps, event)
    }
    const last = items.at(-1)?.pub_seq
    await moveWatermark(deps.db, last ?? from, { at: asked_at })
    passed(last ?? from)
    if (last === undefined || last === null || items.length < 500) return
  }
}

/** As many as one transaction applies in a moment, even on a busy machine. */
const AT_ONCE = 100

/** Splits events into runs, in order: plain ones together, each other one alone. */
const runsOf = (events: readonly CatalogEvent[]): CatalogEvent[][] => {
  const runs: CatalogEvent[][] = []
  let open: CatalogEvent[] | undefined
  for (const event of events) {
    const plain = isPlain(event)
    if (plain && open && open.length < AT_ONCE) open.push(event)
    else {
      open = [event]
      runs.push(open)
      if (!plain) open = undefined
    }
  }
  return runs
}

/** Sets aside an event that cannot be applied; otherwise no later event would ever be read. */
const applyOrPark = async (deps: ApplyDeps, event: CatalogEvent): Promise<void> => {
  try {
    const result = await tryToApply(deps, event)
    if (typeof result === 'string') return
    // The log continues after this event: if it were skipped, no one would know that the resource is shown wrongly.
    throw result.cause ?? new Error(`it requires version ${result.gap.need} of ${result.gap.resource_id}`)
  } catch (error) {
    if (isOutage(error)) throw error
    await park(deps, event, error as Error, 1)
  }
}

const park = async ({ db, log }: Pick<ApplyDeps, 'db' | 'log'>, event: CatalogEvent, error: Error, tries: number) => {
  log.error({ err: error, event_id: event.event_id, type: event.type }, 'an event of the catalog is set aside')
  await db.transaction((tx) => parkEvent(tx, event, error.message, tries))
}

/** Applies the newer events of one aggregate; sets aside again an event that cannot be applied. */
const followOne = async (deps: ApplyDeps, agg_type: string, agg_id: string): Promise<'followed' | 'parked again'> => {
  const have = await deps.db.transaction((tx) => lockVersion(tx, inboxOf, CATALOG_CONSUMER, agg_type, agg_id))
  const { items } = await deps.catalog.eventsOf(agg_type, agg_id, have.ver)
  for (const event of items) {
    try {
      const result = await apply(deps, event)
      if (typeof result !== 'string') throw new Error(`it requires version ${result.need} of ${result.resource_id}`)
    } catch (error) {
      if (isOutage(error)) throw error
      await park(deps, event, error as Error, 1)
      return 'parked again'
    }
  }
  return 'followed'
}

/**
 * Returns by how many milliseconds the projection is behind: the age of the log's oldest unfolded event, 0 if all are
 * folded. While the catalog does not answer, it counts from when the log's end was last seen, because the log may have
 * grown. `undefined` before the first fill.
 */
const lagOf = async ({ db, catalog }: Pick<ApplyDeps, 'db' | 'catalog'>): Promise<number | undefined> => {
  const mark = await readWatermark(db)
  if (!mark) return undefined
  try {
    const { items } = await catalog.eventsAfter(mark.pub_seq, 1)
    return ageOf(items[0]?.occurred_at)
  } catch {
    return ageOf(mark.at)
  }
}

const ageOf = (time: string | null | undefined): number => (time ? Math.max(0, Date.now() - Date.parse(time)) : 0)
