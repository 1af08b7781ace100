import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createSeen } from '../../apps/operations/agents/seen.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import type { WorkRequest } from '../../apps/shared/contracts/engine/executions.ts'
import { CLI } from '../support/cli.ts'
import { until } from '../support/until.ts'

/** Processes that use one name by mistake. */
it('two processes that keep one name are counted; a successor, a restart and one that drains are not', async () => {
  let time = 0
  const db = { execute: async () => ({ rows: [] }) }
  const seen = createSeen(db as never, { log: {} } as never, () => time)
  const one = {
    ...{ agent: 'machine:runner/eu1', machine: 'machine:runner', pools: ['infra'], complete: true, labels: {} },
    ...{ version: null, concurrency: 1, draining: false },
  }
  /** Each of them asks so often for this long. */
  const askEach = async (every: number, seconds: number, ...instances: (string | undefined)[]) => {
    for (const end = time + 1000 * seconds; time < end; time += 1000 * every)
      for (const instance of instances) await seen.note(one, instance)
    return seen.sharing(one.agent)
  }
  const ask = (seconds: number, ...instances: (string | undefined)[]) => askEach(5, seconds, ...instances)
  expect(await ask(90, 'old')).toBeUndefined()
  expect(await ask(40, 'old', 'new')).toBeUndefined()
  await seen.note({ ...one, draining: true }, 'old')
  expect(await ask(90, 'new')).toBeUndefined()
  for (let step = 0; step < 24; step += 1) expect(await ask(5, 'restarted')).toBeUndefined()
  expect(await ask(120, 'restarted', 'twin')).toBe(2)
  await seen.gone(one, 'twin')
  expect(seen.sharing(one.agent)).toBeUndefined()
  // Over NATS an agent may say its name this seldom.
  expect(await askEach(30.2, 160, 'restarted', 'second')).toBe(2)
  // More names than are kept.
  for (let round = 0; round < 24; round += 1) {
    for (const instance of ['third', 'fourth']) await seen.note(one, instance)
    for (let other = 0; other < 1000; other += 1)
      await seen.note({ ...one, agent: `machine:runner/${other}` }, 'an-instance')
    time += 5000
  }
  expect(seen.sharing(one.agent)).toBe(2)
  // An agent of an earlier version names no instance.
  expect(await ask(90, undefined, undefined)).toBeUndefined()
})

it('an agent warns once that another one uses its name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-names-'))
  const asked: WorkRequest[] = []
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    if (req.url?.endsWith('/work')) asked.push(JSON.parse(Buffer.concat(chunks).toString()))
    setTimeout(() => res.writeHead(204, { 'agent-instances': '2' }).end(), 200)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const path = join(folder, 'agent.json')
  const file = { format: 'signalbox/agent@1', pools: ['infra'], uid: 1500, name: 'eu1' }
  writeFileSync(path, JSON.stringify({ ...file, state_dir: join(folder, 'state') }))
  const child = spawn(process.execPath, [...CLI, 'agent', '--file', path], {
    env: {
      ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir(), HOME: folder, TMPDIR: folder },
      ...{ SIGNALBOX_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, SIGNALBOX_TOKEN: 'a-token' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += chunk))
  await until(() => asked.length > 3, { what: 'requests for work' })
  child.kill('SIGTERM')
  await once(child, 'exit')
  expect(said.match(/2 agents use the name "eu1"/g)).toHaveLength(1)
  const instances = new Set(asked.map(({ agent }) => agent?.instance))
  expect([...instances]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)])
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
}, 90_000)
