import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { locateTofu } from '../support/tofu.ts'
import { until } from '../support/until.ts'
import { mirrorProvider } from './support/provider.ts'
import { type Site, startSite } from './support/site.ts'

/**
 * A workspace in the real catalog: it receives the outputs and resources of an approved apply, and the drift that a
 * schedule looks for.
 */
let site: Site
let greeting: string
const moduleOf = () => `
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
  site = await startSite('web', 'opentofu', async (place) => {
    greeting = place('greeting')
    writeFileSync(place('web/source/main.tf'), moduleOf())
    const { providers } = mirrorProvider(program, place('.'), place('web/source'))
    return { tofu: { program, providers, sources: { web: { path: place('web/source'), state: place('tfstate') } } } }
  })
}, 300_000)
afterAll(() => site?.stop())

type Resource = {
  resource_id: string
  health_status: string
  desired_state: Record<string, unknown>
  observed_state: { outputs: unknown; resources: unknown; serial: number; drift: Record<string, unknown> }
}
type Runs = { runs: { state: string; detail: string; operation_id: string }[] }
const resource = (id: string) => site.people.olga.get<Resource>(`/v1/resources/${id}`)

it('outputs and resources of an approved apply are in the catalog, a schedule writes drift there, and drift begins its correction', async () => {
  const { ada, olga } = site.people
  const { body: workspace } = await ada.post<Resource>('/v1/resources?mode=record_only', {
    ...{ type_key: 'delivery.workspace', name: 'web-eu1', lifecycle_status: 'active' },
    desired_state: { source: 'web', workspace: 'eu1', variables: { size: 1 } },
  })
  const id = workspace.resource_id
  const intent = {
    ...{ kind: 'change', title: 'size 20', reason: 'more room', targets: [{ resource_id: id }] },
    change: { op: 'update', desired_state_patch: { variables: { size: 20 } } },
  }
  const operation = await site.start(intent)
  const gate = await site.asked(operation)
  expect(gate.subject.bound_outputs[0]?.value).toMatchObject({ counts: { create: 1 }, binding: 'exact' })
  expect(existsSync(greeting)).toBe(false)
  await site.approve(operation, gate)
  await site.ends(operation)
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

  // As in the guide of the agent: periodic drift detection is a schedule, seen, paused and run like every other.
  const guide = readFileSync('apps/cli/agent/README.md', 'utf8')
  const scheduleOf = (name: string) =>
    parse(new RegExp(`# signalbox schedule create -f ${name}\\.yaml\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? '')
  type Schedule = { schedule_id: string; upcoming: string[] }
  const { body: schedule } = await olga.post<Schedule>('/v1/schedules', scheduleOf('drift'))
  expect(schedule.upcoming).toHaveLength(5)
  let last = ''
  const look = async (ending?: string) => {
    const path = `/v1/schedules/${schedule.schedule_id}`
    const before = (await olga.get<{ runs: object[] }>(path)).runs.length
    await olga.post(`${path}/run`, {})
    const run = await until(
      async () => {
        const { runs } = await olga.get<Runs>(path)
        if (runs[0]?.state === 'refused') throw new Error(runs[0].detail)
        return runs.length > before && runs[0]?.state === 'started' ? runs[0] : undefined
      },
      { timeout_ms: 60_000, every_ms: 200, what: 'the run of the schedule' },
    )
    last = run.operation_id
    await site.ends(last, ending)
    return resource(id)
  }
  expect(await look()).toMatchObject({ health_status: 'healthy', observed_state: { drift: { status: 'in_sync' } } })
  // A look that fails, also after its retries, holds no lease: later looks and changes are not held up.
  const source = site.place('web/source/main.tf')
  writeFileSync(source, `${moduleOf()}\noutput "lost" { value = local.nowhere }\n`)
  await look('succeeded_with_exceptions')
  const { items } = await olga.get<{ items: object[] }>(`/v1/operations/${last}/nodes`)
  expect(items).toEqual([expect.objectContaining({ state: 'failed', error_class: 'tool_failed', attempt: 3 })])
  writeFileSync(source, moduleOf())
  // As in the guide: drift by itself begins the correction, up to its gate.
  const { body: corrects } = await olga.post<Schedule>('/v1/schedules', scheduleOf('correct'))
  const runsOf = async () => (await olga.get<Runs>(`/v1/schedules/${corrects.schedule_id}`)).runs
  expect(await runsOf()).toEqual([])
  rmSync(greeting)
  expect(await look()).toMatchObject({
    health_status: 'degraded',
    observed_state: {
      serial: applied.observed_state.serial,
      drift: { status: 'drifted', changes: 1, resources: ['local_file.greeting'] },
    },
  })
  const run = await until(
    async () => {
      const [first] = await runsOf()
      if (first?.state === 'refused') throw new Error(first.detail)
      return first?.state === 'started' ? first : undefined
    },
    { timeout_ms: 60_000, every_ms: 200, what: 'the correction' },
  )
  const asked = await site.asked(run.operation_id)
  expect(asked.subject.bound_outputs[0]?.value).toMatchObject({ counts: { create: 1 }, binding: 'exact' })
  expect(existsSync(greeting)).toBe(false)
  await site.approve(run.operation_id, asked)
  await site.ends(run.operation_id)
  expect(readFileSync(greeting, 'utf8')).toBe('size 20')
  expect(await resource(id)).toMatchObject({
    health_status: 'healthy',
    observed_state: { drift: { status: 'in_sync' } },
  })
  expect(await runsOf()).toHaveLength(1)
}, 300_000)
