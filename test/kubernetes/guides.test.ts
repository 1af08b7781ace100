import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { objectsIn } from '../support/chart.ts'
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
/** A second restart within one second is refused, and no person types that fast. */
const type = async (block: string) => {
  if (block.includes('rollout restart')) await delay(1000)
  return typeBlock(block, {
    PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    ...{ HOME: folder, KUBECONFIG: kube.kubeconfig, CONFIG: join(folder, 'config') },
    ...{ VALUES: join(folder, 'values.yaml'), OWNER: 'owner:s%263%7Cc%23t', SITE: join(folder, 'site') },
    SMTP_PASSWORD: 'of the mail server',
  })
}
const follow = async (guide: string) => {
  for (const block of blocksOf(guide, 'cluster', 'all')) await type(block)
}
const namesOf = async (api: string, kind: string): Promise<string[]> =>
  (await kube.get(`/${api}${BASE}/${kind}`)).items.map(({ metadata }: Any) => metadata.name)
const deployment = (name: string) => kube.get(`/apis/apps/v1${BASE}/deployments/signalbox-${name}`)
const replicasOf = async (name: string) => (await deployment(name)).spec.replicas
const scaled = () => namesOf('apis/autoscaling/v2', 'horizontalpodautoscalers')
/** As its autoscaler would. */
const grow = (name: string, replicas: number) =>
  kube.patch(`/apis/apps/v1${BASE}/deployments/signalbox-${name}/scale`, { spec: { replicas } })
const imageOf = async (name: string) => (await deployment(name)).spec.template.spec.containers[0].image

it('install: Secrets with the owner, claims, a migration before the apps', async () => {
  await follow('install.md')
  const { data } = await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)
  const owner = new URL(Buffer.from(data['owner-url'], 'base64').toString())
  expect([owner.username, decodeURIComponent(owner.password), owner.host]).toEqual([
    ...['owner', 's&3|c#t', 'postgres.data:5432'],
  ])
  expect(await namesOf('api/v1', 'persistentvolumeclaims')).toEqual(['signalbox-anchors', 'signalbox-artifacts'])
  expect(finished).toEqual(['signalbox-migrate'])
  expect(await imageOf('gateway')).toBe('signalbox:v1')
}, 120_000)

it('files: a file of a setting in its Secret, and folders in the apps that read them', async () => {
  const site = { 'sso/providers.yaml': 'providers: []', 'sso/secrets/corp': 's3cret', 'policy/hard.cedar': '' }
  for (const [name, text] of Object.entries({ ...site, 'policy/gates/two.yaml': 'gates: []' })) {
    mkdirSync(dirname(join(folder, 'site', name)), { recursive: true })
    writeFileSync(join(folder, 'site', name), text)
  }
  await follow('files.md')
  const { data } = await kube.get(`/api/v1${BASE}/secrets/signalbox-operations-files`)
  expect(Buffer.from(data['keys.smtp'], 'base64').toString()).toBe('of the mail server\n')
  const mountsOf = async (app: string) => {
    const { containers, volumes } = (await deployment(app)).spec.template.spec
    return containers[0].volumeMounts.flatMap(({ name, mountPath }: Any) => {
      const { secret, configMap } = volumes.find((one: Any) => one.name === name)
      return name.startsWith('own') ? [[mountPath, secret?.secretName ?? configMap.name]] : []
    })
  }
  expect(await mountsOf('session')).toEqual([
    ['/run/sso', 'site-sso'],
    ['/run/sso/secrets', 'site-sso-secrets'],
  ])
  expect(await mountsOf('identity')).toEqual([['/run/sso', 'site-sso']])
  expect(await mountsOf('operations')).toEqual([
    ['/run/policy', 'site-policy'],
    ['/run/policy/gates', 'site-gates'],
  ])
  expect(await imageOf('session')).toBe('signalbox:v1')
}, 120_000)

it('scale: more workers, fewer workers, then autoscalers, which begin with the replicas that run', async () => {
  const [more = '', fewer = '', autoscalers = ''] = blocksOf('scale.md', 'cluster')
  await type(more)
  expect(await replicasOf('worker-v1')).toBe(4)
  await type(fewer)
  expect([await replicasOf('worker-v1'), await scaled()]).toEqual([2, []])
  await type(autoscalers)
  expect(await scaled()).toContain('signalbox-gateway')
  expect(await replicasOf('gateway')).toBe(2)
}, 60_000)

it('upgrade: another migration, and in the end the new build alone, with the scale that it had', async () => {
  const { metadata } = await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)
  await grow('gateway', 5)
  await follow('upgrade.md')
  expect(finished.length).toBeGreaterThanOrEqual(3)
  expect(await imageOf('gateway')).toBe('signalbox:v2')
  expect(await deployment('worker-v1')).toBeUndefined()
  expect((await kube.get(`/api/v1${BASE}/secrets/signalbox-migrate`)).metadata.uid).toBe(metadata.uid)
  expect([await scaled(), await replicasOf('gateway')]).toEqual([expect.arrayContaining(['signalbox-gateway']), 5])
}, 120_000)

it('scale after an upgrade: the new version stays, and so does each other value', async () => {
  const [more = ''] = blocksOf('scale.md', 'cluster')
  await type(more)
  for (const app of ['gateway', 'worker-v2']) expect([app, await imageOf(app)]).toEqual([app, 'signalbox:v2'])
  expect([await replicasOf('worker-v2'), await replicasOf('gateway')]).toEqual([4, 5])
  expect(await deployment('worker-v1')).toBeUndefined()
  await follow('README.md')
  expect([await imageOf('gateway'), await replicasOf('worker-v2')]).toEqual(['signalbox:v2', 4])
}, 120_000)

it('roll back: the old version of every app, beside it the worker of the new one, and no migration', async () => {
  const before = finished.length
  await follow('roll-back.md')
  for (const app of ['gateway', 'operations', 'worker-v1'])
    expect([app, await imageOf(app)]).toEqual([app, 'signalbox:v1'])
  expect(await imageOf('worker-v2')).toBe('signalbox:v2')
  expect(finished).toHaveLength(before)
  expect([await scaled(), await replicasOf('worker-v1')]).toEqual([expect.arrayContaining(['signalbox-gateway']), 4])
  // The next upgrade migrates again.
  const [, upgrade = ''] = blocksOf('upgrade.md', 'cluster')
  await type(upgrade)
  expect([finished.length > before, await imageOf('gateway')]).toEqual([true, 'signalbox:v2'])
}, 120_000)

it('rotate: after each step the cluster has the Secrets of the set-up, and pods restart', async () => {
  const startedAt = async (app: string) =>
    (await deployment(app)).spec.template.metadata.annotations?.['kubectl.kubernetes.io/restartedAt']
  let rotated = ''
  for (const block of blocksOf('rotate.md', 'cluster', 'all')) {
    if (block.includes('npm run setup')) {
      expect([rotated, block]).toEqual(['', block])
      rotated = block
      await type(block)
      continue
    }
    const before = await startedAt('operations')
    await type(block)
    rotated = ''
    const wanted = objectsIn(readFileSync(join(folder, 'config/secrets.yaml'), 'utf8'))
    expect(wanted.length).toBeGreaterThan(9)
    for (const { metadata, stringData } of wanted) {
      const { data } = await kube.get(`/api/v1${BASE}/secrets/${metadata.name}`)
      const has = Object.entries(data).map(([name, text]) => [name, Buffer.from(String(text), 'base64').toString()])
      const { 'owner-url': _, ...rest } = stringData
      expect([metadata.name, Object.fromEntries(has)]).toEqual([metadata.name, expect.objectContaining(rest)])
    }
    expect(await startedAt('operations')).not.toBe(before)
  }
  expect(rotated).toBe('')
}, 120_000)

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
    ['api/v1', 'configmaps'],
    ['apis/batch/v1', 'jobs'],
    ['apis/networking.k8s.io/v1', 'networkpolicies'],
  ] as const)
    expect([kind, await namesOf(api, kind)]).toEqual([kind, []])
}, 60_000)
