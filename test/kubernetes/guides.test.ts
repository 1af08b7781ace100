import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { blocksOf, typeBlock } from '../support/guides.ts'
import { type Any, type Kubernetes, startKubernetes, TOOLS } from './support/server.ts'

/** The commands of the guides, one guide after another, at a real kube-apiserver. */
const folder = mkdtempSync(join(tmpdir(), 'signalbox-guides-'))
const BASE = '/namespaces/signalbox'
let kube: Kubernetes
let stopped = false
let jobs: Promise<void> | undefined
beforeAll(async () => {
  kube = await startKubernetes(folder)
  mkdirSync(join(folder, 'bin'))
  symlinkSync(TOOLS().program, join(folder, 'bin/kubectl'))
  symlinkSync(TOOLS().helm, join(folder, 'bin/helm'))
  writeFileSync(join(folder, 'values.yaml'), 'image: { tag: v1 }\nbuilds: [{ id: v1, tag: v1 }]\n')
  jobs = finishJobs()
}, 180_000)
afterAll(async () => {
  stopped = true
  await jobs
  await kube?.stop()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

/** No controller runs, so the test marks each Job as succeeded. */
const finished: string[] = []
const finishJobs = async () => {
  while (!stopped) {
    const { items = [] } = ((await kube.get(`/apis/batch/v1${BASE}/jobs`)) ?? {}) as { items?: Any[] }
    for (const { metadata } of items.filter(({ status }) => !status?.completionTime)) {
      const now = new Date().toISOString().replace(/\.\d+/, '')
      const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({
        ...{ type, status: 'True', lastProbeTime: now, lastTransitionTime: now },
      }))
      const status = { startTime: now, completionTime: now, succeeded: 1, conditions }
      await kube.patch(`/apis/batch/v1${BASE}/jobs/${metadata.name}/status`, { status })
      finished.push(metadata.name)
    }
    await delay(200)
  }
}
const follow = async (guide: string) => {
  const env = {
    PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    ...{ HOME: folder, KUBECONFIG: kube.kubeconfig, CONFIG: join(folder, 'config') },
    ...{ VALUES: join(folder, 'values.yaml'), OWNER: 'owner:s3cret' },
  }
  for (const block of blocksOf(guide, 'cluster', 'all')) await typeBlock(block, env)
}
const namesOf = async (api: string, kind: string): Promise<string[]> =>
  (await kube.get(`/${api}${BASE}/${kind}`)).items.map(({ metadata }: Any) => metadata.name)
const deployment = (name: string) => kube.get(`/apis/apps/v1${BASE}/deployments/signalbox-${name}`)
const imageOf = async (name: string) => (await deployment(name)).spec.template.spec.containers[0].image

it('install: Secrets with the owner, claims, a migration before the apps', async () => {
  await follow('install.md')
  const { data } = await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)
  expect(Buffer.from(data['owner-url'], 'base64').toString()).toContain(
    'postgres://owner:s3cret@postgres.data:5432/postgres',
  )
  expect(await namesOf('api/v1', 'persistentvolumeclaims')).toEqual(['signalbox-anchors', 'signalbox-artifacts'])
  expect(finished).toEqual(['signalbox-migrate'])
  expect(await imageOf('gateway')).toBe('signalbox:v1')
}, 120_000)

it('scale: more workers, fewer workers, then autoscalers', async () => {
  await follow('scale.md')
  expect((await deployment('worker-v1')).spec.replicas).toBe(2)
  expect(await namesOf('apis/autoscaling/v2', 'horizontalpodautoscalers')).toContain('signalbox-gateway')
}, 60_000)

it('upgrade: another migration, and in the end the new build alone', async () => {
  const { metadata } = await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)
  await follow('upgrade.md')
  expect(finished.length).toBeGreaterThanOrEqual(3)
  expect(await imageOf('gateway')).toBe('signalbox:v2')
  expect(await deployment('worker-v1')).toBeUndefined()
  expect((await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)).metadata.uid).toBe(metadata.uid)
}, 120_000)

it('roll back: the old version of every app, beside it the worker of the new one, and no migration', async () => {
  const before = finished.length
  await follow('roll-back.md')
  for (const app of ['gateway', 'operations', 'worker-v1'])
    expect([app, await imageOf(app)]).toEqual([app, 'signalbox:v1'])
  expect(await imageOf('worker-v2')).toBe('signalbox:v2')
  expect(finished).toHaveLength(before)
}, 60_000)

it('rotate: pods restart', async () => {
  await follow('rotate.md')
  const { annotations } = (await deployment('gateway')).spec.template.metadata
  expect(annotations['kubectl.kubernetes.io/restartedAt']).toBeDefined()
}, 60_000)

it('restore: the relay is stopped and started', async () => {
  const [stop = ''] = blocksOf('restore.md', 'cluster')
  expect(stop).toContain('--replicas=0')
  await follow('restore.md')
  expect((await deployment('relay')).spec.replicas).toBe(2)
}, 60_000)

it('uninstall: none of our objects is left', async () => {
  await follow('uninstall.md')
  for (const [api, kind] of [
    ['apis/apps/v1', 'deployments'],
    ['api/v1', 'services'],
    ['api/v1', 'secrets'],
    ['apis/batch/v1', 'jobs'],
    ['apis/networking.k8s.io/v1', 'networkpolicies'],
  ] as const)
    expect([kind, await namesOf(api, kind)]).toEqual([kind, []])
}, 60_000)
