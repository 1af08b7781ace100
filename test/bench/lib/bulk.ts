import { randomUUID } from 'node:crypto'
import type pg from 'pg'

/**
 * Many changes in one request, a quarter of each kind: services are created in a segment, changed by the next request,
 * related by the one after and retired by the last. So no request changes a resource twice.
 */
const KINDS = 4
export type Story = { names: string[][] }
export const newStory = (): Story => ({ names: [] })

/** The names that a request creates, and those of the three requests before it. */
export const turn = (story: Story, each: number) => {
  const made = Array.from({ length: each / KINDS }, () => `b-${randomUUID()}`)
  story.names = [made, ...story.names.slice(0, KINDS - 1)]
  const [created = [], changed = [], related = [], retired = []] = story.names
  return { created, changed, related, retired }
}
type Turn = ReturnType<typeof turn>

export const itemsOf = ({ created, changed, related, retired }: Turn, segment: string, target: () => string) => [
  ...created.map((resource_id) => ({
    op: 'create',
    change: {
      resource_id,
      type_key: 'infra.service',
      name: resource_id,
      parent_id: segment,
      labels: { team: 't1' },
      desired_state: { port: 80, protocol: 'http' },
    },
  })),
  ...changed.map((resource_id) => ({
    op: 'update',
    change: { resource_id, expected_version: 1, patch: { desired_state: { port: 81 } } },
  })),
  ...related.map((resource_id) => ({
    op: 'relate',
    change: {
      resource_id,
      expected_version: 2,
      relationship_changes: [{ op: 'add', type_key: 'backs_up', target_id: target() }],
    },
  })),
  ...retired.map((resource_id) => ({ op: 'retire', change: { resource_id, expected_version: 3 } })),
]

const STATE = `insert into catalog.resource_state (rid, version, generation, observed_generation, lifecycle_status, observed_state,
    drift_status, lifecycle_at, drift_at, health_at, updated_at, updated_by)
  select rid, 1, 1, 0, 'active', '{}', 'unknown', now(), now(), now(), now(), 'svc:bench' from catalog.resource where resource_id = any($1)`
const CREATE = `insert into catalog.resource (rid, resource_id, type_id, type_version, name, display_name, labels, parent_rid, path,
    desired_state, created_at, created_by) overriding system value
  select x.n, x.id, t.id, t.version, x.id, x.id, '{"team":"t1"}', p.rid, p.path || x.n::text, '{"port":80,"protocol":"http"}', now(), 'svc:bench'
  from (select nextval('catalog.resource_rid_seq') as n, id from unnest($1::text[]) id) x,
    catalog.resource p, (select id, version from catalog.type where type_key = 'infra.service' order by version desc limit 1) t
  where p.resource_id = $2`
const CONTAIN = `insert into catalog.relationship (src, reltype_id, dst, valid_from)
  select r.rid, y.id, r.parent_rid, now() from catalog.resource r, catalog.relationship_type y
  where r.resource_id = any($1) and y.type_key = 'contained_in'`
const REVISION = `insert into catalog.revision (rid, version, at, kind, doc, changed_paths, lifecycle_status, actor)
  select r.rid, s.version, now(), 'delta', to_jsonb(r) - 'identity_hash', '[]', s.lifecycle_status, 'svc:bench'
  from catalog.resource r join catalog.resource_state s using (rid) where r.resource_id = any($1)`
const LOCK = `select r.*, s.* from catalog.resource r join catalog.resource_state s using (rid)
  where r.resource_id = any($1) order by r.rid for no key update of s`
const MOVE = `update catalog.resource_state s set version = version + 1, updated_at = now(),
    lifecycle_status = case when $2 then 'retired' else lifecycle_status end
  from catalog.resource r where r.rid = s.rid and r.resource_id = any($1)`
const CHANGE = `update catalog.resource set desired_state = desired_state || '{"port":81}' where resource_id = any($1)`
const RELATE = `insert into catalog.relationship (src, reltype_id, dst, valid_from)
  select r.rid, y.id, d.rid, now() from unnest($1::text[], $2::text[]) w(id, target)
  join catalog.resource r on r.resource_id = w.id join catalog.resource d on d.resource_id = w.target,
    catalog.relationship_type y where y.type_key = 'backs_up'`
const CLOSE = `with gone as (delete from catalog.relationship e using catalog.resource r
    where r.resource_id = any($1) and (e.src = r.rid or e.dst = r.rid) returning e.*)
  insert into catalog.relationship_history (src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no, valid_to)
  select src, reltype_id, dst, rev, properties, valid_from, command_id, operation_id, rel_no, now() from gone`
const END = `update catalog.resource set is_open = false where resource_id = any($1)`

/** The same rows by hand: each kind as a set, without validation, rights, events, audit and answers. */
export const bulkByHand = async (pool: pg.Pool, names: Turn, segment: string, target: () => string) => {
  const { created, changed, related, retired } = names
  const client = await pool.connect()
  const q = (name: string, text: string, ...values: unknown[]) =>
    client.query({ name: `bench_bulk_${name}`, text, values })
  try {
    await client.query('begin')
    await q('lock', LOCK, [...changed, ...related, ...retired])
    await q('create', CREATE, created, segment)
    await q('state', STATE, created)
    await q('contain', CONTAIN, created)
    await q('change', CHANGE, changed)
    await q('relate', RELATE, related, related.map(target))
    await q('close', CLOSE, retired)
    await q('end', END, retired)
    await q('move', MOVE, [...changed, ...related], false)
    await q('move', MOVE, retired, true)
    await q('revision', REVISION, [...created, ...changed, ...related, ...retired])
    await client.query('commit')
    return true
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
