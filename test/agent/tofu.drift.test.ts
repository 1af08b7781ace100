import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkPacks, SHIPPED_PACKS } from '../../apps/catalog/packs/library.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'
import { mergePatch } from '../../apps/shared/data/merge-patch.ts'
import { locateTofu } from '../support/tofu.ts'
import { type Lab, startLab } from './support/agent.ts'
import { planOf } from './support/drift.ts'
import { mirrorProvider } from './support/provider.ts'

/** Drift of real objects, and providers that come from a mirror alone, with the real tool and a real provider. */
let lab: Lab
let mirrored: string
let program: string
const shared = () => join(lab.folder, 'shared')
beforeAll(async () => {
  program = await locateTofu(createScreen())
  lab = await startLab(['infra', 'own'])
  const state = lab.place('tfstate')
  const source = lab.place('files')
  lab.place('shared')
  writeFileSync(
    join(source, 'main.tf'),
    `
variable "text" {
  type = string
}
resource "local_file" "greeting" {
  filename = "${shared()}/greeting"
  content  = var.text
}
output "text" {
  value = var.text
}
output "secret" {
  value     = "s3cret-\${var.text}"
  sensitive = true
}
`,
  )
  const mirror = mirrorProvider(program, lab.folder, source)
  mirrored = mirror.mirrored
  const { providers } = mirror
  const tofu = { program, providers, sources: { files: { path: source, state } } }
  lab.startAgent({ pools: ['infra'], uid: 0, tofu })
}, 300_000)
afterAll(() => lab.stop())

const inputs = { source: 'files', workspace: 'eu1', variables: { text: 'hello' } }
const external = (node_id: string, job: string, more: object, outputs: object, depends_on: string[] = []) => ({
  ...{ node_id, executor: 'external', pool: 'infra', depends_on, outputs },
  with: { job, inputs: { ...inputs, ...more } },
})
const change = [
  external('plan', 'opentofu.preview', {}, { preview: '/preview' }),
  external('apply', 'opentofu.apply', { preview: { $from: 'nodes/plan/outputs/preview' } }, { catalog: '/catalog' }, [
    'plan',
  ]),
]
const look = external('drift', 'opentofu.drift', {}, { drift: '/drift', catalog: '/catalog', health: '/health' })
const detect = async () => {
  const path = await lab.startGraph({ nodes: [look] })
  return { path, ...(await lab.reaches(path, 'succeeded', 'drift')).outputs }
}

it('an apply and a drift check record state, outputs and resources as the catalog accepts them, without a secret', async () => {
  const path = await lab.startGraph({ nodes: change })
  const { catalog } = (await lab.reaches(path, 'succeeded', 'apply')).outputs
  expect(catalog).toMatchObject({
    outputs: [{ name: 'text', value: 'hello' }],
    resources: ['local_file.greeting'],
    resources_count: 1,
    drift: { status: 'in_sync' },
  })
  const calm = await detect()
  expect(calm).toMatchObject({ health: 'healthy', drift: { status: 'in_sync', changes: 0 } })

  const before = readFileSync(join(lab.folder, 'tfstate/eu1.tfstate'), 'utf8')
  rmSync(join(shared(), 'greeting'))
  const found = await detect()
  expect(found).toMatchObject({
    health: 'degraded',
    drift: { status: 'drifted', changes: 1, resources: ['local_file.greeting'] },
    catalog: { serial: catalog.serial, drift: { status: 'drifted' } },
  })
  expect(existsSync(join(shared(), 'greeting'))).toBe(false)
  expect(readFileSync(join(lab.folder, 'tfstate/eu1.tfstate'), 'utf8')).toBe(before)
  const log = (await lab.p.as('vic').get(`${found.path}/nodes/drift/logs`)).text
  expect(log).toContain('local_file.greeting: is gone')

  const { model } = checkPacks([SHIPPED_PACKS])
  const type = model.types.find(({ type_key }) => type_key === 'delivery.workspace')
  const fits = compileSchema(type?.observed_state_schema)
  for (const record of [catalog, calm.catalog, found.catalog]) {
    expect(fits(mergePatch({}, record))).toEqual([])
    expect(JSON.stringify(record)).not.toContain('s3cret')
  }
}, 180_000)

it('the shipped action writes drift and health to the workspace, without a gate and beside other readers', () => {
  const { nodes, gates, leases } = planOf('detect_drift')
  expect(gates).toEqual([])
  expect([...new Set(leases.map(({ mode }) => mode))]).toEqual(['shared'])
  expect(nodes).toMatchObject([
    {
      with: { job: 'opentofu.drift', inputs },
      catalog: {
        observed_state_patch: { $from: 'nodes/drift.files-eu1/outputs/catalog' },
        health_status: { $from: 'nodes/drift.files-eu1/outputs/health' },
      },
    },
  ])
})

it('jobs share a provider that the lock file proves, and none of them can change it', async () => {
  // An archive is unpacked as a download would be.
  const [package_dir, packed] = [dirname(mirrored), lab.place('packed')]
  const [version, type] = [dirname(package_dir), dirname(dirname(package_dir))]
  const at = join(packed, relative(join(lab.folder, 'providers'), type))
  mkdirSync(at, { recursive: true })
  const archive = join(at, `terraform-provider-local_${basename(version)}_${basename(package_dir)}.zip`)
  execFileSync('python3', ['-m', 'zipfile', '-c', archive, mirrored])
  const source = join(lab.folder, 'files')
  const place = lab.place('unproven')
  cpSync(join(source, 'main.tf'), join(place, 'main.tf'))
  chmodSync(mirrored, 0o755)
  const tofu = {
    ...{ program, providers: packed },
    sources: { files: { path: source, state: lab.place('own') }, unproven: { path: place, state: lab.place('own') } },
  }
  lab.startAgent({ pools: ['own'], uid: 1500, state_dir: join(lab.folder, 'kept'), tofu })
  const planned = async (name: string) => {
    const path = await lab.start({
      ...external('plan', 'opentofu.preview', { source: name }, { preview: '/preview' }),
      pool: 'own',
    })
    return lab.reaches(path, 'succeeded', 'plan')
  }
  const kept = () => readdirSync(join(lab.folder, 'kept/providers'), { recursive: true, encoding: 'utf8' })
  // Without a lock file no hash proves it: it is used once, and not kept.
  await planned('unproven')
  expect(kept()).toEqual([])
  await planned('files')
  const [name = ''] = kept().filter((one) => /terraform-provider-local[^/]*$/.test(one))
  const file = join(lab.folder, 'kept/providers', name)
  for (let path = file; path.startsWith(join(lab.folder, 'kept')); path = dirname(path)) {
    const { uid, mode } = statSync(path)
    expect([path, uid, mode & 0o022]).toEqual([path, process.getuid?.(), 0])
  }
  // The next job reads no archive again.
  writeFileSync(archive, 'unread')
  await planned('files')
}, 180_000)

it('a mirrored provider that differs from the lock file is refused before any plan', async () => {
  writeFileSync(mirrored, Buffer.concat([readFileSync(mirrored), Buffer.from('x')]))
  const path = await lab.startGraph({ nodes: [look] })
  const node = await lab.reaches(path, 'failed', 'drift')
  expect(node).toMatchObject({
    error_class: 'provider_lock',
    error_message: expect.stringContaining('No change was made'),
  })
}, 120_000)
