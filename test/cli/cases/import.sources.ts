import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readNetbox } from '../../../apps/cli/import/netbox/read.ts'
import { lossOf } from '../../../apps/cli/import/run/report.ts'
import { csvRows, jsonRows, readRows } from '../../../apps/cli/import/table/read.ts'
import { atTerminal, home, json, login, signalbox } from '../client.ts'
import { NETBOX } from '../netbox.ts'

type Resource = {
  resource_id: string
  type_key: string
  name: string
  lifecycle_status: string
  version: number
  labels: Record<string, string>
  annotations: Record<string, string>
  desired_state: Record<string, unknown>
}
type Report = {
  outcomes: Record<string, number>
  lost: { kind: string; field: string; count: number; reason: string }[]
  missing: string[]
  pruned: { retired: string[]; kept: string[] }
}
const write = (file: string, content: unknown): void =>
  writeFileSync(join(home, file), typeof content === 'string' ? content : JSON.stringify(content))
const run = (kind: string, file: string, name: string, ...options: string[]) =>
  signalbox('ada', ['import', kind, file, '--source-name', name, '--report', `${name}.report`, ...options])
const reportOf = (name: string) => JSON.parse(readFileSync(join(home, `${name}.report`), 'utf8')) as Report
/** The open resources of a source, by their ids in it. */
const stored = async (name: string): Promise<Map<string, Resource>> => {
  const query = `label=${encodeURIComponent(`signalbox/import-source=${name}`)}&include=state&page_size=500`
  const { items } = json<{ items: Resource[] }>(await signalbox('ada', ['api', 'GET', `/api/v1/resources?${query}`]))
  return new Map(items.map((one) => [one.annotations['signalbox/external-id'] ?? '', one]))
}
const edgesOf = async (resource_id: string) =>
  (await signalbox('ada', ['api', 'GET', `/api/v1/resources/${resource_id}/relationships?page_size=500`])).out

describe('an export of NetBox', () => {
  const made = readNetbox([JSON.parse(JSON.stringify(NETBOX))], { source: 'nb', into: undefined }).items

  beforeAll(async () => {
    await login('ada')
    write('nb.json', NETBOX)
  })

  it('is imported completely, exported equal, and unchanged the second time', async () => {
    const first = await run('netbox', 'nb.json', 'nb', '--strict')
    expect(first).toMatchObject({ code: 0, err: expect.stringMatching(/loss {5}none/) })
    expect(reportOf('nb')).toMatchObject({ outcomes: { created: made.length }, lost: [] })
    const there = await stored('nb')
    expect(there.size).toBe(made.length)
    for (const { external_id, type_key, name, desired_state = {}, labels = {}, annotations = {} } of made) {
      expect(there.get(external_id), external_id).toMatchObject({ type_key, name, labels, annotations })
      expect(there.get(external_id)?.desired_state, external_id).toEqual(desired_state)
    }
    const [one, other] = ['dcim.interface/1', 'dcim.interface/2'].map((id) => there.get(id)?.resource_id ?? '')
    const edges = await edgesOf(one ?? '')
    expect(edges).toContain('"connects_to"')
    expect(edges).toContain(`"${other}"`)
    const second = await run('netbox', 'nb.json', 'nb')
    expect(second).toMatchObject({ code: 0, err: expect.stringContaining('changes  0') })
    expect(reportOf('nb')).toMatchObject({ outcomes: { unchanged: made.length } })
  })

  it('imports nothing with --strict where a field would be lost, and names the field', async () => {
    const essay = { model: 'dcim.region', pk: 9, fields: { name: 'Far', slug: 'far', essay: 'x'.repeat(40_000) } }
    write('lossy.json', [essay])
    expect(await run('netbox', 'lossy.json', 'lossy', '--strict')).toMatchObject({
      code: 7,
      err: expect.stringMatching(/lost {5}1 × dcim\.region essay: annotations have no room.*\n.*Nothing was imported/s),
    })
    expect(reportOf('lossy').lost).toMatchObject([{ kind: 'dcim.region', field: 'essay', count: 1 }])
    expect((await stored('lossy')).size).toBe(0)
    expect(await run('netbox', 'lossy.json', 'lossy')).toMatchObject({ code: 0 })
    expect((await stored('lossy')).size).toBe(1)
  })

  it('after a review, retires only resources that the source created and no longer has', async () => {
    const gone = (model: string, fields: Record<string, unknown>, pk?: number) =>
      (model === 'virtualization.virtualmachine' && pk === 1) || fields.virtual_machine === 1
    type Row = { model: string; pk?: number; fields: Record<string, unknown> }
    const less = (NETBOX as Row[])
      .filter(({ model, pk, fields }) => !gone(model, fields, pk))
      .filter(({ model, fields }) => model !== 'extras.taggeditem' || fields.tag !== 1)
      .map((row) =>
        row.model === 'dcim.device' && row.pk === 1 ? { ...row, fields: { ...row.fields, asset_tag: null } } : row,
      )
      .map((row) =>
        row.model === 'ipam.vrf' ? { ...row, fields: { ...row.fields, rd: null, export_targets: [] } } : row,
      )
    write('less.json', less)
    const by_hand = {
      resource_id: 'hand-made',
      type_key: 'infra.generic',
      name: 'by hand',
      desired_state: { provider: 'x', kind: 'y' },
      labels: { 'signalbox/import-source': 'nb' },
      annotations: { 'signalbox/external-id': 'dcim.device/77' },
    }
    expect(await signalbox('ada', ['resource', 'create', '-f', '-'], JSON.stringify(by_hand))).toMatchObject({
      code: 0,
    })
    const dry = await run('netbox', 'less.json', 'nb', '--prune', '--dry-run')
    expect(dry).toMatchObject({ code: 8, err: expect.stringMatching(/- retire {3}infra\.virtual_machine {3}vm1/) })
    const asked = await run('netbox', 'less.json', 'nb', '--prune')
    expect(asked).toMatchObject({ code: 2, err: expect.stringContaining('--prune asks before it retires.') })
    const before = await stored('nb')
    expect(before.has('virtualization.virtualmachine/1')).toBe(true)
    expect(before.get('dcim.device/1')?.labels).toHaveProperty('netbox.dev/tag-critical')
    const pruned = await run('netbox', 'less.json', 'nb', '--prune', '--mark-missing', '--yes')
    expect(pruned.code, pruned.err).toBe(0)
    expect(reportOf('nb').missing).toEqual(['hand-made'])
    expect(reportOf('nb').pruned).toMatchObject({ retired: expect.any(Array), kept: ['hand-made'] })
    expect(reportOf('nb').pruned.retired).toHaveLength(2)
    const there = await stored('nb')
    expect(there.has('virtualization.virtualmachine/1')).toBe(false)
    expect(there.has('dcim.device/77')).toBe(true)
    const device = there.get('dcim.device/1')
    expect(device?.annotations).not.toHaveProperty('netbox.dev/asset_tag')
    expect(device?.labels).not.toHaveProperty('netbox.dev/tag-critical')
    expect(there.get('ipam.vrf/1')?.desired_state).not.toHaveProperty('rd')
    expect(await edgesOf(there.get('ipam.vrf/1')?.resource_id ?? '')).not.toContain('export_targets')
    expect(await run('netbox', 'less.json', 'nb', '--prune', '--yes')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes  0'),
    })
  })
})

describe('rows with a mapping', () => {
  const MAPPING = `
format: signalbox.mapping/v1
ignore: [internal]
items:
  - id: "place/{site}"
    type: topology.region
    name: "{site}"
    fields: { /desired_state/code: "{site}" }
  - id: "dc/{site}/{room}"
    type: topology.datacenter
    name: "{room}"
    parent: "place/{site}"
    fields: { /desired_state/code: "{room}" }
  - id: "host/{serial}"
    type: infra.host
    name: "{hostname}"
    parent: "dc/{site}/{room}"
    owner: "{team}"
    lifecycle_status: active
    fields:
      /desired_state/hostname: "{hostname}"
      /desired_state/serial_number: "{serial}"
      /desired_state/memory_mib: { column: ram, as: integer }
      /labels/stage: { column: stage, values: { P: production, T: test } }
    relations: [{ type: depends_on, to: "host/{needs}", separator: ";" }]
    rest: annotations
`
  const CSV = `site,room,hostname,serial,ram,stage,team,needs,note,internal
map1,r1,"web, one",S1,2048,P,shop,host-less,,x
map1,r1,db,S2,4096,T,,,"two
lines",y
map1,r1,app,S3,1024,T,,S1;S2,,
`

  it('of CSV: typed, related, with unmapped columns kept and reported', async () => {
    write('hosts.map.yaml', MAPPING)
    write('hosts.csv', CSV.replace('host-less', ''))
    const ran = await run('csv', 'hosts.csv', 'cmdb', '--mapping', 'hosts.map.yaml', '--strict')
    expect(ran.code, ran.err).toBe(0)
    const there = await stored('cmdb')
    expect([...there.keys()].sort()).toEqual(['dc/map1/r1', 'host/S1', 'host/S2', 'host/S3', 'place/map1'])
    expect(there.get('host/S1')).toMatchObject({
      name: 'web, one',
      lifecycle_status: 'active',
      desired_state: { hostname: 'web, one', memory_mib: 2048, serial_number: 'S1' },
      labels: { stage: 'production' },
    })
    expect(there.get('host/S2')?.annotations).toMatchObject({ 'import/note': 'two\nlines' })
    const edges = await edgesOf(there.get('host/S3')?.resource_id ?? '')
    for (const id of ['host/S1', 'host/S2']) expect(edges).toContain(there.get(id)?.resource_id ?? '-')
    expect(await run('csv', 'hosts.csv', 'cmdb', '--mapping', 'hosts.map.yaml')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes  0'),
    })
    write('forgets.yaml', MAPPING.replace('    rest: annotations\n', ''))
    expect(await run('csv', 'hosts.csv', 'other', '--mapping', 'forgets.yaml', '--strict')).toMatchObject({
      code: 7,
      err: expect.stringMatching(/lost {5}1 × row note: no rule of the mapping names it/),
    })
  })

  it('of CSV from a spreadsheet: with a mark, other line ends, empty rows and columns without a name', async () => {
    const rows = CSV.replace('host-less', '').replace('\nlines', ' lines').trim().split('\n')
    const cells = rows.map(
      (row, at) => `${row.replace('map1', 'map3').replaceAll(/\bS(?=\d)/g, 'X')},,${at === 1 ? 'kept' : ''}`,
    )
    write('sheet.csv', `\uFEFF${[...cells, ',,,,,,,,,,,', ''].join('\r\n')}`)
    write('sheet.map.yaml', MAPPING)
    const ran = await run('csv', 'sheet.csv', 'sheet', '--mapping', 'sheet.map.yaml')
    expect(ran.code, ran.err).toBe(0)
    const there = await stored('sheet')
    expect([...there.keys()].filter((id) => id.startsWith('host/')).sort()).toEqual(['host/X1', 'host/X2', 'host/X3'])
    expect(there.get('host/X2')?.annotations).toMatchObject({ 'import/note': 'two lines' })
    expect(ran.err).toMatch(/lost {5}1 × infra.host column 12/)
  })

  it('with texts that do not fit: each is named, and kept whole beside what became of it', async () => {
    const mapping = {
      format: 'signalbox.mapping/v1' as const,
      items: [
        {
          id: '{id}',
          type: 'infra.service',
          name: '{name}',
          owner: '{team}',
          fields: { '/labels/rack': '{rack}', '/annotations/note': { column: 'note', as: 'json' as const } },
        },
      ],
    }
    const long = 'n'.repeat(300)
    const rows = `id,name,team,rack,note\nfit-a,${long},t,B 4/2,"{""a"":1}"\nfit-b,"two\nlines",${'o'.repeat(200)},b4,1\nfit-c,${'\u{1f600}'.repeat(260)},t,ok,2\n`
    const found = readRows(csvRows(rows, mapping), mapping, { into: undefined })
    expect(lossOf(found).changed.map(({ field, count }) => [field, count])).toEqual([
      ['name', 3],
      ['labels.rack', 1],
      ['owner', 1],
    ])
    expect(found.items).toMatchObject([
      {
        name: 'n'.repeat(253),
        labels: { rack: 'B-4-2' },
        annotations: { 'import/name': long, 'import/labels.rack': 'B 4/2', note: '{"a":1}' },
      },
      { name: 'two lines', owner: 'o'.repeat(128), annotations: { 'import/owner': 'o'.repeat(200) } },
      { name: '\u{1f600}'.repeat(253), labels: { rack: 'ok' } },
    ])
    write('fit.json', mapping)
    write('fit.csv', rows)
    const ran = await run('csv', 'fit.csv', 'fit', '--mapping', 'fit.json', '--strict')
    expect(ran).toMatchObject({
      code: 0,
      err: expect.stringMatching(/changed {2}1 × infra\.service labels\.rack: made to fit/),
    })
    expect(await run('csv', 'fit.csv', 'fit', '--mapping', 'fit.json')).toMatchObject({
      code: 0,
      err: expect.stringContaining('changes  0'),
    })
  })

  it('in which a new row takes the name that another row gave up', async () => {
    write(
      'names.yaml',
      `{ format: signalbox.mapping/v1, items: [{ id: '{id}', type: infra.service, name: '{name}' }] }`,
    )
    const args = (...more: string[]) => ['names.csv', 'names', '--mapping', 'names.yaml', ...more] as const
    write('names.csv', 'id,name\nnames-1,front\n')
    expect((await run('csv', ...args())).code).toBe(0)
    write('names.csv', 'id,name\nnames-1,front-old\nnames-2,front\n')
    const second = await run('csv', ...args())
    expect(second.code, second.err).toBe(0)
    expect((await stored('names')).get('names-2')).toMatchObject({ name: 'front (names-2)', display_name: 'front' })
    expect(await run('csv', ...args())).toMatchObject({ code: 0, err: expect.stringContaining('changes  0') })
    // Once the earlier row is gone from the file, the name is a conflict that a person decides.
    write('names.csv', 'id,name\nnames-3,front\n')
    expect(await run('csv', ...args())).toMatchObject({
      code: 7,
      err: expect.stringMatching(/already_exists[\s\S]*--adopt/),
    })
  })

  it('with more relations than an item may have: the rest is lost, and reported', () => {
    const needs = Array.from({ length: 120 }, (_, i) => `s${i}`)
    const relations = [{ type: 'depends_on', to: '{needs}', separator: ';' }]
    const mapping = {
      format: 'signalbox.mapping/v1' as const,
      items: [{ id: '{id}', type: 'infra.service', name: '{id}', relations }],
    }
    const found = readRows(csvRows(`id,needs\nhub,${needs.join(';')}\n`, mapping), mapping, { into: undefined })
    expect(found.items[0]?.relationships).toHaveLength(100)
    const lost = { kind: 'infra.service', field: 'depends_on', count: 20, example: 'hub > s100' }
    expect(lossOf(found).lost).toMatchObject([lost])
  })

  it('of JSON: members by names with dots, the same items as the CSV', async () => {
    const rows = [
      { place: { site: 'map2', room: 'r1' }, hostname: 'web', serial: 'J1', ram: 512, stage: 'P', note: { a: 1 } },
    ]
    write('hosts.json', { data: { rows } })
    write(
      'json.map.yaml',
      MAPPING.replace('ignore: [internal]', 'rows: /data/rows')
        .replaceAll('{site}', '{place.site}')
        .replaceAll('{room}', '{place.room}')
        .replace('    owner: "{team}"\n', '')
        .replace('    relations: [{ type: depends_on, to: "host/{needs}", separator: ";" }]\n', ''),
    )
    const ran = await run('json', 'hosts.json', 'cmdb2', '--mapping', 'json.map.yaml', '--strict')
    expect(ran.code, ran.err).toBe(0)
    expect((await stored('cmdb2')).get('host/J1')).toMatchObject({
      desired_state: { hostname: 'web', memory_mib: 512 },
      annotations: { 'import/note.a': '1' },
    })
  })

  it('refuses a JSON row in which two members have one name with dots', () => {
    const rows = [{ 'a.b': 1, a: { b: 2 } }]
    expect(() => jsonRows([rows], { format: 'signalbox.mapping/v1', items: [] })).toThrow(
      'row 1 has two values for a.b',
    )
  })

  it('refuses a mapping or a row that is ambiguous', async () => {
    const faults: [mapping: string, csv: string, says: RegExp][] = [
      [MAPPING.replace('{team}', '{crew}'), CSV, /names the column crew, which no row has/],
      [MAPPING.replace('owner:', 'ownr:'), CSV, /mapping .* is not valid at \/items\/2/],
      [MAPPING, CSV.replace('2048', 'much'), /line 2, column ram: "much" cannot be read as integer/],
      [MAPPING, CSV.replace('S2,4096', 'S1,4096'), /line 4 contradicts an earlier row about host\/S1/],
      [MAPPING, CSV.replace('db,S2', 'db,'), /has no value for id: host\/\{serial\}/],
      [MAPPING, 'a,b\n1,2,3\n', /it is not valid CSV/],
      [MAPPING, 'site;room\n1;2\n', /the column site, which no row has; columns are site;room/],
      [MAPPING, CSV.replace('db,S2', 'db,"S\t2"'), /host\/S\t2 is not valid at \/external_id/],
      [MAPPING.replace('/labels/stage', '/labels/a b'), CSV, /host\/S1 is not valid at \/labels/],
      [MAPPING, CSV.replace('note,internal', 'note,note'), /the header names the column note twice/],
    ]
    for (const [mapping, csv, says] of faults) {
      write('fault.yaml', mapping)
      write('fault.csv', csv)
      const ran = await run('csv', 'fault.csv', 'faulty', '--mapping', 'fault.yaml')
      expect([ran.code, ran.err]).toEqual([2, expect.stringMatching(says)])
    }
  })
})

it('a state of OpenTofu is imported with all attributes and without secrets, twice the same', async () => {
  const instance = (type: string, name: string, attributes: object, more: object = {}) => ({
    mode: 'managed',
    type,
    name,
    instances: [{ attributes, ...more }],
  })
  write('shop.tfstate', {
    version: 4,
    terraform_version: '1.8.0',
    outputs: { url: { value: 'https://x.example', type: 'string' } },
    resources: [
      instance('aws_vpc', 'main', { id: 'vpc-1', cidr_block: '10.0.0.0/16', tags: { Name: 'main', 'odd:key': 'a b' } }),
      instance('aws_subnet', 'a', { id: 'subnet-1', cidr_block: '10.0.1.0/24' }, { dependencies: ['aws_vpc.main'] }),
      instance('aws_instance', 'web', { id: 'i-1', ami: 'ami-1', subnet_id: 'subnet-1', ebs_optimized: false }),
      instance('aws_db_instance', 'db', { identifier: 'db', engine: 'postgres', password: 'hunter2' }),
      instance('random_pet', 'name', { id: 'red-cat', keepers: { a: '1' } }),
    ],
  })
  const first = await run('terraform', 'shop.tfstate', 'tofu', '--into', 'imp-a', '--strict')
  expect(first.code, first.err).toBe(0)
  expect(first.err).toContain('withheld 1 × aws_db_instance password')
  const there = await stored('tofu')
  expect(there.get('aws_vpc.main')).toMatchObject({
    type_key: 'cloud.network',
    desired_state: { id: 'vpc-1', cidr: '10.0.0.0/16', attributes: { cidr_block: '10.0.0.0/16' } },
    labels: { Name: 'main' },
    annotations: { 'terraform.io/tags': '{"odd:key":"a b"}' },
  })
  expect(there.get('aws_instance.web')).toMatchObject({ annotations: { 'terraform.io/ebs_optimized': 'false' } })
  expect(there.get('random_pet.name')?.desired_state).toMatchObject({ attributes: { keepers: { a: '1' } } })
  expect(JSON.stringify([...there.values()])).not.toContain('hunter2')
  expect(await run('terraform', 'shop.tfstate', 'tofu', '--into', 'imp-a')).toMatchObject({
    code: 0,
    err: expect.stringContaining('changes  0'),
  })
})

describe('a file of many rows', () => {
  const COUNT = 900
  const MAPPING = `
format: signalbox.mapping/v1
items:
  - { id: "{id}", type: infra.service, name: "{id}", fields: { /desired_state/port: { column: port, as: integer } } }
`
  const csv = (port: number, count = COUNT) =>
    ['id,port', ...Array.from({ length: count }, (_, i) => `many-${i},${port}`)].join('\n')
  const args = (...more: string[]) => ['many.csv', 'many', '--mapping', 'many.yaml', '--batch', '100', ...more] as const
  const all = () =>
    signalbox('ada', ['resource', 'list', '--type', 'infra.service', '--filter', 'name:many-', '--all', '-o', 'json'])

  it('resumes where Ctrl-C stopped it: nothing twice, nothing lost', async () => {
    write('many.yaml', MAPPING)
    write('many.csv', csv(80))
    const first = atTerminal('ada', [
      'import',
      'csv',
      'many.csv',
      '--source-name',
      'many',
      '--mapping',
      'many.yaml',
      '--batch',
      '100',
    ])
    await first.shows('100/900 imported')
    first.type('\u0003')
    expect(await first.code).toBe(130)
    const key = /--idempotency-key ([0-9a-f-]{36})/.exec(first.screen().replaceAll(/\r?\n/g, ' '))?.[1] ?? ''
    expect(first.screen()).toContain('continues in the catalog')
    const resumed = await run('csv', ...args('--idempotency-key', key))
    expect(resumed.code, resumed.err).toBe(0)
    expect(reportOf('many')).toMatchObject({ outcomes: { created: COUNT } })
    const there = json<{ version: number }[]>(await all())
    expect([there.length, there.every(({ version }) => version === 1)]).toEqual([COUNT, true])
    expect(await run('csv', ...args())).toMatchObject({ code: 0, err: expect.stringContaining('changes  0') })
  })

  it('leaves what a person changed, names them, and overwrites it by force', async () => {
    const [one] = json<{ resource_id: string; name: string }[]>(await all())
    const change = { resource_id: one?.resource_id, expected_version: 1, patch: { desired_state: { port: 8080 } } }
    const body = JSON.stringify({ items: [{ op: 'update', change }] })
    const changed = await signalbox('ada', ['api', 'POST', '/api/v1/resources:bulk', '-d', '-'], body)
    expect(changed.code, changed.err).toBe(0)
    const refused = await run('csv', ...args())
    expect(refused).toMatchObject({
      code: 7,
      err: expect.stringMatching(
        /field_owned .*: 1 in all, such as many-\d+: Other managers set different values: .*port \(user:/,
      ),
    })
    expect(reportOf('many')).toMatchObject({ outcomes: { unchanged: COUNT - 1, conflict: 1 } })
    expect(await run('csv', ...args('--force'))).toMatchObject({ code: 0, err: expect.stringContaining('changes  1') })
  })

  it('retires hundreds after a review, except those with dependents', async () => {
    write('many.csv', csv(80, 100))
    const [hub, user] = ['many-200', 'many-50']
    const found = json<{ resource_id: string; name: string; version: number }[]>(await all())
    const idOf = (name = '') => found.find((one) => one.name === name)
    const edge = { op: 'add', type_key: 'depends_on', target_id: idOf(hub)?.resource_id }
    const change = {
      resource_id: idOf(user)?.resource_id,
      expected_version: idOf(user)?.version,
      relationship_changes: [edge],
    }
    const body = JSON.stringify({ items: [{ op: 'relate', change }] })
    const related = await signalbox('ada', ['api', 'POST', '/api/v1/resources:bulk?mode=record_only', '-d', '-'], body)
    expect(related.code, related.err).toBe(0)
    const pruned = await run('csv', ...args('--prune', '--yes'))
    expect(pruned).toMatchObject({ code: 7, err: expect.stringContaining(`kept     ${idOf(hub)?.resource_id}`) })
    expect(reportOf('many').pruned.retired).toHaveLength(COUNT - 101)
    expect(json<object[]>(await all())).toHaveLength(101)
  })

  it('retires by the states on the way, and leaves what is needed in its own', async () => {
    write(
      'hosts.yaml',
      `
format: signalbox.mapping/v1
items:
  - { id: "{id}", type: infra.host, name: "{id}", lifecycle_status: active, fields: { /desired_state/hostname: id } }
`,
    )
    const args = (...more: string[]) =>
      ['hosts.csv', 'hosts', '--mapping', 'hosts.yaml', '--into', 'imp-a', ...more] as const
    write('hosts.csv', 'id\nold-1\nold-2\nold-3\nnew-1\n')
    const first = await run('csv', ...args())
    expect(first.code, first.err).toBe(0)
    const before = await stored('hosts')
    const [user, needed] = [before.get('new-1'), before.get('old-2')]
    const relationship_changes = [{ op: 'add', type_key: 'depends_on', target_id: needed?.resource_id }]
    const change = { resource_id: user?.resource_id, expected_version: user?.version, relationship_changes }
    const body = JSON.stringify({ items: [{ op: 'relate', change }] })
    const related = await signalbox('ada', ['api', 'POST', '/api/v1/resources:bulk?mode=record_only', '-d', '-'], body)
    expect(related.code, related.err).toBe(0)
    write('hosts.csv', 'id\nnew-1\n')
    const pruned = await run('csv', ...args('--prune', '--yes'))
    expect(pruned).toMatchObject({ code: 7, err: expect.stringContaining(`kept     ${needed?.resource_id}`) })
    expect(reportOf('hosts').pruned.retired).toHaveLength(2)
    const after = await stored('hosts')
    expect([...after.keys()].sort()).toEqual(['new-1', 'old-2'])
    expect(after.get('old-2')).toMatchObject({ lifecycle_status: 'active', version: needed?.version })
  })

  it('retires resources that need one another together, and then what they need', async () => {
    const mapping = `
format: signalbox.mapping/v1
items:
  - { id: "{id}", type: infra.service, name: "{id}", relations: [{ type: depends_on, to: "{needs}", separator: ";" }] }
`
    write('ring.yaml', mapping)
    const args = (...more: string[]) => ['ring.csv', 'ring', '--mapping', 'ring.yaml', ...more] as const
    write('ring.csv', 'id,needs\nring-a,ring-b;ring-base\nring-b,ring-c\nring-c,ring-a\nring-base,\nring-other,\n')
    expect((await run('csv', ...args())).code).toBe(0)
    write('ring.csv', 'id,needs\nring-other,\n')
    const pruned = await run('csv', ...args('--prune', '--yes'))
    expect(pruned.code, pruned.err).toBe(0)
    expect(reportOf('ring').pruned.retired).toHaveLength(4)
    expect([...(await stored('ring')).keys()]).toEqual(['ring-other'])
  })
})
