import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { carryOut, removeLeft } from '../../apps/cli/agent/attempt.ts'
import { readAgentFile } from '../../apps/cli/agent/tools/file.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import type { Work } from '../../apps/shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../apps/shared/data/digest.ts'
import { connectNats } from '../../apps/shared/events/events.ts'
import { pruneAgents } from '../../db/operations/agents/rows.ts'
import manifest from '../../package.json' with { type: 'json' }
import { must, person } from '../operations/support/platform.ts'
import { startCollector } from '../platform/support/collector.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { descendants } from './support/acts.ts'
import { type Agent, exitOf, type Lab, startLab } from './support/agent.ts'
import { executedIn, exportOf, refused } from './support/refusal.ts'

/** `signalbox agent` from plan to end, against running operations, worker and stream. */
let lab: Lab
let file: Record<string, unknown>
const any = { type: 'array', items: { type: 'string' } }
beforeAll(async () => {
  lab = await startLab([
    'infra',
    'calm',
    'pair',
    'labelled',
    'once',
    'seen',
    'other',
    'upgrade',
    'twin',
    'clone',
    'faulty',
  ])
  const effects = lab.place('effects')
  const program = (name: string, text: string, more = {}) => ({ path: lab.script(name, text), args: any, ...more })
  file = {
    pools: ['infra'],
    uid: 1500,
    programs: {
      greet: program(
        'greet',
        `echo "hello $2"; env; echo "{\\"greeting\\": \\"$2\\", \\"who\\": $(id -u)}" > "$SIGNALBOX_OUTPUTS"`,
      ),
      foresee: program('foresee', `echo '{"preview": {"plan": {"key": "vault/7"}}}' > "$SIGNALBOX_OUTPUTS"`),
      far: program('far', `echo '{"far": [1e400, 12345678901234567890, 1.5]}' > "$SIGNALBOX_OUTPUTS"`),
      deep: program(
        'deep',
        `echo dug; { printf '{"a":'; printf '%3500s' | tr ' ' '['; printf '%3500s' | tr ' ' ']'; echo '}'; } > "$SIGNALBOX_OUTPUTS"`,
      ),
      effect: program('effect', `echo "$SIGNALBOX_KEY" >> ${effects}/"$2"`),
      slow: program('slow', `echo "$SIGNALBOX_KEY $$" >> ${effects}/"$2"; sleep 60; echo late >> ${effects}/"$2"`),
      tidy: program(
        'tidy',
        `trap 'echo interrupted >> ${effects}/"$2"; exit 3' INT; echo begun >> ${effects}/"$2"; sleep 60 & wait`,
      ),
      deaf: program('deaf', `trap '' INT; echo begun >> ${effects}/"$2"; while :; do sleep 1; done`),
      pulse: program('pulse', `trap '' INT; while :; do echo beat >> ${effects}/"$2"; sleep 0.5; done`),
      // Lines of which 500 are larger than one message may be.
      loud: program('loud', `yes "$(printf 'é%.0s' $(seq 16001))" | head -n 1200; echo done >> ${effects}/"$2"`),
      many: program('many', 'seq 1 30000'),
      long: program('long', `ulimit -t >> ${effects}/"$2"; sleep 15; echo done >> ${effects}/"$2"`),
      held: program(
        'held',
        `echo begun >> ${effects}/"$2"; while [ ! -e ${effects}/go ]; do sleep 0.2; done; echo done >> ${effects}/"$2"`,
      ),
      brief: program('brief', `echo begun >> ${effects}/"$2"; sleep 3; echo done >> ${effects}/"$2"`),
    },
  }
}, 90_000)
afterAll(() => lab.stop())

const job = (program: string, name: string, more: Record<string, unknown> = {}) => ({
  node_id: 'job',
  executor: 'external',
  pool: 'infra',
  with: { job: 'command', inputs: { program, args: [name] } },
  ...more,
})
/** A zombie with a foreign parent counts as gone. */
const isRunning = (pid: number): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
const effects = (name: string) => lab.linesOf(`effects/${name}`)
const begins = (name: string) => until(() => effects(name).length > 0, { what: `${name} begun` })
const ends = async ({ child, ended }: Agent) => {
  child.kill('SIGKILL')
  await ended
}

it('runs an approved node in its own sandbox and returns its outputs', async () => {
  const agent = lab.startAgent(file)
  const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] } }
  const outputs = { greeting: '/greeting', who: '/who' }
  const path = await lab.startGraph({
    nodes: [job('greet', 'eu1', { outputs })],
    gates: [{ gate_id: 'go', policy, guards: ['job'] }],
  })
  await lab.approve(path)
  const node = await lab.reaches(path, 'succeeded')
  expect(node.outputs).toEqual({ greeting: 'eu1', who: 1500 })
  // It reports by the address at which it asks for work: one outgoing connection is enough.
  const reported = lab.asked().filter((asked) => asked.startsWith('POST /api/v1/execution-results'))
  expect(reported.length).toBeGreaterThan(1)
  const log = (await lab.p.as('vic').get(`${path}/nodes/job/logs`)).text
  expect(log).toContain('hello eu1')
  expect(log).not.toContain('SIGNALBOX_TOKEN')
  const [record] = executedIn(await exportOf(lab, path, 'Node job succeeded (attempt 1)'))
  expect(record).toEqual({
    ...{ tool: 'greet', exit: 0, tool_sha256: sha256Hex(readFileSync(join(lab.folder, 'greet'))) },
    agent: expect.stringMatching(/^machine:runner\//),
  })
  await ends(agent)
}, 90_000)

it('outputs too deep to be written are refused, and a number that a double cannot hold is its digits', async () => {
  const agent = lab.startAgent(file)
  const deep = await lab.start(job('deep', 'deep', { timeouts: { run_s: 30 } }))
  const { error_class, error_message, attempts } = await lab.reaches(deep, 'failed')
  expect([error_class, error_message]).toEqual([
    'outputs_invalid',
    expect.stringContaining('The job succeeded, but not its outputs: they cannot be written'),
  ])
  expect(attempts.map(({ log }: { log: object }) => log)).toMatchObject([{ lines: 1, complete: true }])
  const far = await lab.start(job('far', 'far', { outputs: { far: '/far' } }))
  expect((await lab.reaches(far, 'succeeded')).outputs).toEqual({ far: ['1e400', '12345678901234567890', 1.5] })
  await ends(agent)
}, 90_000)

it('counts the attempts that agents end', async () => {
  const text = await lab.p.deps.telemetry.metrics.metrics()
  expect(text).toMatch(/signalbox_agent_attempts_total\{.*pool="infra",result="succeeded".*\} [1-9]/)
})

it('records its attempt in the trace of the click, and hands that on to the program and to its reports', async () => {
  const collector = await startCollector()
  const agent = lab.startAgent({ ...file, traces: collector.url })
  const click = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const path = await lab.startGraph({ nodes: [job('greet', 'traced')] }, { headers: { traceparent: click } })
  await lab.reaches(path, 'succeeded')
  await until(() => collector.spans.length > 0, { what: 'the span' })
  const [span] = collector.spans
  expect(collector.spans).toEqual([
    {
      ...{ app: 'signalbox-agent', name: 'agent command', trace_id: click.split('-')[1] },
      ...{ span_id: expect.stringMatching(/^[0-9a-f]{16}$/), parent: click.split('-')[2] },
    },
  ])
  const traceparent = `00-${span?.trace_id}-${span?.span_id}-01`
  expect((await lab.p.as('vic').get(`${path}/nodes/job/logs`)).text).toContain(`TRACEPARENT=${traceparent}`)
  expect(lab.traced()).toContain(`POST /api/v1/execution-results ${traceparent}`)
  expect(collector.bodies.join('')).not.toMatch(/exe_|hello/)
  await ends(agent)
  collector.close()
}, 90_000)

it.each(['README.md', 'guides.md'])(
  'each example of %s is one: the agent reads it, or it is planned',
  async (guide) => {
    const text = readFileSync(join(ROOT, 'apps/cli/agent', guide), 'utf8')
    const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block)
    const base = { format: 'signalbox/agent@1', pools: ['infra'], state_dir: '/var/lib/signalbox', uid: 1500 }
    const files = blocks.filter((block) => /^# agent\.yaml|^format: signalbox\/agent@1/.test(block))
    const graphs = blocks.filter((block) => block.startsWith('nodes:'))
    expect(files.length * graphs.length).toBeGreaterThan(0)
    for (const block of files) {
      const path = join(lab.folder, 'example.yaml')
      lab.write('example.yaml', JSON.stringify({ ...base, ...parse(block) }))
      expect(() => readAgentFile(path), block).not.toThrow()
    }
    for (const block of graphs) {
      // No resource is planned here that could be the target.
      const known = block
        .replaceAll(/(host_keys: )\{ \$from: target\/[^ ]+ \}/g, '$1[eu1]')
        .replaceAll(/\{ \$from: target\/[^ ]+ \}/g, 'eu1')
      const graph = parse(known, { merge: true })
      const stated = { kind: 'graph', title: 'an example', reason: 'to see', graph }
      const intent = must(await lab.p.as('pia').post('/v1/intents', stated), 201)
      const plan = await lab.p.as('pia').post(`/v1/intents/${intent.body.intent_id}/plan-preview`, {})
      expect([plan.status, plan.text], block).toEqual([201, expect.not.stringContaining('preview_unguarded')])
    }
  },
)

it('refuses jobs that its file does not list, and machines that the pool does not name', async () => {
  const agent = lab.startAgent(file)
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ job: 'command', inputs: { program: 'rm', args: [] } }, /names no program "rm"/],
    [
      { job: 'command', inputs: { program: 'greet', args: ['-rf'], credentials: 'aws' } },
      /to use the credential "aws"/,
    ],
    [{ job: 'shell', inputs: {} }, /does not know the job "shell"/],
    [{ job: 'command', inputs: { program: 'greet', args: [10 ** 24] } }, /^"args.0" is an integer beyond 2\^53/],
  ]
  for (const [values, words] of cases) {
    const path = await lab.start(job('greet', 'x', { with: values }))
    await refused(lab, path, 'job', 'agent_refused', words)
  }
  // The planner sees no more of an input than where it will come from.
  const say = { node_id: 'say', executor: 'noop', with: { outputs: { time: '1' } }, outputs: { time: '/time' } }
  const inputs = { program: 'effect', args: ['typed'], timeout_s: { $from: 'nodes/say/outputs/time' } }
  const typed = await lab.start(say, job('effect', 'x', { with: { job: 'command', inputs }, depends_on: ['say'] }))
  await refused(lab, typed, 'job', 'agent_refused', /^"timeout_s" must be a number\.$/)
  expect(effects('typed')).toEqual([])
  await ends(agent)
  const path = await lab.start(job('effect', 'named'))
  const stranger = lab.startAgent(file, { as: lab.stranger })
  expect(await exitOf(stranger)).toBe(7)
  expect(stranger.said()).toContain('machine:stranger is not an agent of the pool "infra"')
  // The work is untouched: its evidence has no result until an agent of the pool has done it.
  expect((await lab.p.as('aud').get(`${path}/evidence`)).text).not.toContain('node_result')
  const right = lab.startAgent(file)
  await lab.reaches(path, 'succeeded')
  const evidence = await exportOf(lab, path, 'Node job succeeded (attempt 1)')
  expect(evidence.match(/"kind":"node_result"/g)).toHaveLength(1)
  expect(effects('named')).toHaveLength(1)
  await ends(right)
  // A caller that waits as long as allowed is answered before its request times out: a late answer would be lost work.
  const bound = { headers: { 'x-request-deadline': '3000' } }
  const waited = await lab.p.as(lab.runner).post('/v1/pools/infra/work', { wait_s: 8 }, bound)
  expect(waited.status).toBe(204)
  const person = await lab.p.as('olga').post('/v1/pools/infra/work', {})
  expect([person.status, person.body.code]).toEqual([403, 'not_an_agent'])
}, 90_000)

it('an agent that drains gets no work by a request that waits already', async () => {
  const ask = (name: string, more = {}) =>
    lab.p.as(lab.runner).post('/v1/pools/infra/work', { wait_s: 8, agent: { name, pools: ['infra'], ...more } })
  const waiting = ask('leaver')
  await delay(500)
  expect((await ask('leaver', { leaves: 'draining' })).status).toBe(204)
  const path = await lab.start(job('effect', 'drained'))
  expect((await waiting).status).toBe(204)
  const agent = lab.startAgent(file)
  await lab.reaches(path, 'succeeded')
  expect(effects('drained')).toHaveLength(1)
  await ends(agent)
}, 90_000)

it('a message of the stream that is no work is dropped, and holds up no other', async () => {
  const nc = await connectNats(serverUrl('NATS_URL'), 'test')
  // No agent could begin it: it is dropped too.
  const late = {
    start_before: '2026-01-01T00:00:00Z',
    deadline_at: '2026-01-01T00:00:00Z',
    heartbeat_s: 5,
    job: 'command',
  }
  const ids = { v: 1, operation_id: randomUUID(), node_id: 'late', attempt: 1, generation: 1, fence: 1, key: 'k' }
  const of = {
    execution_token: 'exe_x',
    results_url: 'http://127.0.0.1:9',
    artifacts_url: 'http://127.0.0.1:9',
    inputs: {},
  }
  for (const text of ['neither', '{"v":1}', '[]', JSON.stringify({ ...ids, ...late, ...of })])
    await nc.jetstream().publish(`${lab.p.prefix}.execution.infra`, text)
  await nc.close()
  const agent = lab.startAgent(file)
  await lab.reaches(await lab.start(job('effect', 'frames')), 'succeeded')
  expect(agent.said()).not.toContain('late:')
  await ends(agent)
}, 90_000)

it('a log of any size neither stops its work nor loses a line', async () => {
  const agent = lab.startAgent(file)
  const path = await lab.start(job('loud', 'loud', { timeouts: { run_s: 90 } }))
  await lab.reaches(path, 'succeeded')
  expect(effects('loud')).toEqual(['done'])
  const [{ log }] = (await lab.nodeOf(path)).attempts
  expect(log).toMatchObject({ lines: 1200, complete: true })
  const { lines } = must(await lab.p.as('vic').get(`${path}/nodes/job/logs`), 200).body
  expect(lines[0]).toMatchObject({ text: 'é'.repeat(16_000), cut: true })
  const many = await lab.start(job('many', 'many', { timeouts: { run_s: 60 } }))
  await lab.reaches(many, 'succeeded')
  const [attempt] = (await lab.nodeOf(many)).attempts
  expect(attempt.log).toMatchObject({ lines: 30_000, complete: true })
  await ends(agent)
}, 120_000)

it('two agents: each piece of work is done once', async () => {
  const both = [
    lab.startAgent({ ...file, pools: ['pair'], concurrency: 3 }),
    lab.startAgent({ ...file, pools: ['pair'], concurrency: 3 }),
  ]
  const nodes = Array.from({ length: 12 }, (_, i) => job('effect', 'pair', { node_id: `n${i}`, pool: 'pair' }))
  const path = await lab.start(...nodes)
  for (const { node_id } of nodes) await lab.reaches(path, 'succeeded', node_id)
  expect(effects('pair')).toHaveLength(12)
  expect(new Set(effects('pair')).size).toBe(12)
  for (const agent of both) await ends(agent)
}, 90_000)

it('gives labeled work to the agent that has the labels', async () => {
  const eu = lab.startAgent({ ...file, pools: ['labelled'], labels: { region: 'eu1' } })
  const path = await lab.start(
    job('greet', 'x', {
      pool: 'labelled',
      with: { job: 'command', labels: { region: 'us1' }, inputs: { program: 'effect', args: ['us'] } },
    }),
    job('greet', 'x', {
      node_id: 'other',
      pool: 'labelled',
      with: { job: 'command', labels: { region: 'eu1' }, inputs: { program: 'effect', args: ['eu'] } },
    }),
  )
  await lab.reaches(path, 'succeeded', 'other')
  expect(effects('us')).toEqual([])
  // The preview of another program, which names a key of its own kind.
  const foreign = { program: 'effect', args: ['foreign'], preview: { $from: 'nodes/plan/outputs/preview' } }
  const using = await lab.start(
    job('foresee', 'x', { node_id: 'plan', pool: 'labelled', outputs: { preview: '/preview' } }),
    job('effect', 'x', { pool: 'labelled', depends_on: ['plan'], with: { job: 'command', inputs: foreign } }),
  )
  await lab.reaches(using, 'succeeded')
  const nowhere = { job: 'command', labels: { region: 'nowhere' }, inputs: { program: 'effect', args: ['no'] } }
  const untaken = await lab.start(job('greet', 'x', { pool: 'labelled', with: nowhere, timeouts: { start_s: 2 } }))
  expect(await lab.reaches(untaken, 'failed')).toMatchObject({
    error_class: 'not_picked_up',
    error_message: 'No agent of the pool "labelled" with region=nowhere took it in time, so it has no effect.',
  })
  const us = lab.startAgent({ ...file, pools: ['labelled'], labels: { region: 'us1' } })
  await lab.reaches(path, 'succeeded')
  for (const agent of [eu, us]) await ends(agent)
}, 90_000)

it('if an agent is killed half way, the tool dies with it, the outcome is unknown, and no one repeats it', async () => {
  const agent = lab.startAgent(file)
  const path = await lab.start(job('slow', 'lost', { timeouts: { run_s: 600, heartbeat_s: 5 } }))
  await begins('lost')
  const [, pid = ''] = effects('lost')[0]?.split(' ') ?? []
  await ends(agent)
  await until(() => !isRunning(Number(pid)), { what: 'the tool gone' })
  // What its sandbox held, keys among it, goes when it is old; that of a living agent is never old.
  const folders = () => readdirSync(lab.place('tmp')).filter((name) => name.startsWith('signalbox-agent-'))
  const left = folders()
  expect(left).not.toEqual([])
  const fresh = 'signalbox-agent-fresh'
  const half = join(lab.place('state'), 'providers.signalbox-agent-half')
  mkdirSync(half)
  // The tool had ended without writing its state, and the agent died before it moved it.
  mkdirSync(join(lab.place('tmp'), left[0] ?? '', 'module'))
  writeFileSync(join(lab.place('tmp'), left[0] ?? '', 'module/errored.tfstate'), '{"serial": 7}')
  utimesSync(half, Date.now() / 1000 - 301, Date.now() / 1000 - 301)
  for (const [name, ago_s] of [...left.map((name) => [name, 301] as const), [fresh, 200] as const]) {
    const path = join(lab.place('tmp'), name)
    mkdirSync(path, { recursive: true })
    utimesSync(path, Date.now() / 1000 - ago_s, Date.now() / 1000 - ago_s)
  }
  const other = lab.startAgent(file)
  const node = await lab.reaches(path, 'outcome_unknown')
  // Long before its deadline.
  expect(node.error_message).toMatch(/silent/)
  const after = await lab.start(job('effect', 'after'))
  await lab.reaches(after, 'succeeded')
  expect(effects('lost')).toHaveLength(1)
  expect(folders()).toContain(fresh)
  expect(folders()).not.toContain(left[0])
  expect(existsSync(half)).toBe(false)
  expect(readFileSync(join(lab.place('state'), `unsaved/${left[0]}.tfstate`), 'utf8')).toBe('{"serial": 7}')
  expect(other.said()).toContain(`unsaved/${left[0]}.tfstate. Push it`)
  await ends(other)
}, 90_000)

it('a cancel interrupts the tool, which ends by itself; a deaf one is killed, and its outcome is unknown', async () => {
  const agent = lab.startAgent({ ...file, concurrency: 2 })
  const tidy = await lab.start(job('tidy', 'tidy', { timeouts: { run_s: 60, heartbeat_s: 5 } }))
  const deaf = await lab.start(job('deaf', 'deaf', { timeouts: { run_s: 16, heartbeat_s: 5 } }))
  for (const [path, name] of [
    [tidy, 'tidy'],
    [deaf, 'deaf'],
  ] as const) {
    await begins(name)
    await lab.force(path)
  }
  await until(() => effects('tidy').includes('interrupted'), { what: 'the interrupt' })
  await until(() => /(told to stop|lost; stopping)[\s\S]*job: failed/.test(agent.said()), {
    timeout_ms: 30_000,
    what: 'the end',
  })
  await until(() => agent.said().includes('job: unknown'), { what: 'the kill' })
  await ends(agent)
}, 90_000)

it('a tool is stopped before its deadline, in time to report it', async () => {
  const agent = lab.startAgent(file)
  const path = await lab.start(job('tidy', 'deadline', { timeouts: { run_s: 8, heartbeat_s: 5 } }))
  const node = await lab.reaches(path, 'failed')
  expect(node).toMatchObject({ error_class: 'timeout', error_message: expect.stringContaining('ended on request') })
  expect(effects('deadline')).toEqual(['begun', 'interrupted'])
  await ends(agent)
}, 90_000)

const removeLeftAt = (said: string[]) => {
  const at = join(lab.folder, 'unheard.json')
  removeLeft(readAgentFile(at), (one) => void said.push(one))
}

const carryOutAt = (url: string, said: string[]) => {
  const at = join(lab.folder, 'unheard.json')
  writeFileSync(at, JSON.stringify({ format: 'signalbox/agent@1', state_dir: lab.place('state'), ...file }))
  const work = {
    ...{ operation_id: 'o', node_id: 'job', attempt: 1, generation: 1, fence: 1, key: 'k', execution_token: 't' },
    ...{
      heartbeat_s: 5,
      deadline_at: new Date(Date.now() + 600_000).toISOString(),
      start_before: new Date().toISOString(),
    },
    ...{ results_url: url, artifacts_url: url, job: 'command', inputs: { program: 'pulse', args: ['unheard'] } },
  }
  return carryOut(readAgentFile(at), work as never as Work, new AbortController().signal, (one) => said.push(one))
}

it('the sandbox of work that waits to begin does not count as left', async () => {
  let away = true
  const plane = createServer((req, res) => {
    req.resume()
    res.writeHead(away ? 503 : 409).end('{"category": "execution_result_rejected", "code": "attempt_closed"}')
  })
  await new Promise<void>((resolve) => plane.listen(0, '127.0.0.1', resolve))
  vi.stubEnv('TMPDIR', lab.place('waiting'))
  const said: string[] = []
  const done = carryOutAt(`http://127.0.0.1:${(plane.address() as AddressInfo).port}`, said)
  vi.unstubAllEnvs()
  const [name = ''] = readdirSync(lab.place('waiting'))
  const folder = join(lab.place('waiting'), name)
  utimesSync(folder, 0, 0)
  // As after a step of the clock, before the next beat.
  vi.stubEnv('TMPDIR', lab.place('waiting'))
  removeLeftAt(said)
  vi.unstubAllEnvs()
  expect(existsSync(folder)).toBe(true)
  await until(() => Date.now() - statSync(folder).mtimeMs < 60_000, { what: 'a recent time' })
  away = false
  await done
  expect([said, existsSync(folder)]).toEqual([['job: not started, attempt_closed'], false])
  plane.closeAllConnections()
  plane.close()
}, 60_000)

it('a deaf tool of an agent that is not heard has ended before another may get its work', async () => {
  let heard = 0
  const began = performance.now()
  const plane = createServer((req, res) => {
    req.resume()
    // Then requests hang, as behind a network that drops them, and the clock is set back.
    if (heard > 0 && performance.now() - began > 4000) {
      if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 300_000 })
      return
    }
    heard = performance.now()
    res.end('{"left_s": 30}')
  })
  await new Promise<void>((resolve) => plane.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(plane.address() as AddressInfo).port}`
  const said: string[] = []
  const done = carryOutAt(url, said).finally(() => vi.useRealTimers())
  const pulses = () => effects('unheard').length
  await until(() => said.includes('job: lost; stopping'), { what: 'the loss' })
  expect(performance.now() - heard).toBeLessThan(12_500)
  await delay(heard + 15_000 - performance.now())
  const before = pulses()
  await delay(1500)
  expect([before > 0, pulses()]).toEqual([true, before])
  plane.closeAllConnections()
  plane.close()
  await done
}, 90_000)

it('an identity that is refused in one slot ends the agent when the others have finished their work', async () => {
  const agent = lab.startAgent({ ...file, pools: ['twin'], concurrency: 2 })
  const path = await lab.start(job('long', 'twin', { pool: 'twin', timeouts: { run_s: 60, heartbeat_s: 5 } }))
  await begins('twin')
  lab.times.refused = true
  try {
    // Longer than the other slot waits for work.
    await delay(7000)
    agent.child.kill('SIGTERM')
    await lab.reaches(path, 'succeeded')
    expect(await exitOf(agent)).toBeGreaterThan(0)
  } finally {
    lab.times.refused = false
  }
  expect(effects('twin').at(-1)).toBe('done')
}, 90_000)

it('what a proxy on the way answers to a heartbeat interrupts no work', async () => {
  const agent = lab.startAgent(file)
  const path = await lab.start(job('held', 'astray', { timeouts: { run_s: 60, heartbeat_s: 15 } }))
  await begins('astray')
  const reports = () => lab.asked().filter((asked) => asked.includes('execution-results')).length
  lab.times.astray = true
  const before = reports()
  try {
    await until(() => reports() > before + 1, { what: 'two heartbeats that go astray' })
  } finally {
    lab.times.astray = false
  }
  writeFileSync(join(lab.folder, 'effects/go'), '')
  await lab.reaches(path, 'succeeded').finally(() => rmSync(join(lab.folder, 'effects/go')))
  expect(effects('astray')).toEqual(['begun', 'done'])
  await ends(agent)
}, 90_000)

it('works as long as the control plane gives it time, whatever its own clock says', async () => {
  lab.times.shift_ms = -7_200_000
  const agent = lab.startAgent(file)
  const path = await lab.start(job('brief', 'skewed', { timeouts: { run_s: 60, heartbeat_s: 5 } }))
  await lab.reaches(path, 'succeeded').finally(() => {
    lab.times.shift_ms = 0
  })
  expect(effects('skewed')).toEqual(['begun', 'done'])
  await ends(agent)
}, 90_000)

it('work whose time is extended runs on, on as many processors as there are', async () => {
  const agent = lab.startAgent(file)
  const path = await lab.start(job('long', 'extended', { timeouts: { run_s: 12, heartbeat_s: 5 } }))
  await begins('extended')
  const payload = { of: 'attempt', id: 'job', add_s: 60 }
  const more = { type: 'extend_deadline', payload, reason: 'a test' }
  must(await lab.p.as('olga').post(`${path}/interventions`, more), 200, 201, 202)
  await lab.reaches(path, 'succeeded')
  expect(effects('extended')).toEqual([expect.stringMatching(/^\d{5,}$/), 'done'])
  await ends(agent)
}, 90_000)

it('on SIGTERM it finishes its work, accepts no more and exits', async () => {
  const agent = lab.startAgent({ ...file, pools: ['calm'] })
  const first = await lab.start(job('brief', 'drain', { pool: 'calm' }))
  await begins('drain')
  agent.child.kill('SIGTERM')
  await lab.start(job('effect', 'later', { pool: 'calm' }))
  expect(await exitOf(agent)).toBe(0)
  await lab.reaches(first, 'succeeded')
  expect(effects('drain')).toEqual(['begun', 'done'])
  expect(effects('later')).toEqual([])
}, 90_000)

it.each(['SIGTERM', 'SIGINT'] as const)(
  'one %s to the process group of a clone counts once: the agent finishes its work',
  async (signal) => {
    const agent = lab.startAgent({ ...file, pools: ['clone'] }, { clone: true })
    const first = await lab.start(job('brief', signal, { pool: 'clone' }))
    await begins(signal)
    process.kill(-(agent.child.pid as number), signal)
    expect(await exitOf(agent)).toBe(0)
    await lab.reaches(first, 'succeeded')
    expect(effects(signal)).toEqual(['begun', 'done'])
    expect(agent.said()).not.toContain('Stopping the work')
  },
  90_000,
)

it('a killed entry point of a clone leaves no agent that asks for work, and no tool', async () => {
  const agent = lab.startAgent({ ...file, pools: ['clone'] }, { clone: true })
  const path = await lab.start(job('tidy', 'orphan', { pool: 'clone' }))
  await begins('orphan')
  const left = descendants(agent.child.pid as number)
  expect(left.length).toBeGreaterThan(1)
  agent.child.kill('SIGKILL')
  await until(() => !left.some(isRunning), { what: 'the agent and its tool gone' })
  const node = await lab.reaches(path, 'failed')
  expect(node.error_class).toBe('cancelled')
}, 90_000)

it('an upgrade while it holds work: the old one ends its work, the new one takes what comes, and the list follows', async () => {
  const given = { ...file, pools: ['upgrade'], name: 'up' }
  const old = lab.startAgent(given)
  const held = await lab.start(job('held', 'held', { pool: 'upgrade', timeouts: { run_s: 120 } }))
  await begins('held')
  const fresh = lab.startAgent(given)
  await until(() => fresh.said().includes('Asking for work'), { what: 'the new agent' })
  old.child.kill('SIGTERM')
  await until(() => old.said().includes('Taking no more work'), { what: 'the old agent told' })
  const next = await lab.start(job('slow', 'next', { pool: 'upgrade', timeouts: { run_s: 600, heartbeat_s: 5 } }))
  await begins('next')
  // Not before: an agent whose work has ended may be asking when it is told to end, and takes what its request brings.
  lab.write('effects/go', '')
  expect(await exitOf(old)).toBe(0)
  await lab.reaches(held, 'succeeded')
  expect(effects('held')).toEqual(['begun', 'done'])
  expect([old.said(), fresh.said()].map((said) => said.split('job: command started').length - 1)).toEqual([1, 1])
  // Both had one name: that the old one left does not hide the new one, which asks for no work while it is busy.
  const { items } = must(await lab.p.as('vic').get('/v1/agents'), 200).body
  expect(items.find(({ agent }: { agent: string }) => agent === 'machine:runner/up')).toMatchObject({
    ...{ status: 'working', works: 1, work: [{ operation_id: next.split('/').at(-1) }] },
  })
  await ends(fresh)
}, 90_000)

it('the list of agents shows who lives, for which pools, and its work; a killed agent falls silent', async () => {
  const { p } = lab
  const elsewhere = person('elsewhere', ['viewer'], [], { regionId: 'nowhere' })
  Object.assign(p.people, { elsewhere })
  const listed = async (name: string, who = p.people.vic) =>
    must(await p.as(who).get('/v1/agents'), 200).body.items.find(
      ({ agent }: { agent: string }) => agent === `machine:runner/${name}`,
    )
  const becomes = (name: string, status: string) =>
    until(async () => (await listed(name))?.status === status, { what: `${name} ${status}` })
  const given = { ...file, pools: ['seen', 'other'], labels: { region: 'eu1' }, concurrency: 2, name: 'one' }
  const agent = lab.startAgent(given)
  await becomes('one', 'idle')
  expect(await listed('one')).toMatchObject({
    ...{ machine: 'machine:runner', pools: ['other', 'seen'], labels: { region: 'eu1' }, concurrency: 2 },
    ...{ version: manifest.version, works: 0, work: [] },
  })
  const path = await lab.start(job('slow', 'listed', { pool: 'seen', timeouts: { run_s: 600, heartbeat_s: 5 } }))
  await begins('listed')
  const { seen_at, ...working } = await listed('one')
  expect(working).toMatchObject({
    ...{ status: 'working', works: 1 },
    work: [{ operation_id: path.split('/').at(-1), node_id: 'job', pool: 'seen', attempt: 1 }],
  })
  expect(Date.now() - Date.parse(seen_at)).toBeLessThan(15_000)
  // Its operation is out of this person's scope: the work is counted, not named.
  expect(await listed('one', elsewhere)).toMatchObject({ status: 'working', works: 1, work: [] })
  // A predecessor of its name has said that it drains, and was killed: this one has begun work since.
  await p.query(`update operations.agents set draining = true, seen_at = seen_at - interval '30 s'`)
  expect(await listed('one')).toMatchObject({ status: 'working', works: 1 })
  await becomes('one', 'working')
  agent.child.kill('SIGTERM')
  await becomes('one', 'draining')
  await ends(agent)
  await lab.reaches(path, 'outcome_unknown')
  const age = (seconds: number) =>
    p.query(`update operations.agents set seen_at = seen_at - make_interval(secs => $1)`, [seconds])
  await age(61)
  expect(await listed('one')).toMatchObject({ status: 'silent', works: 0 })
  // It comes back under its name, and leaves the list when it ends in order.
  const second = lab.startAgent(given)
  await becomes('one', 'idle')
  second.child.kill('SIGTERM')
  expect(await exitOf(second)).toBe(0)
  expect(await listed('one')).toBeUndefined()
  const third = lab.startAgent(given)
  await becomes('one', 'idle')
  await ends(third)
  await age(8 * 86_400)
  await pruneAgents(p.deps.db)
  expect(await listed('one')).toBeUndefined()
}, 120_000)

it('every fault of a file is named with its place, and what it names and lacks is said at the start', async () => {
  const path = join(lab.folder, 'faulty.json')
  const whole = { format: 'signalbox/agent@1', state_dir: lab.place('state'), uid: 1500, pools: ['faulty'] }
  const credentials = { key: { jobs: ['command'], env: { KEY: { fil: '/x' } } } }
  writeFileSync(path, JSON.stringify({ ...whole, concurency: 2, credentials }))
  const faults = () => {
    try {
      readAgentFile(path)
    } catch (error) {
      return (error as Error).message.split('\n')
    }
  }
  expect(faults()).toEqual(
    expect.arrayContaining([
      `${path}/concurency is not a known member.`,
      `${path}/credentials/key/env/KEY/fil is not a known member.`,
    ]),
  )
  const tofu = { program: '/no/such/tofu', sources: {} }
  const lacking = { ...credentials.key, env: { KEY: { file: '/no/such/key' } } }
  const labels = { Zone: 'eu1', 'k8s.io/zone': 'eu1', region: 'eu1' }
  const agent = lab.startAgent({ ...whole, tofu, labels, credentials: { key: lacking } })
  await until(() => agent.said().includes('Asking for work'), { what: 'the agent' })
  expect(agent.said()).toContain('/tofu/program is /no/such/tofu, which cannot be used now: ENOENT.')
  expect(agent.said()).toContain('/credentials/key/env/KEY is /no/such/key, which cannot be used now: ENOENT.')
  // Earlier versions took such names, and steps ask for them.
  expect(agent.said().match(/\S+ counts, but should be named/g)).toEqual([
    '/labels/Zone counts, but should be named',
    '/labels/k8s.io~1zone counts, but should be named',
  ])
  expect((await lab.p.as(lab.runner).post('/v1/pools/faulty/work', { wait_s: 1, labels })).status).toBe(204)
  await ends(agent)
}, 60_000)
