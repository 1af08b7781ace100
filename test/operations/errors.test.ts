import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, problem, startPlatform } from './support/platform.ts'

let p: Platform
let catalog: CatalogLog
beforeAll(async () => {
  catalog = await catalogLog()
  p = await startPlatform({
    linked: true,
    relay: false,
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: { OPERATIONS__COMMANDS__WAIT_MS: '0' },
  })
})
afterAll(async () => {
  await p.stop()
  await catalog.close()
})

const graph = { nodes: [{ node_id: 'a', executor: 'noop', with: {} }] }
const stated = async (): Promise<string> =>
  must(await p.as('pia').post('/v1/intents', { kind: 'graph', title: 'a test', reason: 'to see', graph }), 201).body
    .intent_id

describe('a failure that the caller did not cause', () => {
  it('is unavailable while Postgres is down: it can be repeated with its key, and was not half done', async () => {
    const intent_id = await stated()
    const key = 'the same key'
    const preview = () => p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {}, { key })
    p.link?.cut()
    const away = await preview()
    expect(problem(away)).toBe('503 internal_error/unavailable')
    expect(away.body.retryable).toBe(true)
    expect(Number(away.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(problem(await p.as('vic').get('/v1/operations'))).toBe('503 internal_error/unavailable')
    p.link?.mend()
    expect((await preview()).status).toBe(201)
    expect((await p.query('select 1 from operations.plans where intent_id = $1', [intent_id])).length).toBe(1)
  })

  it('is unavailable too if Postgres goes down in the middle, and sets no event of the catalog aside', async () => {
    const intent_id = await stated()
    catalog.put('late')
    const holder = new pg.Client({ connectionString: p.database_url })
    await holder.connect()
    await holder.query('begin')
    await holder.query('lock table operations.plans, operations.catalog_resources in access exclusive mode')
    const waiting = async () =>
      (
        await holder.query(`select 1 from pg_locks l join pg_database d on d.oid = l.database
        where not granted and d.datname = current_database()`)
      ).rowCount
    const following = p.deps.projection.catchUp().catch((error: Error) => error)
    const previewing = p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, {})
    await until(async () => (await waiting()) === 2, { what: 'both in the middle', timeout_ms: 1900, every_ms: 5 })
    p.link?.cut()
    expect(problem(await previewing)).toBe('503 internal_error/unavailable')
    expect(await following).toBeInstanceOf(Error)
    await holder.query('commit')
    await holder.end()
    p.link?.mend()
    expect(await p.query('select error from operations.dead_letter')).toEqual([])
    await until(() => p.deps.projection.catchUp().then(() => true))
    expect(await p.query('select version from operations.catalog_resources')).toEqual([{ version: '1' }])
  })

  it('is overloaded if too many rehearsals are requested at one time, and nothing of them is stored', async () => {
    const intents = await Promise.all(Array.from({ length: 8 }, stated))
    const replies = await Promise.all(
      intents.map((intent_id) => p.as('pia').post(`/v1/intents/${intent_id}/plan-preview`, { rehearse: { seed: 1 } })),
    )
    const refused = replies.filter(({ status }) => status !== 201)
    expect(new Set(refused.map(problem))).toEqual(new Set(['503 internal_error/overloaded']))
    expect(refused.every(({ body, headers }) => body.retryable && Number(headers.get('retry-after')) > 0)).toBe(true)
    const kept = await p.query('select 1 from operations.plans where intent_id = any($1)', [intents])
    expect(kept.length).toBe(replies.length - refused.length)
  })

  it('is unexpected if we are broken, and reveals no cause', async () => {
    await p.query('alter table operations.intents rename to lost')
    try {
      const broken = await p.as('vic').get('/v1/intents')
      expect(problem(broken)).toBe('500 internal_error/unexpected')
      expect(broken.text).not.toMatch(/relation|select|\.ts/)
    } finally {
      await p.query('alter table operations.lost rename to intents')
    }
  })
})
