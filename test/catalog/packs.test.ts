import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violationsOf } from '../../apps/catalog/document/schemas.ts'
import { checkPacks, SHIPPED_PACKS } from '../../apps/catalog/packs/library.ts'
import { createRegistry } from '../../apps/catalog/packs/registry.ts'
import { storePacks } from '../../apps/catalog/packs/store.ts'
import { systemClock } from '../../apps/shared/clock.ts'
import { createDb } from '../../db/client.ts'
import { testDatabase } from '../support/database.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-packs-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const HEAD = [
  'format: signalbox.types/v1',
  'pack: site',
  'version: 1.0.0',
  'title: Site',
  'requires: { core: ^1.0.0, infra: ^1.0.0 }',
]
const TYPE = ['types:', '  - type_key: site.box', '    version: 1', '    title: Box', '    derived_from: infra.managed']
let files = 0
/** A folder with one pack in it. */
const packOf = (...lines: string[]): string => {
  const dir = join(folder, String(files++))
  mkdirSync(dir)
  writeFileSync(join(dir, 'site.yaml'), `${lines.join('\n')}\n`)
  return dir
}
const check = (...lines: string[]) => checkPacks([SHIPPED_PACKS, packOf(...lines)])

describe('the shipped packs', () => {
  it('hold together, and derived types have all of their bases', () => {
    const { model, faults } = checkPacks([SHIPPED_PACKS])
    expect(faults).toEqual([])
    const host = model.types.find(({ type_key }) => type_key === 'fleet.host')
    expect(host).toMatchObject({
      ancestors: ['infra.host', 'infra.managed', 'core.resource'],
      writes: 'operation',
      drift_paths: ['/release', '/traffic'],
      desired_state_schema: { required: ['hostname'], additionalProperties: false },
      field_classes: { immutable: ['/serial_number'] },
      health: { default_ttl_s: 60, metrics: [{ key: 'errors_pct' }, { key: 'p95_ms' }] },
    })
    expect(host?.actions.map(({ action_key }) => action_key)).toEqual([
      'drain',
      'undrain',
      'deploy',
      'restart',
      'reboot',
      'rotate_certificate',
      'check',
    ])
  })
})

type Case = [rule: string, line: number, lines: string[], text: string]
const typed = (...more: string[]) => [...HEAD, ...TYPE, ...more.map((line) => `    ${line}`)]
const cases: Case[] = [
  ['yaml', 7, [...HEAD, 'types: [', ' }'], 'YAML'],
  ['yaml', 5, [...HEAD.slice(0, 4), 'title: Twice'], 'unique'],
  ['yaml', 7, [...HEAD, 'types:', '  - &a { type_key: site.a, version: 1, title: A }', '  - *a'], 'anchor'],
  ['yaml', 4, [...HEAD.slice(0, 3), 'title: !!str Tagged'], 'tag'],
  ['format', 1, ['format: signalbox.types/v2', ...HEAD.slice(1)], 'format'],
  ['format', 6, [...HEAD, 'colour: red'], 'not a known key'],
  ['format', 10, [...HEAD, ...TYPE.slice(0, 4), '    abstract: perhaps'], 'abstract'],
  ['format', 7, [...HEAD, 'types:', '  - type_key: Nonsense', '    version: 1', '    title: N'], 'pattern'],
  ['format', 7, [...HEAD, 'types:', '  - type_key: site.n', '    title: N'], 'version'],
  ['requires', 5, [...HEAD.slice(0, 4), 'requires: { core: ^2.0.0 }', ...TYPE], 'core is 1.3.0'],
  ['requires', 5, [...HEAD.slice(0, 4), 'requires: { nowhere: ^1.0.0 }', ...TYPE], 'nowhere does not exist'],
  ['range', 5, [...HEAD.slice(0, 4), 'requires: { core: newest }', ...TYPE], 'not a version range'],
  ['unique', 2, ['format: signalbox.types/v1', 'pack: core', ...HEAD.slice(2)], 'core is defined twice'],
  [
    'unique',
    7,
    [...HEAD, 'types:', '  - { type_key: infra.host, version: 1, title: H, derived_from: infra.managed }'],
    'already defined in infra',
  ],
  ['derived_from', 10, [...HEAD, ...TYPE.slice(0, 4), '    derived_from: site.nothing'], 'not defined'],
  ['derived_from', 7, [...HEAD, ...TYPE.slice(0, 4)], 'has no base type'],
  [
    'derived_from',
    8,
    [
      ...HEAD,
      'types:',
      '  - { type_key: site.a, version: 1, title: A, derived_from: site.b }',
      '  - { type_key: site.b, version: 1, title: B, derived_from: site.a }',
    ],
    'cycle',
  ],
  [
    'derived_from',
    11,
    [
      ...HEAD,
      ...TYPE.slice(0, 4),
      '    derived_from: infra.host',
      '    desired_state_schema: { properties: { release: { type: integer } } }',
    ],
    'disagree on',
  ],
  [
    'schema',
    11,
    typed('desired_state_schema: { type: object, properties: { a: { type: strange } } }'),
    'does not compile',
  ],
  ['schema', 11, typed('desired_state_schema: { type: object, propertees: {} }'), 'does not compile'],
  [
    'schema',
    11,
    typed('desired_state_schema: { type: object, properties: { a: { $ref: "https://x.example/y" } } }'),
    'refers to',
  ],
  [
    'schema',
    11,
    typed('desired_state_schema: { type: object, properties: { a: { type: string, pattern: "(?=x)" } } }'),
    'does not compile',
  ],
  ['pointer', 11, typed('identity: [/nothing]'), '/nothing is not in the schema'],
  ['pointer', 11, typed('indexed_paths: [/release]'), 'neither desired_state nor observed_state'],
  ['pointer', 11, typed('drift_paths: [/nothing]'), 'not in the schema'],
  [
    'sensitive',
    11,
    typed(
      'field_classes: { sensitive: [/n] }',
      'desired_state_schema: { type: object, properties: { n: { type: integer } } }',
    ),
    'not a string',
  ],
  [
    'sensitive',
    11,
    typed(
      'field_classes: { sensitive: [/s] }',
      'identity: [/s]',
      'desired_state_schema: { type: object, properties: { s: { type: string } } }',
    ),
    'in identity',
  ],
  [
    'lifecycle',
    11,
    typed('lifecycle: { states: [a, b], initial: a, terminal: [], transitions: [] }'),
    'cannot reach "b"',
  ],
  [
    'lifecycle',
    11,
    typed(
      'lifecycle: { states: [a, b], initial: a, terminal: [b], transitions: [{ from: a, to: b, by: [user] }, { from: b, to: a, by: [user] }] }',
    ),
    'transition out of the terminal state',
  ],
  [
    'reference',
    12,
    typed('relationships:', '  - { type_key: likes, direction: out, peer_types: [infra.host] }'),
    'likes is not defined',
  ],
  [
    'reference',
    12,
    typed('relationships:', '  - { type_key: depends_on, direction: out, peer_types: [site.none] }'),
    'site.none is not defined',
  ],
  [
    'cardinality',
    12,
    typed('relationships:', '  - { type_key: depends_on, direction: out, peer_types: [infra.host], min: 3, max: 2 }'),
    'above max',
  ],
  [
    'reference',
    12,
    typed('provides:', '  - { capability_key: site.none, version_range: ^1.0.0 }'),
    'site.none is not defined',
  ],
  [
    'range',
    12,
    typed('requires:', '  - { requirement_key: r, capability_key: compute.slots, version_range: ^9.0.0 }'),
    'no version',
  ],
  [
    'action',
    12,
    typed('actions:', '  - { action_key: go, title: Go, mode: operation, allowed_in: [flying] }'),
    'not a state',
  ],
  [
    'match_rules',
    13,
    [
      ...HEAD,
      'capabilities:',
      '  - capability_key: site.room',
      '    version: 1.0.0',
      '    title: Room',
      '    category: room',
      '    sharing: shared',
      '    attributes_schema: { type: object, properties: { n: { type: string } } }',
      '    match_rules: { n: gte }',
    ].filter((_, i) => i !== 99),
    'needs integer or number',
  ],
  [
    'unit',
    11,
    [
      ...HEAD,
      'capabilities:',
      '  - capability_key: site.room',
      '    version: 1.0.0',
      '    title: Room',
      '    category: room',
      '    sharing: counted',
    ],
    'needs a unit',
  ],
  [
    'containment',
    13,
    [
      ...HEAD,
      'relationship_types:',
      '  - type_key: holds',
      '    inverse_key: held_by',
      '    from: [core.resource]',
      '    to: [core.resource]',
      '    on_delete: detach',
      '    acyclic: true',
      '    containment: true',
    ],
    'only contained_in',
  ],
  [
    'health',
    12,
    [
      ...HEAD,
      'relationship_types:',
      '  - type_key: holds',
      '    inverse_key: held_by',
      '    from: [core.resource]',
      '    to: [core.resource]',
      '    on_delete: detach',
      '    health: { flows: to_from, mode: quorum }',
    ],
    'needs k',
  ],
  [
    'health',
    12,
    [
      ...HEAD,
      'relationship_types:',
      '  - type_key: holds',
      '    inverse_key: held_by',
      '    from: [core.resource]',
      '    to: [core.resource]',
      '    on_delete: detach',
      '    health: { flows: to_from, mode: quorum, k: 1.5 }',
    ],
    'neither a count nor a share',
  ],
  [
    'cardinality',
    12,
    typed('relationships:', '  - { type_key: hosted_on, direction: out, peer_types: [infra.host], min: 2 }'),
    'above the 1 that hosted_on allows',
  ],
  [
    'symmetric',
    12,
    typed('relationships:', '  - { type_key: connects_to, direction: in, peer_types: [infra.host] }'),
    'has no direction',
  ],
  [
    'unique',
    13,
    typed(
      'actions:',
      '  - { action_key: go, title: Go, mode: operation }',
      '  - { action_key: go, title: Gone, mode: operation }',
    ),
    'go is defined twice',
  ],
  [
    'unique',
    14,
    typed(
      'health:',
      '  metrics:',
      '    - { key: p95_ms, title: p95, unit: ms, better: lower }',
      '    - { key: p95_ms, title: slow, unit: ms, better: lower }',
    ),
    'p95_ms is defined twice',
  ],
  [
    'reference',
    12,
    typed(
      'requires:',
      '  - { requirement_key: r, capability_key: compute.slots, version_range: ^1.0.0, where: { colour: red } }',
    ),
    'colour is not an attribute',
  ],
  [
    'range',
    12,
    typed(
      'requires:',
      '  - { requirement_key: r, capability_key: storage.sql, version_range: ^1.0.0, where: { engine_version: new } }',
    ),
    '"new" is not a version range',
  ],
  [
    'pointer',
    12,
    typed(
      'requires:',
      '  - { requirement_key: r, capability_key: compute.slots, version_range: ^1.0.0, amount: { $from: target/desired_state/none } }',
    ),
    '/none is not in the desired_state schema',
  ],
  [
    'pointer',
    12,
    typed(
      'requires:',
      '  - { requirement_key: r, capability_key: compute.slots, version_range: ^1.0.0, amount: { $from: elsewhere } }',
    ),
    'is not a pointer into the resource',
  ],
]

describe('types of imported records', () => {
  const { model } = checkPacks([SHIPPED_PACKS])
  const types = model.types.filter(({ pack, abstract }) => ['ipam', 'dcim', 'k8s', 'cloud'].includes(pack) && !abstract)

  it('have an icon, titles for every field, and room for what the source says besides', () => {
    expect(types.length).toBeGreaterThan(60)
    for (const { type_key, icon, desired_state_schema } of types) {
      const { properties, additionalProperties } = desired_state_schema as {
        properties: Record<string, { title?: string }>
        additionalProperties: boolean
      }
      expect(icon, type_key).toMatch(/^[a-z]/)
      expect(additionalProperties, type_key).toBe(false)
      expect(properties.attributes, type_key).toMatchObject({ type: 'object', additionalProperties: true })
      for (const [name, { title }] of Object.entries(properties)) expect(title, `${type_key} ${name}`).toBeTruthy()
    }
  })

  it('take the icon of their base where they have none', () => {
    expect(model.types.find(({ type_key }) => type_key === 'k8s.pod')).toMatchObject({ icon: 'box' })
    expect(model.types.find(({ type_key }) => type_key === 'infra.host')).not.toHaveProperty('icon')
  })
})

describe('schemas of packs', () => {
  it('keep each `pattern` of one schema apart', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', pattern: '^a+$' }, b: { type: 'string', pattern: '^b+$' } },
      patternProperties: { '^x-': { type: 'string', pattern: '^c+$' } },
    }
    expect(violationsOf(schema, { a: 'aa', b: 'bb', 'x-1': 'cc' }, '')).toEqual([])
    expect(violationsOf(schema, { a: 'bb', b: 'aa', 'x-1': 'aa' }, '').map(({ pointer }) => pointer)).toEqual([
      '/a',
      '/b',
      '/x-1',
    ])
  })
})

describe('each rule of loading is broken by one file alone, and the fault names its line', () => {
  it.each(cases)('%s at line %d', (rule, line, lines, text) => {
    const { faults } = check(...lines)
    expect(faults.length).toBeGreaterThan(0)
    expect(
      faults.some((fault) => fault.includes(`(${rule})`) && fault.includes(text)),
      faults.join('\n'),
    ).toBe(true)
    const named = faults.find((fault) => fault.includes(`(${rule})`))
    expect(named).toMatch(new RegExp(`site\\.yaml:${line}:\\d+: `))
  })

  it('names a folder that cannot be read', () => {
    expect(() => checkPacks([join(folder, 'nowhere')])).toThrow(/CATALOG__PACKS__DIRS names .*nowhere/)
  })
})

describe('versions', () => {
  let db: ReturnType<typeof createDb>
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await testDatabase('catalog')
    drop = database.drop
    db = createDb(database.url, { app: 'test' })
  })
  afterAll(async () => {
    await db.close()
    await drop()
  })
  const store = (dir: string, allow_change = false) => {
    const { model, faults } = checkPacks([SHIPPED_PACKS, dir])
    expect(faults).toEqual([])
    return storePacks(db.db, model, { clock: systemClock, allow_change })
  }
  const box = (version: number, schema: string) =>
    typed()
      .map((line) => line.replace('version: 1', `version: ${version}`))
      .map((line) => line.replace('version: 1.0.0', '1.0.0'))
      .concat(`    desired_state_schema: ${schema}`)

  it('are stored side by side; equal versions with different content stop the start', async () => {
    const first = packOf(...typed('desired_state_schema: { type: object, properties: { a: { type: string } } }'))
    expect(await store(first)).toEqual([
      'cloud',
      'core',
      'dcim',
      'delivery',
      'fleet',
      'infra',
      'ipam',
      'k8s',
      'org',
      'site',
    ])
    expect(await store(first)).toEqual([])
    const changed = packOf(...typed('desired_state_schema: { type: object, properties: { a: { type: integer } } }'))
    await expect(store(changed)).rejects.toThrow(/type site\.box version 1 is stored with other content/)
    expect(await store(changed, true)).toEqual(['site'])
    const raised = packOf(
      ...box(2, '{ type: object, properties: { a: { type: integer }, b: { type: string } } }').map((line) =>
        line.replace('version: 2.0.0', 'version: 1.1.0'),
      ),
    )
    expect(await store(raised)).toEqual(['site'])
    const registry = await createRegistry(db.db, () => {})
    const { types } = registry
    registry.close()
    const newest = types.newest('site.box')
    expect(newest?.version).toBe(2)
    expect(types.version(newest?.id ?? 0, 1)?.desired_state_schema).not.toHaveProperty('properties.b')
    const loads = await db.pool.query(
      `select agg_version from catalog.outbox where type = 'type.pack_loaded' and agg_id = 'site' order by 1`,
    )
    expect(loads.rows.map(({ agg_version }) => agg_version)).toEqual(['1', '2', '3'])
  })

  it('of packs that are added later leave the stored types and their numbers as they are', async () => {
    const before = await db.pool.query('select id, type_key, version, checksum from catalog.type order by 1, 3')
    const later = packOf(
      ...typed('icon: box').map((line) => line.replaceAll('site', 'later').replace('title: Site', 'title: Later')),
    )
    expect(await store(later)).toContain('later')
    const rows = await db.pool.query('select id, type_key, version, checksum from catalog.type order by 1, 3')
    expect(rows.rows.filter(({ type_key }) => type_key !== 'later.box')).toEqual(before.rows)
    const registry = await createRegistry(db.db, () => {})
    registry.close()
    expect(registry.types.newest('later.box')).toMatchObject({ icon: 'box' })
  })

  it('keep a type that is gone from the files readable, closed for new resources', async () => {
    const { model } = checkPacks([SHIPPED_PACKS])
    await storePacks(db.db, model, { clock: systemClock, allow_change: false })
    const registry = await createRegistry(db.db, () => {})
    expect(registry.types.newest('site.box')).toMatchObject({ retired: true })
    registry.close()
  })
})

it('the shipped delivery types follow those of the release before the action apply', async () => {
  const before = join(folder, 'delivery-1.1')
  cpSync(SHIPPED_PACKS, before, { recursive: true })
  const file = join(before, 'delivery.yaml')
  const earlier = readFileSync(file, 'utf8')
    .replace(/^version: .*/m, 'version: 1.1.0')
    .replaceAll(/^ {4}version: [23]$/gm, '    version: 1')
    .replace(/^ {8}(credentials|commit): .*\n/gm, '')
    .replace(/^ {4}actions:\n(?: {6}.*\n)*?(?= {4}relationships)/m, '')
  writeFileSync(file, earlier)
  const database = await testDatabase('catalog')
  const db = createDb(database.url, { app: 'test' })
  try {
    const store = async (dir: string) => {
      const { model, faults } = checkPacks([dir])
      expect(faults).toEqual([])
      const unit = model.types.find(({ type_key }) => type_key === 'delivery.unit')
      return [unit?.actions.length, await storePacks(db.db, model, { clock: systemClock, allow_change: false })]
    }
    expect(await store(before)).toEqual([0, expect.arrayContaining(['delivery'])])
    expect(await store(SHIPPED_PACKS)).toEqual([1, ['delivery']])
  } finally {
    await db.close()
    await database.drop()
  }
})
