import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { followSearchOnce } from '../../apps/catalog/search/follow.ts'
import type { SearchResult } from '../../apps/shared/contracts/topology/search.ts'
import { type Catalog, seedRegion, startCatalog } from './support/platform.ts'

let c: Catalog

const generic = (attributes: Record<string, unknown>) => ({ provider: 'test', kind: 'thing', attributes })
const record = (resource_id: string, over: Record<string, unknown> = {}) =>
  c.as('ada').record({ resource_id, type_key: 'infra.generic', name: resource_id, desired_state: generic({}), ...over })
const folded = async () => {
  await c.sequence()
  while (await followSearchOnce(c.deps));
}

beforeAll(async () => {
  c = await startCatalog()
  await seedRegion(c, 'eu1', 2)
  await seedRegion(c, 'us1', 1)
  await record('pay-db', { display_name: 'Payments database', owner: 'team-ledger', labels: { tier: 'gold' } })
  await record('pay-api', { relationships: [{ type_key: 'depends_on', target_id: 'pay-db' }] })
  await record('router', { desired_state: generic({ loopback: '10.20.30.40', serial: 'XK-4711' }) })
  await record('abroad', { display_name: 'GRÖSSE Größe', desired_state: generic({ place: 'örtlich in Москва' }) })
  await record('secret-us', { parent_id: 'us1-a-web', labels: { tier: 'gold' } })
})
afterAll(() => c.stop())

const ask = async (query: string, as: 'vic' | 'far' | 'hosts' = 'vic'): Promise<SearchResult> => {
  const reply = await c.as(as).get(`/v1/search?${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}
const ids = ({ items }: SearchResult) => items.map(({ resource_id }) => resource_id)

describe('search', () => {
  it('reports that it is being filled, and then holds all existing resources', async () => {
    expect((await c.as('vic').get('/v1/search?q=pay', { once: true })).body).toMatchObject({
      status: 503,
      code: 'projection_lag',
      retryable: true,
    })
    await folded()
    // The word is in two different names of pay-db, and in one of pay-api.
    expect(ids(await ask('q=pay'))).toEqual(['pay-db', 'pay-api'])
  })

  it.each([
    ['an id', 'pay-db', 'pay-db', 'name'],
    ['a display name, by the beginnings of words', 'paym data', 'pay-db', 'name'],
    ['a label', 'gold pay', 'pay-db', 'label'],
    ['an owner', 'ledger', 'pay-db', 'label'],
    ['what it points at', 'api db', 'pay-api', 'relation'],
    ['an attribute', '10.20.30', 'router', 'attribute'],
    ['a part of an attribute', '4711', 'router', 'attribute'],
    ['a name that is misspelled', 'roter', 'router', 'spelling'],
    ['letters of any script, in any case', 'ÖRTL москв', 'abroad', 'attribute'],
    ['a name of any script', 'größe', 'abroad', 'name'],
  ])('finds by %s', async (_, q, expected, where) => {
    const { items } = await ask(`q=${encodeURIComponent(q)}`)
    expect(items[0]).toMatchObject({ resource_id: expected })
    expect(items[0]?.matched).toContain(where)
  })

  it('ranks names before relations, and an exact name first', async () => {
    const { items } = await ask('q=pay-db')
    expect(items.map(({ resource_id, matched }) => [resource_id, matched])).toEqual([
      ['pay-db', ['name']],
      ['pay-api', ['name', 'relation']],
    ])
  })

  it('shows only resources that the reader may see, of the requested types', async () => {
    expect(ids(await ask('q=gold'))).toEqual(['pay-db', 'secret-us'])
    expect(ids(await ask('q=web&type_key=fleet.host'))).toEqual(['eu1-web-01', 'eu1-web-02', 'us1-web-01'])
    expect(ids(await ask('q=eu1', 'far'))).toEqual([])
    expect(ids(await ask('q=secret', 'far'))).toEqual(['secret-us'])
  })

  it('shows only resources of the requested drift and lifecycle, as lists do', async () => {
    const host = { type_key: 'fleet.host', parent_id: 'eu1-a-web' }
    for (const [n, resource_id] of ['comet-a', 'comet-b', 'comet-c'].entries())
      await record(resource_id, {
        ...host,
        desired_state: { hostname: resource_id, release: '2.0' },
        observed_state: { hostname: resource_id, release: n === 0 ? '1.0' : '2.0' },
      })
    const ended = { lifecycle_status: 'retired' }
    const reply = await c.as('ada').patch('/v1/resources/comet-c?mode=record_only&expected_version=1', ended)
    expect(reply.status, reply.text).toBe(200)
    await folded()
    expect(ids(await ask('q=comet'))).toEqual(['comet-a', 'comet-b'])
    expect(ids(await ask('q=comet&drift=drifted'))).toEqual(['comet-a'])
    expect(ids(await ask('q=comet&lifecycle_status=retired'))).toEqual(['comet-c'])
    expect(ids(await ask('q=comet-a&drift=in_sync'))).not.toContain('comet-a')
    expect((await c.as('vic').get('/v1/search?q=comet&drift=some')).status).toBe(400)
  })

  it('tells a reader nothing about related resources that they may not see', async () => {
    await record('zebra-omikron', { parent_id: 'eu1-a-web' })
    const to = { type_key: 'depends_on', target_id: 'zebra-omikron' }
    // A writer may put any words into their own resource, to see whether they match more.
    const labels = { guess: 'zebra' }
    await record('near-us', { parent_id: 'us1-a-web', relationships: [to, { ...to, target_id: 'pay-db' }], labels })
    await folded()
    expect((await ask('q=near omik')).items).toMatchObject([{ resource_id: 'near-us', matched: ['name', 'relation'] }])
    const there = async (q: string) =>
      (await ask(`q=${q}`, 'far')).items.filter(({ matched }) => !matched.includes('spelling'))
    for (const q of ['near omik', 'zebra omikron', 'omikron']) expect([q, await there(q)]).toEqual([q, []])
    expect(await there('near pay')).toMatchObject([{ matched: ['name', 'relation'] }])
    const [guessed] = await there('near zebra')
    expect(guessed).toMatchObject({ resource_id: 'near-us', matched: ['name', 'label'] })
    await c.result('near-us', { expected_version: 1, changes: { relationship_changes: [{ op: 'remove', ...to }] } })
    await folded()
    expect((await there('near zebra'))[0]?.score).toBe(guessed?.score)
  })

  it('needs every word, however many there are', async () => {
    const words = Array.from({ length: 14 }, (_, i) => `w${i}`)
    await record('many-words', { display_name: words.join(' ') })
    await folded()
    expect(ids(await ask(`q=${words.join(' ')}`))).toEqual(['many-words'])
    expect((await ask(`q=${words.join(' ')} absent`)).items[0]?.matched ?? ['spelling']).toEqual(['spelling'])
  })

  it('finds every word of a name as it is written', async () => {
    const words = [
      '9e12f34',
      '1e5x',
      '00e1',
      '1.5e3',
      '0x1f',
      'a1e5',
      '12h',
      '3com',
      'v1e',
      '1e',
      '2001:db8::1e5',
      '5e-3',
    ]
    for (const [index, word] of words.entries()) await record(`odd-${index}`, { display_name: `odd ${word} word` })
    await folded()
    for (const [index, word] of words.entries()) {
      const { items } = await ask(`q=odd ${encodeURIComponent(word)} word`)
      const found = items.find(({ resource_id }) => resource_id === `odd-${index}`)
      expect([word, found?.matched]).toEqual([word, ['name']])
    }
  })

  it('follows changes and ends, and reports its position', async () => {
    await record('short-lived', { owner: 'team-moon' })
    const before = await ask('q=moon')
    expect(ids(before)).toEqual([])
    await folded()
    const after = await ask('q=moon')
    expect([ids(after), after.as_of.lag_ms]).toEqual([['short-lived'], 0])
    expect(BigInt(after.as_of.watermark)).toBeGreaterThan(BigInt(before.as_of.watermark))
    await c.as('ada').patch('/v1/resources/short-lived?mode=record_only', { expected_version: 1, owner: 'team-sun' })
    await folded()
    expect([ids(await ask('q=moon')), ids(await ask('q=sun'))]).toEqual([[], ['short-lived']])
    await c.result('short-lived', { expected_version: 2, changes: { lifecycle_status: 'retired' } })
    expect(ids(await ask('q=sun'))).toEqual([])
    expect(ids(await ask('q=sun&include_retired=true'))).toEqual(['short-lived'])
  })

  it('follows with smaller statements where one takes too long', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `bulky-${n}`)
    for (const name of names) await record(name)
    await c.rows(`create function catalog.too_long() returns trigger language plpgsql as $$ begin
        if (select count(*) from made) > 3 then raise 'canceling statement' using errcode = '57014'; end if;
        return null; end $$`)
    await c.rows(`create trigger too_long after insert on catalog.search referencing new table as made
        for each statement execute function catalog.too_long()`)
    await c.sequence()
    for (let tries = 0; tries < 50; tries += 1) await followSearchOnce(c.deps).catch(() => {})
    await c.rows('drop function catalog.too_long cascade')
    const { items, as_of } = await ask('q=bulky&limit=100')
    expect([items.length, as_of.lag_ms]).toEqual([names.length, 0])
  })

  it('follows relations, whichever end stated them', async () => {
    await record('quartz')
    await record('willow')
    const change = (op: string, type_key: string, direction: string) => ({
      relationship_changes: [{ op, type_key, direction, target_id: 'quartz' }],
    })
    const found = async (q: string) => {
      await folded()
      return ids(await ask(`q=${q}`)).sort()
    }
    for (const [version, [op, type_key, left]] of (
      [
        ['add', 'depends_on', ['quartz', 'willow']],
        ['remove', 'depends_on', ['willow']],
        ['add', 'connects_to', ['quartz', 'willow']],
      ] as const
    ).entries()) {
      await c.result('willow', { expected_version: version + 1, changes: change(op, type_key, 'in') })
      expect(await found('willow')).toEqual(left)
    }
    // A connection leads in both directions.
    expect(await found('quartz')).toEqual(['quartz', 'willow'])
    await c.result('quartz', { expected_version: 1, changes: { lifecycle_status: 'retired' } })
    expect(await found('quartz')).toEqual([])
  })

  it('accepts any text, and cuts at a word', async () => {
    for (const q of ["'", '":*&|!()<->', '\\', 'ÄÖÜ ß', '...', '--', 'a'.repeat(200), "x' or '1'='1"])
      expect((await c.as('vic').get(`/v1/search?q=${encodeURIComponent(q)}`)).status, q).toBe(200)
    for (const q of ['', '%00', 'a'.repeat(201)])
      expect([400, 422], q).toContain((await c.as('vic').get(`/v1/search?q=${q}`)).status)
    expect(await ask('q=web&limit=1')).toMatchObject({ items: [{}], more: true })
  })
})

describe('owners', () => {
  const owns = (target_id: string) => ({ relationships: [{ type_key: 'owned_by', target_id }] })
  const listed = async (query: string, as: 'vic' | 'hosts' = 'vic') => {
    const reply = await c.as(as).get(`/v1/resources?${query}`)
    expect(reply.status, reply.text).toBe(200)
    return (reply.body.items as { resource_id: string }[]).map(({ resource_id }) => resource_id)
  }

  it('are resources: the resources of a team or person are listed, searched for and found by name', async () => {
    const team = {
      resource_id: 'ledgers',
      type_key: 'org.team',
      name: 'Ledger crew',
      desired_state: { email: 'l@x.example' },
    }
    await c.as('ada').record(team)
    await c
      .as('ada')
      .record({
        resource_id: 'mia',
        type_key: 'org.person',
        name: 'Mia',
        relationships: [{ type_key: 'member_of', target_id: 'ledgers' }],
      })
    await record('own-a', owns('ledgers'))
    await record('own-b', { ...owns('ledgers'), labels: { tier: 'gold' } })
    await record('own-c', owns('mia'))
    await folded()
    expect(await listed('owned_by=ledgers')).toEqual(['own-a', 'own-b'])
    expect(await listed('owned_by=ledgers&label=tier=gold&count=exact')).toEqual(['own-b'])
    expect(await listed('owned_by=mia')).toEqual(['own-c'])
    expect(ids(await ask('q=own&owned_by=ledgers')).sort()).toEqual(['own-a', 'own-b'])
    const found = await ask('q=ledger crew')
    expect(found.items.map(({ resource_id, matched }) => [resource_id, matched[0]])).toEqual(
      expect.arrayContaining([
        ['ledgers', 'name'],
        ['own-a', 'relation'],
        ['own-b', 'relation'],
      ]),
    )
  })

  it('are hidden from those who may not see them, and other resources own nothing', async () => {
    const [one, ...rest] = await listed('type_key=fleet.host', 'hosts')
    expect(rest.length).toBeGreaterThan(0)
    const change = [{ op: 'add', type_key: 'owned_by', target_id: 'ledgers' }]
    const items = [{ op: 'relate', change: { resource_id: one, expected_version: 1, relationship_changes: change } }]
    await c.as('ada').post('/v1/resources:bulk?mode=record_only', { items })
    expect(await listed('owned_by=ledgers&type_key=fleet.host')).toEqual([one])
    expect(await listed('owned_by=ledgers', 'hosts')).toEqual([])
    expect(await listed('owned_by=nobody')).toEqual([])
    expect(ids(await ask('q=own&owned_by=nobody'))).toEqual([])
    const wrong = {
      resource_id: 'own-x',
      type_key: 'infra.generic',
      name: 'own-x',
      desired_state: generic({}),
      ...owns('pay-db'),
    }
    expect(await c.as('ada').post('/v1/resources?mode=record_only', wrong)).toMatchObject({
      status: 422,
      body: { code: 'target_type_not_allowed' },
    })
    expect((await c.as('vic').get(`/v1/resources?owned_by=ledgers&at=${new Date().toISOString()}`)).status).toBe(400)
  })

  it('cannot be retired while they own resources', async () => {
    const gone = { lifecycle_status: 'retired' }
    const refused = await c.as('ada').patch('/v1/resources/mia?mode=record_only&expected_version=1', gone)
    expect(refused).toMatchObject({ status: 422, body: { code: 'blocked_by_dependents' } })
    const change = [{ op: 'remove', type_key: 'owned_by', target_id: 'mia' }]
    const items = [
      { op: 'relate', change: { resource_id: 'own-c', expected_version: 1, relationship_changes: change } },
    ]
    await c.as('ada').post('/v1/resources:bulk?mode=record_only', { items })
    const done = await c.as('ada').patch('/v1/resources/mia?mode=record_only&expected_version=1', gone)
    expect(done.status, done.text).toBe(200)
  })
})
