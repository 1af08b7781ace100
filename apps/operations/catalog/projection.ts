import type { Db, Tx } from '../../../db/client.ts'
import { lockVersion } from '../../../db/inbox.ts'
import { clearProjection, rewindWatermark, type Truth } from '../../../db/operations/projection/refill.ts'
import {
  type Applied,
  applyOnce,
  CATALOG_CONSUMER,
  foldHealth,
  foldPart,
  foldResource,
  moveWatermark,
  ProjectionGap,
  parkEvent,
  projectedVersion,
  type ResourceEvent,
  readWatermark,
  requireParts,
  saveTypes,
  startWatermark,
} from '../../../db/operations/projection/rows.ts'
import { foldSnapshot } from '../../../db/operations/projection/snapshot.ts'
import { inboxOf } from '../../../db/operations/tables/index.ts'
import type {
  CatalogEvent,
  IntentRequestedPayload,
  RelationshipsEventPayload,
} from '../../shared/contracts/catalog/events.ts'
import { crashPoint } from '../../shared/crash.ts'
import { apart } from '../../shared/process/deadline.ts'
import { isOutage } from '../../shared/process/outage.ts'
import type { Logger } from '../../shared/telemetry.ts'
import type { CatalogClient, SnapshotPage } from './client.ts'
import { payloadFault } from './payloads.ts'

export type Gap = { resource_id: string; have: number; need: number }
export type Result = Applied | Gap

export type ProjectionDeps = {
  db: Db
  catalog: CatalogClient
  log: Logger
  /** Creates the intent that the catalog asked for; called once per intent, in the event's transaction. */
  createIntent: (tx: Tx, intent: IntentRequestedPayload, request_id: string | null) => Promise<void>
}

/** Event types that change nothing here; all others that are not known are poison. */
const IGNORED = new Set(['capability.changed'])
export const KNOWN_EVENTS: ReadonlySet<string> = new Set([
  'resource.created',
  'resource.updated',
  'resource.retired',
  'resource.relationships',
  'health.changed',
  'type.pack_loaded',
  'intent.requested',
  ...IGNORED,
])
/** How often a gap is filled before the event is given back: one gap can uncover another (an intent, then its resource). */
const FILLS = 3

/**
 * The projection of the catalog in this app: one handler for both doors, NATS and HTTP. Any order and any number of
 * repeats of the same events give the same rows.
 */
export const createCatalogProjection = ({ db, catalog, log, createIntent }: ProjectionDeps) => {
  const applyKnown = async (event: CatalogEvent): Promise<Applied> => {
    if (!KNOWN_EVENTS.has(event.type)) throw new Error(`unknown event type ${event.type}`)
    const wrong = payloadFault(event)
    if (wrong) throw new Error(`${event.type} ${event.event_id}: ${wrong.pointer} ${wrong.message}`)
    const fold = await prepare(event)
    const applied = await db.transaction(async (tx) => {
      const outcome = await applyOnce(tx, event, fold)
      crashPoint('projector.before_commit')
      return outcome
    })
    if (event.pub_seq) await moveWatermark(db, event.pub_seq, { only_next: true })
    return applied
  }

  /** Whatever has to be asked of the catalog is asked before the transaction. */
  const prepare = async (event: CatalogEvent): Promise<(tx: Tx) => Promise<void>> => {
    if (IGNORED.has(event.type)) return async () => {}
    if (event.type === 'type.pack_loaded') {
      const { types, relationship_types } = await catalog.types()
      return (tx) => saveTypes(tx, types, relationship_types)
    }
    if (event.type === 'health.changed') {
      const { status } = event as unknown as { status: string }
      return (tx) => foldHealth(tx, event.agg_id, status)
    }
    if (event.type === 'intent.requested') {
      const intent = event as unknown as IntentRequestedPayload
      return async (tx) => {
        const have = await projectedVersion(tx, intent.resource_id)
        if (have < intent.base_version)
          throw new ProjectionGap('resource', intent.resource_id, have, intent.base_version)
        await createIntent(tx, intent, event.request_id)
      }
    }
    if (event.type === 'resource.relationships')
      return (tx) => foldPart(tx, event as CatalogEvent & RelationshipsEventPayload)
    const told = event as unknown as ResourceEvent
    const document = told.document ?? (await catalog.document(String(told.fetch_href)))
    return async (tx) => {
      if (told.relationship_parts) await requireParts(tx, told.event_id, told.relationship_parts)
      await foldResource(tx, { ...told, document })
    }
  }

  /** Fetches what lies between from the catalog, and what that needs in turn. False: the catalog has not got it (yet). */
  const fill = async ({ agg_type, agg_id, have }: ProjectionGap, deep = 1): Promise<boolean> => {
    const { items } = await catalog.eventsOf(agg_type, agg_id, have)
    for (const missed of items) {
      try {
        await applyKnown(missed)
      } catch (error) {
        if (!(error instanceof ProjectionGap) || deep >= FILLS || !(await fill(error, deep + 1))) throw error
        await applyKnown(missed)
      }
    }
    return items.length > 0
  }

  /** Applies one event; a gap is filled from the catalog first. What the catalog cannot fill is the answer; throws if it is away. */
  const apply = async (event: CatalogEvent): Promise<Result> => {
    const result = await attempt(await wholeOf(event))
    if (typeof result === 'string') return result
    if (isOutage(result.cause)) throw result.cause
    return result.gap
  }

  /** As apply, for whoever asks for the gap even while the catalog is away. */
  const bring = async (event: CatalogEvent): Promise<Result> => {
    const result = await attempt(await wholeOf(event))
    return typeof result === 'string' ? result : result.gap
  }

  /** An event as it is; one that was too large for NATS as the catalog has it. */
  const wholeOf = async (event: CatalogEvent): Promise<CatalogEvent> => {
    if (event.event_href === undefined) return event
    const { agg_type, agg_id, agg_version } = event
    const { items } = await catalog.eventsOf(agg_type, agg_id, agg_version - 1)
    return items.find(({ event_id }) => event_id === event.event_id) ?? event
  }

  const attempt = async (event: CatalogEvent): Promise<Applied | { gap: Gap; cause?: unknown }> => {
    for (let fills = 0; ; fills++) {
      try {
        const applied = await applyKnown(event)
        // The catalog's answer held this event too: it was applied on its account.
        return fills > 0 && applied !== 'held' ? 'applied' : applied
      } catch (error) {
        if (!(error instanceof ProjectionGap)) throw error
        const gap = { resource_id: error.agg_id, have: error.have, need: error.need }
        try {
          if (fills >= FILLS || !(await fill(error))) return { gap }
        } catch (cause) {
          if (cause instanceof ProjectionGap) return { gap }
          log.warn({ err: cause, agg_id: error.agg_id }, 'a gap could not be filled')
          return { gap, cause }
        }
      }
    }
  }

  /** First fill: types, then every resource; the log is followed from the watermark of the first page. */
  const fillAll = async (): Promise<void> => {
    const { types, relationship_types } = await catalog.types()
    await db.transaction((tx) => saveTypes(tx, types, relationship_types))
    let watermark: string | undefined
    // The next page is read while this one is folded.
    for (let next: Promise<SnapshotPage> | undefined = catalog.snapshot(null); next; ) {
      const page: SnapshotPage = await next
      watermark ??= page.watermark
      next = page.next === null ? undefined : catalog.snapshot(page.next)
      next?.catch(() => {})
      if (page.items.length > 0) await db.transaction((tx) => foldSnapshot(tx, page.items))
    }
    await startWatermark(db, watermark ?? '0')
    log.info({ watermark }, 'the projection of the catalog is filled')
  }

  /**
   * Fills the projection anew, in one transaction: readers see the old rows or the new ones. For a database whose owner
   * went back (reliability.md 4.13). What of the log was not applied yet is read as before.
   */
  const refill = async (truth: readonly Truth[]): Promise<number> => {
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
      await rewindWatermark(tx, end ?? '0')
      return count
    })
  }

  let running: Promise<void> | undefined
  /** Brings the projection to the end of the catalog's log; callers at one time share one run. */
  const catchUp = (): Promise<void> => {
    running ??= apart(follow).finally(() => {
      running = undefined
    })
    return running
  }

  const follow = async (): Promise<void> => {
    if (!(await readWatermark(db))) await fillAll()
    for (;;) {
      const asked_at = new Date().toISOString()
      const from = (await readWatermark(db))?.pub_seq ?? '0'
      const { items } = await catalog.eventsAfter(from)
      for (const event of items) await applyOrPark(event)
      const last = items.at(-1)?.pub_seq
      await moveWatermark(db, last ?? from, { at: asked_at })
      if (last === undefined || last === null || items.length < 500) return
    }
  }

  /** What cannot be applied is set aside, or nothing after it would ever be read. */
  const applyOrPark = async (event: CatalogEvent): Promise<void> => {
    try {
      const result = await attempt(event)
      if (typeof result === 'string') return
      // The log goes on behind this event: passed over, nobody would know that the resource is not as it is shown.
      throw result.cause ?? new Error(`it needs version ${result.gap.need} of ${result.gap.resource_id}`)
    } catch (error) {
      if (isOutage(error)) throw error
      await park(event, error as Error, 1)
    }
  }

  const park = async (event: CatalogEvent, error: Error, tries: number): Promise<void> => {
    log.error({ err: error, event_id: event.event_id, type: event.type }, 'an event of the catalog is set aside')
    await db.transaction((tx) => parkEvent(tx, event, error.message, tries))
  }

  /** Applies what the catalog has told of an aggregate since; what cannot be applied is set aside again. */
  const followOne = async (agg_type: string, agg_id: string): Promise<'followed' | 'parked again'> => {
    const have = await db.transaction((tx) => lockVersion(tx, inboxOf, CATALOG_CONSUMER, agg_type, agg_id))
    const { items } = await catalog.eventsOf(agg_type, agg_id, have.ver)
    for (const event of items) {
      try {
        const result = await apply(event)
        if (typeof result !== 'string') throw new Error(`it needs version ${result.need} of ${result.resource_id}`)
      } catch (error) {
        if (isOutage(error)) throw error
        await park(event, error as Error, 1)
        return 'parked again'
      }
    }
    return 'followed'
  }

  /**
   * Milliseconds by which the projection is behind: the age of the oldest event of the log that is not folded, 0 when all
   * are. While the catalog does not answer: since its end was last seen, for the log may have gone on. Nothing before the
   * first fill.
   */
  const lag = async (): Promise<number | undefined> => {
    const mark = await readWatermark(db)
    if (!mark) return undefined
    try {
      const { items } = await catalog.eventsAfter(mark.pub_seq, 1)
      return ageOf(items[0]?.occurred_at)
    } catch {
      return ageOf(mark.at)
    }
  }

  return { apply, bring, catchUp, refill, park, followOne, lag, watermark: () => readWatermark(db) }
}
export type CatalogProjection = ReturnType<typeof createCatalogProjection>

const ageOf = (time: string | null | undefined): number => (time ? Math.max(0, Date.now() - Date.parse(time)) : 0)
