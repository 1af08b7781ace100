import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Context } from '../../apps/cli/command.ts'
import { choose } from '../../apps/cli/import/choose.ts'
import { containersFirst, type Found, type Reader } from '../../apps/cli/import/items.ts'
import { readKubernetes } from '../../apps/cli/import/kubernetes/read.ts'
import { createLedger, isSecretName } from '../../apps/cli/import/loss.ts'
import { applyOverrides, readOverrides } from '../../apps/cli/import/map.ts'
import { readNetbox } from '../../apps/cli/import/netbox/read.ts'
import { withObserved, withRest } from '../../apps/cli/import/rest.ts'
import { type Known, markMissing } from '../../apps/cli/import/run/known.ts'
import { sendItems } from '../../apps/cli/import/send.ts'
import { BOUNDS, parseSource, SourceError } from '../../apps/cli/import/source.ts'
import { csvRows, readRows } from '../../apps/cli/import/table/read.ts'
import { readTerraform } from '../../apps/cli/import/terraform/read.ts'
import { createApi } from '../../apps/cli/session/api.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'

/** What readers make of files, without a server; test/cli/cli.test.ts sends the results. */
const read = (reader: Reader, text: unknown) =>
  reader(parseSource(typeof text === 'string' ? text : JSON.stringify(text)).documents, {
    source: 'src',
    into: { resource_id: 'eu1-a', type_key: 'topology.datacenter' },
  })
const left = ({ ledger }: Found) => Object.fromEntries(ledger.leftOut().map(({ kind, count }) => [kind, count]))
const fate = ({ ledger }: Found, name: string) =>
  ledger
    .fields()
    .filter(({ fate }) => fate === name)
    .map(({ kind, field }) => `${kind} ${field}`)
    .sort()
const refusal = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    if (error instanceof SourceError) return error.message
    throw error
  }
  return 'taken'
}
const state = (resources: unknown[], version = 4) => ({ version, resources })
const instance = (type: string, name: string, ...attributes: Record<string, unknown>[]) => ({
  mode: 'managed',
  type,
  name,
  instances: attributes.map((one, index_key) => ({
    attributes: one,
    ...(attributes.length > 1 && { index_key }),
    dependencies: (one.needs as string[] | undefined) ?? [],
  })),
})

describe('terraform', () => {
  it('every instance becomes an item, a dependency covers all instances, an unknown kind keeps its attributes', () => {
    const found = read(
      readTerraform,
      state([
        instance('aws_instance', 'web', { ami: 'a-1', needs: ['aws_iam_role.r'] }, { ami: 'a-2' }),
        instance('aws_lb', 'edge', { name: 'edge', needs: ['aws_instance.web'] }),
        instance('aws_iam_role', 'r', { name: 'r' }),
        instance('aws_odd_thing', 'o', { name: 'o', size: 3, deep: { a: [1] }, none: null }),
        { ...instance('aws_ami', 'image', {}), mode: 'data' },
      ]),
    )
    const byId = new Map(found.items.map((item) => [item.external_id, item]))
    expect(byId.get('aws_lb.edge')?.relationships?.map(({ target_external_id }) => target_external_id)).toEqual([
      'aws_instance.web[0]',
      'aws_instance.web[1]',
    ])
    expect(byId.get('aws_iam_role.r')).toMatchObject({ type_key: 'cloud.identity', desired_state: { provider: 'aws' } })
    expect(byId.get('aws_odd_thing.o')).toMatchObject({
      type_key: 'infra.generic',
      desired_state: { provider: 'aws', kind: 'aws_odd_thing', attributes: { name: 'o', size: 3, deep: { a: [1] } } },
    })
    expect(byId.get('aws_instance.web[0]')?.annotations).toMatchObject({ 'terraform.io/ami': 'a-1' })
    expect(byId.get('aws_lb.edge')?.parent_external_id).toBe('segment/src')
    expect(byId.get('segment/src')?.parent_external_id).toBe('layer/cloud')
    expect(Object.fromEntries(found.generic)).toEqual({ aws_odd_thing: 1 })
    expect(left(found)).toEqual({ 'data aws_ami': 1 })
    expect(fate(found, 'lost')).toEqual([])
  })

  it('a deposed object stands beside its replacement, in both forms of a state', () => {
    const shown = { address: 'aws_instance.a', mode: 'managed', type: 'aws_instance', values: {} }
    const { items } = read(readTerraform, {
      values: { root_module: { resources: [shown, { ...shown, deposed_key: 'abcd1234' }] } },
    })
    const stored = { ...instance('aws_instance', 'a', {}), instances: [{}, { deposed: 'abcd1234' }] }
    const idsOf = (all: readonly { external_id: string; type_key: string }[]) =>
      all.filter(({ type_key }) => type_key === 'infra.virtual_machine').map(({ external_id }) => external_id)
    expect(idsOf(items)).toEqual(['aws_instance.a', 'aws_instance.a#abcd1234'])
    expect(idsOf(read(readTerraform, state([stored])).items)).toEqual(idsOf(items))
  })

  it("a person's mapping takes precedence over the reader's", () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-map-'))
    const overrides = (text: string) => {
      writeFileSync(join(folder, 'map.yaml'), text)
      return readOverrides(join(folder, 'map.yaml'))
    }
    try {
      const found = read(
        readTerraform,
        state([
          instance('aws_sqs_queue', 'jobs', {
            url: 'https://q.example/jobs',
            tags: { team: 'a', 'x/y': 'b' },
            size: 3,
            deep: {},
          }),
          instance('aws_lb', 'edge', { name: 'edge', dns_name: 'lb.example' }),
          instance('aws_iam_role', 'r', { name: 'r' }),
        ]),
      )
      const map = overrides(`
aws_sqs_queue:
  type_key: infra.endpoint
  fields: { url: /desired_state/url, tags.team: /owner, /tags/x~1y: /labels/xy, size: /labels/size, deep: /name }
aws_lb: { type_key: infra.load_balancer, fields: { dns_name: /annotations/dns } }
aws_none: { type_key: infra.endpoint }
`)
      const mapped = applyOverrides(found, map)
      const byId = new Map(mapped.items.map((item) => [item.external_id, item]))
      expect(byId.get('aws_sqs_queue.jobs')).toMatchObject({
        type_key: 'infra.endpoint',
        owner: 'a',
        name: 'src/aws_sqs_queue.jobs',
        labels: { xy: 'b', size: '3', 'terraform.io/type': 'aws_sqs_queue' },
        desired_state: { url: 'https://q.example/jobs' },
      })
      expect(byId.get('aws_sqs_queue.jobs')?.desired_state).toEqual({ url: 'https://q.example/jobs' })
      expect(byId.get('aws_lb.edge')).toMatchObject({ lifecycle_status: 'active', annotations: { dns: 'lb.example' } })
      expect([...mapped.generic.keys()]).toEqual([])
      expect(mapped.notes.join()).toContain('aws_none')
      for (const [text, words] of [
        ['[1]', 'it is not an object'],
        ['a: 1', 'a needs type_key'],
        ['a: { type_key: X }', 'no valid type_key'],
        ['a: { type_key: b.c, colour: red }', 'a has the unknown member colour'],
        ['a: { type_key: b.c, fields: { x: /type_key } }', 'a maps x to "/type_key"'],
        ['a: { type_key: b.c }\na: { type_key: b.d }', 'unique'],
      ] as const)
        expect(refusal(() => overrides(text))).toContain(words)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('marks that the provider sets by default are kept, and so are those that contradict', () => {
    const found = read(
      readTerraform,
      state([
        instance('aws_eip', 'a', { tags: null, tags_all: { team: 'net' } }),
        instance('aws_eip', 'b', { tags: { team: 'web' }, tags_all: { team: 'web', cost: 'x y' } }),
        instance('google_compute_address', 'c', {
          tags: ['one'],
          labels: { team: 'g' },
          effective_labels: { team: 'h' },
        }),
        instance('aws_lb', 'd', { name: 'd', needs: ['aws_none.x', 'data.aws_ami.y'] }),
      ]),
    )
    const [a, b, c, d] = found.items.filter(({ type_key }) => !type_key.startsWith('topology'))
    expect(a?.labels).toMatchObject({ team: 'net' })
    expect(b).toMatchObject({ labels: { team: 'web' }, annotations: { cost: 'x y' } })
    expect(c).toMatchObject({
      labels: { team: 'g' },
      desired_state: { attributes: { tags: ['one'], effective_labels: { team: 'h' } } },
    })
    expect(d?.relationships).toEqual([])
    expect(found.ledger.fields().filter(({ kind }) => kind === 'dependency')).toMatchObject([
      { field: 'depends_on', count: 2, example: 'aws_lb.d > aws_none.x' },
    ])
    expect(fate(found, 'lost')).toEqual([])
  })

  it('a mapping to another type drops no part of a field that it reads', () => {
    const found = read(
      readTerraform,
      state([instance('aws_odd', 'o', { name: 'x\ty', deep: { a: 1, b: 2 }, list: [1] })]),
    )
    const fields = new Map(Object.entries({ 'deep.a': '/owner', name: '/labels/called', list: '/name' }))
    const mapped = applyOverrides(found, new Map([['aws_odd', { type_key: 'infra.service', fields }]]))
    expect(mapped.items[0]).toMatchObject({
      owner: '1',
      labels: { called: 'x-y' },
      annotations: { 'import/deep': '{"b":2}', 'import/list': '[1]', 'import/labels.called': 'x\ty' },
    })
    expect(fate(mapped, 'changed')).toEqual(['aws_odd labels.called'])
  })

  it('sensitive values of the state are in no item', () => {
    const secret = instance('aws_db_instance', 'db', { engine: 'hunter2', identifier: 'db' })
    const [only] = secret.instances as Record<string, unknown>[]
    if (only) only.sensitive_attributes = [[{ type: 'get_attr', value: 'engine' }]]
    const found = read(
      readTerraform,
      state([secret, instance('random_password', 'p', { result: 'x', password: 'hunter2' })]),
    )
    expect(JSON.stringify(found.items)).not.toContain('hunter2')
    expect(fate(found, 'withheld')).toEqual([
      'aws_db_instance engine',
      'random_password password',
      'random_password result',
    ])
    const shown = {
      values: {
        root_module: {
          resources: [
            {
              address: 'aws_db_instance.db',
              mode: 'managed',
              type: 'aws_db_instance',
              values: { engine: 'hunter2' },
              sensitive_values: { engine: [{ inner: true }] },
            },
          ],
        },
      },
    }
    expect(JSON.stringify(read(readTerraform, shown).items)).not.toContain('hunter2')
  })

  it.each([
    ['random_password', { result: 'hunter2', bcrypt_hash: 'hunter2', length: 16 }],
    ['random_string', { id: 'hunter2', result: 'hunter2' }],
    ['kubernetes_secret', { data: { any: 'hunter2' }, metadata: [{ name: 's', annotations: { a: 'hunter2' } }] }],
    ['kubernetes_secret_v1', { binary_data: { any: 'hunter2' } }],
    ['kubernetes_manifest', { manifest: { kind: 'Secret', metadata: { name: 's' }, stringData: { any: 'hunter2' } } }],
    ['kubernetes_manifest', { object: { items: [{ kind: 'Secret', data: { any: 'hunter2' } }] } }],
    ['kubectl_manifest', { kind: 'Secret', yaml_body: 'data: {any: hunter2}' }],
    ['azurerm_key_vault_secret', { value: 'hunter2', location: 'westeurope' }],
    ['azurerm_key_vault_certificate', { certificate: [{ contents: 'hunter2' }] }],
    ['aws_ssm_parameter', { type: 'SecureString', value: 'hunter2', insecure_value: 'hunter2' }],
    ['aws_secretsmanager_secret_version', { version_stages: ['hunter2'] }],
    ['vault_generic_secret', { path: 'p', data_json: 'hunter2', data: { any: 'hunter2' } }],
    ['vault_kv', { custom: 'hunter2' }],
    ['github_actions_secret', { plaintext_value: 'hunter2' }],
    ['gitlab_project_variable', { value: 'hunter2' }],
    ['azuread_application_password', { value: 'hunter2' }],
    ['local_sensitive_file', { content: 'hunter2' }],
    ['azurerm_linux_virtual_machine', { custom_data: 'hunter2' }],
    ['aws_instance', { startup_script: 'hunter2', metadata: { auth_key: 'hunter2' } }],
    ['azurerm_kubernetes_cluster', { kube_admin_config: [{ client_key: 'hunter2', host: 'h' }] }],
    ['azurerm_storage_account', { primary_access_key: 'hunter2' }],
    ['azurerm_cosmosdb_account', { primary_key: 'hunter2', secondary_readonly_key: 'hunter2' }],
    ['helm_release', { set_sensitive: [{ value: 'hunter2' }] }],
    ['helm_release', { set: [{ name: 'auth.password', value: 'hunter2' }] }],
    [
      'google_cloud_run_v2_service',
      { template: [{ containers: [{ env: [{ name: 'DB_PASSWORD', value: 'hunter2' }] }] }] },
    ],
    ['aws_appconfig', { settings: [{ key: 'api-key', value: 'hunter2' }] }],
    ['datadog_api_key', { key: 'hunter2' }],
    ['circleci_context_environment_variable', { value: 'hunter2' }],
    ['vercel_project_environment_variable', { value: 'hunter2' }],
  ])('no secret of %s is read, even if the state marks none', (type, values) => {
    const marked = instance(type, 's', { name: 'seen', ...values })
    for (const one of marked.instances) Object.assign(one, { sensitive_attributes: [] })
    const found = read(readTerraform, state([marked]))
    expect(JSON.stringify(found.items)).not.toContain('hunter2')
    expect(JSON.stringify(found.items)).toContain('seen')
    expect(fate(found, 'withheld').length).toBeGreaterThan(0)
    const shown = { values: { root_module: { resources: [{ address: `${type}.s`, mode: 'managed', type, values }] } } }
    expect(JSON.stringify(read(readTerraform, shown).items)).not.toContain('hunter2')
  })

  it('values that are no secrets are kept, and a state that marks none is mentioned', () => {
    const plain = { type: 'String', value: 'eu1', arn: 'arn:1' }
    const found = read(
      readTerraform,
      state([
        instance('aws_ssm_parameter', 'p', plain),
        instance('aws_kms_key', 'k', { description: 'of disks' }),
        instance('vault_kv', 'v', { path: 'p' }, { path: 'q' }),
        instance('google_secret_manager_secret_iam_member', 'm', { role: 'reader', member: 'ann', secret_id: 's1' }),
        instance('aws_secretsmanager_secret', 's', { description: 'of mail', kms_key_id: 'k1' }),
        instance('aws_secretsmanager_secret_rotation', 'r', { rotation_rules: 'weekly', secret_id: 's2' }),
        instance('vault_mount', 'v', { type: 'kv-v2' }),
        instance('vault_policy', 'v', { policy: 'path a' }),
      ]),
    )
    expect(found.items.find(({ external_id }) => external_id === 'aws_ssm_parameter.p')?.desired_state).toMatchObject({
      attributes: plain,
    })
    for (const kept of ['of disks', 'reader', 'ann', 's1', 'of mail', 'k1', 'weekly', 's2', 'kv-v2', 'path a'])
      expect(JSON.stringify(found.items)).toContain(`"${kept}"`)
    expect(fate(found, 'withheld')).toEqual([])
    expect(found.notes).toEqual([expect.stringMatching(/^the state marks no sensitive values of vault_kv/)])
  })

  it('a region is named by its location or by the letters of its zone, never by a number', () => {
    const machine = (type: string, name: string, values: object) => instance(type, name, { ...values })
    const found = read(
      readTerraform,
      state([
        machine('azurerm_linux_virtual_machine', 'a', { location: 'westeurope', zone: '3' }),
        machine('aws_instance', 'b', { availability_zone: 'eu-west-1a' }),
        machine('google_compute_instance', 'c', { zone: 'europe-west4-b' }),
        machine('azurerm_linux_virtual_machine', 'd', { zone: '3' }),
        machine('openstack_compute_instance_v2', 'e', { region: 'RegionOne', availability_zone: 'nova' }),
        machine('scaleway_instance_server', 'f', { zone: 'fr-par-1' }),
        machine('aws_instance', 'g', { availability_zone: 'us-east-1-wl1-bos-wlz-1' }),
      ]),
    )
    const placeOf = new Map(found.items.map(({ external_id, parent_external_id }) => [external_id, parent_external_id]))
    expect([...placeOf].filter(([id]) => /^\w+\.[a-g]$/.test(id)).map(([, at]) => at)).toEqual([
      'zone/westeurope/westeurope-3',
      'zone/eu-west-1/eu-west-1a',
      'zone/europe-west4/europe-west4-b',
      undefined,
      'zone/RegionOne/nova',
      'zone/fr-par-1/fr-par-1',
      'zone/us-east-1-wl1-bos-wlz-1/us-east-1-wl1-bos-wlz-1',
    ])
    expect(found.items.find(({ external_id }) => external_id.endsWith('.d'))?.parent_id).toBe('eu1-a')
  })
})

it('the name of a field tells a secret from a reference to one', () => {
  const [secret, harmless] = [
    `password root_pass admin_pass DB_PASS api_key api-key apiKey api.key private-key private_key_pem clientKey
     primary_key secondary_readonly_key primary-master-key access_keys encryption_key instrumentation_key
     connection-string ConnectionString kube-config auth-token user-data user_data user_data_base64 userDataBase64
     custom.data startup-script metadata_startup_script pre-shared-key cert.p12`.split(/\s+/),
    `name compass bypass pass_through kms_master_key_id customer_master_key_spec primary_keyspace signing_key_id
     client_keys_enabled shared_access_key_enabled custom_database user_dataset master_key_arn accessKeyId
     encryption-key-name key keyring`.split(/\s+/),
  ]
  expect([...secret, 'API Key', 'Private Key', 'Connection String'].filter((name) => !isSecretName(name))).toEqual([])
  expect([...harmless, 'Access Key ID', 'Key Ring'].filter(isSecretName)).toEqual([])
})

it('the rest of a row joins the attributes that the mapping sets itself', () => {
  const mapping = {
    format: 'signalbox.mapping/v1' as const,
    items: [
      {
        id: '{id}',
        type: 'infra.generic',
        name: '{id}',
        fields: { '/desired_state/provider': 'x', '/desired_state/attributes/size': '{gb}' },
        rest: 'attributes' as const,
      },
    ],
  }
  const found = readRows(csvRows('id,gb,size,colour\na,3,9,red\n', mapping), mapping, { into: undefined })
  expect(found.items[0]?.desired_state).toEqual({ provider: 'x', attributes: { size: '3', colour: 'red' } })
  expect(fate(found, 'lost')).toEqual(['infra.generic size'])
})

it('a table names every row that cannot be read, and its columns in any spelling of their accents', () => {
  const mapping = (delimiter: string) => ({
    format: 'signalbox.mapping/v1' as const,
    delimiter,
    items: [
      {
        ...{ id: '{id}', type: 'infra.generic', name: '{id}' },
        fields: { '/desired_state/size': { column: 'größe', as: 'integer' as const } },
      },
    ],
  })
  const take =
    (text: string, by = ',') =>
    () => {
      const found = readRows(csvRows(text, mapping(by)), mapping(by), { into: undefined })
      return found.items.map(({ external_id, desired_state }) => [external_id, desired_state?.size])
    }
  const decomposed = 'größe'.normalize('NFD')
  // As spreadsheets export it: a byte order mark, semicolons, quotes and CRLF.
  expect(take(`\ufeffid;${decomposed}\r\n"a ""x""";3\r\n\r\nb;\r\n`, ';')()).toEqual([
    ['a "x"', 3],
    ['b', undefined],
  ])
  expect(refusal(take(`id,größe,${decomposed}\na,1,2\n`))).toContain('names the column größe twice')
  expect(refusal(take('id;größe\na;1\n'))).toMatch(/columns are id;größe: set delimiter in the mapping$/)
  const rows = ['a,x', 'b,2', ',3', ...Array.from({ length: 10 }, (_, i) => `c${i},1.5`)]
  expect(refusal(take(`id,größe\n${rows.join('\n')}\n`))).toMatch(
    /^line 2, column größe: "x" cannot be read as integer; line 4 has no value for id: \{id\}; line 5, .* as integer; and 2 more rows$/,
  )
})

it('the status of an object joins what its rule observes', () => {
  const ledger = createLedger()
  const item = { external_id: 'a', type_key: 'k8s.pod', name: 'a', observed_state: { ready: 1 } }
  const rest = { ledger, kind: 'Pod', prefix: 'x/', open: true }
  expect(withObserved(item, { status: 'up', ready: 2 }, rest).observed_state).toEqual({ ready: 1, status: 'up' })
  expect(ledger.fields().map(({ fate, field }) => [fate, field])).toContainEqual(['lost', 'ready'])
  const noted = { ...item, annotations: { 'x/site': 'a', 'x/rack': '7' } }
  expect(withRest(noted, { site: 'b', rack: '7', row: '1' }, { ...rest, open: false }).annotations).toEqual({
    ...{ 'x/site': 'a', 'x/rack': '7', 'x/row': '1' },
  })
  expect(
    ledger
      .fields()
      .filter(({ fate }) => fate === 'lost')
      .map(({ field }) => field),
  ).toEqual(['ready', 'site'])
})

describe('a part of a file', () => {
  const whole = read(readKubernetes, {
    kind: 'List',
    items: [
      { kind: 'Service', metadata: { name: 'web', namespace: 'a' }, spec: { selector: { app: 'web' } } },
      {
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'a' },
        spec: { template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ image: 'web:1' }] } } },
      },
      ...['x', 'y'].map((name) => ({ kind: 'ClusterRole', metadata: { name } })),
      { kind: 'Odd', metadata: { name: 'z' } },
    ],
  })
  const kinds = ({ items }: { items: { type_key: string }[] }) => items.map(({ type_key }) => type_key)
  const part = (only: string[], leave_out: string[] = []) => choose(whole, { only, leave_out })

  it('is chosen by types and kinds, keeps the containers of the rest, and reports the omissions', () => {
    expect(kinds(whole)).toHaveLength(6)
    const known = part([], ['k8s.role', 'infra.generic'])
    expect(kinds(known)).toEqual(['infra.cluster', 'infra.service', 'infra.deployment'])
    expect(known.generic).toEqual(new Map())
    expect(left(known)).toEqual({ 'k8s.role': 2, 'infra.generic': 1 })
    expect(part([], ['ClusterRole']).generic).toEqual(new Map([['Odd', 1]]))
    expect(left(whole)).toEqual({})
    expect(kinds(part(['infra.deployment', 'infra.service'], ['Service']))).toEqual([
      'infra.cluster',
      'infra.deployment',
    ])
  })

  it('has no edge to omitted items', () => {
    const edges = ({ items }: typeof whole) =>
      items.flatMap(({ relationships = [] }) => relationships.map(({ type_key }) => type_key))
    expect(edges(whole)).toEqual(['member_of'])
    expect(edges(part(['infra.deployment']))).toEqual([])
  })

  it('is refused if a name matches no item, or no item is left', () => {
    expect(refusal(() => part(['infra.hosts']))).toBe('it has no item of the type or kind infra.hosts')
    expect(refusal(() => part(['ClusterRole'], ['k8s.role']))).toBe('no items match the options')
  })
})

describe('kubernetes', () => {
  it('a secret is never read, a list is unfolded, names are unique by namespace', () => {
    const deployment = (namespace: string) => ({
      kind: 'Deployment',
      metadata: { name: 'web', namespace },
      spec: { template: { spec: { containers: [{ image: 'shop/web:1.2.3' }] } } },
    })
    const found = read(readKubernetes, {
      kind: 'List',
      items: [
        deployment('a'),
        deployment('b'),
        { kind: 'Secret', metadata: { name: 's' }, data: { password: 'hunter2' } },
        { kind: 'ConfigMap', metadata: { name: 'c' }, data: { any: 'thing' } },
        { kind: 'Job', metadata: { generateName: 'job-' } },
        { kind: 'Job', metadata: { generateName: 'job-' } },
      ],
    })
    expect(found.items.map(({ type_key, name }) => [type_key, name])).toEqual([
      ['infra.cluster', 'src'],
      ['infra.deployment', 'a/web'],
      ['infra.deployment', 'b/web'],
      ['k8s.config_map', 'c'],
    ])
    expect(JSON.stringify(found)).not.toContain('hunter2')
    expect(left(found)).toEqual({ Secret: 1, Job: 2 })
  })

  it('kinds of other API groups are other kinds, even if they have the same name', () => {
    const object = (apiVersion: string, kind: string) => ({ apiVersion, kind, metadata: { name: 'web' }, spec: {} })
    const found = read(readKubernetes, {
      kind: 'List',
      items: [
        object('serving.knative.dev/v1', 'Service'),
        object('v1', 'Service'),
        object('networking.istio.io/v1', 'Gateway'),
        object('gateway.networking.k8s.io/v1', 'Gateway'),
        object('crd.projectcalico.org/v1', 'NetworkPolicy'),
        object('cilium.io/v2', 'CiliumNode'),
        {
          ...object('apps.kruise.io/v1beta1', 'StatefulSet'),
          spec: { template: { spec: { containers: [{ image: 'shop/web:1' }] } } },
        },
        { ...object('batch.volcano.sh/v1', 'Job'), metadata: { name: 'run', ownerReferences: [{ controller: true }] } },
        { ...object('external.example/v1', 'Secret'), data: { password: 'hunter2' } },
      ],
    })
    expect(found.items.map(({ external_id, type_key }) => [external_id, type_key])).toEqual([
      ['cluster/src', 'infra.cluster'],
      ['src/Service.serving.knative.dev/default/web', 'infra.generic'],
      ['src/Service/default/web', 'infra.service'],
      ['src/Gateway.networking.istio.io/default/web', 'infra.generic'],
      ['src/Gateway/default/web', 'infra.generic'],
      ['src/NetworkPolicy.crd.projectcalico.org/default/web', 'infra.generic'],
      ['src/CiliumNode/default/web', 'infra.generic'],
      ['src/StatefulSet/default/web', 'infra.deployment'],
    ])
    expect(found.notes).toEqual([expect.stringMatching(/^Gateway\.networking\.istio\.io web is named by its group/)])
    expect(JSON.stringify(found)).not.toContain('hunter2')
  })
})

it('a cluster keeps whole manifests, without the values of secrets', () => {
  const found = read(readKubernetes, {
    kind: 'List',
    items: [
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', annotations: { team: 'a b', 'odd key': 'kept' }, uid: 'u-1' },
        spec: {
          template: {
            spec: {
              containers: [
                {
                  image: 'shop/web:1',
                  env: [
                    { name: 'DB_PASSWORD', value: 'hunter2' },
                    { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
                  ],
                  envFrom: [{ configMapRef: { name: 'settings' } }],
                },
              ],
            },
          },
        },
      },
      { kind: 'ConfigMap', metadata: { name: 'settings' }, data: { mode: 'fast', api_key: 'hunter2' } },
      { kind: 'Pod', metadata: { name: 'alone' }, spec: { containers: [] } },
      { kind: 'Pod', metadata: { name: 'p-1', ownerReferences: [{ kind: 'ReplicaSet', controller: true }] } },
    ],
  })
  const byId = new Map(found.items.map((item) => [item.external_id, item]))
  const web = byId.get('src/Deployment/default/web')
  expect(web?.annotations).toMatchObject({ team: 'a b', 'kubernetes.io/annotations': '{"odd key":"kept"}' })
  expect(web?.annotations?.['kubernetes.io/spec']).toContain('secretKeyRef')
  expect(web?.relationships).toEqual([{ type_key: 'depends_on', target_external_id: 'src/ConfigMap/default/settings' }])
  expect(byId.get('src/ConfigMap/default/settings')?.desired_state).toMatchObject({
    attributes: { data: { mode: 'fast' } },
  })
  expect(byId.get('src/Pod/default/alone')).toMatchObject({ type_key: 'k8s.pod' })
  expect(JSON.stringify(found.items)).not.toContain('hunter2')
  expect(fate(found, 'withheld')).toEqual([
    'ConfigMap data.api_key',
    'Deployment spec.template.spec.containers.env.DB_PASSWORD',
  ])
  expect(fate(found, 'lost')).toEqual([])
  expect(left(found)).toEqual({ Pod: 1 })
})

it('an object stays within what one request accepts, and says what it could not keep as it is', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, `v${i}`]))
  const note = 'a'.repeat(31_000)
  const found = read(readKubernetes, {
    kind: 'List',
    items: [
      { kind: 'ConfigMap', metadata: { name: 'wide' }, data: many(1500) },
      { kind: 'ConfigMap', metadata: { name: 'quoted' }, data: { text: '"'.repeat(40_000) } },
      { kind: 'ConfigMap', metadata: { name: 'zero', annotations: { odd: 'a\0b' } }, data: { text: 'a\0b' } },
      {
        kind: 'Pod',
        metadata: { name: 'alone', annotations: { note, more: 'b'.repeat(2000) } },
        status: { conditions: [{ type: 'Ready', lastProbeTime: null }], phase: 'Running' },
      },
    ],
  })
  const item = (id: string) => found.items.find(({ external_id }) => external_id === `src/${id}`)
  expect(item('ConfigMap/default/wide')?.desired_state).toMatchObject({
    attributes: { data: JSON.stringify(many(1500)) },
  })
  expect(item('ConfigMap/default/zero')).toMatchObject({
    annotations: { odd: '"a\\u0000b"' },
    desired_state: { attributes: { data: JSON.stringify({ text: 'a\0b' }) } },
  })
  expect(item('Pod/default/alone')).toMatchObject({
    annotations: { more: 'b'.repeat(2000) },
    observed_state: { status: { conditions: [{ type: 'Ready' }], phase: 'Running' } },
  })
  expect(fate(found, 'lost')).toEqual(['ConfigMap data', 'Pod note'])
})

it('containers come first, and a cycle is reported', () => {
  const item = (external_id: string, parent_external_id?: string) => ({
    external_id,
    type_key: 'infra.generic',
    name: external_id,
    ...(parent_external_id !== undefined && { parent_external_id }),
  })
  const sorted = containersFirst([item('c', 'b'), item('b', 'a'), item('a')])
  expect(sorted.map(({ external_id }) => external_id)).toEqual(['a', 'b', 'c'])
  expect(refusal(() => containersFirst([item('a', 'b'), item('b', 'a')]))).toContain('contains itself')
})

describe('files that nobody here wrote', () => {
  const laughs = `a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from(
    { length: 9 },
    (_, i) => `a${i + 1}: &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]`,
  ).join('\n')}\n`
  const HOSTILE: [name: string, reader: Reader, text: unknown, says: RegExp][] = [
    ['nothing', readKubernetes, ' \n', /empty/],
    ['anchors that grow', readKubernetes, laughs, /anchors are used/],
    ['an anchor in itself', readKubernetes, 'a: &a [*a]\nkind: X\n', /./],
    ['YAML nested deep', readKubernetes, `kind: ${'['.repeat(5000)}`, /nested deeper|YAML/],
    ['YAML nested deep by indentation', readKubernetes, deep(3000), /nested deeper|YAML/],
    ['JSON nested deep', readTerraform, '['.repeat(100_000), /deep/],
    ['doubled YAML members', readKubernetes, 'kind: A\nkind: B\n', /document 1 is not valid YAML: .*line 2/],
    [
      'a fault in the second document',
      readKubernetes,
      'kind: A\nmetadata: {name: a}\n---\na: b: c\n',
      /document 2 .*line 4/,
    ],
    ['doubled JSON members', readTerraform, '{"version": 4, "version": 4}', /version/],
    ['half of a file', readTerraform, '{"version": 4, "resources": [', /not valid JSON/],
    ['many documents', readKubernetes, '---\na: 1\n'.repeat(BOUNDS.documents + 1), /more than 10000 documents/],
    ['too much YAML', readKubernetes, `a: ${'x'.repeat(BOUNDS.yaml_bytes)}`, /larger than 16 MiB/],
    ['a prototype', readTerraform, '{"__proto__": {"version": 4}}', /./],
    ['no manifest', readKubernetes, 'a: 1\n---\nb: 2\n', /document 1 has no kind/],
    [
      'an object without name',
      readKubernetes,
      { kind: 'List', items: [{ kind: 'Service', metadata: {} }] },
      /a Service \(document 1, item 1\) has no valid name/,
    ],
    [
      'the same object twice',
      readKubernetes,
      'kind: A\nmetadata: {name: a}\n---\nkind: A\nmetadata: {name: a}\n',
      /it contains src\/A\/default\/a twice/,
    ],
    ['an old state', readTerraform, state([], 3), /version 3 is not supported/],
    ['no state', readTerraform, '[1]', /its top level is not an object/],
    ['resources that are no list', readTerraform, { version: 4, resources: {} }, /are not a list/],
    ['a resource without type', readTerraform, state([instance('aws_lb', 'a', {}), { name: 'b' }]), /resource 2 /],
    ['a row without pk', readNetbox, [{ model: 'dcim.site', fields: {} }], /row 1, a dcim.site, has no pk/],
    ['a row that is none', readNetbox, [{ model: 'dcim.site', pk: 1, fields: {} }, 7], /row 2 has no model/],
    ['no endpoint', readNetbox, { 'not an endpoint': [] }, /is not an endpoint/],
    ['a served row without id', readNetbox, { 'dcim/sites': [{ name: 'x' }] }, /row 1 of dcim\/sites has no id/],
  ]
  it.each(HOSTILE)('%s: refused at once, with the place', (_, reader, text, says) => {
    const started = performance.now()
    expect(refusal(() => read(reader, text))).toMatch(says)
    expect(refusal(() => read(reader, text))).not.toBe('taken')
    expect(performance.now() - started).toBeLessThan(20_000)
  })

  it('a number that a double cannot hold keeps its digits, in JSON and in YAML', () => {
    const document = { long: '12345678901234567890', short: 7, many: [1e15] }
    expect(parseSource('{"long": 12345678901234567890, "short": 7, "many": [1000000000000000]}').documents).toEqual([
      document,
    ])
    expect(parseSource('long: 12345678901234567890\nshort: 7\nmany: [1000000000000000]').documents).toEqual([document])
    // Some that no request can carry, and some that the catalog refuses.
    const lost = ['1e400', '-1E+400', '1e22', '12345678901234567890.5', '12345678901234567890e2']
    const kept = [{ lost, held: [1e3, 1.5, '1e400'] }]
    const numbers = `"lost": [${lost.join(', ')}], "held": [1e3, 1.5, "1e400"]`
    for (const text of [`{${numbers}}`, `---\n{${numbers}}\n`]) expect(parseSource(text).documents).toEqual(kept)
    expect(parseSource('a: .inf\nb: &b -.nan\nc: *b').documents).toEqual([{ a: '.inf', b: '-.nan', c: '-.nan' }])
  })

  it('items that all name one another keep a bounded number of edges', () => {
    const needs = Array.from({ length: 200 }, (_, i) => `null_resource.r${i}`)
    const all = Array.from({ length: 1000 }, (_, i) => instance('null_resource', `r${i}`, { needs }))
    const { items } = read(readTerraform, state(all))
    expect(items).toHaveLength(1000)
    for (const { relationships } of items) expect(relationships?.length).toBeLessThanOrEqual(100)
    expect(items.at(-1)?.relationships).toHaveLength(100)
  })
})

describe('the command, before it asks a server', () => {
  let dir: string
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'signalbox-import-'))
  })
  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  it.each([
    { dry_run: false, sizes: [4, 4, 4, 4, 4], keys: 3 },
    { dry_run: true, sizes: [4, 4, 2, 1, 2, 4, 1], keys: 7 },
  ])(
    'a job that the catalog could not accept at once is sent again by its key, a dry run in smaller parts: $dry_run',
    async ({ dry_run, sizes, keys: different }) => {
      const asked: { key: string; ids: string[] }[] = []
      const busy = [
        [503, { category: 'internal_error', code: 'unavailable', retryable: true, retry_after_ms: 5 }],
        [409, { category: 'version_conflict', code: 'in_progress', retryable: true, retry_after_ms: 5 }],
      ] as const
      const jobs: object[][] = []
      // The catalog is also away once when the first results are asked for.
      const away = ['results']
      const server = createServer(async (req, res) => {
        const [, number, part] = /imports\/(\d+)(\/results)?/.exec(req.url ?? '') ?? []
        if (number !== undefined) {
          if (part !== undefined && away.splice(0).length > 0) {
            res.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify(busy[0][1]))
            return
          }
          const items = jobs[Number(number)]
          const view = part ? { items, next_page_token: null } : { job_id: number, status: 'done', done: items?.length }
          res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(view))
          return
        }
        const { items } = JSON.parse(await text(req)) as { items: { external_id: string }[] }
        const ids = items.map(({ external_id }) => external_id)
        asked.push({ key: String(req.headers['idempotency-key']), ids })
        const [status, problem] = busy[asked.length - 2] ?? [200, undefined]
        const results = ids.map((external_id, index) => ({ index, external_id, outcome: 'created', diff: [] }))
        const job = { job_id: String(jobs.length), status: 'queued', done: 0, ended_at: null }
        if (!problem) jobs.push(results)
        const body = problem ?? (dry_run ? { results } : job)
        res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      try {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
        const api = createApi({ url, credentials: {} as never, token: 't', idempotency_key: undefined, repeats: 0 })
        const items = Array.from({ length: 12 }, (_, i) => ({
          external_id: `i${i}`,
          type_key: 'infra.service',
          name: `${i}`,
        }))
        const source = { kind: 'kubernetes', name: 'src', file_digest: 'sha256:0' }
        const plan = { api, source, items, size: 4, options: {}, dry_run, key: 'k', onBatch: () => {} }
        expect((await sendItems(plan)).map(({ external_id }) => external_id)).toEqual(
          items.map((item) => item.external_id),
        )
        expect(asked.map(({ ids }) => ids.length)).toEqual(sizes)
        const keys = asked.map(({ key }) => key)
        if (!dry_run) expect(new Set(keys.slice(1, 4)).size).toBe(1)
        expect(new Set(keys).size).toBe(different)
      } finally {
        server.close()
      }
    },
  )

  it('marks what is missing by the same key when the catalog was away', async () => {
    const keys: string[] = []
    const server = createServer((req, res) => {
      keys.push(String(req.headers['idempotency-key']))
      const first = keys.length === 1
      const away = { category: 'internal_error', code: 'unavailable', retryable: true, retry_after_ms: 5 }
      res.writeHead(first ? 503 : 200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(first ? away : { results: [{ status: 200, body: {} }] }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const api = createApi({ url, credentials: {} as never, token: 't', idempotency_key: undefined, repeats: 0 })
      const gone = [{ resource_id: 'r1', version: 1, labels: {} }] as unknown as Known[]
      expect(await markMissing({ api, dry_run: false } as Context, gone, [])).toEqual({ missing: ['r1'], failed: [] })
      expect(keys).toHaveLength(2)
      expect(new Set(keys).size).toBe(1)
    } finally {
      server.close()
    }
  })

  it('sends the items of a machine in requests, and those for which there was no time again', async () => {
    const asked: { path: string; ids: string[]; key: string }[] = []
    const server = createServer(async (req, res) => {
      const { items } = JSON.parse(await text(req)) as { items: { external_id: string }[] }
      const ids = items.map(({ external_id }) => external_id)
      asked.push({ path: String(req.url), ids, key: String(req.headers['idempotency-key']) })
      const job = req.url?.endsWith('/imports')
      const results = ids.map((external_id, index) => ({
        ...{ index, external_id, outcome: index < 3 ? 'created' : 'deferred', diff: [] },
      }))
      const refusal = { status: 403, category: 'policy_denied', code: 'person_required', detail: 'Only a person can.' }
      res.writeHead(job ? 403 : 200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(job ? refusal : { results }))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const api = createApi({ url, credentials: {} as never, token: 't', idempotency_key: undefined, repeats: 0 })
      // They name one another in a ring, so one of them names an item of a later request.
      const items = Array.from({ length: 7 }, (_, i) => ({
        ...{ external_id: `i${i}`, type_key: 'infra.service', name: `${i}` },
        relationships: [{ type_key: 'depends_on', target_external_id: `i${(i + 1) % 7}` }],
      }))
      const source = { kind: 'csv', name: 'src', file_digest: 'sha256:0' }
      const done: number[] = []
      const onProgress = (at: number) => done.push(at)
      const plan = {
        api,
        source,
        items,
        size: 1000,
        options: {},
        dry_run: false,
        key: 'k',
        onBatch: () => {},
        onProgress,
      }
      const results = await sendItems(plan)
      expect(results.map(({ external_id, outcome }) => `${external_id} ${outcome}`).sort()).toEqual(
        items.map(({ external_id }) => `${external_id} created`),
      )
      expect(asked.map(({ path, ids }) => [path.split('/').at(-1), ids.length])).toEqual([
        ['imports', 7],
        ...[7, 4, 1, 1].map((count) => ['resources:import', count]),
      ])
      expect(new Set(asked.slice(1).map(({ key }) => key)).size).toBe(4)
      expect(done).toEqual([3, 6, 7])
    } finally {
      server.close()
    }
  })

  it('names an unreadable file, and exits with the usage code', () => {
    const refused = (file: string, bytes?: Buffer) => {
      if (bytes) writeFileSync(join(dir, file), bytes)
      try {
        execFileSync(
          process.execPath,
          [join(ROOT, 'apps/cli/main.ts'), 'import', 'kubernetes', file, '--source-name', 'x'],
          { cwd: dir, stdio: 'pipe', env: { XDG_CONFIG_HOME: dir, SIGNALBOX_TOKEN: 'none' } },
        )
      } catch (error) {
        const { status, stderr } = error as { status: number; stderr: Buffer }
        return [status, stderr.toString().split('\n')[0]]
      }
      return ['taken']
    }
    expect(refused('latin1.yaml', Buffer.from('kind: caf\xe9\n', 'latin1'))).toEqual([
      2,
      'latin1.yaml cannot be imported: it is not UTF-8 text.',
    ])
    expect(refused('utf16.yaml', Buffer.from('\ufeffkind: A\n', 'utf16le'))[1]).toContain('not UTF-8 text')
    expect(refused('away.yaml')[1]).toMatch(/^away\.yaml cannot be imported: it cannot be read: ENOENT/)
  })
})

function deep(levels: number): string {
  return `kind: A\n${Array.from({ length: levels }, (_, i) => `${' '.repeat(i)}a:`).join('\n')} 1\n`
}
