import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { spawn as spawnTerminal } from '@lydell/node-pty'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { percentOf } from '../../apps/platform/base/disk.ts'
import { ensureInstallation } from '../../apps/platform/base/installation.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { bornAt } from '../../apps/platform/base/pids.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { healthy } from '../../apps/platform/base/probes.ts'
import { createProcess, type Managed, type Unit, type UnitEvents } from '../../apps/platform/base/process.ts'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { INSTANCE_HEADER } from '../../apps/shared/http/health.ts'
import { until } from '../support/until.ts'

vi.setConfig({ testTimeout: 120_000 })

/** One supervised process: a small server that identifies itself, and exits with 98 when its port is taken. */
const SERVER = `
  const http = require('node:http')
  const server = http.createServer((req, res) => {
    res.setHeader('${INSTANCE_HEADER}', 'here-' + process.pid)
    res.end(process.env.WORD)
  })
  server.on('error', (error) => process.exit(error.code === 'EADDRINUSE' ? 98 : 1))
  setTimeout(() => server.listen(Number(process.env.PORT), '127.0.0.1'), Number(process.env.WAIT_MS))
`
const dir = mkdtempSync(join(tmpdir(), 'signalbox-process-'))
const ended: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
  rmSync(dir, { recursive: true, force: true })
})

const ports = createPorts()
type Server = { port: number; word: string; wait_ms?: number }
const supervised = (server: Server, unit: Partial<Unit> = {}, events: Partial<UnitEvents> = {}): Managed => {
  const child = createProcess(
    {
      name: 'server',
      command: () => ({
        command: process.execPath,
        args: ['-e', SERVER],
        env: { PORT: String(server.port), WORD: server.word, WAIT_MS: String(server.wait_ms ?? 0) },
      }),
      probe: (pid) => healthy(`http://127.0.0.1:${server.port}/`, pid),
      ...unit,
    },
    dir,
    events,
  )
  ended.push(() => child.stop())
  return child
}
const stranger = async (port: number) => {
  const server = createServer((_req, res) => res.end('stranger'))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  ended.push(() => new Promise((resolve) => server.close(resolve)))
}
const says = async (port: number) => (await fetch(`http://127.0.0.1:${port}/`)).text()

describe('a supervised process', () => {
  it('that finds its port taken gets another one; the stranger at the old one is never mistaken for it', async () => {
    const server = { port: await ports.take('server', 0), word: 'ours', wait_ms: 500 }
    const wanted = server.port
    await stranger(wanted)
    const child = supervised(server, {
      move: async () => {
        server.port = await ports.keep('server', server.port)
      },
    })
    await child.start()
    expect(server.port).not.toBe(wanted)
    expect(await says(server.port)).toBe('ours')
    expect(await says(wanted)).toBe('stranger')
  })

  it("whose port no one replaces ends with an error, not with the stranger's success", async () => {
    const server = { port: await ports.take('server', 0), word: 'ours', wait_ms: 500 }
    await stranger(server.port)
    await expect(supervised(server).start()).rejects.toThrow('server did not start: exit code 98')
  })

  it('gets another port if its own is taken while it is down', async () => {
    const server = { port: await ports.take('server', 0), word: 'ours' }
    const wanted = server.port
    const died: string[] = []
    const child = supervised(
      server,
      {
        move: async () => {
          server.port = await ports.keep('server', server.port)
        },
      },
      {
        died: (how) => {
          died.push(how)
          if (died.length === 1) void stranger(wanted)
        },
      },
    )
    await child.start()
    child.kill('SIGKILL')
    await until(async () => server.port !== wanted && (await says(server.port)) === 'ours', { timeout_ms: 30_000 })
    expect(died).toEqual(['killed by SIGKILL', 'exit code 98'])
  })

  it('that runs without an answer is killed and restarted', async () => {
    const server = { port: await ports.take('server', 0), word: 'ours' }
    const silent: boolean[] = []
    let back = 0
    const child = supervised(
      server,
      { misses: 1 },
      { silent: (_for_ms, _why, killed) => void silent.push(killed), back: () => back++ },
    )
    await child.start()
    const before = child.pid
    child.kill('SIGSTOP')
    await until(() => back === 1, { what: 'the server is back' })
    expect(child.pid).not.toBe(before)
    expect(silent).toEqual([true])
    expect(await says(server.port)).toBe('ours')
  })

  it('restarts with its current command, and no one reports a death', async () => {
    const server = { port: await ports.take('server', 0), word: 'before' }
    const died: string[] = []
    const child = supervised(server, {}, { died: (how) => void died.push(how) })
    await child.start()
    server.word = 'after'
    await child.renew()
    await until(async () => (await says(server.port)) === 'after', { timeout_ms: 30_000 })
    expect(died).toEqual([])
  })

  it('that is stopped during its start is gone, and its start has failed', async () => {
    const server = { port: await ports.take('server', 0), word: 'ours', wait_ms: 600_000 }
    const child = supervised(server)
    const start = child.start()
    await until(() => child.pid)
    await child.stop()
    await expect(start).rejects.toThrow('server did not start')
    expect(bornAt(child.pid as number)).toBe(undefined)
  })

  it('whose probe never settles is not waited for', async () => {
    const child = supervised({ port: 0, word: '' }, { probe: () => new Promise(() => {}) })
    await expect(child.start(6000)).rejects.toThrow('not ready within 6 s: no answer within 5 s')
    expect(readFileSync(child.log, 'utf8')).toBe('')
  })
})

it('a file that a killed process left empty counts as missing', () => {
  mkdirSync(dir, { recursive: true })
  for (const name of ['installation.json', 'demo.json']) writeFileSync(join(dir, name), '')
  expect(readDemo(dir)).toBe(undefined)
  expect(ensureInstallation(dir)).toEqual(ensureInstallation(dir))
})

describe('the free share of a disk', () => {
  it.each([
    [90, 2000, 90],
    [500, 2000, 100],
    [5, 2000, 5],
    [1, 20, 5],
    [0, 0, 100],
  ])('of %i GB of %i is %i %%: much space on a large disk is not little', (free, size, percent) => {
    expect(percentOf(free * 1024 ** 3, size * 1024 ** 3)).toBe(percent)
  })
})

describe('ports', () => {
  it('on which a stranger answers to localhost by IPv6 are not chosen', async ({ skip }) => {
    const wanted = await ports.take('one', 0)
    const server = createServer().listen(wanted, '::1')
    ended.push(() => new Promise((resolve) => server.close(resolve)))
    const bound = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ])
    if (!bound) return skip('this machine has no IPv6')
    expect(await createPorts().take('two', wanted)).not.toBe(wanted)
    expect(await ports.keep('one', wanted)).not.toBe(wanted)
  })

  it('that another process of this user has chosen and not yet bound are not chosen again', async () => {
    const mine = await ports.take('one', 0)
    const program = `
      import { createPorts } from ${JSON.stringify(new URL('../../apps/platform/base/ports.ts', import.meta.url).href)}
      console.log(await createPorts().take('two', ${mine}))
    `
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
    expect(Number(stdout)).toBe(mine + 1)
  })
})

describe('a supervisor whose reader has gone', () => {
  const SUPERVISOR = `
    const { createScreen } = await import('${pathToFileURL(join(ROOT, 'apps/platform/base/screen.ts')).href}')
    const { line } = createScreen()
    const stop = async () => {
      for (let i = 0; i < 5; i++) {
        line('platform', 'stopping')
        console.log('stopping')
        await new Promise((done) => setTimeout(done, 20))
      }
      (await import('node:fs')).writeFileSync(process.argv[1], 'in order')
      process.exit(0)
    }
    for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, stop)
    setInterval(() => {}, 1000)
    line('platform', 'ready')
  `
  const stopped = (file: string) => () => existsSync(file) && readFileSync(file, 'utf8') === 'in order'
  const argumentsFor = (file: string) => {
    mkdirSync(dir, { recursive: true })
    return ['--input-type=module', '-e', SUPERVISOR, file]
  }

  it('stops in order after Ctrl-C, although both of its pipes are closed', async () => {
    const file = join(dir, 'piped')
    const child = spawn(process.execPath, argumentsFor(file), { stdio: ['ignore', 'pipe', 'pipe'] })
    await once(child.stderr, 'data')
    child.stdout.destroy()
    child.stderr.destroy()
    child.kill('SIGINT')
    await until(stopped(file), { what: 'the end in order' })
  })

  it('stops in order after its terminal was closed', async () => {
    const file = join(dir, 'terminal')
    const terminal = spawnTerminal(process.execPath, argumentsFor(file), {})
    await new Promise<void>((done) => terminal.onData((text) => text.includes('ready') && done()))
    ;(terminal as unknown as { destroy: () => void }).destroy()
    await until(stopped(file), { what: 'the end in order' })
  })
})
