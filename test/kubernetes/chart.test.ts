import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CHART, NAMES, writeSecrets } from '../support/chart.ts'
import { type Any, type Kubernetes, startKubernetes, TOOLS } from './support/server.ts'

/** The chart at a real kube-apiserver. No controller runs, so no pod does: the server accepts every object. */
const SPACE = 'signalbox'
const folder = mkdtempSync(join(tmpdir(), 'signalbox-install-'))
let kube: Kubernetes
beforeAll(async () => {
  kube = await startKubernetes(folder)
  await kube.namespace(SPACE)
  run(TOOLS().program, 'apply', '--server-side', '-f', process.env.KUBE_KINDS ?? '')
  run(TOOLS().program, 'wait', '--for=condition=Established', 'crd', '--all')
}, 180_000)
afterAll(async () => {
  await kube?.stop()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, [...args, '--namespace', SPACE, '--kubeconfig', kube.kubeconfig], {
    ...{ encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    env: { PATH: process.env.PATH, HOME: folder, HELM_CACHE_HOME: join(folder, 'cache') },
  })
const helm = (...args: string[]) => run(TOOLS().helm, ...args)
const KINDS = {
  'apis/apps/v1': ['deployments'],
  'api/v1': ['services', 'configmaps', 'secrets'],
  'apis/policy/v1': ['poddisruptionbudgets'],
  'apis/autoscaling/v2': ['horizontalpodautoscalers'],
  'apis/networking.k8s.io/v1': ['networkpolicies', 'ingresses'],
  'apis/batch/v1': ['jobs'],
}
/** Every object of the namespace, except those of the setup and the server. */
const installed = async (): Promise<string[]> => {
  const lists = Object.entries(KINDS).flatMap(([api, kinds]) => kinds.map((kind) => [api, kind]))
  const names = await Promise.all(
    lists.map(async ([api, kind]) => {
      const { items } = (await kube.get(`/${api}/namespaces/${SPACE}/${kind}`)) as { items: Any[] }
      return items.map(({ metadata }) => `${kind}/${metadata.name}`)
    }),
  )
  return names.flat().filter((name) => !/^secrets\/signalbox-|kube-root-ca/.test(name))
}
const imageOf = async (app: string) =>
  (await kube.get(`/apis/apps/v1/namespaces/${SPACE}/deployments/signalbox-${app}`)).spec.template.spec.containers[0]
    .image
const SETTINGS = ['--set', 'scaling=true,metrics.dashboard=true', '--no-hooks']

it('the Secrets of the set-up are used unchanged', async () => {
  for (const [name, stringData] of await writeSecrets())
    await kube.ok('POST', `/api/v1/namespaces/${SPACE}/secrets`, { metadata: { name }, stringData })
})

it.each([
  ['scaling=true', 'job.batch/signalbox-migrate', 'readOnlyRootFilesystem'],
  [
    'scaling=true,backlog.address=temporal:7233,metrics.monitor=true,metrics.rules=true',
    'scaledobject.keda.sh/signalbox-worker',
    'minReplicaCount',
  ],
  [
    'pods.nodeSelector.pool=apps,pods.priorityClassName=important,pods.tolerations[0].operator=Exists',
    'deployment.apps/signalbox-worker',
    'priorityClassName',
  ],
  ['metrics.monitor=true', 'servicemonitor.monitoring.coreos.com/signalbox-relay', 'keySecret'],
  ['metrics.rules=true', 'prometheusrule.monitoring.coreos.com/signalbox-rules', 'expr'],
  [
    'edge.kind=HTTPRoute,edge.parents[0].name=public',
    'httproute.gateway.networking.k8s.io/signalbox-gateway',
    'backendRefs',
  ],
])(
  'with %s, every object passes the strict check of the server, and a misspelt field does not',
  (set, object, field) => {
    const file = join(folder, 'all.yaml')
    const text = run(TOOLS().helm, 'template', 'signalbox', CHART, '--set', set)
    const apply = (content: string) => {
      writeFileSync(file, content)
      return run(TOOLS().program, 'apply', '--dry-run=server', '--validate=strict', '-f', file)
    }
    expect(apply(text)).toContain(`${object} created (server dry run)`)
    expect(() => apply(text.replaceAll(`${field}:`, `${field}X:`))).toThrow(new RegExp(`unknown field.*${field}X`))
  },
)

it('is installed, upgraded, rolled back, and leaves nothing behind', async () => {
  helm('install', 'signalbox', CHART, ...SETTINGS)
  const objects = await installed()
  for (const app of NAMES)
    expect(objects).toEqual(
      expect.arrayContaining(
        ['deployments', 'services', 'poddisruptionbudgets', 'networkpolicies'].map(
          (kind) => `${kind}/signalbox-${app}`,
        ),
      ),
    )
  expect(await imageOf('gateway')).toBe('signalbox:0.1.0')
  helm(
    'upgrade',
    'signalbox',
    CHART,
    ...SETTINGS,
    '--set',
    'image.tag=next',
    '--set',
    'builds[0].id=b1,builds[0].tag=next',
  )
  expect(await imageOf('gateway')).toBe('signalbox:next')
  expect(await imageOf('worker-b1')).toBe('signalbox:next')
  helm('rollback', 'signalbox', '1', '--no-hooks')
  expect(await imageOf('gateway')).toBe('signalbox:0.1.0')
  expect(await installed()).not.toContain('deployments/signalbox-worker-b1')
  helm('uninstall', 'signalbox')
  expect(await installed()).toEqual([])
}, 120_000)
