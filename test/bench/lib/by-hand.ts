import { randomUUID } from 'node:crypto'
import type pg from 'pg'

/** The baseline: the same hand-written SQL over pg, prepared; no HTTP, no validation, no policy, no events. */
const VIEW = `select r.rid, r.resource_id, r.type_id, r.type_version, r.name, r.display_name, r.owner, r.labels, r.annotations,
  r.parent_rid, p.resource_id as parent_id, r.path::text as path, r.desired_state, r.is_open, r.created_at, r.created_by,
  s.version, s.generation, s.observed_generation, s.lifecycle_status, s.observed_state, s.health_status, s.health_revision,
  s.drift_status, s.drift_paths, s.updated_at, s.updated_by
  from catalog.resource r join catalog.resource_state s on s.rid = r.rid left join catalog.resource p on p.rid = r.parent_rid`

export const byHand = (pool: pg.Pool) => {
  const run = async (name: string, text: string, values: unknown[]) =>
    (await pool.query({ name: `bench_${name}`, text, values })).rows

  return {
    get: async (id: string) => (await run('get', `${VIEW} where r.resource_id = $1`, [id])).length === 1,
    /** 100 rows by name, after a name. */
    page: async (after: string) =>
      (
        await run(
          'page',
          `${VIEW} where r.is_open and (r.name, r.resource_id) > ($1 collate "C", '') order by r.name, r.resource_id limit 100`,
          [after],
        )
      ).length > 0,
    label: async (team: string) =>
      (
        await run(
          'label',
          `${VIEW} where r.is_open and r.labels @> $1::jsonb order by r.name, r.resource_id limit 100`,
          [JSON.stringify({ team })],
        )
      ).length > 0,
    /** Recursive SQL: at most `max_nodes` nodes within reach, and the edges between them. */
    graph: async (rid: number, depth: number, max_nodes: number) => {
      const nodes = await run(
        'graph',
        `with recursive g(rid, depth) as (
           select $1::bigint, 0
           union
           select p.peer, g.depth + 1 from g cross join lateral (
             select dst as peer from catalog.relationship where src = g.rid
             union all select src from catalog.relationship where dst = g.rid limit 200) p
           where g.depth < $2)
         select r.rid, r.resource_id, r.name, r.type_id, s.lifecycle_status, s.health_status
         from (select distinct rid from (select rid from g limit $3) few) x
         join catalog.resource r on r.rid = x.rid join catalog.resource_state s on s.rid = r.rid`,
        [rid, depth, max_nodes],
      )
      const rids = nodes.map((node) => node.rid)
      await run(
        'between',
        'select rel_no, reltype_id, src, dst from catalog.relationship where src = any($1) and dst = any($1) order by rel_no limit 2000',
        [rids],
      )
      return nodes.length
    },
    /** One command: claim, lock, change, revision. */
    command: async (rid: number, version: number) => {
      const client = await pool.connect()
      const q = (name: string, text: string, values: unknown[]) => client.query({ name: `bench_${name}`, text, values })
      try {
        await client.query('begin')
        const id = randomUUID()
        await q('claim', CLAIM, [[id]])
        await q('lock', LOCK, [[rid]])
        const { rowCount } = await q('change', CHANGE, [[rid], [version], [`{"endpoints_ready":${version}}`]])
        await q('revision', REVISION, [[rid], [version + 1], [id]])
        await client.query('commit')
        return rowCount === 1
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    /** The same for many in one transaction, each statement over unnest. */
    batch: async (items: { rid: number; version: number }[]) => {
      const client = await pool.connect()
      const q = (name: string, text: string, values: unknown[]) => client.query({ name: `bench_${name}`, text, values })
      const rids = items.map(({ rid }) => rid)
      const ids = items.map(() => randomUUID())
      try {
        await client.query('begin')
        await q('claim', CLAIM, [ids])
        await q('lock', LOCK, [rids])
        const versions = items.map(({ version }) => version)
        const { rowCount } = await q('change', CHANGE, [
          rids,
          versions,
          versions.map((n) => `{"endpoints_ready":${n}}`),
        ])
        await q('revision', REVISION, [rids, versions.map((n) => n + 1), ids])
        await client.query('commit')
        return rowCount === items.length
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    /** When the last event of a resource got its number, found by polling the outbox. */
    numbered: async (id: string, version: number) =>
      (
        await run(
          'numbered',
          `select 1 from catalog.outbox where agg_type = 'resource' and agg_id = $1 and agg_version = $2 and pub_seq is not null`,
          [id, version],
        )
      ).length === 1,
  }
}

const CLAIM = `insert into catalog.command_log (command_id, scope, idempotency_key, fingerprint, created_at, retain_until)
  select id, 'bench', id::text, '\\x00', now(), now() + interval '30 days' from unnest($1::uuid[]) id on conflict do nothing`
const LOCK = 'select 1 from catalog.resource_state where rid = any($1::bigint[]) order by rid for no key update'
const CHANGE = `update catalog.resource_state s set version = s.version + 1, observed_state = x.state::jsonb,
    observed_generation = s.generation, updated_at = now(), updated_by = 'svc:bench'
  from unnest($1::bigint[], $2::int[], $3::text[]) x(rid, version, state) where s.rid = x.rid and s.version = x.version`
const REVISION = `insert into catalog.revision (rid, version, at, kind, doc, changed_paths, lifecycle_status, actor, command_id)
  select rid, version, now(), 'delta', '{"observed_state":{"endpoints_ready":1}}', '["/observed_state/endpoints_ready"]', 'active',
    'svc:bench', id from unnest($1::bigint[], $2::int[], $3::uuid[]) x(rid, version, id)`
