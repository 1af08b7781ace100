import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Site, startSite } from '../agent/support/site.ts'
import { scratchFolder } from '../support/servers.ts'
import { until } from '../support/until.ts'
import { configMap } from './support/lab.ts'
import { type Kubernetes, startKubernetes, TOOLS } from './support/server.ts'

/** One operation over sets of two real clusters, which are resources of the real catalog; the pack is that of `pack init`. */
let clusters: Record<'eu1' | 'us1', Kubernetes>
let site: Site
const NAMES = ['eu1', 'us1'] as const
const greet = (text: string) =>
  writeFileSync(site.place('shop/source/all.yaml'), JSON.stringify(configMap('greeting', { text })))
beforeAll(async () => {
  const folder = scratchFolder()
  const [eu1, us1] = await Promise.all([startKubernetes(folder), startKubernetes(folder)])
  clusters = { eu1, us1 }
  for (const one of NAMES) await clusters[one].namespace('shop')
  site = await startSite('shop', 'kubernetes', async (place) => ({
    concurrency: 2,
    kubernetes: {
      ...TOOLS(),
      sources: { shop: { path: place('shop/source') } },
      clusters: Object.fromEntries(
        NAMES.map((one) => [one, { kubeconfig: clusters[one].kubeconfig, namespaces: ['shop'] }]),
      ),
    },
  }))
}, 300_000)
afterAll(async () => {
  await site?.stop()
  await Promise.all(Object.values(clusters ?? {}).map((one) => one.stop()))
})

const MAP = '/api/v1/namespaces/shop/configmaps/greeting'
const texts = () => Promise.all(NAMES.map(async (one) => (await clusters[one].get(MAP))?.data.text))
type Resource = { resource_id: string; desired_state: object; observed_state: { version?: string } }
const versions = (ids: string[]) =>
  Promise.all(
    ids.map(async (id) => (await site.people.olga.get<Resource>(`/v1/resources/${id}`)).observed_state.version),
  )

it('changes both clusters behind one gate; one that moved meanwhile is not written, and asks again alone', async () => {
  const { ada, olga } = site.people
  const ids: string[] = []
  for (const cluster of NAMES) {
    const made = await ada.post<Resource>('/v1/resources?mode=record_only', {
      ...{ type_key: 'delivery.object_set', name: `shop-${cluster}`, lifecycle_status: 'active' },
      desired_state: { source: 'shop', cluster, namespace: 'shop', set: 'shop', version: '1' },
    })
    ids.push(made.body.resource_id)
  }
  const change = (version: string) => ({
    ...{ kind: 'change', title: `shop ${version}`, reason: 'a release' },
    targets: ids.map((resource_id) => ({ resource_id })),
    // Both at once: by default one target is the canary of the rest.
    constraints: { batch: { canary: 0, size: 2 } },
    change: { op: 'update', desired_state_patch: { version } },
  })
  greet('one')
  const first = await site.start(change('2'))
  const gate = await site.asked(first)
  const bound = gate.subject.bound_outputs.map(({ value }) => value)
  expect(bound).toMatchObject(NAMES.map(() => ({ binding: 'checked', counts: { create: 1 } })))
  expect(await texts()).toEqual([undefined, undefined])
  await site.approve(first, gate)
  await site.ends(first)
  expect(await texts()).toEqual(['one', 'one'])
  expect(await versions(ids)).toEqual(['2', '2'])

  greet('two')
  const second = await site.start(change('3'))
  const asked = await site.asked(second)
  const moved = configMap('greeting', { text: 'theirs' })
  const path = `${MAP}?fieldManager=signalbox-shop&force=true`
  await clusters.us1.ok('PATCH', path, moved, 'application/apply-patch+yaml')
  await site.approve(second, asked)
  const stateOf = async (node: string) =>
    olga.get<{ state: string; error_class: string }>(`/v1/operations/${second}/nodes/${node}`)
  for (const [node, state] of [
    [`apply.${ids[0]}`, 'succeeded'],
    [`apply.${ids[1]}`, 'failed'],
  ] as const)
    await until(async () => (await stateOf(node)).state === state, { what: `${node} ${state}` })
  expect(await stateOf(`apply.${ids[1]}`)).toMatchObject({ error_class: 'preview_stale' })
  expect(await texts()).toEqual(['two', 'theirs'])
  expect(await versions(ids)).toEqual(['3', '2'])

  await olga.post(`/v1/operations/${second}/nodes/check.${ids[1]}/retry`, { scope: 'downstream', reason: 'it moved' })
  const again = await site.asked(second)
  expect(again.digest).not.toBe(asked.digest)
  await site.approve(second, again)
  await site.ends(second)
  expect(await texts()).toEqual(['two', 'two'])
  expect(await versions(ids)).toEqual(['3', '3'])
  // The cluster that was already right was not written again.
  expect((await clusters.eu1.writesOf('configmaps', 'shop')).greeting).toBe(2)
}, 240_000)

it('the shipped action deletes what the set no longer has, unless the resource says otherwise', async () => {
  const { ada } = site.people
  const resource = async (set: string, more: object = {}) => {
    const made = await ada.post<Resource>('/v1/resources?mode=record_only', {
      ...{ type_key: 'delivery.object_set', name: set, lifecycle_status: 'active' },
      desired_state: { source: 'shop', cluster: 'us1', namespace: 'shop', set, path: set, ...more },
    })
    return made.body.resource_id
  }
  const apply = async (resource_id: string) => {
    const action = { kind: 'action', title: 'apply', reason: 'a commit', action: { action_key: 'apply' } }
    const operation = await site.start({ ...action, targets: [{ resource_id }] })
    const gate = await site.asked(operation)
    await site.approve(operation, gate)
    await site.ends(operation)
    return gate.subject.bound_outputs[0]?.value.counts
  }
  const write = (set: string, file: string, names: string[]) => {
    mkdirSync(site.place(`shop/source/${set}`), { recursive: true })
    const maps = names.map((name) => JSON.stringify(configMap(`${set}-${name}`, { of: set })))
    writeFileSync(site.place(`shop/source/${set}/${file}`), maps.join('\n---\n'))
  }
  const left = async (set: string) =>
    Promise.all(
      ['one', 'two'].map(
        async (name) => !!(await clusters.us1.get(`/api/v1/namespaces/shop/configmaps/${set}-${name}`)),
      ),
    )
  for (const [set, more, counts] of [
    ['pruned', {}, { delete: 1 }],
    ['kept', { prune: false }, {}],
  ] as const) {
    const resource_id = await resource(set, more)
    write(set, 'all.yaml', ['one', 'two'])
    await apply(resource_id)
    expect(await left(set)).toEqual([true, true])
    write(set, 'all.yaml', ['one'])
    expect(await apply(resource_id)).toEqual(counts)
    expect(await left(set)).toEqual([true, set === 'kept'])
  }
  const resource_id = await resource('drawn', { render: 'kustomize' })
  write('drawn', 'map.yaml', ['one'])
  writeFileSync(site.place('shop/source/drawn/kustomization.yaml'), 'resources: [map.yaml]\n')
  await apply(resource_id)
  expect(await left('drawn')).toEqual([true, false])
}, 240_000)
