import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createScreen } from '../../apps/platform/base/screen.ts'
import { type Person, waitUntil } from '../../apps/platform/demo/client.ts'
import { run } from '../../apps/platform/servers/sources.ts'
import { table } from '../../apps/shared/data/print.ts'
import { scratchFolder } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { locateTofu } from '../support/tofu.ts'
import { median } from './lib/graph.ts'
import { printFigure } from './lib/print.ts'

/**
 * `npm run bench:executors -- [--rounds 5] [--resources 200]`: what a command, a preview and an apply through the agent
 * cost over the bare tool in a shell, alternating on the same machine. Time is from the grant of the node until its end
 * is accepted. CPU is that of the agent with its tools, and of the bare tools. Linux only.
 */
const option = (name: string, otherwise: number): number => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}
const ROUNDS = option('rounds', 5)
const RESOURCES = option('resources', 200)
const TICK_MS = 10

/** Milliseconds of CPU of a process and of its children that have ended. */
const cpuOf = (pid: number | 'self'): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) * TICK_MS
}
type Cost = { ms: number; cpu_ms: number }
const costOf = async (pid: number | 'self', act: () => Promise<number>): Promise<Cost> => {
  const before = cpuOf(pid)
  const ms = await act()
  return { ms, cpu_ms: cpuOf(pid) - before }
}
const sum = (a: Cost, b: Cost): Cost => ({ ms: a.ms + b.ms, cpu_ms: a.cpu_ms + b.cpu_ms })
const mean = (all: number[]): number => all.reduce((a, b) => a + b, 0) / all.length
const timed = async (act: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now()
  await act()
  return performance.now() - begun
}

const MODULE = `variable "round" {
  type = string
}
resource "terraform_data" "one" {
  count = ${RESOURCES}
  input = "\${var.round} \${count.index}"
}
`
const COMMAND = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'

const startRunner = async (stack: Stack, admin: Person, folder: string, program: string) => {
  const { items } = await admin.get<{ items: { id: string; username: string }[] }>('/v1/admin/users')
  const owner = items.find(({ username }) => username === 'olga')?.id
  const { body: machine } = await admin.post<{ id: string }>('/v1/admin/machines', { name: 'runner', owners: [owner] })
  await admin.post('/v1/admin/grants', { subject_type: 'user', subject_id: machine.id, role: 'viewer' })
  const credential = { kind: 'key', name: 'bench', permissions: ['operation:read'] }
  const made = await admin.post<{ key: string }>(`/v1/admin/machines/${machine.id}/credentials`, credential)
  const script = join(folder, 'count')
  writeFileSync(script, `#!/bin/sh\n${COMMAND}\n`, { mode: 0o755 })
  const sources = { web: { path: join(folder, 'web'), state: join(folder, 'ours') } }
  const programs = { count: { path: script, args: { type: 'array' } } }
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 0, state_dir: join(folder, 'state'), programs }
  writeFileSync(join(folder, 'agent.json'), JSON.stringify({ ...file, tofu: { program, sources } }))
  const child = spawn(
    process.execPath,
    [join(ROOT, 'apps/cli/main.ts'), 'agent', '--file', join(folder, 'agent.json')],
    {
      env: { PATH: process.env.PATH, HOME: folder, SIGNALBOX_URL: stack.gateway_url, SIGNALBOX_TOKEN: made.body.key },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  return { child, script }
}

type Node = { node_id: string; job: string; inputs: Record<string, unknown>; outputs: Record<string, string> }
type NodeView = { state: string; started_at: string; ended_at: string; error_message: string | null }

/** Runs these nodes one after another; returns how long each took, and the agent's CPU for each. */
const runNodes = async (person: Person, agent: number, nodes: Node[]): Promise<Cost[]> => {
  const graph = {
    nodes: nodes.map(({ node_id, outputs, ...given }, at) => ({
      ...{ node_id, executor: 'external', pool: 'infra', with: given, outputs },
      depends_on: nodes.slice(Math.max(at - 1, 0), at).map((one) => one.node_id),
    })),
  }
  const intent = { kind: 'graph', title: 'bench', reason: 'benchmark', targets: [], graph }
  const { body: made } = await person.post<{ intent_id: string }>('/v1/intents', intent)
  type Plan = { plan_id: string; plan_hash: string }
  const { body: plan } = await person.post<Plan>(`/v1/intents/${made.intent_id}/plan-preview`, {})
  const reviewed = { reviewed_plan_hash: plan.plan_hash }
  const { body: started } = await person.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, reviewed)
  const costs: Cost[] = []
  for (const { node_id } of nodes)
    costs.push(
      await costOf(agent, async () => {
        const node = await waitUntil(
          `the end of ${node_id}`,
          () => person.get<NodeView>(`/v1/operations/${started.operation_id}/nodes/${node_id}`),
          ({ state }) => ['succeeded', 'failed', 'outcome_unknown'].includes(state),
          300_000,
          100,
        )
        if (node.state !== 'succeeded') throw new Error(`${node_id} ${node.state}: ${node.error_message}`)
        return Date.parse(node.ended_at) - Date.parse(node.started_at)
      }),
    )
  return costs
}

const bench = async (stack: Stack) => {
  const { ada, olga } = await stack.people()
  const folder = scratchFolder()
  for (const name of ['web', 'ours', 'bare']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'web/main.tf'), MODULE)
  writeFileSync(join(folder, 'bare/main.tf'), MODULE)
  const program = await locateTofu(createScreen())
  const { child, script } = await startRunner(stack, ada, folder, program)
  const agent = child.pid ?? 0
  const cwd = join(folder, 'bare')
  const tofu = (...args: string[]) => run(program, [...args, '-no-color'], { cwd, timeout_ms: 120_000 })
  const costs: Record<string, { ours: Cost[]; bare: Cost[] }> = {}
  const note = (figure: string, ours: Cost, bare: Cost) => {
    costs[figure] ??= { ours: [], bare: [] }
    costs[figure].ours.push(ours)
    costs[figure].bare.push(bare)
  }
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      console.error(round === 0 ? 'warm-up' : `round ${round} of ${ROUNDS}`)
      const count = { node_id: 'count', job: 'command', inputs: { program: 'count', args: [] }, outputs: {} }
      const [command] = await runNodes(olga, agent, [count])
      const shell = await costOf('self', () => timed(() => run(script, [], { timeout_ms: 60_000 })))
      const inputs = { source: 'web', workspace: 'main' }
      const [preview, apply] = await runNodes(olga, agent, [
        {
          ...{ node_id: 'plan', job: 'opentofu.preview', inputs: { ...inputs, variables: { round: `${round}` } } },
          outputs: { preview: '/preview' },
        },
        {
          ...{ node_id: 'apply', job: 'opentofu.apply' },
          inputs: { ...inputs, preview: { $from: 'nodes/plan/outputs/preview' } },
          outputs: { serial: '/serial' },
        },
      ])
      const planned = await costOf('self', () =>
        timed(async () => {
          await tofu('init', '-input=false')
          await tofu('plan', '-input=false', '-out=plan.bin', `-var=round=${round}`)
          await tofu('show', '-json', 'plan.bin')
        }),
      )
      const applied = await costOf('self', () =>
        timed(async () => {
          await tofu('init', '-input=false')
          await run(program, ['apply', '-input=false', '-json', 'plan.bin'], { cwd, timeout_ms: 120_000 })
        }),
      )
      if (round === 0) continue
      if (command) note('command', command, shell)
      if (!preview || !apply) continue
      note(`preview of ${RESOURCES} resources`, preview, planned)
      note(`apply of ${RESOURCES} resources`, apply, applied)
      note('preview and apply, a whole run', sum(preview, apply), sum(planned, applied))
    }
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  const rows = Object.entries(costs).map(([figure, { ours, bare }]) => {
    const [ms, bare_ms] = [ours, bare].map((all) => median(all.map((one) => one.ms))) as [number, number]
    // The kernel counts the CPU of ended children in ticks of 10 ms: only a mean says less than a tick.
    const [cpu, bare_cpu] = [ours, bare].map((all) => mean(all.map((one) => one.cpu_ms))) as [number, number]
    printFigure({ figure, ms, bare_ms, added_ms: ms - bare_ms, cpu_ms: cpu, bare_cpu_ms: bare_cpu })
    const whole = (value: number) => `${value.toFixed(0)} ms`
    return [
      ...[figure, whole(ms), whole(bare_ms), `${whole(ms - bare_ms)} (aim < 300)`, whole(cpu), whole(bare_cpu)],
      `${((100 * (cpu - bare_cpu)) / bare_cpu).toFixed(0)} % (aim < 5)`,
    ]
  })
  console.log(
    `\n${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, ${ROUNDS} rounds: medians of time, means of CPU\n`,
  )
  const heads = ['figure', 'agent', 'bare', 'added', 'CPU agent', 'CPU bare', 'added CPU']
  for (const line of table(heads, rows)) console.log(line)
}

const folder = scratchFolder()
const policy_file = join(folder, 'policy.yaml')
const infra = { destinations: [], secrets: [], mode: 'nats', agents: ['machine:runner'], max_in_flight: 4 }
const pools = { default: { destinations: [], secrets: [] }, infra }
writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
const stack = await startStack({ env_overrides: { WORKER__EXECUTORS__POLICY_FILE: policy_file } })
try {
  await bench(stack)
} finally {
  await stack.stop()
}
