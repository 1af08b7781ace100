import pg from 'pg'

/** A seeded catalog generated inside the database: places, resources of 15 types, a skewed web of edges and one hub. */
const STATES: Record<string, object> = {
  'infra.service': { tier: 2 },
  'infra.host': { hostname: 'h' },
  'infra.virtual_machine': { hostname: 'v' },
  'infra.deployment': { release: '1.0.0' },
  'infra.database': { engine: 'postgres' },
  'infra.volume': { size_gib: 10 },
  'infra.certificate': { common_name: 'c' },
  'infra.endpoint': { url: 'http://e' },
  'infra.generic': { provider: 'p', kind: 'k' },
  'infra.cluster': { kind: 'kubernetes' },
  'infra.network_device': { hostname: 'n', role: 'switch' },
  'infra.interface': {},
  'infra.load_balancer': {},
  'infra.pool': {},
  'infra.rack': {},
}
const TYPES = Object.keys(STATES)
const CHUNK = 50_000
const REGIONS = 4

/** Segments are numbered from 0, resources from 1. */
export type Loaded = {
  resources: number
  segments: number
  relationships: number
  services: string[]
  rid_of: (id: string) => number
}

const placeId = `case level when 0 then 'region-' when 1 then 'dc-' when 2 then 'layer-' else 'segment-' end || n`

/**
 * Loads N resources and about M relationships; indexes that are not constraints are created afterward. Prints its
 * progress.
 */
export const loadCatalog = async (
  url: string,
  { resources, relationships, seed }: { resources: number; relationships: number; seed: number },
  say: (text: string) => void,
): Promise<Loaded> => {
  const client = new pg.Client({ connectionString: url, options: '-c timezone=UTC -c synchronous_commit=off' })
  await client.connect()
  try {
    await client.query('select setseed($1)', [(seed % 1000) / 1000])
    const indexes = await dropIndexes(client)
    const types = await typeIds(client)
    const segments = Math.max(1, Math.round(resources / 200))
    const first = await insertPlaces(client, types, segments)
    for (let from = 1; from <= resources; from += CHUNK) {
      await insertResources(client, types, { from, to: Math.min(resources, from + CHUNK - 1), first, segments })
      say(
        `${Math.min(resources, from + CHUNK - 1).toLocaleString('en')} of ${resources.toLocaleString('en')} resources`,
      )
    }
    let edges = await insertContainment(client)
    edges += await insertHub(client, first, Math.floor(resources / 10))
    for (let left = relationships - edges; left > 0; left -= CHUNK * 4) {
      edges += await insertEdges(client, { first, resources, count: Math.min(left, CHUNK * 4) })
      say(`${edges.toLocaleString('en')} of ${relationships.toLocaleString('en')} relationships`)
    }
    for (const [i, { indexdef }] of indexes.entries()) {
      await client.query(indexdef)
      say(`${i + 1} of ${indexes.length} indexes`)
    }
    await client.query(`select setval('catalog.resource_rid_seq', (select max(rid) from catalog.resource))`)
    await client.query('vacuum analyze catalog.resource, catalog.resource_state, catalog.relationship')
    const services = Array.from(
      { length: Math.floor(resources / TYPES.length) },
      (_, i) => `r-${(i + 1) * TYPES.length}`,
    )
    return { resources, segments, relationships: edges, services, rid_of: (id) => first + Number(id.slice(2)) }
  } finally {
    await client.end()
  }
}

const dropIndexes = async (client: pg.Client) => {
  const { rows } = await client.query<{ name: string; indexdef: string }>(
    `select i.schemaname || '.' || i.indexname as name, i.indexdef from pg_indexes i
     where i.schemaname = 'catalog' and i.tablename in ('resource', 'relationship')
       and not exists (select 1 from pg_constraint c where c.conname = i.indexname)`,
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  return rows
}

const typeIds = async (client: pg.Client): Promise<Map<string, number>> => {
  const { rows } = await client.query<{ type_key: string; id: number }>(
    'select distinct type_key, id from catalog.type',
  )
  return new Map(rows.map(({ type_key, id }) => [type_key, id]))
}

const RESOURCE =
  'rid, resource_id, type_id, type_version, name, display_name, parent_rid, path, desired_state, labels, created_at, created_by'
const stateRows = `insert into catalog.resource_state (rid, version, generation, observed_generation, lifecycle_status,
    drift_status, lifecycle_at, drift_at, health_at, updated_at, updated_by)
  select rid, 1, 1, 0, 'active', 'unknown', now(), now(), now(), now(), 'svc:bench' from added`

/** Returns the row number before the first resource. */
const insertPlaces = async (client: pg.Client, types: Map<string, number>, segments: number): Promise<number> => {
  const counts = [REGIONS, REGIONS * 2, REGIONS * 4, segments]
  const starts = counts.map((_, level) => counts.slice(0, level).reduce((sum, n) => sum + n, 1))
  const keys = ['topology.region', 'topology.datacenter', 'topology.layer', 'topology.segment']
  for (const [level, count] of counts.entries()) {
    await client.query(
      `with place as (
         select $1::int as level, n, $2::bigint + n as rid,
           case when $1 > 0 then $3::bigint + n % $4 end as parent from generate_series(0, $5::int - 1) n),
       added as (
         insert into catalog.resource (${RESOURCE}) overriding system value
         select rid, ${placeId}, $6, 1, ${placeId}, ${placeId}, parent,
           coalesce((select path from catalog.resource p where p.rid = place.parent) || place.rid::text, place.rid::text::ltree),
           case when level = 2 then '{"layer_kind":"edge"}' else '{}' end::jsonb, '{}', now(), 'svc:bench'
         from place returning rid)
       ${stateRows}`,
      [level, starts[level], starts[level - 1] ?? 0, counts[level - 1] ?? 1, count, types.get(keys[level] as string)],
    )
  }
  return (starts[3] as number) + segments - 1
}

const insertResources = (
  client: pg.Client,
  types: Map<string, number>,
  { from, to, first, segments }: { from: number; to: number; first: number; segments: number },
) =>
  client.query(
    `with added as (
       insert into catalog.resource (${RESOURCE}) overriding system value
       select $3::bigint + i, 'r-' || i, ($5::smallint[])[1 + i % ${TYPES.length}], 1, 'resource ' || i, 'resource ' || i,
         s.rid, s.path || ($3::bigint + i)::text, ($6::jsonb) -> (i % ${TYPES.length})::int,
         jsonb_build_object('env', case i % 20 when 0 then 'prod' else 'test' end, 'team', 't' || i % 97),
         now() - i * interval '1 millisecond', 'svc:bench'
       from generate_series($1::bigint, $2::bigint) i
       join catalog.resource s on s.rid = $3::bigint - $4::bigint + 1 + i % $4::bigint
       returning rid)
     ${stateRows}`,
    [from, to, first, segments, TYPES.map((key) => types.get(key)), JSON.stringify(Object.values(STATES))],
  )

const edgesOf = async (client: pg.Client, key: string, rows: string, values: unknown[] = []): Promise<number> =>
  (
    await client.query(
      `insert into catalog.relationship (src, reltype_id, dst, valid_from)
       select src, (select id from catalog.relationship_type where type_key = '${key}'), dst, now() - interval '1 hour'
       from (${rows}) x where src <> dst order by src, dst on conflict do nothing`,
      values,
    )
  ).rowCount ?? 0

const insertContainment = (client: pg.Client) =>
  edgesOf(
    client,
    'contained_in',
    'select rid as src, parent_rid as dst from catalog.resource where parent_rid is not null',
  )
const insertHub = (client: pg.Client, first: number, count: number) =>
  edgesOf(
    client,
    'depends_on',
    'select $1::bigint + i * 10 as src, $1::bigint + 1 as dst from generate_series(1, $2::int) i',
    [first, count],
  )
/** Dependencies are skewed: a few resources have very many dependents. */
const insertEdges = (
  client: pg.Client,
  { first, resources, count }: { first: number; resources: number; count: number },
) =>
  edgesOf(
    client,
    'depends_on',
    `select $1::bigint + 1 + floor(random() * $2)::bigint as src, $1::bigint + 1 + floor(power(random(), 2) * $2)::bigint as dst
     from generate_series(1, $3::int)`,
    [first, resources, count],
  )
