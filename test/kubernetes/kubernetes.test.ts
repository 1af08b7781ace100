import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { alter, exportOf, forgeAs, forged, forging, refused } from '../agent/support/refusal.ts'
import { until } from '../support/until.ts'
import { bareOf, configMap, deployment, type KubeLab, secret, startKubeLab } from './support/lab.ts'

/** Sets of objects behind a gate, against a real kube-apiserver: the approved set is applied, or none of it. */
let k: KubeLab
const PASSWORD = 'hunter2-in-a-secret'
const CODED = Buffer.from(PASSWORD).toString('base64')
beforeAll(async () => {
  k = await startKubeLab()
  for (const name of ['web', 'other']) await k.kube.namespace(name)
}, 240_000)
afterAll(() => k?.stop())

const at = (plural: string, name: string, namespace = 'web') =>
  `${plural === 'deployments' ? '/apis/apps/v1' : '/api/v1'}/namespaces/${namespace}/${plural}/${name}`
/** No controller runs here: the test reports what one would report. */
const available = (name: string, n = 1) =>
  until(
    async () => {
      const live = await k.kube.get(at('deployments', name))
      if (!live) return undefined
      const counts = { replicas: n, updatedReplicas: n, readyReplicas: n, availableReplicas: n }
      const status = { observedGeneration: live.metadata.generation, ...counts }
      return k.kube.patch(`${at('deployments', name)}/status`, { status })
    },
    { timeout_ms: 60_000 },
  )
const everythingOf = async (path: string) => {
  const { operation_id } = (await k.lab.p.as('vic').get(path)).body
  const rows = await k.lab.p.query<{ text: string }>(
    `select t::text as text from (
       select to_jsonb(n) t from operations.nodes n where operation_id = $1
       union all select to_jsonb(a) from operations.node_attempts a where operation_id = $1
       union all select to_jsonb(g) from operations.gates g where operation_id = $1) all_rows`,
    [operation_id],
  )
  const logs = await Promise.all(['plan', 'apply'].map((id) => k.lab.p.as('vic').get(`${path}/nodes/${id}/logs`)))
  const kept = readdirSync(k.lab.p.config.OPERATIONS__ARTIFACTS__DIR, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
  expect(kept.length).toBeGreaterThan(0)
  return [...rows.map(({ text }) => text), ...logs.map(({ text }) => text), ...kept]
}

it('applies exactly what was approved, waits for health, and shows no secret anywhere', async () => {
  const app = deployment('api', 'shop:1', { replicas: 2 })
  k.write('web/story/all.yaml', [
    app,
    secret('db', { password: PASSWORD }),
    configMap('settings', { url: `db://u:${PASSWORD}@h` }),
  ])
  const path = await k.lab.startGraph(k.change('web/story', { apply: { wait: { timeout_s: 60 } } }))
  const gate = await k.lab.waiting(path)
  const preview = k.previewOf(gate)
  expect(preview).toMatchObject({ binding: 'checked', counts: { create: 3 }, tool: 'kubernetes v1.37.2' })
  const [config, api, db] = ['ConfigMap web/settings', 'Deployment.apps web/api', 'Secret web/db'].map((id) =>
    preview.changes.find((change: { id: string }) => change.id === id),
  )
  expect(config.fields).toContainEqual({ path: '/data/url', after: 'db://u:•••@h' })
  expect(db.fields).toContainEqual({ path: '/data/password', sensitive: true })
  expect(api.fields).toContainEqual({ path: '/spec/template/spec/containers/app/image', after: 'shop:1' })
  expect(api.fields).toContainEqual({ path: '/spec/progressDeadlineSeconds', after: 600, noise: true })
  // A dry run writes no object.
  expect(await k.kube.get(at('configmaps', 'settings'))).toBeUndefined()
  await k.lab.approve(path)
  await until(
    async () => /0 of 2 replicas|has not seen/.test((await k.lab.p.as('vic').get(`${path}/nodes/apply/logs`)).text),
    { what: 'the wait' },
  )
  expect((await k.lab.nodeOf(path, 'apply')).state).toBe('running')
  await available('api', 2)
  const done = await k.lab.reaches(path, 'succeeded', 'apply')
  expect(done.outputs.applied.toSorted()).toEqual([
    ...['ConfigMap web/settings created', 'Deployment.apps web/api created', 'Secret web/db created'],
  ])
  expect((await k.kube.get(at('secrets', 'db'))).data.password).toBe(CODED)
  const live = await k.kube.get(at('deployments', 'api'))
  expect(live.metadata.managedFields[0]).toMatchObject({ manager: 'signalbox-web-story', operation: 'Apply' })
  const evidence = await exportOf(k.lab, path, 'Node apply succeeded (attempt 1)')
  for (const text of [...(await everythingOf(path)), evidence])
    for (const hidden of [PASSWORD, CODED, k.kube.token]) expect(text).not.toContain(hidden)
}, 200_000)

it('if an object changed after the approval, no object is written, and the retry of the preview asks again', async () => {
  k.write('web/stale/all.yaml', [configMap('first', { a: '1' }), configMap('second', { a: '1' })])
  await k.carryOut('web/stale')
  k.write('web/stale/all.yaml', [configMap('first', { a: '2' }), configMap('second', { a: '2' })])
  const path = await k.lab.startGraph(k.change('web/stale'))
  await k.lab.waiting(path)
  const before = await k.kube.get(at('configmaps', 'first'))
  // The same manager, so managers do not conflict: only the value changed.
  const moved = { ...configMap('second', { a: 'theirs' }) }
  await k.kube.ok(
    'PATCH',
    `${at('configmaps', 'second')}?fieldManager=signalbox-web-stale&force=true`,
    moved,
    'application/apply-patch+yaml',
  )
  const old = await k.lab.approve(path)
  await refused(k.lab, path, 'apply', 'preview_stale', /ConfigMap web\/second.*No change was made/)
  expect((await k.kube.get(at('configmaps', 'first'))).metadata.resourceVersion).toBe(before.metadata.resourceVersion)
  const retried = await k.lab.p.as('olga').post(`${path}/nodes/plan/retry`, { scope: 'downstream', reason: 'stale' })
  expect([200, 202], retried.text).toContain(retried.status)
  const gate = await until(
    async () => {
      const now = await k.lab.waiting(path)
      return now.round > old.round ? now : undefined
    },
    { timeout_ms: 60_000 },
  )
  expect(gate.digest).not.toBe(old.digest)
  await k.lab.approve(path)
  await k.lab.reaches(path, 'succeeded', 'apply')
  expect((await k.kube.get(at('configmaps', 'second'))).data).toEqual({ a: '2' })
}, 200_000)

it('an object that someone else created after the preview is theirs: it is not taken over, so no undo deletes it', async () => {
  const theirs = configMap('theirs', { a: '1' })
  k.write('web/theirs/all.yaml', [theirs])
  const path = await k.lab.startGraph(k.change('web/theirs'))
  await k.lab.waiting(path)
  await k.kube.ok('PATCH', `${at('configmaps', 'theirs')}?fieldManager=another`, theirs, 'application/apply-patch+yaml')
  await k.lab.approve(path)
  await refused(k.lab, path, 'apply', 'preview_stale', /ConfigMap web\/theirs.*it exists now.*No change was made/)
}, 200_000)

it('objects with a digest other than the approved one are refused', async () => {
  k.write('web/forged/all.yaml', [configMap('forged', { a: '1' })])
  const graph = k.change('web/forged')
  const [first, { compensate: _, ...second }] = graph.nodes as [object, { compensate: object }]
  const inputs = { cluster: 'eu1', wait: false, preview: forged }
  const apply = { ...second, depends_on: ['forged'], with: { job: 'kubernetes.apply', inputs } }
  const path = await k.lab.startGraph({ nodes: [first, forging('objects', ['plan']), apply] })
  const { preview } = (await k.lab.reaches(path, 'succeeded', 'plan')).outputs
  forgeAs(k.lab, 'objects', { ...preview, plan: { ...preview.plan, content_sha256: 'f'.repeat(64) } })
  const failed = await k.lab.reaches(path, 'failed', 'apply')
  expect(failed).toMatchObject({
    error_class: 'agent_refused',
    error_message: expect.stringContaining('a different digest'),
  })
  expect(await k.kube.get(at('configmaps', 'forged'))).toBeUndefined()
}, 120_000)

it('if the approved objects were altered in the store, the apply fails, knows that no change was made, and says so', async () => {
  k.write('web/altered/all.yaml', [configMap('altered', { a: '1' })])
  const path = await k.lab.startGraph(k.change('web/altered'))
  await k.lab.waiting(path)
  alter(k.lab, (await k.lab.nodeOf(path, 'plan')).outputs.preview.plan.sha256)
  await k.lab.approve(path)
  await refused(k.lab, path, 'apply', 'agent_error', /^The artifact \S+ .*No change was made/)
  expect(await k.kube.get(at('configmaps', 'altered'))).toBeUndefined()
}, 200_000)

it('a set may be one file of its source', async () => {
  k.write('web/single/all.yaml', [configMap('single', { a: '1' })])
  k.write('web/single/other.yaml', [configMap('beside', { a: '1' })])
  await k.carryOut('web/single', { inputs: { path: 'web/single/all.yaml' } })
  expect((await k.kube.get(at('configmaps', 'single'))).data).toEqual({ a: '1' })
  expect(await k.kube.get(at('configmaps', 'beside'))).toBeUndefined()
}, 200_000)

it('prunes only objects that the set no longer has, and the compensation restores all of them', async () => {
  const app = deployment('shop', 'shop:1', { replicas: 1 })
  const kept = {
    kind: 'PersistentVolumeClaim',
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }
  k.write('web/prune/all.yaml', [
    ...[app, configMap('old', { a: '1' }, { labels: { x: 'y' } }), configMap('adopted', { mine: '1' })],
    { apiVersion: 'v1', ...kept, metadata: { name: 'data' } },
  ])
  await k.kube.ok('POST', '/api/v1/namespaces/web/configmaps', { metadata: { name: 'adopted' }, data: { theirs: '1' } })
  await k.carryOut('web/prune')
  // A foreign object with the same labels.
  await k.kube.ok('POST', '/api/v1/namespaces/web/configmaps', { metadata: { name: 'foreign', labels: { x: 'y' } } })
  const read = () =>
    Promise.all(
      [
        at('deployments', 'shop'),
        ...['old', 'adopted', 'signalbox-set-web-prune'].map((name) => at('configmaps', name)),
      ].map(k.kube.get),
    )
  const before = await read()
  k.write('web/prune/all.yaml', [
    deployment('shop', 'shop:2', { replicas: 3 }),
    configMap('new', { a: '1' }),
    configMap('adopted', { mine: '2' }),
  ])
  const graph = k.change('web/prune', { inputs: { prune: true } })
  const rest = { node_id: 'rest', executor: 'noop', with: { delay_ms: 1 }, depends_on: ['apply'] }
  const gates = [...graph.gates, { ...graph.gates[0], gate_id: 'hold', guards: ['rest'] }]
  const path = await k.lab.startGraph({ nodes: [...graph.nodes, rest], gates })
  expect(k.previewOf(await k.lab.approve(path))).toMatchObject({
    counts: { create: 1, update: 2, delete: 1 },
    changes: expect.arrayContaining([
      {
        id: 'ConfigMap web/old',
        action: 'delete',
        fields: [{ path: '/metadata/uid', before: before[1].metadata.uid }],
      },
      {
        ...{ id: 'Deployment.apps web/shop', action: 'update' },
        fields: expect.arrayContaining([{ path: '/spec/replicas', before: 1, after: 3 }]),
      },
    ]),
  })
  await k.lab.reaches(path, 'succeeded', 'apply')
  expect(await k.kube.get(at('configmaps', 'old'))).toBeUndefined()
  expect(await k.kube.get(at('configmaps', 'foreign'))).toBeDefined()
  expect(await k.kube.get(at('persistentvolumeclaims', 'data'))).toBeDefined()
  expect((await k.kube.get(at('configmaps', 'adopted'))).data).toEqual({ theirs: '1', mine: '2' })

  await k.lab.waiting(path, 'hold')
  const stopped = await k.lab.p.as('olga').post(`${path}/cancel`, { reason: 'undo it', mode: 'compensate' })
  expect([200, 202], stopped.text).toContain(stopped.status)
  await until(async () => (await k.lab.nodeOf(path, 'apply')).state === 'compensated', { timeout_ms: 60_000 })
  const after = await read()
  expect(after.slice(0, 3).map(bareOf)).toEqual(before.slice(0, 3).map(bareOf))
  expect(await k.kube.get(at('configmaps', 'new'))).toBeUndefined()
  const listed = (one: { data: { objects: string } }) =>
    JSON.parse(one.data.objects).map(({ uid: _, ...ref }: { uid: string }) => ref)
  expect(listed(after[3])).toEqual(listed(before[3]))
}, 200_000)

it('leaves an object that has moved to another set, even since the preview, and the other set prunes it later', async () => {
  const [moved, late] = [configMap('moved', { a: '1' }), configMap('moved-late', { a: '1' })]
  const own = (name: string) => configMap(name, { a: '1' })
  const prune = { inputs: { prune: true } }
  k.write('web/from/all.yaml', [own('from'), moved, late])
  await k.carryOut('web/from', prune)
  k.write('web/to/all.yaml', [own('to'), moved])
  await k.carryOut('web/to', prune)
  k.write('web/from/all.yaml', [own('from'), late])
  const { gate } = await k.carryOut('web/from', prune)
  expect(k.previewOf(gate).counts).not.toHaveProperty('delete')
  expect(await k.kube.get(at('configmaps', 'moved'))).toBeDefined()

  k.write('web/from/all.yaml', [own('from')])
  const path = await k.lab.startGraph(k.change('web/from', prune))
  expect(k.previewOf(await k.lab.waiting(path)).counts).toMatchObject({ delete: 1 })
  k.write('web/to/all.yaml', [own('to'), moved, late])
  await k.carryOut('web/to', prune)
  await k.lab.approve(path)
  await refused(k.lab, path, 'apply', 'preview_stale', /ConfigMap web\/moved-late.*another set has it now/)
  expect(await k.kube.get(at('configmaps', 'moved-late'))).toBeDefined()

  k.write('web/to/all.yaml', [own('to')])
  const { gate: last } = await k.carryOut('web/to', prune)
  expect(k.previewOf(last).counts).toMatchObject({ delete: 2 })
  for (const name of ['moved', 'moved-late']) expect(await k.kube.get(at('configmaps', name))).toBeUndefined()
}, 200_000)

it('deletes no object that another set takes meanwhile: neither after its waves nor by an undo', async () => {
  const [made, left] = [configMap('taken-made', { a: '1' }), configMap('taken-left', { a: '1' })]
  k.write('web/giver/all.yaml', [made])
  const graph = k.change('web/giver')
  const rest = { node_id: 'rest', executor: 'noop', with: { delay_ms: 1 }, depends_on: ['apply'] }
  const gates = [...graph.gates, { ...graph.gates[0], gate_id: 'hold', guards: ['rest'] }]
  const undone = await k.lab.startGraph({ nodes: [...graph.nodes, rest], gates })
  await k.lab.approve(undone)
  await k.lab.waiting(undone, 'hold')
  k.write('web/leaver/all.yaml', [left])
  await k.carryOut('web/leaver', { inputs: { prune: true } })
  k.write('web/leaver/all.yaml', [deployment('slow', 'shop:1', { replicas: 1 })])
  const path = await k.lab.startGraph(
    k.change('web/leaver', { inputs: { prune: true }, apply: { wait: { timeout_s: 60 } } }),
  )
  expect(k.previewOf(await k.lab.approve(path)).counts).toMatchObject({ delete: 1 })
  await until(() => k.kube.get(at('deployments', 'slow')), { timeout_ms: 60_000 })

  k.write('web/taker/all.yaml', [made, left])
  await k.carryOut('web/taker')
  await available('slow')
  await k.lab.reaches(path, 'succeeded', 'apply')
  const stopped = await k.lab.p.as('olga').post(`${undone}/cancel`, { reason: 'undo it', mode: 'compensate' })
  expect([200, 202], stopped.text).toContain(stopped.status)
  await until(async () => (await k.lab.nodeOf(undone, 'apply')).state === 'compensated', { timeout_ms: 60_000 })
  for (const name of ['taken-made', 'taken-left']) expect(await k.kube.get(at('configmaps', name))).toBeDefined()
}, 200_000)

it("refuses with the server's message what the server would refuse, and by its own rules what it may not touch", async () => {
  await k.kube.ok('POST', '/apis/apps/v1/namespaces/web/deployments', deployment('fixed', 'a:1', { replicas: 1 }))
  const patch = { ...deployment('fixed', 'a:1'), spec: { replicas: 4 } }
  await k.kube.ok(
    'PATCH',
    `${at('deployments', 'fixed')}?fieldManager=hpa&force=true`,
    patch,
    'application/apply-patch+yaml',
  )
  const other = deployment('fixed', 'a:1')
  Object.assign(other.spec, {
    selector: { matchLabels: { app: 'x' } },
    template: { ...other.spec.template, metadata: { labels: { app: 'x' } } },
  })
  const gone = configMap('gone', {}, { namespace: 'web-none' })
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } }
  const cases: [string, object[] | string, object, string, RegExp][] = [
    ['managed', [deployment('fixed', 'a:1', { replicas: 2 })], {}, 'conflict', /\.spec\.replicas of hpa/],
    ['immutable', [other], { conflicts: 'take' }, 'refused', /spec\.selector: Invalid value: .*field is immutable/],
    ['unknown', [deployment('typo', 'a:1', { replica: 2 })], {}, 'refused', /\.spec\.replica: field not declared/],
    ['invalid', [secret('bad name', {})], {}, 'render_failed', /has no valid name/],
    [
      'query',
      [configMap('x', {}, { namespace: 'web/configmaps/y?a=' })],
      {},
      'render_failed',
      /no valid apiVersion or/,
    ],
    ['root', [{ ...configMap('x', {}), apiVersion: 'v1?a=' }], {}, 'render_failed', /no valid apiVersion or/],
    ['secret', [{ ...secret('bad', {}), data: { 'a b': CODED } }], {}, 'refused', /Secret "bad" is invalid/],
    ['namespace', [gone], {}, 'refused', /namespaces "web-none" not found/],
    ['crd', [widget], {}, 'refused', /no kind Widget in example.com\/v1/],
    [
      'outside',
      [configMap('x', {}, { namespace: 'other' })],
      {},
      'agent_refused',
      /does not allow steps to change the namespace "other"/,
    ],
    [
      'kinds',
      [{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec: {} }],
      {},
      'agent_refused',
      /change a PersistentVolume/,
    ],
    ['twice', [configMap('x', {}), configMap('x', {})], {}, 'agent_refused', /contains ConfigMap web\/x twice/],
    ['broken', 'a: [', {}, 'render_failed', /all\.yaml/],
    ['bomb', `a: &a [x,x,x]\nb: &b [${'*a,'.repeat(100)}]\nc: [${'*b,'.repeat(100)}]`, {}, 'render_failed', /alias/i],
    ['none', [configMap('x', {})], { path: 'web/../..' }, 'agent_refused', /must be a path in the source/],
    ['missing', [configMap('x', {})], { path: 'web/absent' }, 'source_missing', /has no path "web\/absent"/],
    ['cluster', [configMap('x', {})], { cluster: 'us1' }, 'agent_refused', /names no cluster "us1"/],
    [
      'inline',
      [configMap('x', {})],
      { source: undefined, path: undefined, objects: [secret('s', { a: 'b' })] },
      'agent_refused',
      /A Secret comes from/,
    ],
    ['away', [configMap('x', {})], { cluster: 'nowhere' }, 'unreachable', /is not answering: .*refused/],
  ]
  const nodes = cases.map(([name, content, more]) => {
    k.write(`web/${name}/all.yaml`, content)
    const { source, path, ...rest } = k.inputsOf(`web/${name}`, more) as Record<string, unknown>
    return k.node(name, 'preview', { ...rest, ...(source !== undefined && { source, path }) }, ['preview'], {
      retry: { max_attempts: 1 },
    })
  })
  const path = await k.lab.start(...nodes)
  for (const [name, , , kind, words] of cases) {
    const failed = await refused(k.lab, path, name, kind, words)
    expect(failed.error_message).not.toContain(CODED)
  }
  expect(await k.kube.get('/api/v1/namespaces/web/configmaps/x')).toBeUndefined()
}, 300_000)

it('an object that is being deleted is refused before any write; a pruned one that its finalizer keeps is named', async () => {
  const kept = configMap('kept', { a: '1' }, { finalizers: ['example.com/hold'] })
  k.write('web/held/all.yaml', [kept, configMap('other', { a: '1' })])
  await k.carryOut('web/held')
  k.write('web/held/all.yaml', [configMap('other', { a: '2' })])
  const path = await k.lab.startGraph(
    k.change('web/held', { inputs: { prune: true }, apply: { wait: { timeout_s: 3 } } }),
  )
  await k.lab.approve(path)
  expect(await k.lab.reaches(path, 'failed', 'apply')).toMatchObject({
    error_class: 'not_ready',
    error_message: expect.stringMatching(/ConfigMap web\/kept: its finalizers keep it: example\.com\/hold/),
  })
  k.write('web/held/all.yaml', [{ ...kept, data: { a: '2' } }, configMap('other', { a: '2' })])
  const again = await k.lab.start(k.change('web/held').nodes[0] as never)
  expect(await k.lab.reaches(again, 'failed', 'plan')).toMatchObject({
    error_class: 'refused',
    error_message: expect.stringMatching(/ConfigMap web\/kept is being deleted.*No change was made/),
  })
}, 200_000)

it('takes over a field of another manager only on request, and the gate names the manager', async () => {
  await k.kube.ok('POST', '/apis/apps/v1/namespaces/web/deployments', deployment('taken', 'a:1', { replicas: 1 }))
  const apply = { ...deployment('taken', 'a:1'), spec: { replicas: 4 } }
  await k.kube.ok(
    'PATCH',
    `${at('deployments', 'taken')}?fieldManager=hpa&force=true`,
    apply,
    'application/apply-patch+yaml',
  )
  k.write('web/take/all.yaml', [deployment('taken', 'a:1', { replicas: 2 })])
  const { gate } = await k.carryOut('web/take', { inputs: { conflicts: 'take' } })
  expect(k.previewOf(gate).changes[0]).toMatchObject({ note: 'takes over .spec.replicas of hpa' })
  expect((await k.kube.get(at('deployments', 'taken'))).spec.replicas).toBe(2)
}, 120_000)

it('brings namespaces and kinds with the set: the server checks the rest once they exist', async () => {
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { size: { type: 'integer' } } },
        status: { type: 'object', properties: { phase: { type: 'string' } } },
      },
    },
  }
  const crd = {
    ...{
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.own.example' },
    },
    spec: {
      ...{
        group: 'own.example',
        scope: 'Namespaced',
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
      },
      versions: [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }],
    },
  }
  const widget = (size: unknown) => ({
    apiVersion: 'own.example/v1',
    kind: 'Widget',
    metadata: { name: 'w' },
    spec: { size },
  })
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'own' } }
  k.write('own/all.yaml', [widget(3), configMap('inside', { a: '1' }), namespace, crd])
  const wait = { timeout_s: 60, ready_if: { Widget: "object.status.phase == 'Ready'" } }
  const path = await k.lab.startGraph(k.change('own', { apply: { wait } }))
  const gate = await k.lab.approve(path)
  expect(k.previewOf(gate)).toMatchObject({
    counts: { create: 4 },
    unforeseen: [/Widget/, /ConfigMap/].map((id) => expect.stringMatching(id)),
  })
  const at = '/apis/own.example/v1/namespaces/own/widgets/w'
  await until(async () => (await k.kube.get(at))?.spec.size === 3, { timeout_ms: 60_000 })
  expect((await k.lab.nodeOf(path, 'apply')).state).toBe('running')
  await k.kube.patch(`${at}/status`, { status: { phase: 'Ready' } })
  await k.lab.reaches(path, 'succeeded', 'apply')
}, 200_000)

it('a value at a sensitive path is shown nowhere, nor in the words with which the server refuses it', async () => {
  const versionOf = (pattern: string) => {
    const spec = { type: 'object', properties: { token: { type: 'string', pattern } } }
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
    return { spec: { versions: [{ name: 'v1', served: true, storage: true, schema }] } }
  }
  const names = { plural: 'vaults', singular: 'vault', kind: 'Vault' }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  await k.kube.ok('POST', definitions, {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: 'vaults.own.example' },
    spec: { group: 'own.example', scope: 'Namespaced', names, ...versionOf('^good-').spec },
  })
  const vaults = '/apis/own.example/v1/namespaces/web/vaults'
  await until(async () => (await k.kube.request('GET', vaults)).code === 200, { what: 'the kind' })
  const start = (token: string) => {
    const vault = { apiVersion: 'own.example/v1', kind: 'Vault', metadata: { name: 'v' }, spec: { token } }
    k.write('web/vault/all.yaml', [vault])
    return k.lab.startGraph(k.change('web/vault', { inputs: { sensitive: ['/spec/token'] } }))
  }
  const refused = async (path: string, node: string, token: string) => {
    await k.lab.reaches(path, 'failed', node)
    expect((await k.lab.nodeOf(path, node)).error_message).toMatch(/Invalid value: .*•••/)
    for (const text of await everythingOf(path)) expect(text).not.toContain(token)
  }
  await refused(await start('hunter2-in-a-field'), 'plan', 'hunter2-in-a-field')
  const path = await start('good-but-hidden')
  await k.lab.waiting(path)
  await k.kube.patch(`${definitions}/vaults.own.example`, versionOf('^other-'))
  const other = (token: string) => ({
    apiVersion: 'own.example/v1',
    kind: 'Vault',
    metadata: { name: 'x' },
    spec: { token },
  })
  await until(async () => (await k.kube.request('POST', `${vaults}?dryRun=All`, other('good-x'))).code === 422)
  await k.lab.approve(path)
  await refused(path, 'apply', 'good-but-hidden')
}, 200_000)

it('an object that does not get ready fails with the cause and the newest events, and reports the progress', async () => {
  k.write('web/slow/all.yaml', [deployment('slow', 'shop:1'), configMap('slow', { a: '1' })])
  const path = await k.lab.startGraph(k.change('web/slow', { apply: { wait: { timeout_s: 60 } } }))
  await k.lab.approve(path)
  const live = await until(() => k.kube.get(at('deployments', 'slow')), { timeout_ms: 60_000 })
  const involvedObject = { kind: 'Pod', name: 'slow-1', namespace: 'web' }
  const event = {
    metadata: { name: 'e1' },
    involvedObject,
    type: 'Warning',
    reason: 'ErrImagePull',
    message: 'no such image',
  }
  await k.kube.ok('POST', '/api/v1/namespaces/web/events', event)
  const condition = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'timed out' }
  const status = { observedGeneration: live.metadata.generation, conditions: [condition] }
  await k.kube.patch(`${at('deployments', 'slow')}/status`, { status })
  const failed = await k.lab.reaches(path, 'failed', 'apply')
  expect(failed.error_class).toBe('not_ready')
  for (const words of [/Objects done: 2 of 2/, /ProgressDeadlineExceeded: timed out/, /ErrImagePull: no such image/])
    expect(failed.error_message).toMatch(words)
}, 120_000)

it('a diff of 10 MB is shown in part, with its sizes and its digest', async () => {
  const maps = (mark: string) =>
    Array.from({ length: 11 }, (_, i) => configMap(`big${i}`, { text: mark.repeat(950_000) }))
  k.write('web/big/all.yaml', maps('a'))
  await k.carryOut('web/big')
  k.write('web/big/all.yaml', maps('b'))
  const { gate, operation } = await k.carryOut('web/big')
  const preview = k.previewOf(gate)
  expect(preview).toMatchObject({ changes_count: 11, digest: expect.stringMatching(/^sha256:/) })
  expect(preview.changes[0].fields[0].after).toMatch(/^b+ … b+ \(950000 characters\)$/)
  expect(JSON.stringify(preview).length).toBeLessThan(20_000)
  const evidence = await exportOf(k.lab, operation, 'Node apply succeeded (attempt 1)')
  expect(evidence.length).toBeLessThan(50_000)
  expect(evidence).toContain(gate.digest)
}, 200_000)

it('renders kustomizations and charts with the real tools, and refuses hooks', async () => {
  k.write('web/kust/base.yaml', [deployment('kust', 'shop:1')])
  k.write(
    'web/kust/kustomization.yaml',
    'resources: [base.yaml]\nnamePrefix: k-\nimages: [{ name: shop, newTag: "2" }]\n',
  )
  await k.carryOut('web/kust', { inputs: { render: 'kustomize' } })
  expect((await k.kube.get(at('deployments', 'k-kust'))).spec.template.spec.containers[0].image).toBe('shop:2')

  k.write('web/chart/Chart.yaml', 'apiVersion: v2\nname: chart\nversion: 1.0.0\n')
  k.write(
    'web/chart/templates/map.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: {{ .Release.Name }} }\ndata: { size: {{ .Values.size | quote }}, mode: 0644 }\n',
  )
  k.write('web/chart/values.yaml', 'size: 1\nhook: false\n')
  k.write(
    'web/chart/templates/hook.yaml',
    '{{ if .Values.hook }}\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: hook, annotations: { helm.sh/hook: pre-install } }\n{{ end }}\n',
  )
  const chart = (values: object) => k.inputsOf('web/chart', { render: 'helm', values })
  const path = await k.lab.start(
    k.node('hook', 'preview', chart({ hook: true }), ['preview']),
    k.node('bad', 'preview', chart({ size: 1 }), ['preview']),
  )
  expect(await k.lab.reaches(path, 'failed', 'hook')).toMatchObject({
    error_class: 'helm_hooks_unsupported',
    error_message: expect.stringContaining('ConfigMap hook'),
  })
  // A ConfigMap value must be text, not a number: the server refuses it.
  expect(await k.lab.reaches(path, 'failed', 'bad')).toMatchObject({
    error_class: 'refused',
    error_message: expect.stringContaining('.data.mode'),
  })
  k.write(
    'web/chart/templates/map.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: {{ .Release.Name }} }\ndata: { size: {{ .Values.size | quote }} }\n',
  )
  // A dependency as an archive whose entry leads out of it.
  const sources = join(k.lab.folder, 'sources')
  k.write('web/archive/Chart.yaml', 'apiVersion: v2\nname: archive\nversion: 1.0.0\n')
  mkdirSync(join(sources, 'web/archive/charts'))
  const archive = join(sources, 'web/archive/charts/sub.tgz')
  execFileSync('tar', ['-czPf', archive, '--transform', 's,^,sub/../../evil-,', '-C', join(sources, 'web/chart'), '.'])
  const evil = await k.lab.start(k.node('evil', 'preview', k.inputsOf('web/archive', { render: 'helm' }), ['preview']))
  await refused(k.lab, evil, 'evil', 'render_failed', /^template failed: .*sub\.tgz.*parent directory\. No change/)
  expect(existsSync(join(sources, 'web/evil-Chart.yaml'))).toBe(false)

  await k.carryOut('web/chart', { inputs: { render: 'helm', values: { size: 7 } } })
  expect((await k.kube.get(at('configmaps', 'web-chart'))).data).toEqual({ size: '7' })
}, 200_000)
