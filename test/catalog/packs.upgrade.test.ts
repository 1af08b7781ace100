import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkPacks, SHIPPED_PACKS } from '../../apps/catalog/packs/library.ts'
import { storePacks } from '../../apps/catalog/packs/store.ts'
import { systemClock } from '../../apps/shared/clock.ts'
import { type Catalog, startCatalog } from './support/platform.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-upgrade-'))
let c: Catalog
beforeAll(async () => {
  c = await startCatalog()
})
afterAll(async () => {
  await c.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The pack in one of two versions; the second has a tier, and allows no port below 1. */
const packOf = (version: 1 | 2): string => {
  const dir = join(folder, String(version))
  mkdirSync(dir, { recursive: true })
  const properties =
    version === 1 ? 'port: { type: integer }' : 'port: { type: integer, minimum: 1 }, tier: { type: string }'
  const lines = [
    'format: signalbox.types/v1',
    'pack: fleet2',
    `version: ${version}.0.0`,
    'title: Things',
    'requires: { core: ^1.0.0 }',
    'types:',
    '  - type_key: fleet2.thing',
    `    version: ${version}`,
    '    title: Thing',
    '    derived_from: core.resource',
    '    writes: record',
    '    lifecycle: record',
    `    desired_state_schema: { type: object, additionalProperties: false, properties: { ${properties} } }`,
  ]
  writeFileSync(join(dir, 'fleet2.yaml'), `${lines.join('\n')}\n`)
  return dir
}
/** Loads the packs of these folders as a start does; returns those that changed something. */
const store = async (...dirs: string[]): Promise<string[]> => {
  const { model, faults } = checkPacks([SHIPPED_PACKS, ...dirs])
  expect(faults).toEqual([])
  const changed = await storePacks(c.deps.db, model, { clock: systemClock, allow_change: false })
  await c.deps.registry.reload()
  return changed
}
const load = (version: 1 | 2) => store(packOf(version))
/** Starts with these packs beside the newer of the two above. */
const start = (...dirs: string[]) => store(packOf(2), ...dirs)
/** A folder with one pack of these lines. */
const folderOf = (pack: string, version: string, ...lines: string[]): string => {
  const dir = mkdtempSync(join(folder, 'pack-'))
  const head = ['format: signalbox.types/v1', `pack: ${pack}`, `version: ${version}`, 'title: Things']
  writeFileSync(join(dir, `${pack}.yaml`), `${[...head, 'requires: { core: ^1.0.0 }', ...lines].join('\n')}\n`)
  return dir
}

const ROWS = 10_000
const EACH = 500
const idOf = (n: number) => `thing-${n}`
const fill = async () => {
  for (let from = 0; from < ROWS; from += EACH) {
    const items = Array.from({ length: EACH }, (_, i) => ({
      op: 'create',
      change: {
        resource_id: idOf(from + i),
        type_key: 'fleet2.thing',
        name: idOf(from + i),
        desired_state: { port: (from + i) % 2 },
      },
    }))
    const { body, status } = await c.as('ada').post('/v1/resources:bulk?mode=record_only', { items })
    expect(status).toBe(200)
    expect(body.results.filter((one: { status: number }) => one.status !== 201)).toEqual([])
  }
}

describe('a new version of a type with many rows', () => {
  it('is added and removed under writes: no write fails, no row is lost, and each is upgraded when it fits', async () => {
    expect(await load(1)).toContain('fleet2')
    await fill()
    const written = new Map<number, number>()
    let stopped = false
    const writers = Array.from({ length: 4 }, async (_, worker) => {
      for (let n = worker; !stopped; n += 4) {
        const version = (written.get(n) ?? 0) + 1
        const reply = await c
          .as('ada')
          .patch(`/v1/resources/${idOf(n)}`, { labels: { n: `${n}` }, expected_version: version })
        expect(reply.status, reply.text).toBe(200)
        written.set(n, version)
      }
    })
    const more = async (count: number) => {
      const goal = written.size + count
      while (written.size < goal) await new Promise((resolve) => setImmediate(resolve))
    }
    try {
      await more(40)
      expect(await load(2)).toEqual(['fleet2'])
      await more(40)
      // An older process starts again: the newer version stays for the rows that have it.
      expect(await load(1)).toEqual([])
      await more(40)
      expect(await load(2)).toEqual([])
      await more(40)
    } finally {
      stopped = true
      await Promise.all(writers)
    }
    const rows = await c.rows<{ port: number; type_version: number; version: number; n: number }>(
      `select (r.desired_state->>'port')::int as port, r.type_version, s.version, count(*)::int as n
       from catalog.resource r join catalog.resource_state s using (rid)
       where r.resource_id like 'thing-%' group by 1, 2, 3 order by 1, 2, 3`,
    )
    expect(rows.reduce((sum, { n }) => sum + n, 0)).toBe(ROWS)
    expect(rows.filter(({ version }) => version === 2).reduce((sum, { n }) => sum + n, 0)).toBe(written.size)
    // A port of 0 does not fit the second version, so its rows keep the first.
    expect(rows.filter(({ port, type_version }) => port === 0 && type_version === 2)).toEqual([])
    expect(rows.filter(({ port, type_version }) => port === 1 && type_version === 2)).not.toEqual([])
    expect(rows.filter(({ version, type_version }) => version === 1 && type_version === 2)).toEqual([])
    const risen = await c
      .as('ada')
      .patch(`/v1/resources/${idOf(9999)}`, { desired_state: { tier: 'a' }, expected_version: 1 })
    expect(risen).toMatchObject({ status: 200, body: { type_version: 2, desired_state: { port: 1, tier: 'a' } } })
  }, 300_000)
})

describe('types that the files no longer have', () => {
  /** A pack of types without more. */
  const files = (version: string, ...names: string[]): string =>
    folderOf(
      'fleet3',
      version,
      'types:',
      ...names.flatMap((name) => [
        `  - { type_key: fleet3.${name}, version: 1, title: Thing, derived_from: core.resource, writes: record, lifecycle: record,`,
        '      desired_state_schema: { type: object, additionalProperties: false, properties: {} } }',
      ]),
    )
  const retired = (name: string) => c.deps.registry.types.newest(`fleet3.${name}`)?.retired

  it('are retired in every process and announced, but not by the start of an older process', async () => {
    const older = files('1.0.0', 'old', 'thing')
    expect(await start(older)).toContain('fleet3')
    expect(await start(files('2.0.0', 'thing', 'fresh'))).toEqual(['fleet3'])
    expect([retired('old'), retired('fresh')]).toEqual([true, false])
    expect(await start(older)).toEqual([])
    expect([retired('old'), retired('fresh')]).toEqual([true, false])
    const announced = () =>
      c.rows<{ n: number }>(
        `select count(*)::int as n from catalog.outbox where type = 'type.pack_loaded' and agg_id = 'fleet3'`,
      )
    const [before] = await announced()
    const read = (headers: Record<string, string> = {}) =>
      c.as('vic').get('/v1/resource-types/fleet3.thing', { headers })
    const known = { 'if-none-match': (await read()).headers.get('etag') ?? '' }
    expect((await read(known)).status).toBe(304)
    expect(await start()).toEqual(['fleet3'])
    expect(await read(known)).toMatchObject({ status: 200, body: { status: 'deprecated' } })
    expect([retired('thing'), retired('fresh')]).toEqual([true, true])
    expect(await announced()).toEqual([{ n: (before?.n ?? 0) + 1 }])
    const [stored] = await c.rows<{ document: object }>(
      `select document from catalog.pack where pack = 'fleet3' and version = '2.0.0'`,
    )
    expect(stored?.document).toMatchObject({ keys: { types: [] } })
    expect(await start()).toEqual([])
  })
})

describe('a relationship type that a new pack changes', () => {
  const pairs = (pack: string, version: string, on_delete: string): string => {
    const key = `${pack}_pairs`
    const ends = 'from: [core.resource], to: [core.resource]'
    return folderOf(
      pack,
      version,
      'relationship_types:',
      `  - { type_key: ${key}, inverse_key: ${key}, ${ends}, on_delete: ${on_delete} }`,
    )
  }
  const rule = (pack: string) => c.deps.registry.types.relationship(`${pack}_pairs`)?.on_delete

  it('stays as it is when the older process starts again', async () => {
    const [older, newer] = [pairs('fleet4', '1.0.0', 'restrict'), pairs('fleet4', '2.0.0', 'detach')]
    expect(await start(older)).toContain('fleet4')
    expect(await start(newer)).toEqual(['fleet4'])
    expect(await start(older)).toEqual([])
    expect(rule('fleet4')).toBe('detach')
    expect(await start(newer)).toEqual([])
  })

  it('stays as it is when an older process starts for the first time', async () => {
    const [older, newer] = [pairs('fleet5', '1.0.0', 'restrict'), pairs('fleet5', '2.0.0', 'detach')]
    expect(await start(newer)).toContain('fleet5')
    expect(await start(older)).toEqual(['fleet5'])
    expect(rule('fleet5')).toBe('detach')
    expect(await start(newer)).toEqual([])
  })
})

describe('a field that a new version of a type makes sensitive', () => {
  const keyed = (version: 1 | 2, writes: string): string =>
    folderOf(
      `fleet9-${writes}`,
      `${version}.0.0`,
      'types:',
      `  - { type_key: fleet9_${writes}.thing, version: ${version}, title: Thing, derived_from: core.resource,`,
      `      writes: ${writes}, lifecycle: record,${version === 1 ? '' : ' field_classes: { sensitive: [/key] },'}`,
      '      desired_state_schema: { type: object, properties: { key: { type: string }, size: { type: integer } } } }',
    )

  it.each(['record', 'operation'])('takes no new plain text in resources from before (writes: %s)', async (writes) => {
    await start(keyed(1, writes))
    const type_key = `fleet9_${writes}.thing`
    const { resource_id } = await c.as('ada').record({ type_key, name: 'thing', desired_state: { key: 'old' } })
    expect(await start(keyed(2, writes))).toEqual([`fleet9-${writes}`])
    const patch = (desired_state: object, version = 1) =>
      c.as('ada').patch(`/v1/resources/${resource_id}?expected_version=${version}&mode=record_only`, { desired_state })
    const plain = {
      status: 422,
      body: { code: 'secret_reference_required', violations: [{ pointer: '/desired_state/key' }] },
    }
    const desired_state = { key: 'hunter2' }
    expect(await patch(desired_state)).toMatchObject(plain)
    const asked = c.as('olga').patch(`/v1/resources/${resource_id}?expected_version=1`, { desired_state })
    expect(await asked).toMatchObject(plain)
    const changes = { desired_state_patch: desired_state }
    expect(await c.result(resource_id, { expected_version: 1, changes })).toMatchObject(plain)
    // The old value does not prevent other changes, and a reference replaces it.
    expect(await patch({ size: 1 })).toMatchObject({ status: 200, body: { version: 2, type_version: 1 } })
    const key = 'secret://vault/key#1'
    expect((await patch({ key }, 2)).body).toMatchObject({ type_version: 2, desired_state: { key, size: 1 } })
  })
})

describe('a limit of edges that a new pack lowers', () => {
  const uses = (version: string, from_max: number): string => {
    const keys = 'type_key: fleet6_uses, inverse_key: fleet6_used_by'
    const ends = 'from: [core.resource], to: [core.resource], on_delete: detach'
    return folderOf('fleet6', version, 'relationship_types:', `  - { ${keys}, ${ends}, from_max: ${from_max} }`)
  }
  const box = async (relationships: object[] = []): Promise<string> => {
    const name = `box-${randomUUID()}`
    const desired_state = { provider: 'p', kind: 'box' }
    return (await c.as('ada').record({ type_key: 'infra.generic', name, desired_state, relationships })).resource_id
  }
  const change = async (id: string, ...changes: [op: string, target_id: string, direction?: string][]) => {
    const { version } = (await c.as('vic').get(`/v1/resources/${id}`)).body
    const type_key = 'fleet6_uses'
    const relationship_changes = changes.map(([op, target_id, direction = 'out']) => ({
      op,
      type_key,
      target_id,
      direction,
    }))
    return c.result(id, { expected_version: version, changes: { relationship_changes } })
  }

  it('lets edges above it be removed or exchanged from either end, but takes no more', async () => {
    await start(uses('1.0.0', 4))
    const [a, b, d, e, more] = [await box(), await box(), await box(), await box(), await box()]
    const id = await box([a, b, d, e].map((target_id) => ({ type_key: 'fleet6_uses', target_id })))
    expect(await start(uses('2.0.0', 1))).toEqual(['fleet6'])
    const tooMany = { status: 422, body: { code: 'cardinality' } }
    expect(await change(id, ['add', more])).toMatchObject(tooMany)
    expect(await change(more, ['add', id, 'in'])).toMatchObject(tooMany)
    expect(await change(id, ['remove', a])).toMatchObject({ status: 200 })
    expect(await change(b, ['remove', id, 'in'])).toMatchObject({ status: 200 })
    expect(await change(id, ['remove', d], ['add', more])).toMatchObject({ status: 200 })
    expect(await change(id, ['remove', e])).toMatchObject({ status: 200 })
    expect(await change(id, ['add', a])).toMatchObject(tooMany)
    expect(await change(id, ['remove', more], ['add', a])).toMatchObject({ status: 200 })
  })
})

describe('a lifecycle state that a new version of a type drops', () => {
  const phased = (version: number, middle: string, terminal = 'gone'): string => {
    const states = ['fresh', ...(middle === '' ? [] : [middle]), 'ready', 'gone']
    const by = 'by: [user, operation, import]'
    const ways = states.slice(1).map((to, at) => `{ from: ${states[at]}, to: ${to}, ${by} }`)
    // A terminal state has no way out.
    const kept = ways.filter((way) => terminal === 'gone' || !way.includes(`from: ${middle}`))
    if (terminal !== 'gone') kept.push(`{ from: fresh, to: ready, ${by} }`)
    return folderOf(
      'fleet7',
      `${version}.0.0`,
      'types:',
      `  - { type_key: fleet7.thing, version: ${version}, title: Thing, derived_from: core.resource, writes: record,`,
      `      lifecycle: { states: [${states.join(', ')}], initial: fresh, terminal: [${terminal}],`,
      `        transitions: [${kept.join(', ')}] } }`,
    )
  }

  it('stops the start while a resource is in it, and no longer once it has left', async () => {
    await start(phased(1, 'warm'))
    const record = (over: object) =>
      c.as('ada').record({ type_key: 'fleet7.thing', name: `t-${randomUUID()}`, desired_state: {}, ...over })
    const { resource_id } = await record({ lifecycle_status: 'warm' })
    await record({})
    const stranding = 'leaves resources in lifecycle state warm'
    await expect(start(phased(2, ''))).rejects.toThrow(stranding)
    await expect(start(phased(2, 'warm', 'gone, warm'))).rejects.toThrow(stranding)
    const changes = { lifecycle_status: 'ready' }
    expect(await c.result(resource_id, { expected_version: 1, changes })).toMatchObject({ status: 200 })
    expect(await start(phased(2, ''))).toEqual(['fleet7'])
    expect(await start(phased(1, 'warm'))).toEqual([])
  })
})

describe('a terminal state that a new version of a type drops', () => {
  const ways = (states: string[]) => states.map((to) => `{ from: active, to: ${to}, by: [user] }`).join(', ')
  const retirable = (version: 1 | 2, ...terminal: string[]): string =>
    folderOf(
      'fleet10',
      `${version}.0.0`,
      'types:',
      `  - { type_key: fleet10.thing, version: ${version}, title: Thing, derived_from: core.resource, writes: record,`,
      `      lifecycle: { states: [active, ${terminal.join(', ')}], initial: active, terminal: [${terminal.join(', ')}],`,
      `        transitions: [${ways(terminal)}] } }`,
    )

  it('still ends the resources in it, in every view of the past', async () => {
    await start(retirable(1, 'retired', 'gone'))
    const record = { type_key: 'fleet10.thing', name: `t-${randomUUID()}`, desired_state: {} }
    const { resource_id } = await c.as('ada').record(record)
    const ends = { lifecycle_status: 'gone' }
    const reply = await c.as('ada').patch(`/v1/resources/${resource_id}?mode=record_only&expected_version=1`, ends)
    expect(reply.status).toBe(200)
    c.wait(1000)
    const at = c.deps.clock.now().toISOString()
    c.wait(1000)
    expect(await start(retirable(2, 'retired'))).toEqual(['fleet10'])
    const listed = await c.as('vic').get(`/v1/resources?type_key=fleet10.thing&at=${at}`)
    expect(listed.body.items).toEqual([])
    const graph = await c.as('vic').get(`/v1/graphs/resources?root_id=${resource_id}&at=${at}`)
    expect(graph).toMatchObject({ status: 404 })
  })
})

describe('a terminal state that a new version of a type adds', () => {
  const archivable = (version: 1 | 2): string =>
    folderOf(
      'fleet8',
      `${version}.0.0`,
      'types:',
      `  - { type_key: fleet8.thing, version: ${version}, title: Thing, derived_from: core.resource, writes: record,`,
      ...(version === 1
        ? [
            '      lifecycle: { states: [active, retired], initial: active, terminal: [retired],',
            '        transitions: [{ from: active, to: retired, by: [user, operation, import] }] } }',
          ]
        : [
            '      lifecycle: { states: [active, retired, archived], initial: active, terminal: [retired, archived],',
            '        transitions: [{ from: active, to: retired, by: [user] }, { from: active, to: archived, by: [user] }] },',
            '      desired_state_schema: { type: object, required: [tier], properties: { tier: { type: string } } } }',
          ]),
    )

  it('ends a resource whose state fits only the older version', async () => {
    await start(archivable(1))
    const name = `t-${randomUUID()}`
    const record = (desired_state: object) => c.as('ada').record({ type_key: 'fleet8.thing', name, desired_state })
    const { resource_id } = await record({})
    c.wait(1000)
    const before = c.deps.clock.now().toISOString()
    c.wait(1000)
    expect(await start(archivable(2))).toEqual(['fleet8'])
    const ends = { lifecycle_status: 'archived' }
    const reply = await c.as('ada').patch(`/v1/resources/${resource_id}?mode=record_only&expected_version=1`, ends)
    expect(reply).toMatchObject({ status: 200, body: { lifecycle_status: 'archived', type_version: 1 } })
    c.wait(1000)
    const after = c.deps.clock.now().toISOString()
    c.wait(1000)
    const then = async (at: string) =>
      (await c.as('vic').get(`/v1/resources?type_key=fleet8.thing&at=${at}`)).body.items.length
    expect([await then(before), await then(after)]).toEqual([1, 0])
    const differs = await c.as('vic').get(`/v1/resources/${resource_id}/difference?from=${before}&to=${after}`)
    expect(differs.body.items).toMatchObject([{ resource_id, kind: 'removed' }])
    const events = await c.rows(`select type from catalog.outbox where agg_id = $1 and agg_version = 2`, [resource_id])
    expect(events).toContainEqual({ type: 'resource.retired' })
    expect((await c.as('vic').get(`/v1/resources?ids=${resource_id}`)).body.items).toEqual([])
    // Its name is free again.
    expect((await record({ tier: 'a' })).resource_id).not.toBe(resource_id)
  })
})
