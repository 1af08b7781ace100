import type { CatalogEvent } from '../../../apps/shared/contracts/catalog/events.ts'
import type { Tx } from '../../client.ts'
import { inboxOf } from '../tables/index.ts'
import {
  CATALOG_CONSUMER,
  lockResources,
  lockVersions,
  nameOf,
  saveHealths,
  saveResources,
  setVersions,
} from './many.ts'
import { foldOperation, foldOvertaken, foldRelationships, ProjectionGap, type ResourceEvent } from './rows.ts'

/** Whether an event contains all data for its row changes. */
export const isPlain = (event: CatalogEvent): boolean => {
  const { document, relationship_parts } = event as Partial<ResourceEvent>
  if (event.event_href !== undefined) return false
  if (event.agg_type === 'resource' && event.type !== 'resource.relationships')
    return document !== undefined && relationship_parts === undefined
  return event.type === 'health.changed' || event.type === 'capability.changed'
}

/**
 * Applies plain events of the log in order, one statement per table. The result equals applying them one by one, except
 * for the intermediate states. Throws a ProjectionGap if one is ahead of its aggregate.
 */
export const foldEvents = async (tx: Tx, events: readonly CatalogEvent[]): Promise<void> => {
  const known = await lockVersions(tx, events)
  const applicable = events.filter((event) => known.get(nameOf(event))?.held === false)
  const next = new Map(applicable.map((event) => [nameOf(event), known.get(nameOf(event))?.ver ?? 0]))
  const fresh = await receiveAll(tx, applicable)
  const taken: CatalogEvent[] = []
  const overtaken: CatalogEvent[] = []
  for (const event of applicable) {
    const { agg_type, agg_id, agg_version } = event
    const have = next.get(nameOf(event)) ?? 0
    if (agg_version > have + 1) throw new ProjectionGap(agg_type, agg_id, have, agg_version)
    if (!fresh.has(event.event_id)) continue
    if (agg_version > have) next.set(nameOf(event), agg_version)
    ;(agg_version > have ? taken : overtaken).push(event)
  }
  await lockResources(
    tx,
    [...taken, ...overtaken].map(({ resource_id, agg_id }) => resource_id ?? agg_id),
  )
  await foldOvertaken(tx, overtaken)
  const healths = taken.filter(({ agg_type }) => agg_type === 'health') as (CatalogEvent & { status: string })[]
  const resources = taken.filter(({ agg_type }) => agg_type === 'resource') as ResourceEvent[]
  const statuses = new Map(healths.map(({ agg_id, status }) => [agg_id, { resource_id: agg_id, status }]))
  const documents = new Map(resources.map(({ agg_id, document }) => [agg_id, document]))
  if (statuses.size > 0) await saveHealths(tx, [...statuses.values()])
  if (documents.size > 0) await saveResources(tx, [...documents.values()])
  await foldRelationships(
    tx,
    resources.flatMap(({ relationship_changes }) => relationship_changes),
  )
  for (const event of resources) await foldOperation(tx, event)
  await setVersions(
    tx,
    taken.map((event) => ({ ...event, ver: next.get(nameOf(event)) ?? 0 })),
  )
}

/** Marks events as received; returns the ids of those that were new. */
const receiveAll = async (tx: Tx, events: readonly CatalogEvent[]): Promise<Set<string>> => {
  if (events.length === 0) return new Set()
  const { inbox } = inboxOf
  const rows = await tx
    .insert(inbox)
    .values(events.map(({ event_id }) => ({ consumer: CATALOG_CONSUMER, event_id })))
    .onConflictDoNothing()
    .returning({ event_id: inbox.event_id })
  return new Set(rows.map(({ event_id }) => event_id))
}
