import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Catalog, hostOf, seedRegion, startCatalog } from './support/platform.ts'

const keys = [1, 2].map(() => randomBytes(32).toString('base64'))
let c: Catalog
beforeAll(async () => {
  c = await startCatalog({ env: { CATALOG__SECRET__KEYS: JSON.stringify(keys) } })
  await seedRegion(c, 'eu1', 3)
})
afterAll(() => c.stop())

const fresh = async (): Promise<string> => {
  const id = `h-${randomUUID()}`
  await c.as('ada').record(hostOf(id, 'eu1-a-web'))
  return id
}

describe('a process that is killed', () => {
  const facts = async (id: string) => {
    const tables = ['revision', 'resource_operation', 'evidence_ref']
    const counts = await Promise.all(
      tables.map(async (table) => {
        const [row] = await c.rows<{ n: number }>(
          `select count(*)::int n from catalog.${table} t join catalog.resource r on r.rid = t.rid where r.resource_id = $1`,
          [id],
        )
        return [table, row?.n]
      }),
    )
    const [told] = await c.rows<{ n: number }>(`select count(*)::int n from catalog.outbox where agg_id = $1`, [id])
    return { ...Object.fromEntries(counts), outbox: told?.n }
  }

  it.each(['api.before_commit', 'api.after_commit'])(
    'at %s has applied its command completely or not at all, and the repeat applies it once',
    async (point) => {
      const id = `killed-${point.replace(/[^a-z]/g, '-')}`
      await c.as('ada').record(hostOf(id, 'eu1-a-web'))
      const before = await facts(id)
      const doomed = await c.startProcess(point)
      const command = {
        command_id: randomUUID(),
        idempotency_key: randomUUID(),
        operation_id: randomUUID(),
        expected_version: 1,
        changes: { observed_state_patch: { release: '9.9.9' } },
        evidence_refs: [{ uri: 'https://ci.example/1', kind: 'run' }],
      }
      await expect(c.result(id, command, { at: doomed.at })).rejects.toThrow()
      await doomed.exited
      const committed = point === 'api.after_commit'
      const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
      expect(version).toBe(committed ? 2 : 1)
      if (!committed) expect(await facts(id)).toEqual(before)
      const again = await c.result(id, command)
      expect(again).toMatchObject({ status: 200, body: { version: 2, previous_version: 1, applied: true } })
      expect(again.headers.get('idempotency-replayed')).toBe(committed ? 'true' : null)
      const third = await c.result(id, command)
      expect(third.text).toBe(again.text)
      expect(await facts(id)).toEqual({
        revision: before.revision + 1,
        resource_operation: before.resource_operation + 1,
        evidence_ref: before.evidence_ref + 1,
        outbox: before.outbox + 1,
      })
    },
    90_000,
  )
})

describe('a long change whose process is killed', () => {
  it.each(['api.before_commit', 'api.after_commit'])(
    'at %s leads to one intent, whoever sends it again',
    async (point) => {
      const intents = (id: string) =>
        c.rows<{ agg_id: string }>(
          `select agg_id from catalog.outbox where type = 'intent.requested' and payload->>'resource_id' = $1`,
          [id],
        )
      const changed = await fresh()
      const made = `made-${randomUUID()}`
      const { lifecycle_status, observed_state, ...wanted } = hostOf(made, 'eu1-a-web')
      const [patch, post] = [randomUUID(), randomUUID()]
      const calls = (at?: string) => {
        const to = at === undefined ? {} : { at }
        const change = { desired_state: { release: '9.9.9' }, expected_version: 1 }
        return [
          () => c.as('olga').patch(`/v1/resources/${changed}`, change, { key: patch, ...to }),
          () => c.as('olga').post('/v1/resources', wanted, { key: post, ...to }),
        ]
      }
      for (const [i, id] of [changed, made].entries()) {
        const doomed = await c.startProcess(point)
        await expect(calls(doomed.public_at)[i]?.()).rejects.toThrow()
        await doomed.exited
        const committed = point === 'api.after_commit'
        expect(await intents(id)).toHaveLength(committed ? 1 : 0)
        const replies = await Promise.all(Array.from({ length: 5 }, () => calls()[i]?.()))
        expect(replies.map((reply) => reply?.status)).toEqual(replies.map(() => 202))
        expect(new Set(replies.map((reply) => reply?.text)).size).toBe(1)
        expect(await intents(id)).toEqual([{ agg_id: replies[0]?.body.operation_ref.intent_id }])
      }
    },
    120_000,
  )
})

describe('a process that signs with the next key', () => {
  it('replays what one with the former key answered, and the reverse', async () => {
    const next = await c.startProcess(undefined, { CATALOG__SECRET__KEYS: JSON.stringify(keys.toReversed()) })
    const { body } = await c.as('vic').get('/v1/resources?page_size=1')
    const more = `/v1/resources?page_size=1&page_token=${body.next_page_token}`
    expect((await c.as('vic').get(more, { at: next.public_at })).status).toBe(200)
    const [here, there] = [
      [undefined, next.at],
      [c.url, next.public_at],
    ] as const
    for (const [first, second] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const id = await fresh()
      const command = {
        ...{ command_id: randomUUID(), idempotency_key: randomUUID(), operation_id: randomUUID() },
        expected_version: 1,
        changes: { observed_state_patch: { release: '9.9.9' } },
      }
      const result = (at: 0 | 1, over = {}) => c.result(id, { ...command, ...over }, here[at] ? { at: here[at] } : {})
      const made = hostOf(`h-${randomUUID()}`, 'eu1-a-web')
      const [created, changed] = [randomUUID(), randomUUID()]
      const items = [id, `${id}-too`].map((resource_id) => ({
        op: 'create',
        change: { ...hostOf(`${resource_id}-bulk`, 'eu1-a-web') },
      }))
      const create = (at: 0 | 1, body = made) =>
        c.as('ada').post('/v1/resources?mode=record_only', body, { key: created, at: there[at] })
      const change = (at: 0 | 1) =>
        c.as('ada').post('/v1/resources:bulk?mode=record_only', { items }, { key: changed, at: there[at] })
      for (const send of [result, create]) {
        const answered = await send(first)
        const again = await send(second)
        expect([again.status, again.text]).toEqual([answered.status, answered.text])
        expect(again.headers.get('idempotency-replayed')).toBe('true')
      }
      expect((await change(first)).body.results).toMatchObject([{ status: 201 }, { status: 201 }])
      expect((await change(second)).body.results).toMatchObject([
        { status: 201, replayed: true },
        { status: 201, replayed: true },
      ])
      expect(await result(second, { changes: { observed_state_patch: { release: '9.9.8' } } })).toMatchObject({
        status: 422,
        body: { code: 'command_id_reused' },
      })
      expect(await create(second, { ...made, labels: { environment: 'another' } })).toMatchObject({
        status: 422,
        body: { code: 'idempotency_key_reused' },
      })
    }
  }, 90_000)
})
