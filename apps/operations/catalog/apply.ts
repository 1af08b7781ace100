import type { Db, Tx } from '../../../db/client.ts'
import { foldEvents } from '../../../db/operations/projection/events.ts'
import { saveHealths } from '../../../db/operations/projection/many.ts'
import {
  type Applied,
  applyOnce,
  foldPart,
  foldResource,
  moveWatermark,
  ProjectionGap,
  projectedVersion,
  type ResourceEvent,
  requireParts,
  saveTypes,
} from '../../../db/operations/projection/rows.ts'
import type {
  CatalogEvent,
  IntentRequestedPayload,
  RelationshipsEventPayload,
} from '../../shared/contracts/catalog/events.ts'
import { crashPoint } from '../../shared/crash.ts'
import { isOutage } from '../../shared/process/outage.ts'
import type { Logger } from '../../shared/telemetry.ts'
import type { CatalogClient } from './client.ts'
import { payloadFault } from './payloads.ts'

export type Gap = { resource_id: string; have: number; need: number }
export type Result = Applied | Gap

export type ApplyDeps = {
  db: Db
  catalog: CatalogClient
  log: Logger
  /** Creates the intent that the catalog requested; called once per intent, in the event's transaction. */
  createIntent: (tx: Tx, intent: IntentRequestedPayload, request_id: string | null) => Promise<void>
}

/** Event types that operations ignores; any other unknown type is poison. */
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
/** How often a gap is filled before the event is given back. One gap can reveal another (intent, then resource). */
const FILLS = 3

const applyKnown = async (deps: ApplyDeps, event: CatalogEvent): Promise<Applied> => {
  if (!KNOWN_EVENTS.has(event.type)) throw new Error(`unknown event type ${event.type}`)
  const wrong = payloadFault(event)
  if (wrong) throw new Error(`${event.type} ${event.event_id}: ${wrong.pointer} ${wrong.message}`)
  const fold = await prepare(deps, event)
  const applied = await deps.db.transaction(async (tx) => {
    const outcome = await applyOnce(tx, event, fold)
    crashPoint('projector.before_commit')
    return outcome
  })
  if (event.pub_seq) await moveWatermark(deps.db, event.pub_seq, { only_next: true })
  return applied
}

/** Applies plain events in one transaction. Returns false if it fails: applied one by one, they show the bad one. */
export const applyTogether = async (
  { db, log }: Pick<ApplyDeps, 'db' | 'log'>,
  events: readonly CatalogEvent[],
): Promise<boolean> => {
  if (events.some((event) => !KNOWN_EVENTS.has(event.type) || payloadFault(event) !== undefined)) return false
  try {
    await db.transaction(async (tx) => {
      await foldEvents(tx, events)
      crashPoint('projector.before_commit')
    })
    return true
  } catch (error) {
    log.warn({ err: error, events: events.length }, 'events of the catalog are applied one by one')
    return false
  }
}

/** Queries the catalog before the transaction. */
const prepare = async (
  { catalog, createIntent }: ApplyDeps,
  event: CatalogEvent,
): Promise<(tx: Tx) => Promise<void>> => {
  if (IGNORED.has(event.type)) return async () => {}
  if (event.type === 'type.pack_loaded') {
    const { types, relationship_types } = await catalog.types()
    return (tx) => saveTypes(tx, types, relationship_types)
  }
  if (event.type === 'health.changed') {
    const { status } = event as unknown as { status: string }
    return (tx) => saveHealths(tx, [{ resource_id: event.agg_id, status }])
  }
  if (event.type === 'intent.requested') {
    const intent = event as unknown as IntentRequestedPayload
    return async (tx) => {
      const have = await projectedVersion(tx, intent.resource_id)
      if (have < intent.base_version) throw new ProjectionGap('resource', intent.resource_id, have, intent.base_version)
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

/** Fetches the missing events from the catalog, and those that they need in turn. Returns false if the catalog lacks them. */
const fill = async (deps: ApplyDeps, { agg_type, agg_id, have }: ProjectionGap, deep = 1): Promise<boolean> => {
  const { items } = await deps.catalog.eventsOf(agg_type, agg_id, have)
  for (const missed of items) {
    try {
      await applyKnown(deps, missed)
    } catch (error) {
      if (!(error instanceof ProjectionGap) || deep >= FILLS || !(await fill(deps, error, deep + 1))) throw error
      await applyKnown(deps, missed)
    }
  }
  return items.length > 0
}

/** Applies one event, after filling a gap from the catalog. Returns any unfilled gap; throws if the catalog is away. */
export const apply = async (deps: ApplyDeps, event: CatalogEvent): Promise<Result> => {
  const result = await tryToApply(deps, await wholeOf(deps, event))
  if (typeof result === 'string') return result
  if (isOutage(result.cause)) throw result.cause
  return result.gap
}

/** Like `apply`, but returns the gap even while the catalog is away. */
export const bring = async (deps: ApplyDeps, event: CatalogEvent): Promise<Result> => {
  const result = await tryToApply(deps, await wholeOf(deps, event))
  return typeof result === 'string' ? result : result.gap
}

/** Returns the event itself, or the catalog's copy if it was too large for NATS. */
const wholeOf = async ({ catalog }: Pick<ApplyDeps, 'catalog'>, event: CatalogEvent): Promise<CatalogEvent> => {
  if (event.event_href === undefined) return event
  const { agg_type, agg_id, agg_version } = event
  const { items } = await catalog.eventsOf(agg_type, agg_id, agg_version - 1)
  return items.find(({ event_id }) => event_id === event.event_id) ?? event
}

export const tryToApply = async (
  deps: ApplyDeps,
  event: CatalogEvent,
): Promise<Applied | { gap: Gap; cause?: unknown }> => {
  for (let fills = 0; ; fills++) {
    try {
      const applied = await applyKnown(deps, event)
      // The catalog's answer already contained this event, so it was applied with that answer.
      return fills > 0 && applied !== 'held' ? 'applied' : applied
    } catch (error) {
      if (!(error instanceof ProjectionGap)) throw error
      const gap = { resource_id: error.agg_id, have: error.have, need: error.need }
      try {
        if (fills >= FILLS || !(await fill(deps, error))) return { gap }
      } catch (cause) {
        if (cause instanceof ProjectionGap) return { gap }
        deps.log.warn({ err: cause, agg_id: error.agg_id }, 'a gap could not be filled')
        return { gap, cause }
      }
    }
  }
}
