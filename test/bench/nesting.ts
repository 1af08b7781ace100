import { parseArgs } from 'node:util'
import pg from 'pg'
import { MAX_DEPTH } from '../../apps/catalog/rules/depth.ts'
import { table } from '../../apps/shared/data/print.ts'
import { testDatabase } from '../support/database.ts'
import { median, quantile } from './lib/graph.ts'

/**
 * `npm run bench:nesting -- [--resources 1000000]`: the deepest allowed tree, as wide as it needs to be. Every path
 * ends at the last level, so the path index has the longest possible keys. Prints the size of the index and how long
 * inserts, subtrees, ancestors and moves take, there and in the same run on a flat tree.
 */
const { values } = parseArgs({ options: { resources: { type: 'string', default: '1000000' } } })
const RESOURCES = Number(values.resources)
const CHUNK = 100_000
/** Resources at the deepest level of one chain. */
const LEAVES = 200

const database = await testDatabase('catalog')
const client = new pg.Client({ connectionString: database.url, options: '-c synchronous_commit=off' })
await client.connect()
const started = performance.now()
const seconds = () => `${((performance.now() - started) / 1000).toFixed(0)} s`

const COLUMNS = 'rid, resource_id, type_id, type_version, name, display_name, parent_rid, path, created_at, created_by'
/**
 * Chains of 31 boxes with 200 leaves each below the last; row numbers have 7 digits from the first on. Each part is one
 * statement against the existing indexes, so that their pages split as they do under writes.
 */
const plant = async (depth: number, prefix: string, first: number): Promise<number> => {
  const inner = depth - 1
  const each = inner + LEAVES
  const chains = Math.max(1, Math.floor(RESOURCES / each))
  const step = Math.max(1, Math.floor(CHUNK / each))
  for (let from = 0; from < chains; from += step) {
    await client.query(
      `insert into catalog.resource (${COLUMNS}) overriding system value
       select rid, $1 || rid, 1, 1, $1 || rid, 'n', nullif(parent, 0),
         ((select coalesce(string_agg((base + i)::text, '.' order by i) || '.', '') from generate_series(0, least(n, $3::int) - 1) i) || rid)::ltree,
         now(), 'svc:bench'
       from (select base, n, base + n as rid, case when n = 0 then 0 when n <= $3::int then base + n - 1 else base + $3::int - 1 end as parent
             from (select $2::bigint + c * $4::bigint as base, n from generate_series($5::int, $6::int) c, generate_series(0, $4::int - 1) n) x) y`,
      [prefix, first, inner, each, from, Math.min(chains, from + step) - 1],
    )
    console.error(`${prefix} ${Math.min(chains, from + step) * each} of ${chains * each} resources after ${seconds()}`)
  }
  return chains * each
}

const timed = async (run: (i: number) => Promise<unknown>, count = 200): Promise<{ p50: number; p99: number }> => {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const from = performance.now()
    await run(i)
    times.push(performance.now() - from)
  }
  return { p50: median(times), p99: quantile(times, 0.99) }
}

const BELOW = (path: string) => `path >= ${path} and path < (${path}::text || '0')::ltree`
const measure = async (depth: number, prefix: string, first: number, total: number) => {
  const each = depth - 1 + LEAVES
  const base = (i: number) => first + ((i * 7919) % Math.floor(total / each)) * each
  const top = (i: number) => base(i)
  const leaf = (i: number) => base(i) + depth - 1 + (i % LEAVES)
  const pathOf = (rid: number) => `(select t.path from catalog.resource t where t.rid = ${rid})`
  let next = 9_000_000 + first
  return {
    insert: await timed(async (i) => {
      const rid = next++
      await client.query(
        `insert into catalog.resource (${COLUMNS}) overriding system value
         select $1, $2, 1, 1, $2, 'n', rid, path || $3::text, now(), 'svc:bench' from catalog.resource where rid = $4`,
        [rid, `${prefix}x${rid}`, String(rid), Math.max(top(i), base(i) + depth - 2)],
      )
    }),
    subtree: await timed((i) => client.query(`select count(*) from catalog.resource where ${BELOW(pathOf(top(i)))}`)),
    ancestors: await timed((i) =>
      client.query(
        `select t.rid from catalog.resource r join catalog.resource t on t.rid = any(string_to_array(r.path::text, '.')::bigint[]) where r.rid = ${leaf(i)}`,
      ),
    ),
    move: await timed(async (i) => {
      const rid = top(i)
      await client.query('begin')
      await client.query(
        `update catalog.resource set path = case when path = '${rid}' then '1.${rid}'::ltree else '1.${rid}'::ltree || subpath(path, 1) end
         where ${BELOW(`'${rid}'::ltree`)}`,
      )
      await client.query('rollback')
    }, 20),
  }
}

try {
  const flat = await plant(2, 'flat-', 1_000_000)
  const deep = await plant(MAX_DEPTH, 'deep-', 4_000_000)
  const load_s = (performance.now() - started) / 1000
  await client.query('analyze catalog.resource')
  const { rows } = await client.query<{ indexname: string; mib: number; method: string }>(
    `select c.relname as indexname, a.amname as method, round(pg_relation_size(c.oid) / 1048576.0, 1)::float8 as mib
     from pg_class c join pg_index i on i.indexrelid = c.oid join pg_am a on a.oid = c.relam
     where i.indrelid = 'catalog.resource'::regclass order by 1`,
  )
  const longest = await client.query<{ bytes: number; levels: number }>(
    'select max(pg_column_size(path)) as bytes, max(nlevel(path)) as levels from catalog.resource',
  )
  const found = {
    flat: await measure(2, 'flat-', 1_000_000, flat),
    deep: await measure(MAX_DEPTH, 'deep-', 4_000_000, deep),
  }
  console.log(
    JSON.stringify({
      figure: 'nesting',
      resources: { flat, deep },
      load_s,
      longest: longest.rows[0],
      indexes: rows,
      ...found,
    }),
  )
  const line = (name: keyof typeof found.deep) => [
    name,
    ...[found.deep[name], found.flat[name]].map(({ p50, p99 }) => `${p50.toFixed(2)} / ${p99.toFixed(2)} ms`),
  ]
  for (const text of table(
    ['figure', `${MAX_DEPTH} levels p50 / p99`, '2 levels p50 / p99'],
    (['insert', 'subtree', 'ancestors', 'move'] as const).map(line),
  ))
    console.log(text)
} finally {
  await client.end()
  await database.drop()
}
