import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pathsAt } from '../../db/catalog/resources/history.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'
import { type Catalog, startCatalog } from './support/platform.ts'

/** Levels from a root to the deepest resource below it, both included. */
const DEEPEST = 32

let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
})
afterAll(() => c.stop())

const box = (over: Record<string, unknown> = {}) => ({
  type_key: 'infra.generic',
  name: `n-${randomUUID()}`,
  desired_state: { provider: 'p', kind: 'box' },
  ...over,
})
const post = (over: Record<string, unknown>) => c.as('olga').post('/v1/resources', box(over))
/** Boxes inside each other, the outermost first. */
const chain = async (levels: number, inside?: string): Promise<string[]> => {
  const ids: string[] = []
  for (let level = 0; level < levels; level++) {
    const parent_id = ids.at(-1) ?? inside
    const made = await post(parent_id === undefined ? {} : { parent_id })
    expect(made.status, made.text).toBe(201)
    ids.push(made.body.resource_id)
  }
  return ids
}
const last = (ids: readonly string[]) => ids.at(-1) as string
const inside = (target_id: string) => ({ op: 'add', type_key: 'contained_in', target_id })
const move = async (id: string, changes: Record<string, unknown>[]) => {
  const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
  return c.result(id, { expected_version: version, changes: { relationship_changes: changes } })
}
const tooDeep = (pointer: string) => ({ status: 422, body: { code: 'too_deep', violations: [{ pointer }] } })

describe('nesting', () => {
  it('ends at 32 levels, however a resource is placed', async () => {
    const deep = await chain(DEEPEST)
    const traces = await c.traces()
    expect(await post({ parent_id: last(deep) })).toMatchObject(tooDeep('/parent_id'))
    const edge = { type_key: 'contained_in', target_id: last(deep) }
    expect(await post({ relationships: [edge] })).toMatchObject(tooDeep('/relationships/0/target_id'))
    expect(await c.traces()).toEqual(traces)

    const other = await chain(1)
    expect(await move(last(other), [inside(last(deep))])).toMatchObject(
      tooDeep('/changes/relationship_changes/0/target_id'),
    )
    const above = { type_key: 'contained_in', direction: 'in', target_id: deep[0] }
    expect(await post({ relationships: [above] })).toMatchObject(tooDeep('/relationships/0/target_id'))
  })

  it('counts the deepest resource that moves', async () => {
    const [top, low] = [await chain(12), await chain(21)]
    expect(await move(low[0] as string, [inside(last(top))])).toMatchObject(
      tooDeep('/changes/relationship_changes/0/target_id'),
    )
    expect(await move(low[0] as string, [inside(top[10] as string)])).toMatchObject({ status: 200 })
    const read = await c.as('vic').get(`/v1/resources/${last(low)}`)
    expect(read.status).toBe(200)
  })

  it('holds in batches and in imports, item by item', async () => {
    const [deep, other] = [await chain(DEEPEST), await chain(1)]
    const command = (id: string, target_id: string) => ({
      kind: 'apply',
      command: {
        command_id: randomUUID(),
        idempotency_key: randomUUID(),
        operation_id: randomUUID(),
        resource_id: id,
        expected_version: 1,
        changes: { relationship_changes: [inside(target_id)] },
      },
    })
    const items = [command(last(other), last(deep)), command((await chain(1))[0] as string, deep[0] as string)]
    const batch = await c.internally('POST', '/resources:batch-apply', { mode: 'independent', items })
    expect(batch.body.results).toMatchObject([{ status: 422, body: { code: 'too_deep' } }, { status: 200 }])

    const source = { kind: 'test', name: `s-${randomUUID()}` }
    const take = (...items: Record<string, unknown>[]) => c.as('ada').post('/v1/resources:import', { source, items })
    const lowest = { external_id: 'lowest', ...box({ parent_id: deep.at(-2) }) }
    const refused = { outcome: 'refused', problem: { code: 'too_deep' } }
    const below = { external_id: 'below', ...box({ parent_external_id: 'lowest' }) }
    expect((await take(lowest, below)).body.results).toMatchObject([{ outcome: 'created' }, refused])
    expect((await take({ ...lowest, parent_id: last(deep) })).body.results).toMatchObject([refused])
  })

  it('holds if two moves at once would be too deep only together', async () => {
    const [a, b, d] = [await chain(16), await chain(16), await chain(16)]
    for (let round = 0; round < 6; round++) {
      const replies = await Promise.all([
        move(a[0] as string, [inside(last(b))]),
        move(b[0] as string, [inside(last(d))]),
      ])
      expect(replies.map(({ status }) => status).sort()).toEqual([200, 422])
      const [won, from] = replies[0]?.status === 200 ? [a, b] : [b, d]
      const back = { op: 'remove', type_key: 'contained_in', target_id: last(from) }
      expect((await move(won[0] as string, [back])).status).toBe(200)
    }
  })

  it('lets resources that were deeper before the limit was lowered change and move up, but not down', async () => {
    const [deep, tall] = [await chain(6), await chain(2)]
    const { config } = c.deps
    const usual = config.tree_depth
    config.tree_depth = 4
    try {
      const [top, second, third] = deep as [string, string, string]
      expect((await post({ parent_id: last(deep) })).body.code).toBe('too_deep')
      const note = { labels: { deep: 'yes' }, expected_version: 1 }
      expect((await c.as('olga').patch(`/v1/resources/${last(deep)}`, note)).status).toBe(200)
      expect(await move(top, [inside(last(tall))])).toMatchObject(tooDeep('/changes/relationship_changes/0/target_id'))
      const up = [{ op: 'remove', type_key: 'contained_in', target_id: second }, inside(top)]
      expect((await move(third, up)).status).toBe(200)
      expect((await post({ parent_id: deep[3] })).status).toBe(201)
    } finally {
      config.tree_depth = usual
    }
  })
})

it('the catalog has no index whose pages can split without end: paths are served by the btree alone', async () => {
  const kinds = await c.rows<{ indexname: string }>(
    `select indexname from pg_indexes where schemaname = 'catalog' and indexdef ~* 'using gist'`,
  )
  expect(kinds).toEqual([])
  const client = await c.deps.pool.connect()
  try {
    await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off')
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain select 1 from catalog.resource t join catalog.resource r
         on r.path >= t.path and r.path < (t.path::text || '0')::ltree where t.resource_id = 'x'`,
    )
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/resource_path_key on resource r .*\n\s+Index Cond/)
  } finally {
    await client.query('rollback')
    client.release()
  }
})

it('a past place is exact at any depth, even from before the limit', async () => {
  const database = await testDatabase('catalog')
  const { db, close } = createDb(database.url, {
    app: 'test',
    max: 2,
    statement_timeout_ms: 10_000,
    lock_timeout_ms: 1000,
  })
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  try {
    await admin.query(`insert into catalog.relationship (src, reltype_id, dst, valid_from)
      select n, 1, n - 1, '2026-01-01Z' from generate_series(2, 300) n`)
    const paths = await pathsAt(db, ['300', '150', '1'], 1, '2026-02-01T00:00:00Z')
    const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1).join('.')
    expect(paths.get('300')).toBe(upTo(300))
    expect(paths.get('150')).toBe(upTo(150))
    expect(paths.get('1')).toBe('1')
  } finally {
    await admin.end()
    await close()
    await database.drop()
  }
})
