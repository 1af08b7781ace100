import { randomUUID } from 'node:crypto'
import { relationshipId } from '../../../apps/catalog/read/documents.ts'
import type { Catalog } from './platform.ts'

/** An edge of the i-th copy; `to` may be another copy. */
type Leads = (i: number) => { type_key: string; to: string; properties?: Record<string, unknown> } | undefined
type Row = { rid: string; resource_id: string }

const AT_ONCE = 2000

/**
 * Copies of a resource that the catalog has just created, `<prefix>-0` and so on, with history and log as if each had
 * been sent. It uses SQL, because the requests would take minutes.
 */
export const addMany = async (
  c: Catalog,
  like: string,
  prefix: string,
  count: number,
  leads: Leads,
): Promise<string[]> => {
  const made = await c.rows<Row>(
    `with made as (
       insert into catalog.resource (resource_id, type_id, type_version, name, display_name, labels, parent_rid, path,
           desired_state, created_at, created_by)
         select $2 || '-' || i, type_id, type_version, $2 || '-' || i, $2 || '-' || i, labels, parent_rid, path,
           desired_state, created_at, created_by
         from catalog.resource, generate_series(0, $3::int - 1) i where resource_id = $1 returning rid, resource_id, parent_rid),
     state as (
       insert into catalog.resource_state (rid, version, generation, observed_generation, lifecycle_status, observed_state,
           drift_status, lifecycle_at, drift_at, health_at, updated_at, updated_by)
         select made.rid, 1, 1, s.observed_generation, s.lifecycle_status, s.observed_state, s.drift_status, s.lifecycle_at,
           s.drift_at, s.health_at, s.updated_at, s.updated_by
         from made, catalog.resource_state s join catalog.resource r on r.rid = s.rid where r.resource_id = $1),
     past as (
       insert into catalog.revision (rid, version, at, kind, doc, changed_paths, lifecycle_status, actor)
         select made.rid, 1, v.at, 'snapshot', v.doc || jsonb_build_object('resource_id', made.resource_id,
           'name', made.resource_id, 'display_name', made.resource_id), '[]', v.lifecycle_status, v.actor
         from made, catalog.revision v join catalog.resource r on r.rid = v.rid where r.resource_id = $1 and v.version = 1)
     select rid, resource_id from made order by rid`,
    [like, prefix, count],
  )
  await c.rows(
    `update catalog.resource set path = case when nlevel(path) = 1 then rid::text::ltree else subpath(path, 0, -1) || rid::text end
     where rid = any($1)`,
    [made.map(({ rid }) => rid)],
  )
  const [told] = await c.rows<{ payload: Record<string, unknown> }>(
    `select payload from catalog.outbox where agg_type = 'resource' and agg_id = $1 and agg_version = 1`,
    [like],
  )
  const parent = await c.rows<{ to_id: string }>(
    `select p.resource_id as to_id from catalog.resource r join catalog.resource p on p.rid = r.parent_rid
     where r.resource_id = $1`,
    [like],
  )
  const contained = parent[0] && { type_key: 'contained_in', to: parent[0].to_id, properties: {} }
  const ids = made.map(({ resource_id }) => resource_id)
  for (let from = 0; from < count; from += AT_ONCE) {
    const part = ids.slice(from, from + AT_ONCE)
    const edges = part.flatMap((from_id, i) =>
      [contained, leads(from + i)].flatMap((edge) =>
        edge ? [{ properties: {}, ...edge, from_id, to_id: edge.to }] : [],
      ),
    )
    const opened = await c.rows<{ rel_no: string; from_id: string; to_id: string; type_key: string }>(
      `with wanted as (select * from jsonb_to_recordset($1::jsonb) as x(from_id text, to_id text, type_key text, properties jsonb)),
       opened as (
         insert into catalog.relationship (src, reltype_id, dst, properties, valid_from)
           select a.rid, t.id, b.rid, w.properties, a.created_at from wanted w join catalog.resource a on a.resource_id = w.from_id
             join catalog.resource b on b.resource_id = w.to_id join catalog.relationship_type t on t.type_key = w.type_key
           returning src, reltype_id, dst, rel_no)
       select o.rel_no, a.resource_id as from_id, b.resource_id as to_id, t.type_key from opened o
         join catalog.resource a on a.rid = o.src join catalog.resource b on b.rid = o.dst
         join catalog.relationship_type t on t.id = o.reltype_id`,
      [JSON.stringify(edges)],
    )
    const properties = new Map(edges.map((edge) => [`${edge.from_id} ${edge.type_key} ${edge.to_id}`, edge.properties]))
    const changes = Map.groupBy(opened, ({ from_id }) => from_id)
    const events = part.map((resource_id) => ({
      event_id: randomUUID(),
      agg_id: resource_id,
      payload: {
        ...told?.payload,
        resource_id,
        summary: { ...(told?.payload.summary as object), name: resource_id, display_name: resource_id },
        document: { ...(told?.payload.document as object), resource_id, name: resource_id, display_name: resource_id },
        relationship_changes: (changes.get(resource_id) ?? []).map(({ rel_no, ...edge }) => ({
          op: 'added',
          relationship_id: relationshipId(rel_no),
          rev: 1,
          ...edge,
          properties: properties.get(`${edge.from_id} ${edge.type_key} ${edge.to_id}`),
        })),
      },
    }))
    await c.rows(
      `insert into catalog.outbox (event_id, agg_type, agg_id, agg_version, type, payload)
       select event_id, 'resource', agg_id, 1, 'resource.created', payload
       from jsonb_to_recordset($1::jsonb) as x(event_id uuid, agg_id text, payload jsonb)`,
      [JSON.stringify(events)],
    )
  }
  return ids
}
