import { and, eq, inArray, isNull, sql } from 'drizzle-orm'
import type {
  CatalogEvent,
  RelationshipEvent,
  RelationshipsEventPayload,
  ResourceEventPayload,
} from '../../../apps/shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../../../apps/shared/contracts/catalog/resources.ts'
import type { RelationshipType, ResourceType } from '../../../apps/shared/contracts/catalog/types.ts'
import { equals, type Queryable, type Tx, updateRows } from '../../client.ts'
import { lockVersion, type Mark, moveMark, parkLetter, readMark, receive, setVersion } from '../../inbox.ts'
import {
  catalog_relationship_types,
  catalog_relationships,
  catalog_resources,
  catalog_types,
  inboxOf,
  projection,
  resource_operation_index,
} from '../tables/index.ts'
import { CATALOG_CONSUMER, lockResources, saveResources } from './many.ts'

/** The event is ahead of the projection: earlier ones must come first. Rolls the transaction back. */
export class ProjectionGap extends Error {
  readonly agg_type: string
  readonly agg_id: string
  readonly have: number
  readonly need: number

  constructor(agg_type: string, agg_id: string, have: number, need: number) {
    super(`${agg_type} ${agg_id} is at version ${have}, the event needs ${need}`)
    this.name = 'ProjectionGap'
    this.agg_type = agg_type
    this.agg_id = agg_id
    this.have = have
    this.need = need
  }
}

export type Applied = 'applied' | 'duplicate' | 'older' | 'held'

/** A resource event with its document, whatever the document's source. */
export type ResourceEvent = CatalogEvent & ResourceEventPayload & { document: ResourceDocument }

/** Applies an event once, by inbox, then version: have + 1 folds, older adds its edges, newer throws a ProjectionGap. */
export const applyOnce = async (tx: Tx, event: CatalogEvent, fold: (tx: Tx) => Promise<void>): Promise<Applied> => {
  const { event_id, agg_type, agg_id, agg_version } = event
  const { ver, held } = await lockVersion(tx, inboxOf, CATALOG_CONSUMER, agg_type, agg_id)
  if (held) return 'held'
  if (agg_version > ver + 1) throw new ProjectionGap(agg_type, agg_id, ver, agg_version)
  if (!(await receive(tx, inboxOf, CATALOG_CONSUMER, event_id))) return 'duplicate'
  await lockResources(tx, [event.resource_id ?? agg_id])
  if (agg_version <= ver) {
    await foldOvertaken(tx, [event])
    return 'older'
  }
  await fold(tx)
  await setVersion(tx, inboxOf, CATALOG_CONSUMER, agg_type, agg_id, agg_version)
  return 'applied'
}

/**
 * Folds what events of already known versions say about others. A page of a snapshot lacks
 * the edges that a later page reports from their far end, or still has them. Up to the watermark, the
 * snapshot knew those too: an edge that has ended since must not return.
 */
export const foldOvertaken = async (tx: Tx, events: readonly CatalogEvent[]): Promise<void> => {
  const resources = events.filter(({ agg_type }) => agg_type === 'resource') as ResourceEvent[]
  if (resources.length === 0) return
  const isNew = await unread(tx)
  const overtaken = resources.filter(isNew)
  await foldRelationships(
    tx,
    overtaken.flatMap(({ relationship_changes }) => relationship_changes),
  )
  for (const event of overtaken) await foldOperation(tx, event)
}

/** Whether the log has not brought an event yet, as far as the watermark says. */
const unread = async (tx: Tx): Promise<(event: CatalogEvent) => boolean> => {
  const [mark] = await tx
    .select({ at: projection.pub_seq })
    .from(projection)
    .where(eq(projection.name, CATALOG_CONSUMER))
  return ({ pub_seq }) => pub_seq === null || mark === undefined || BigInt(pub_seq) > mark.at
}

export const foldResource = async (tx: Tx, event: ResourceEvent): Promise<void> => {
  await saveResources(tx, [event.document])
  await foldRelationships(tx, event.relationship_changes)
  await foldOperation(tx, event)
}

/** Records how far an event's operation has brought its resource. */
export const foldOperation = async (tx: Tx, event: ResourceEvent): Promise<void> => {
  if (!event.operation_id) return
  await updateRows(tx, { resource_id: event.agg_id, operation_id: event.operation_id }, resource_operation_index, {
    version_to: sql`greatest(${resource_operation_index.version_to}, ${event.version}::bigint)`,
    last_command_id: event.command_id,
  })
}

type Members = Record<string, unknown>
const NOW = sql<string>`clock_timestamp()`

/** Folds a part of a version's relationship changes; a version that the log brought before includes it. */
export const foldPart = async (tx: Tx, event: CatalogEvent & RelationshipsEventPayload): Promise<void> => {
  const { resource_id, version, relationship_changes } = event
  if ((await projectedVersion(tx, resource_id ?? '')) < (version ?? 0) || (await unread(tx))(event))
    await foldRelationships(tx, relationship_changes)
}

/** Throws a ProjectionGap unless all parts of an event's relationships are known. */
export const requireParts = async (tx: Tx, event_id: string, parts: number): Promise<void> => {
  const { ver } = await lockVersion(tx, inboxOf, CATALOG_CONSUMER, 'relationships', event_id)
  if (ver < parts) throw new ProjectionGap('relationships', event_id, ver, parts)
}

const EDGES_AT_ONCE = 1000

/** Either end may report an edge, so its own rev decides; a removed edge never returns. */
export const foldRelationships = async (tx: Tx, changes: readonly RelationshipEvent[]): Promise<void> => {
  const last = new Map<string, RelationshipEvent>()
  for (const change of changes) {
    const known = last.get(change.relationship_id)
    if (!known || change.op === 'removed' || change.rev > known.rev) last.set(change.relationship_id, change)
  }
  const edges = [...last.values()].sort((a, b) => a.relationship_id.localeCompare(b.relationship_id))
  const row = catalog_relationships
  for (let from = 0; from < edges.length; from += EDGES_AT_ONCE) {
    await tx
      .insert(row)
      .values(
        edges
          .slice(from, from + EDGES_AT_ONCE)
          .map(({ op, relationship_id, rev, type_key, from_id, to_id, properties }) => ({
            ...{ relationship_id, rev, type_key, from_id, to_id, properties: properties as Members },
            open: op !== 'removed',
          })),
      )
      .onConflictDoUpdate({
        target: row.relationship_id,
        set: {
          rev: sql`excluded.rev`,
          type_key: sql`excluded.type_key`,
          from_id: sql`excluded.from_id`,
          to_id: sql`excluded.to_id`,
          properties: sql`excluded.properties`,
          open: sql`excluded.open`,
        },
        setWhere: sql`${row.open} and (not excluded.open or ${row.rev} < excluded.rev)`,
      })
  }
}

/** Stores the catalog's current types. A removed type stays, because resources of it may still exist. */
export const saveTypes = async (
  tx: Tx,
  types: ResourceType[],
  relationship_types: RelationshipType[],
): Promise<void> => {
  for (const { type_key, version, ...document } of types) {
    const row = { type_key, version, document: { type_key, version, ...document }, updated_at: NOW }
    await tx.insert(catalog_types).values(row).onConflictDoUpdate({ target: catalog_types.type_key, set: row })
  }
  for (const { type_key, inverse_key } of relationship_types) {
    const row = { type_key, inverse_key }
    await tx
      .insert(catalog_relationship_types)
      .values(row)
      .onConflictDoUpdate({ target: catalog_relationship_types.type_key, set: row })
  }
}

/** How far the catalog's log was applied without a gap, and when that was last found to be its end. */
export const readWatermark = async (db: Queryable): Promise<Mark | undefined> => {
  const mark = await readMark(db, inboxOf, CATALOG_CONSUMER)
  return mark?.state === 'live' ? mark : undefined
}

/** Moves the watermark forward, never back. With `only_next`, only by the next event. */
export const moveWatermark = (
  db: Queryable,
  pub_seq: string,
  how: Parameters<typeof moveMark>[4] = {},
): Promise<void> => moveMark(db, inboxOf, CATALOG_CONSUMER, pub_seq, how)

/** A fill begins at this watermark; one that another fill left unfinished stays, as its rows are not newer. */
export const startFill = async (db: Queryable, pub_seq: string): Promise<void> => {
  const row = { name: CATALOG_CONSUMER, state: 'filling', pub_seq: BigInt(pub_seq) }
  await db.insert(projection).values(row).onConflictDoNothing()
}

/** The projection is filled: from its watermark on it follows the log. */
export const endFill = async (db: Queryable): Promise<void> => {
  await db.update(projection).set({ state: 'live' }).where(eq(projection.name, CATALOG_CONSUMER))
}

/** Parks an event so that it blocks no other: its aggregate is held until a person releases it (reliability.md 4.7). */
export const parkEvent = (tx: Tx, event: CatalogEvent, error: string, tries: number): Promise<void> => {
  const { event_id, agg_type, agg_id, agg_version } = event
  return parkLetter(tx, inboxOf, { consumer: CATALOG_CONSUMER, event_id, agg_type, agg_id, agg_version, error, tries })
}

export type HeldResource = { resource_id: string; have: number; need: number }

/** The first resource by id with a parked event: the projection has version `have`, the resource at least `need`. */
export const firstHeld = async (db: Queryable, resource_ids: readonly string[]): Promise<HeldResource | undefined> => {
  if (resource_ids.length === 0) return undefined
  const { projection_version: v, dead_letter: d } = inboxOf
  const mine = and(
    eq(d.consumer, v.consumer),
    eq(d.agg_type, v.agg_type),
    eq(d.agg_id, v.agg_id),
    isNull(d.released_at),
  )
  const [row] = await db
    .select({
      resource_id: v.agg_id,
      have: v.ver,
      need: sql<number>`coalesce(min(${d.agg_version}), ${v.ver} + 1)::int`,
    })
    .from(v)
    .leftJoin(d, mine)
    .where(
      and(
        equals(v, { consumer: CATALOG_CONSUMER, agg_type: 'resource' }),
        v.held,
        inArray(v.agg_id, [...resource_ids]),
      ),
    )
    .groupBy(v.agg_id, v.ver)
    .orderBy(v.agg_id)
    .limit(1)
  return row
}

/** The version of a resource in the projection; 0 if it has none. */
export const projectedVersion = async (db: Queryable, resource_id: string): Promise<number> => {
  const [row] = await db
    .select({ version: catalog_resources.version })
    .from(catalog_resources)
    .where(eq(catalog_resources.resource_id, resource_id))
  return row?.version ?? 0
}
