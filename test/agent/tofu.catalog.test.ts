import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createScreen } from '../../apps/platform/base/screen.ts'
import type { Person } from '../../apps/platform/demo/client.ts'
import { initPack } from '../../apps/platform/packs/main.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import { CLI } from '../support/cli.ts'
import { scratchFolder } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { locateTofu } from '../support/tofu.ts'
import { until } from '../support/until.ts'
import { mirrorProvider } from './support/provider.ts'

/**
 * A site as its authors build it: `pack init --kind opentofu`, an agent with the real tool, a workspace in the real
 * catalog. The catalog receives its outputs and resources, and the drift that a schedule looks for.
 */
let stack: Stack
let people: Record<'ada' | 'olga' | 'eva', Person>
let agent: ChildProcess
const folder = scratchFolder()
const place = (name: string) => join(folder, name)
const greeting = place('greeting')
const MODULE = `
variable "size" {
  type = number
}
resource "local_file" "greeting" {
  filename = "${greeting}"
  content  = "size \${var.size}"
}
output "size" {
  value = var.size
}
output "secret" {
  value     = "s3cret-\${var.size}"
  sensitive = true
}
`
beforeAll(async () => {
  const program = await locateTofu(createScreen())
  initPack(place('web'), 'opentofu')
  mkdirSync(place('packs'))
  writeFileSync(place('packs/web.yaml'), readFileSync(place('web/pack.yaml')))
  rmSync(place('web/source'), { recursive: true })
  for (const name of ['web/source', 'tfstate', 'state']) mkdirSync(place(name))
  writeFileSync(place('web/source/main.tf'), MODULE)
  const { providers } = mirrorProvider(program, folder, place('web/source'))
  const pool = { destinations: [], secrets: [], mode: 'nats', agents: ['machine:runner'], max_in_flight: 4 }
  const pools = { default: { destinations: [], secrets: [] }, infra: pool }
  writeFileSync(place('policy.yaml'), JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  stack = await startStack({
    apps: ['gateway', 'session', 'identity', 'credential', 'token', 'catalog', 'operations', 'worker', 'relay'],
    env_overrides: { WORKER__EXECUTORS__POLICY_FILE: place('policy.yaml'), OPERATIONS__PACKS__DIR: place('packs') },
  })
  people = await stack.people()
  const { ada } = people
  const { items } = await ada.get<{ items: { id: string; username: string }[] }>('/v1/admin/users')
  const owner = items.find(({ username }) => username === 'olga')?.id
  const { body: machine } = await ada.post<{ id: string }>('/v1/admin/machines', { name: 'runner', owners: [owner] })
  await ada.post('/v1/admin/grants', { subject_type: 'user', subject_id: machine.id, role: 'viewer' })
  const credential = { kind: 'key', name: 'agent', permissions: ['operation:read'] }
  const made = await ada.post<{ key: string }>(`/v1/admin/machines/${machine.id}/credentials`, credential)
  const sources = { web: { path: place('web/source'), state: place('tfstate') } }
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 0, state_dir: place('state') }
  writeFileSync(place('agent.json'), JSON.stringify({ ...file, tofu: { program, providers, sources } }))
  agent = spawn(process.execPath, [...CLI, 'agent', '--file', place('agent.json')], {
    env: {
      ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir(), HOME: folder },
      ...{ SIGNALBOX_URL: stack.gateway_url, SIGNALBOX_TOKEN: made.body.key },
    },
    stdio: 'ignore',
  })
}, 300_000)
afterAll(async () => {
  if (agent?.exitCode === null) {
    agent.kill('SIGKILL')
    await once(agent, 'exit')
  }
  await stack?.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Resource = {
  resource_id: string
  health_status: string
  desired_state: Record<string, unknown>
  observed_state: { outputs: unknown; resources: unknown; serial: number; drift: Record<string, unknown> }
}
type Gate = {
  gate_id: string
  status: string
  digest: string
  round: number
  subject: { bound_outputs: { value: object }[] }
}
const resource = (id: string) => people.olga.get<Resource>(`/v1/resources/${id}`)
const ends = (operation_id: string) =>
  until(
    async () => {
      const { status } = await people.olga.get<{ status: string }>(`/v1/operations/${operation_id}`)
      if (status === 'failed') throw new Error('it failed')
      return status === 'succeeded'
    },
    { timeout_ms: 90_000, every_ms: 200, what: `${operation_id} succeeded` },
  )

it('outputs and resources of an approved apply are in the catalog, and a schedule writes drift there', async () => {
  const { ada, olga, eva } = people
  const { body: workspace } = await ada.post<Resource>('/v1/resources?mode=record_only', {
    ...{ type_key: 'delivery.workspace', name: 'web-eu1', lifecycle_status: 'active' },
    desired_state: { source: 'web', workspace: 'eu1', variables: { size: 1 } },
  })
  const id = workspace.resource_id
  const intent = {
    ...{ kind: 'change', title: 'size 20', reason: 'more room', targets: [{ resource_id: id }] },
    change: { op: 'update', desired_state_patch: { variables: { size: 20 } } },
  }
  const stated = await until(() => olga.post<{ intent_id: string }>('/v1/intents', intent), {
    timeout_ms: 30_000,
    what: 'the workspace in the projection',
  })
  const { body: plan } = await olga.post<{ plan_id: string; plan_hash: string }>(
    `/v1/intents/${stated.body.intent_id}/plan-preview`,
    {},
  )
  const reviewed = { reviewed_plan_hash: plan.plan_hash }
  const { body: started } = await olga.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, reviewed)
  const gates = `/v1/operations/${started.operation_id}/gates`
  const asked = await until(
    async () => (await eva.get<{ items: Gate[] }>(gates)).items.find(({ status }) => status === 'waiting'),
    { timeout_ms: 60_000, every_ms: 200, what: 'the gate' },
  )
  const gate = await eva.get<Gate>(`${gates}/${asked.gate_id}`)
  expect(gate.subject.bound_outputs[0]?.value).toMatchObject({ counts: { create: 1 }, binding: 'exact' })
  expect(existsSync(greeting)).toBe(false)
  await eva.post(`${gates}/${gate.gate_id}/approve`, { reviewed_digest: gate.digest, round: gate.round })
  await ends(started.operation_id)
  expect(readFileSync(greeting, 'utf8')).toBe('size 20')
  const applied = await resource(id)
  expect(applied).toMatchObject({
    desired_state: { variables: { size: 20 } },
    observed_state: {
      outputs: [{ name: 'size', value: 20 }],
      resources: ['local_file.greeting'],
      resources_count: 1,
      drift: { status: 'in_sync' },
    },
  })
  expect(JSON.stringify(applied)).not.toContain('s3cret')

  // Periodic drift detection is a schedule over all workspaces: seen, paused and run like every other schedule.
  const action = {
    kind: 'action',
    title: 'Look for drift',
    reason: 'each hour',
    action: { action_key: 'detect_drift' },
  }
  const { body: schedule } = await olga.post<{ schedule_id: string; upcoming: string[] }>('/v1/schedules', {
    ...{ when: { every_s: 3600 }, proceed: 'start' },
    intent: { ...action, targets: [{ selector: { type_key: 'delivery.workspace' } }] },
  })
  expect(schedule.upcoming).toHaveLength(5)
  const look = async () => {
    const path = `/v1/schedules/${schedule.schedule_id}`
    const before = (await olga.get<{ runs: object[] }>(path)).runs.length
    await olga.post(`${path}/run`, {})
    const run = await until(
      async () => {
        const { runs } = await olga.get<{ runs: { state: string; detail: string; operation_id: string }[] }>(path)
        if (runs[0]?.state === 'refused') throw new Error(runs[0].detail)
        return runs.length > before && runs[0]?.state === 'started' ? runs[0] : undefined
      },
      { timeout_ms: 60_000, every_ms: 200, what: 'the run of the schedule' },
    )
    await ends(run.operation_id)
    return resource(id)
  }
  expect(await look()).toMatchObject({ health_status: 'healthy', observed_state: { drift: { status: 'in_sync' } } })
  rmSync(greeting)
  expect(await look()).toMatchObject({
    health_status: 'degraded',
    observed_state: {
      serial: applied.observed_state.serial,
      drift: { status: 'drifted', changes: 1, resources: ['local_file.greeting'] },
    },
  })
  expect(existsSync(greeting)).toBe(false)
}, 240_000)
