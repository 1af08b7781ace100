import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createLog as createStored } from '../../activities/attempts/running.ts'
import { carryOut } from '../../apps/cli/agent/attempt.ts'
import { createLog } from '../../apps/cli/agent/log.ts'
import { readAgentFile } from '../../apps/cli/agent/tools/file.ts'
import type { Work } from '../../apps/shared/contracts/engine/executions.ts'
import { maskerOf } from '../../apps/shared/data/mask.ts'

/** The log of an attempt: what the control plane gets of it, and what becomes of the rest. */
type Report = {
  phase: string
  outputs?: object
  resume?: object
  error?: { class: string }
  lines?: { seq: number; text: string; cut?: boolean }[]
}
const folder = mkdtempSync(join(tmpdir(), 'signalbox-log-'))
chmodSync(folder, 0o755)
afterAll(() => rmSync(folder, { recursive: true }))

/** A control plane that hears reports; one without an answer is not heard. */
const startPlane = async (answer: (report: Report) => object | undefined) => {
  const heard: Report[] = []
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const report = JSON.parse(Buffer.concat(chunks).toString()) as Report
    const said = answer(report)
    if (!said) return
    heard.push(report)
    if ('status' in said) res.statusCode = Number(said.status)
    res.end(JSON.stringify(said))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard, close }
}
/** Carries out a script; returns the agent's own words. */
const runScript = async (
  url: string,
  script: string,
  secret = 'unused',
  more: { file?: object; work?: object } = {},
) => {
  const path = join(folder, 'script')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  const at = join(folder, 'agent.json')
  const programs = { script: { path, args: { type: 'array', items: { type: 'string' } } } }
  writeFileSync(join(folder, 'secret'), secret)
  const credentials = { token: { jobs: ['command'], env: { TOKEN: { file: join(folder, 'secret') } } } }
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 1500, state_dir: join(folder, 'state') }
  writeFileSync(at, JSON.stringify({ ...file, programs, credentials, ...more.file }))
  const time = new Date(Date.now() + 600_000).toISOString()
  const work = {
    ...{ operation_id: 'o', node_id: 'job', attempt: 1, generation: 1, fence: 1, key: 'k', execution_token: 't' },
    ...{ heartbeat_s: 5, deadline_at: time, start_before: time, results_url: url, artifacts_url: url },
    ...{ job: 'command', inputs: { program: 'script', args: [], credentials: 'token' } },
    ...more.work,
  }
  const said: string[] = []
  await carryOut(readAgentFile(at), work as never as Work, new AbortController().signal, (one) => void said.push(one))
  return said
}

it('a program that floods its log after a cancel, while the control plane is away, leaves one gap and no more lines', async () => {
  let cancelled = false
  const pid = join(folder, 'pid')
  writeFileSync(pid, '')
  chmodSync(pid, 0o666)
  const plane = await startPlane(({ phase }) => {
    if (phase === 'started') return { left_s: 600 }
    // After the cancel it is away until the program was killed.
    if (cancelled && existsSync(`/proc/${readFileSync(pid, 'utf8').trim()}`)) return undefined
    cancelled = true
    return { left_s: 600, cancel_requested: true }
  })
  const said = await runScript(plane.url, `trap '' INT; echo $$ > ${pid}; yes "$(printf 'x%.0s' $(seq 1000))"`)
  expect(said.at(-1)).toBe('job: unknown')
  const lines = plane.heard.flatMap(({ lines = [] }) => lines)
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, at) => at + 1))
  expect(lines.length).toBeLessThan(4000)
  const marks = lines.filter(({ cut }) => cut)
  expect(marks).toEqual([expect.objectContaining({ text: expect.stringMatching(/^Lines are missing here: /) })])
  plane.close()
}, 60_000)

it('a control plane that does not know what is left for a retry still learns of the failure', async () => {
  const plane = await startPlane(({ resume }) => (resume ? { status: 400 } : { left_s: 600 }))
  mkdirSync(join(folder, 'web'), { recursive: true })
  writeFileSync(join(folder, 'web/site.yml'), '')
  const sources = { web: { path: join(folder, 'web') } }
  const file = { ansible: { program: join(folder, 'script'), hosts: ['web1'], sources } }
  const inputs = { source: 'web', playbook: 'site.yml', inventory: { hosts: { web1: {} } } }
  const events = ['planned', 'stats'].map((signalbox) => ({ signalbox, host: 'web1', counts: { failures: 1 } }))
  const script = events.map((event) => `echo '${JSON.stringify(event)}'`).join('\n')
  await runScript(plane.url, script, 'unused', { file, work: { job: 'ansible.run', inputs } })
  const [, full, bare] = plane.heard
  expect(full).toMatchObject({ phase: 'failed', resume: { hosts: ['web1'] } })
  expect(bare).toMatchObject({ phase: 'failed', error: { class: 'hosts_failed' } })
  expect(bare?.resume).toBeUndefined()
  plane.close()
}, 60_000)

it('a retry is limited to hosts that the approved inputs name, whatever the control plane passes on', async () => {
  const plane = await startPlane(() => ({ left_s: 600 }))
  mkdirSync(join(folder, 'web'), { recursive: true })
  writeFileSync(join(folder, 'web/site.yml'), '')
  const told = join(folder, 'told')
  const limits = async (resume: object | undefined) => {
    writeFileSync(told, '')
    chmodSync(told, 0o666)
    const file = {
      ansible: { program: join(folder, 'script'), hosts: ['*'], sources: { web: { path: join(folder, 'web') } } },
    }
    const hosts = { web1: {}, web2: {}, web3: {} }
    const inputs = { source: 'web', playbook: 'site.yml', inventory: { hosts }, limit: ['web1', 'web2'] }
    const events = ['planned', 'stats'].map((signalbox) => ({ signalbox, host: 'web1', counts: { failures: 1 } }))
    const script = [`echo "$*" > ${told}`, ...events.map((event) => `echo '${JSON.stringify(event)}'`)].join('\n')
    await runScript(plane.url, script, 'unused', { file, work: { job: 'ansible.run', inputs, resume } })
    return / --limit (\S+) /.exec(readFileSync(told, 'utf8'))?.[1]
  }
  expect(await limits(undefined)).toBe('web1,web2')
  const { resume } = plane.heard.at(-1) as { resume: object }
  expect(await limits(resume)).toBe('web1')
  for (const hosts of [['@../identity'], ['web1', 'web3'], ['all'], [], 'web1'])
    expect(await limits({ ...resume, hosts })).toBe('web1,web2')
  plane.close()
}, 60_000)

it('a credential that a program folds over several lines is masked in each', async () => {
  const secret = 'tok-0123456789-abcdefghijklmnopqrs'
  const plane = await startPlane(() => ({ left_s: 600 }))
  await runScript(plane.url, 'echo "a $TOKEN b" | fold -w 11', secret)
  const lines = plane.heard.flatMap(({ lines = [] }) => lines)
  expect(lines.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
  expect(lines.map(({ text }) => text)).toEqual(['a •••', '•••', '•••', '••• b'])
  plane.close()
}, 60_000)

it('a credential that line ends break is masked though messages end between its lines, unless its program falls silent', () => {
  let time = 0
  const mask = maskerOf(['tok-0123456789-abcdef'])
  const agent = createLog(mask, new AbortController().signal, () => time)
  const worker = createStored({ lines: 0, bytes: 0 }, mask, () => new Date(time))
  const logs = [
    {
      add: (text: string) => agent.add(text),
      send: () => {
        const part = agent.part()
        agent.done(part)
        return part.map(({ text }) => text)
      },
    },
    {
      add: (text: string) => worker.add(text),
      send: () => {
        const part = worker.take()
        worker.done()
        return part.map(({ text }) => text)
      },
    },
  ]
  for (const { add, send } of logs) {
    add('one tok-0123')
    time += 1000
    expect(send()).toEqual([])
    add('456789-abcdef')
    expect(send()).toEqual(['one •••', '•••'])
    add('two tok-0123')
    time += 3000
    expect(send()).toEqual(['two tok-0123'])
    // More than one message is held up: it was the control plane that was silent.
    for (let line = 0; line < 800; line += 1) add('x'.repeat(100))
    add('three tok-0123')
    for (time += 10_000; send().length > 0; );
    add('456789-abcdef')
    expect(send()).toEqual(['three •••', '•••'])
  }
})
