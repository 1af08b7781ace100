import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkPacks, SHIPPED_PACKS } from '../../apps/catalog/packs/library.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { compileSchema } from '../../apps/shared/data/json-schema.ts'
import { locateTofu } from '../support/tofu.ts'
import { type Lab, startLab } from './support/agent.ts'
import { planOf } from './support/drift.ts'
import { mirrorProvider } from './support/provider.ts'

/** Drift of real objects, and providers that come from a mirror alone, with the real tool and a real provider. */
let lab: Lab
let mirrored: string
const shared = () => join(lab.folder, 'shared')
beforeAll(async () => {
  const program = await locateTofu(createScreen())
  lab = await startLab(['infra'])
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
    expect(fits(record)).toEqual([])
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

it('a mirrored provider that differs from the lock file is refused before any plan', async () => {
  writeFileSync(mirrored, Buffer.concat([readFileSync(mirrored), Buffer.from('x')]))
  rmSync(join(lab.folder, 'state/plugins'), { recursive: true, force: true })
  const path = await lab.startGraph({ nodes: [look] })
  const node = await lab.reaches(path, 'failed', 'drift')
  expect(node).toMatchObject({
    error_class: 'provider_lock',
    error_message: expect.stringContaining('No change was made'),
  })
}, 120_000)
