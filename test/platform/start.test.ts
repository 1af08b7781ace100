import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { holderOf, lives, type Recorded, readIfThere, readRun } from '../../apps/platform/base/record.ts'
import { type Account, type Person, signIn } from '../../apps/platform/demo/client.ts'
import { approveGate, waitForEnd, waitForGate } from '../../apps/platform/demo/operations.ts'
import { STAMP, sourceHash } from '../../apps/platform/run/console-build.ts'
import type { Run } from '../../apps/platform/run/supervisor.ts'
import { createRedis } from '../../db/redis/redis.ts'
import { until } from '../support/until.ts'
import { type Running, runVerb } from './support/verb.ts'

vi.setConfig({ testTimeout: 240_000 })

/** The real `npm start`, with its own servers: started, damaged, stopped in the middle of work, started again. */
const HOSTS = 6
let dir: string
let started: Running
let holder: Server
let taken: number
const fleet_base = 30_000 + (process.pid % 200) * 100
let env: Record<string, string>

const inDir = (name: string) => join(dir, name)
const readJson = <T>(name: string): T => JSON.parse(readFileSync(inDir(name), 'utf8')) as T
const run = () => readJson<Run & { pid: number }>('run.json')
const modeOf = (name: string) => (statSync(inDir(name)).mode & 0o777).toString(8)
const READY = /Signalbox is ready/
const DEMO = /The demo data is complete/

/** Other tests build and check the console. */
const fakeConsole = (into: string) => {
  mkdirSync(join(into, 'console/.vite'), { recursive: true })
  writeFileSync(join(into, 'console/index.html'), '<!doctype html><title>Signalbox</title>')
  writeFileSync(join(into, 'console', STAMP), sourceHash())
}
const start = (...args: string[]) => runVerb('start', args, { env })
const person = (name: string): Promise<Person> => {
  const account = readJson<{ users: Account[] }>('demo.json').users.find(({ username }) => username === name)
  return signIn(run().gateway, account as Account)
}

type Effect = { hostname: string; operation_id: string | null; effect: string }
const effectsOf = async (operation_id: string): Promise<string[]> => {
  const reply = await fetch(`http://127.0.0.1:${run().apps.fleet?.port}/ledger?limit=10000`)
  const { items } = (await reply.json()) as { items: Effect[] }
  return items
    .filter((item) => item.operation_id === operation_id)
    .map(({ hostname, effect }) => `${hostname} ${effect}`)
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'signalbox-start-'))
  fakeConsole(dir)
  writeFileSync(
    inDir('policy.yaml'),
    `format: signalbox/executor-policy@1
pools:
  default:
    destinations: [{ scheme: http, host: '*', networks: [127.0.0.0/8], ports: ['1024-65535'] }]
    secrets: ['secret://file/fleet-*']
  demo: { mode: nats, agents: ['machine:demo-runner'], max_in_flight: 4, destinations: [], secrets: [] }
`,
  )
  holder = createServer().listen(0, '127.0.0.1')
  await until(() => holder.listening)
  const address = holder.address()
  taken = typeof address === 'object' && address ? address.port : 0
  env = {
    SIGNALBOX_DIR: dir,
    GATEWAY__HTTP__PORT: String(taken),
    FLEET__HOSTS__PORT_BASE: String(fleet_base),
    WORKER__EXECUTORS__POLICY_FILE: inDir('policy.yaml'),
    // The shell of someone who develops other software.
    NODE_ENV: 'production',
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: 'http://127.0.0.1:9',
  }
  started = start('--hosts', String(HOSTS))
  await started.says(READY, 290_000)
  await started.says(DEMO, 290_000)
}, 600_000)
afterAll(async () => {
  started?.signal('SIGTERM')
  await started?.ended
  holder?.close()
  rmSync(dir, { recursive: true, force: true })
}, 60_000)

describe('npm start', () => {
  it('names the taken port and its replacement', () => {
    const used = Number(new URL(run().gateway).port)
    expect(used).toBeGreaterThan(taken)
    expect(started.text()).toContain(`gateway    port ${taken} is taken, using ${used}`)
    expect(started.text()).toContain(`npx signalbox login eva --url http://localhost:${used}`)
  })

  it('the client of this checkout finds the gateway on the replacement', async () => {
    const doctor = runVerb('signalbox', ['doctor'], { env: { ...env, XDG_CONFIG_HOME: inDir('none') } })
    await doctor.ended
    expect(doctor.text()).toContain(`${run().gateway} answered`)
  })

  it('writes run.json for its owner only, with everything that runs', async () => {
    expect(modeOf('run.json')).toBe('600')
    const now = run()
    expect(Object.keys(now.apps).sort()).toEqual(
      [
        'catalog',
        'credential',
        'fleet',
        'gateway',
        'identity',
        'operations',
        'relay',
        'session',
        'token',
        'worker',
      ].sort(),
    )
    for (const { pid, port } of Object.values(now.apps)) {
      expect(() => process.kill(pid as number, 0)).not.toThrow()
      expect(port).toBeGreaterThan(0)
    }
    expect(now).toMatchObject({
      temporal_ui: expect.stringMatching(/^http:.*\/namespaces\/sb-[0-9a-f]+\/workflows$/),
      temporal: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      postgres: expect.stringMatching(/^postgres:/),
      redis: expect.stringMatching(/^redis:/),
      nats: expect.stringMatching(/^nats:/),
      internal: { catalog: expect.stringMatching(/^http:/), operations: expect.stringMatching(/^http:/) },
    })
    expect(now.pid).toBe(holderOf(dir))
    expect((await fetch(`${now.gateway}/health/ready`)).status).toBe(200)
  })

  it('seeds the demo with the requested number of hosts, and keeps its accounts readable only by the owner', async () => {
    expect(modeOf('demo.json')).toBe('600')
    const { users } = readJson<{ users: Account[] }>('demo.json')
    expect(users.map(({ username }) => username)).toEqual(['ada', 'olga', 'eva'])
    for (const { password } of users.filter(({ username }) => username !== 'ada'))
      expect(started.text()).toContain(password)
    const reply = await fetch(`http://127.0.0.1:${run().apps.fleet?.port}/hosts`)
    const { items } = (await reply.json()) as { items: { hostname: string }[] }
    // The listeners of the demo's services are hosts, too.
    expect(items.filter(({ hostname }) => /^(eu1|us1)-web-/.test(hostname))).toHaveLength(HOSTS)
  })

  it('shows the tools of this machine under approval: exactly the reviewed change is made', async () => {
    await started.says(
      /"site 1\.0\.0 by OpenTofu" succeeded|no "site 1\.0\.0 by OpenTofu": put tofu or terraform on PATH/,
    )
    await started.says(/"site 1\.0\.0 by git" succeeded/)
    const list = runVerb('demo', ['--list'], { env })
    expect(await list.ended).toBe(0)
    expect(list.text()).toMatch(/^apps [\s\S]*^opentofu [\s\S]*^git .*\n/m)
    const again = runVerb('demo', ['git'], { env })
    expect(await again.ended).toBe(0)
    const [, release] = /"none" -> "(3\.0\.\d+)"/.exec(again.text()) ?? []
    expect(again.text()).toContain('Exactly this is carried out.')
    const show = ['-C', inDir('demo/site'), 'show', `signalbox/${release}:release.txt`]
    expect(execFileSync('git', show, { encoding: 'utf8' })).toBe(`${release}\n`)
    for (const time of ['first', 'second']) {
      const apps = runVerb('demo', [], { env })
      expect(await apps.ended, `${time} run:\n${apps.text()}`).toBe(0)
      expect(apps.text()).toMatch(/demo-app-4 +http\S+ +3\.0\.[1-9]\d* +in/)
    }
    for (const unknown of [['terrafrom'], ['--seed', '--hosts', '5000']]) {
      const refused = runVerb('demo', unknown, { env })
      expect(await refused.ended).toBe(2)
      expect(refused.text()).toMatch(/^usage: npm run demo/)
    }
  })

  it('refuses a second platform on the same folder with one line', async () => {
    const second = start()
    expect(await second.ended).toBe(1)
    expect(second.text()).toContain(`Signalbox is already running on ${dir} (process ${run().pid}, ${run().gateway})`)
    expect(run().pid).toBe(holderOf(dir))
  })

  it('restarts an app that was killed, says so, and run.json follows', async () => {
    const before = run().apps.token?.pid as number
    process.kill(before, 'SIGKILL')
    await started.says(/token +died \(killed by SIGKILL\); restarting it in 250 ms/)
    await started.says(/token +is back after/)
    await until(() => run().apps.token?.pid !== before)
    expect(() => process.kill(run().apps.token?.pid as number, 0)).not.toThrow()
  })

  it('restarts servers that were killed, and every app is ready afterwards', async () => {
    const servers = readJson<{ name: string; pid: number }[]>('children.json').filter(({ name }) =>
      ['postgres', 'redis', 'nats', 'temporal'].includes(name),
    )
    expect(servers).toHaveLength(4)
    for (const { pid } of servers) process.kill(pid, 'SIGKILL')
    for (const { name } of servers) await started.says(new RegExp(`${name} +is back after`), 60_000)
    await until(
      async () => {
        const answers = await Promise.all(
          Object.values(run().apps).map(({ internal }) => fetch(`http://127.0.0.1:${internal}/health/ready`)),
        )
        const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { status: string }[]
        return bodies.every(({ status }) => status === 'ready')
      },
      { timeout_ms: 60_000, every_ms: 250, what: 'every app ready' },
    )
    const eva = await person('eva')
    expect((await eva.get<{ items: unknown[] }>('/v1/operations')).items.length).toBeGreaterThan(0)
  })
})

describe('the health of the parts', () => {
  it('names every app, and one that was killed as silent beside its replacement', async () => {
    const eva = await person('eva')
    type Parts = { parts: { app: string; instance: string; status: string; lags: Record<string, number> }[] }
    const { parts } = await until(
      async () => {
        const health = await eva.get<Parts>('/v1/platform/health')
        return health.parts.some(({ status }) => status === 'silent') ? health : undefined
      },
      { timeout_ms: 60_000, every_ms: 1000, what: 'a silent part' },
    )
    const { fleet: _, ...apps } = run().apps
    for (const [app, { pid }] of Object.entries(apps))
      expect(parts.find((part) => part.app === app && part.instance.endsWith(`-${pid}`))?.status).toBe('ready')
    expect(parts.filter(({ status }) => status === 'silent')).toMatchObject([{ app: 'token' }])
    expect(Object.keys(parts.find(({ app }) => app === 'relay')?.lags ?? {})).toContain('events_unpublished')
  })
})

describe('npm run doctor', () => {
  it('prints one line for each passed check and exits 0', async () => {
    const doctor = runVerb('doctor', [], { env })
    expect(await doctor.ended).toBe(0)
    const lines = doctor.text().trim().split('\n')
    expect(lines.every((line) => line.startsWith('ok    '))).toBe(true)
    for (const name of ['postgres', 'redis', 'nats', 'temporal', 'gateway', 'worker', 'relay'])
      expect(lines).toContain(`ok    ${name} answers`)
  })

  it('names a program that is too old to serve, and a folder that cannot be written', async () => {
    const bin = inDir('old')
    mkdirSync(bin)
    for (const name of ['redis-server', 'valkey-server'])
      writeFileSync(join(bin, name), '#!/bin/sh\necho "server v=6.2.0"\n', { mode: 0o755 })
    const old = { ...env, PATH: `${bin}:${process.env.PATH}`, SIGNALBOX_CACHE: inDir('policy.yaml/cache') }
    const doctor = runVerb('doctor', [], { env: old })
    expect(await doctor.ended).toBe(1)
    expect(doctor.text()).toContain(`${join(bin, 'redis-server')} is 6.2.0, older than 7.0.0`)
    expect(doctor.text()).toMatch(/^wrong \S+policy\.yaml\/cache cannot be written by .*SIGNALBOX_CACHE/m)
  })

  it('names the failing check of an app that serves', async () => {
    const redis = createRedis(run().redis, { name: 'full-disk' })
    await redis.connect()
    // The supervisor reports the real disk.
    process.kill(run().pid, 'SIGSTOP')
    try {
      await redis.set('ops:disk:postgres', 7, 'EX', 60)
      const ready = `http://127.0.0.1:${run().apps.gateway?.internal}/health/ready`
      await until(async () => (await (await fetch(ready)).text()).includes('degraded'), { timeout_ms: 20_000 })
      const doctor = runVerb('doctor', [], { env })
      expect(await doctor.ended).toBe(1)
      expect(doctor.text()).toMatch(
        /^wrong gateway serves, but disk: 7 % of the disk under a server is free\. See its log/m,
      )
    } finally {
      process.kill(run().pid, 'SIGCONT')
      redis.disconnect()
    }
    await until(async () => (await runVerb('doctor', [], { env }).ended) === 0, { timeout_ms: 60_000 })
  })

  it('names each fault with its log, and exits with another code', async () => {
    const { pid } = readJson<{ name: string; pid: number }[]>('children.json').find(({ name }) => name === 'fleet') as {
      pid: number
    }
    process.kill(pid, 'SIGSTOP')
    try {
      const doctor = runVerb('doctor', [], { env })
      expect(await doctor.ended).toBe(1)
      const wrong = doctor
        .text()
        .split('\n')
        .filter((line) => line.startsWith('wrong') && !line.includes(' serves, but '))
      expect(wrong).toEqual([expect.stringMatching(/^wrong fleet: .*logs\/fleet\.log$/)])
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  })
})

describe('Ctrl-C in the middle of an operation', () => {
  it('stops in order; the next start carries the operation to its end, each effect exactly once', async () => {
    const eva = await person('eva')
    const { items } = await eva.get<{ items: { operation_id: string; title: string }[] }>('/v1/operations')
    const { operation_id } = items.find(({ title }) => title === 'web 2.4.0 on eu1') as { operation_id: string }
    const before = (await effectsOf(operation_id)).length
    await approveGate(eva, operation_id, await waitForGate(eva, operation_id), 'go')
    await until(async () => (await effectsOf(operation_id)).length > before, { timeout_ms: 30_000 })
    const asked = performance.now()
    started.signal('SIGINT')
    expect(await started.ended).toBe(0)
    expect(performance.now() - asked).toBeLessThan(15_000)
    expect(started.text()).toMatch(/SIGINT: stopping in order[\s\S]*apps +stopped in[\s\S]*the data stays in/)
    expect(existsSync(inDir('run.json'))).toBe(false)

    started = start('--no-demo')
    await started.says(READY, 150_000)
    expect(started.text()).toContain('npm run admin -- identity bootstrap-admin --username NAME')
    const ended = await waitForEnd(await person('eva'), operation_id, 90_000)
    expect(ended.status).toBe('succeeded')
    const hosts = Array.from({ length: HOSTS / 2 }, (_, i) => `eu1-web-0${i + 1}`)
    const expected = hosts.flatMap((host) => ['deploy', 'drain', 'undrain'].map((effect) => `${host} ${effect}`))
    expect((await effectsOf(operation_id)).sort()).toEqual(expected.sort())
  })
})

describe('another start', () => {
  it('with --reset refuses to drop half of the data', async () => {
    const named = { DATABASE_URL: 'postgres://127.0.0.1:1/none', NATS_URL: 'nats://127.0.0.1:1' }
    const refused = runVerb('start', ['--reset'], { env: { ...env, ...named } })
    expect(await refused.ended).toBe(1)
    expect(refused.text()).toContain('--reset cannot drop the data of DATABASE_URL and NATS_URL, so it drops none.')
    expect(existsSync(inDir('keys/secrets.json'))).toBe(true)
  })

  it('with --reset drops the data; a refused setting ends it with one line and leaves nothing behind', async () => {
    process.kill(holderOf(dir) as number, 'SIGKILL')
    expect(await started.ended).toBe(1)
    expect(existsSync(inDir('run.json'))).toBe(true)
    expect(readRun(dir)).toBe(undefined)
    started = runVerb('start', ['--reset', '--no-demo'], { env: { ...env, SESSION__LIMITS__REFRESH: 'often' } })
    expect(await started.ended).toBe(1)
    const said = started.text()
    expect(said).toMatch(/ending processes that an earlier run left behind \(14\)/)
    expect(said).toContain(`dropping the data in ${dir}`)
    for (const name of ['demo.json', 'run.json']) expect(existsSync(inDir(name))).toBe(false)
    expect(said.split('\n').filter((line) => line.includes('SESSION__LIMITS__REFRESH'))).toEqual([
      'platform   session: SESSION__LIMITS__REFRESH is "often": it must match pattern "^[1-9][0-9]{0,6}/[1-9][0-9]{0,6}/[1-9][0-9]{0,6}$". Refreshes of a session: a limit as count/seconds/burst, such as 10/60/20.',
    ])
    expect(said).not.toMatch(/\n\s+at /)
    expect(holderOf(dir)).toBe(undefined)
  })

  it('with --reset in a folder that was never ours drops none of its files', async () => {
    const foreign = mkdtempSync(join(tmpdir(), 'signalbox-foreign-'))
    mkdirSync(join(foreign, 'logs'))
    writeFileSync(join(foreign, 'logs/theirs'), '')
    fakeConsole(foreign)
    const begun = runVerb('start', ['--reset'], { env: { ...env, SIGNALBOX_DIR: foreign } })
    await begun.says(/has no data of Signalbox, so --reset drops none/)
    begun.signal('SIGTERM')
    await begun.ended
    expect(existsSync(join(foreign, 'logs/theirs'))).toBe(true)
    rmSync(foreign, { recursive: true, force: true })
  })

  it('that is told twice to end does so at once, and leaves nothing running, whatever its servers do', async () => {
    const fresh = mkdtempSync(join(tmpdir(), 'signalbox-fresh-'))
    fakeConsole(fresh)
    const begun = runVerb('start', ['--no-demo'], { env: { ...env, SIGNALBOX_DIR: fresh } })
    await begun.says(/postgres +up in/, 150_000)
    const children = () => readIfThere<Recorded[]>(join(fresh, 'children.json')) ?? []
    const engine = await until(() => children().find(({ name }) => name === 'temporal'), { what: 'Temporal' })
    process.kill(engine.pid, 'SIGSTOP')
    begun.signal('SIGTERM')
    await begun.says(/stopping in order/)
    await delay(2100)
    const left = children()
    begun.signal('SIGTERM')
    expect(await begun.ended, begun.text()).toBe(1)
    try {
      await until(() => !left.some(lives), { what: 'the end of all' })
    } finally {
      for (const { pid } of left.filter(lives)) process.kill(-pid, 'SIGKILL')
      rmSync(fresh, { recursive: true, force: true })
    }
  })

  it('on a folder that cannot be written says so and how to go on', async () => {
    const refused = runVerb('start', [], { env: { ...env, SIGNALBOX_DIR: inDir('policy.yaml/data') } })
    expect(await refused.ended).toBe(1)
    expect(refused.text()).toMatch(/policy\.yaml\/data cannot be written \(ENOTDIR.*or name another folder/)
  })

  it('with flags that npm has kept for itself says how to pass them on', async () => {
    const kept = { npm_config_reset: 'true', npm_config_demo: '', npm_config_hosts: '8' }
    const refused = runVerb('start', [], { env: { ...env, ...kept } })
    expect(await refused.ended).toBe(2)
    expect(refused.text()).toBe(
      'npm keeps --reset and --no-demo and --hosts 8 for itself. Write: npm start -- --reset --no-demo --hosts 8\n',
    )
  })

  it.each(['doctor', 'migrate', 'image', 'db:generate'])('of %s with --help ends with its usage', async (verb) => {
    const asked = runVerb(verb, ['--help'])
    expect(await asked.ended).toBe(2)
    expect(asked.text()).toMatch(new RegExp(`^usage: .*npm run ${verb} `))
    expect(asked.text()).not.toMatch(/\n\s+at /)
  })

  it('with an unknown flag ends with the usage', async () => {
    const refused = [start('--hosts=1'), start('--host')]
    for (const one of refused) {
      expect(await one.ended).toBe(2)
      expect(one.text()).toMatch(
        /^usage: npm start -- \[--reset\] \[--no-demo\] \[--sso\] \[--hosts N\] .*2 to 200.*\n$/,
      )
    }
  })
})
