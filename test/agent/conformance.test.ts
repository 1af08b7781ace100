import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { type ConformanceFile, proveAgent } from '../../apps/platform/packs/main.ts'
import { serverUrl } from '../support/database.ts'
import { freePort } from '../support/ports.ts'

/** `signalbox agent conformance` with agents that follow the protocol, and with some that break one rule of it. */
const folder = mkdtempSync(join(tmpdir(), 'signalbox-conformance-'))
const format = 'signalbox/agent-conformance@1' as const
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const job = (name: string) => ({ job: name, inputs: { file: '$FILE' } })
const foreign: ConformanceFile = { format, jobs: { effect: job('effect'), ticks: job('ticks'), loud: job('loud') } }
const FOREIGN = join(ROOT, 'test/agent/support/foreign.ts')
const command = (fault?: string) =>
  `env ${fault ? `FOREIGN_FAULT=${fault} ` : ''}${process.execPath} --experimental-strip-types --no-warnings ${FOREIGN}`
const faultsOf = (proofs: { id: string; broken: string[] }[]) =>
  Object.fromEntries(proofs.filter(({ broken }) => broken.length > 0).map(({ id, broken }) => [id, broken.join('; ')]))

describe('an agent that follows the protocol', () => {
  it('by polling: signalbox agent', { timeout: 180_000 }, async () => {
    const script = (name: string, text: string) => {
      const path = join(folder, name)
      writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
      return { path, args: { type: 'array', items: { type: 'string' } } }
    }
    const programs = {
      effect: script('effect', 'echo did >> "$2"'),
      ticks: script('ticks', `trap 'exit 3' INT; while :; do echo did >> "$2"; sleep 1 & wait $!; done`),
      loud: script(
        'loud',
        `head -c 100000 /dev/zero | tr '\\0' x; echo; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; done`,
      ),
    }
    const file = { format: 'signalbox/agent@1', pools: ['conformance'], concurrency: 8, uid: 0, programs }
    writeFileSync(join(folder, 'agent.json'), JSON.stringify({ ...file, state_dir: join(folder, 'state') }))
    const ours = (program: string) => ({ job: 'command', inputs: { program, args: ['$FILE'] } })
    const proofs = await proveAgent({
      file: { format, jobs: { effect: ours('effect'), ticks: ours('ticks'), loud: ours('loud') } },
      command: `env HOME=${folder} ${process.execPath} ${join(ROOT, 'apps/cli/main.ts')} agent --file ${folder}/agent.json`,
      concurrency: 8,
    })
    expect(faultsOf(proofs)).toEqual({})
    expect(proofs.map(({ id }) => id)).toContain('identity')
  })

  it('by HTTP and by NATS: the reference agent', { timeout: 180_000 }, async () => {
    const endpoint = `http://127.0.0.1:${await freePort()}`
    const [pushed, read] = await Promise.all([
      proveAgent({ file: foreign, command: command(), concurrency: 8, endpoint }),
      proveAgent({ file: foreign, command: command(), concurrency: 8, nats: serverUrl('NATS_URL') }),
    ])
    expect([faultsOf(pushed), faultsOf(read)]).toEqual([{}, {}])
    for (const proofs of [pushed, read]) expect(proofs.map(({ id }) => id)).toContain('cancel-pushed')
  })
})

describe('an agent that violates the protocol', () => {
  const cases: [string, string, RegExp][] = [
    [
      'early',
      'claim,refused',
      /began the job before its "started"[\s\S]*did the work though its "started" was refused/,
    ],
    ['twice', 'replay', /given three times had \d effects instead of one/],
    [
      'deaf',
      'cancel,closed,silence',
      /did not stop within 15 s[\s\S]*works on though its report[\s\S]*works on, three/,
    ],
    ['any-job', 'unknown-job', /ended an unknown job as succeeded/],
    ['no-drain', 'drain', /ended its job as undefined|did not report|exited with 0/],
  ]
  it.concurrent.each(cases)('%s is found by %s', { timeout: 120_000 }, async (fault, only, words) => {
    const nats = serverUrl('NATS_URL')
    const asked = { file: foreign, command: command(fault), concurrency: 4, nats, only: only.split(',') }
    const proofs = await proveAgent(asked)
    expect(proofs.map(({ broken }) => broken.length > 0)).toEqual(only.split(',').map(() => true))
    expect(proofs.flatMap(({ broken }) => broken).join('; ')).toMatch(words)
  })
})

it('the command lists each violation and exits with 5; an invalid jobs file is a usage error', async () => {
  const file = join(folder, 'jobs.json')
  writeFileSync(file, JSON.stringify(foreign))
  const said: string[] = []
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => said.push(String(text)) > 0)
  const nats = serverUrl('NATS_URL')
  const line = ['agent', 'conformance', '--jobs', file, '--nats', nats, '--only', 'unknown-job', '--exec']
  try {
    expect(await run([...line, command('any-job')])).toBe(5)
    expect(await run([...line, command()])).toBe(0)
    writeFileSync(file, JSON.stringify({ format, jobs: {} }))
    expect(await run([...line, command()])).toBe(2)
  } finally {
    spy.mockRestore()
  }
  expect(said.join('')).toContain('The agent ended an unknown job as succeeded.')
  expect(said.join('')).toMatch(/ok +unknown-job: fails, definitely/)
}, 60_000)
