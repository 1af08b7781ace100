import type { Static } from 'typebox'
import {
  edgesOut,
  eventsAfter,
  eventsOf,
  type OutboxRow,
  snapshotRows,
  versionsOf,
} from '../../../db/catalog/events.ts'
import { lastPubSeq } from '../../../db/catalog/resources/lists.ts'
import { SNAPSHOT } from '../../../db/client.ts'
import type { CatalogEvent, EventsQuery, SnapshotQuery, VersionsQuery } from '../../shared/contracts/catalog/events.ts'
import { pluck } from '../../shared/data/pick.ts'
import { wrongAt } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { documentOf, relationshipId, timeText } from '../read/documents.ts'

const LIMIT = 500

/** An outbox row as sent: columns and payload side by side. */
const messageOf = ({ payload, ...row }: OutboxRow): CatalogEvent =>
  ({ ...row, agg_version: Number(row.agg_version), occurred_at: timeText(row.occurred_at), ...payload }) as CatalogEvent

/** The log after a position, or the events of one aggregate after a version. */
export const readEvents = async ({ db }: CatalogDeps, query: Static<typeof EventsQuery>) => {
  const { after, agg_type, agg_id, after_version = 0, limit = LIMIT } = query
  if (agg_type !== undefined && agg_id !== undefined && after === undefined) {
    const rows = await eventsOf(db, { agg_type, agg_id, after_version }, limit)
    return { items: rows.map(messageOf), last_pub_seq: await lastPubSeq(db) }
  }
  if (agg_type !== undefined || agg_id !== undefined) {
    throw wrongAt('/querystring', 'mixes two ways of reading the log', {
      detail: 'Send after alone, or agg_type and agg_id together.',
    })
  }
  // The head is read first: it never names an event that this page or a later one lacks.
  const last_pub_seq = await lastPubSeq(db)
  return { items: (await eventsAfter(db, after ?? '0', limit)).map(messageOf), last_pub_seq }
}

/** One page of all resources; the watermark is read first, so that later events are never missed. */
export const readSnapshot = async ({ db, registry }: CatalogDeps, query: Static<typeof SnapshotQuery>) => {
  const limit = query.limit ?? LIMIT
  const watermark = await lastPubSeq(db)
  const rows = await db.transaction(async (tx) => {
    const resources = await snapshotRows(tx, query.after, limit)
    return { resources, edges: await edgesOut(tx, pluck(resources, 'rid')) }
  }, SNAPSHOT)
  const { types } = registry
  const edges = Map.groupBy(rows.edges, ({ src }) => src)
  const items = rows.resources.map((row) => ({
    document: { ...documentOf(row, types), health_status: row.health_status, health_revision: row.health_revision },
    version: row.version,
    health_revision: row.health_revision,
    relationships_out: (edges.get(row.rid) ?? []).map(({ rel_no, rev, reltype_id, from_id, to_id, properties }) => ({
      relationship_id: relationshipId(rel_no),
      rev,
      type_key: types.relationshipById(reltype_id)?.type_key ?? '',
      from_id,
      to_id,
      properties,
    })),
  }))
  const next = items.length === limit ? (items.at(-1)?.document.resource_id ?? null) : null
  return { items, next, watermark }
}

/** The current versions of these resources, whether or not their events have been numbered and sent. */
export const readVersions = async ({ db }: CatalogDeps, { resource_ids }: VersionsQuery) => ({
  items: (await versionsOf(db, resource_ids)).map(({ resource_id, version }) => ({
    resource_id,
    version: Number(version),
  })),
})
