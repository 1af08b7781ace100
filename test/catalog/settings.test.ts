import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog
beforeAll(async () => {
  c = await startCatalog({ env: { CATALOG__COMMANDS__LOCK_TIMEOUT_MS: '150' } })
  await seedRegion(c, 'eu1', 1)
})
afterAll(() => c.stop())

it('CATALOG__COMMANDS__LOCK_TIMEOUT_MS: a longer wait for a row ends with 409 in_progress and leaves nothing behind', async () => {
  const ids = { command_id: randomUUID(), idempotency_key: randomUUID(), operation_id: randomUUID() }
  const command = { ...ids, expected_version: 1, changes: { observed_state_patch: { release: '2.0.0' } } }
  const client = await c.deps.pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `select 1 from catalog.resource_state s join catalog.resource r using (rid) where r.resource_id = 'eu1-web-01' for update of s`,
    )
    const started = performance.now()
    const reply = await c.result('eu1-web-01', command, { once: true })
    expect(reply).toMatchObject({ status: 409, body: { category: 'version_conflict', code: 'in_progress' } })
    expect(reply.headers.get('retry-after')).toBe('1')
    const took = performance.now() - started
    expect(took).toBeGreaterThanOrEqual(140)
    expect(took).toBeLessThan(1900)
    expect(await c.rows('select 1 from catalog.command_log where command_id = $1', [ids.command_id])).toEqual([])
  } finally {
    await client.query('rollback')
    client.release()
  }
  expect(await c.result('eu1-web-01', command)).toMatchObject({ status: 200, body: { version: 2 } })
})
