import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadPolicy } from '../../activities/executors/policy.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { APP_NAMES, APPS, envFor } from '../../apps/platform/run/apps.ts'
import { containerContext } from '../../apps/platform/run/containers.ts'
import { ensureKeys } from '../../apps/platform/run/keys.ts'
import { temporalArgs } from '../../apps/platform/servers/temporal.ts'
import type { Servers } from '../../apps/platform/servers/up.ts'
import { compose, document, service } from './support/compose.ts'

/** docker-compose.yml against the rules of its format, and against the table of the apps. */
const SERVERS = ['postgres', 'redis', 'nats', 'temporal']
const services = Object.entries(compose.services)

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-compose-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

describe('docker-compose.yml', () => {
  it('is valid: known keys, declared volumes, dependencies that exist', () => {
    expect(document.errors).toEqual([])
    expect(Object.keys(compose).filter((key) => !key.startsWith('x-'))).toEqual(['services', 'volumes'])
    const known =
      /^(image|build|command|environment|ports|volumes|depends_on|healthcheck|restart|stop_grace_period|user)$/
    for (const [name, { volumes = [], depends_on = {}, ports = [], ...one }] of services) {
      for (const key of Object.keys(one)) expect(`${name}.${key}`).toMatch(new RegExp(`\\.${known.source.slice(1)}`))
      for (const volume of volumes) {
        const [source = ''] = volume.split(':')
        if (source.startsWith('.')) expect(existsSync(join(ROOT, source)), source).toBe(true)
        else expect(Object.keys(compose.volumes)).toContain(source)
      }
      for (const [other, { condition }] of Object.entries(depends_on)) {
        expect(condition).toMatch(/^service_(healthy|completed_successfully)$/)
        if (condition === 'service_healthy') expect(service(other).healthcheck?.test[0]).toBe('CMD')
        else expect(service(other).restart).toBe('no')
      }
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
      for (const value of Object.values(one.environment ?? {})) expect(typeof value).toBe('string')
    }
  })

  it('runs every app of the table by its own command, after the set-up, and nothing else', () => {
    expect(Object.keys(compose.services).sort()).toEqual([...SERVERS, 'setup', ...APP_NAMES].sort())
    for (const name of APP_NAMES) {
      expect(service(name).command).toEqual(['node', 'apps/platform/deploy/run.ts', name])
      expect(service(name).depends_on).toEqual({ setup: { condition: 'service_completed_successfully' } })
    }
    expect(Object.keys(service('setup').depends_on ?? {}).sort()).toEqual([...SERVERS].sort())
    for (const file of [...services.map(([, { command }]) => command?.[1]), 'apps/platform/deploy/Dockerfile'])
      if (file?.startsWith('apps/')) expect(existsSync(join(ROOT, file)), file).toBe(true)
  })

  it('counts Postgres as healthy once it serves by TCP: while its data folder is made, it listens at a socket alone', () => {
    expect(service('postgres').healthcheck?.test.join(' ')).toMatch(/pg_isready .*-h 127\.0\.0\.1/)
  })

  it('gives set-up and apps the addresses of the servers, and publishes only the gateway', () => {
    for (const name of ['setup', ...APP_NAMES])
      expect(service(name).environment).toMatchObject({
        SIGNALBOX_DIR: '/data',
        DATABASE_URL: expect.stringContaining('@postgres:5432/'),
        REDIS_URL: 'redis://redis:6379',
        NATS_URL: 'nats://nats:4222',
        TEMPORAL_ADDRESS: 'temporal:7233',
      })
    const gateway = APPS.find(({ name }) => name === 'gateway')?.http?.[1]
    expect(service('gateway').ports).toEqual([`127.0.0.1:${gateway}:${gateway}`])
    const published = services.filter(([name, { ports }]) => ports && name !== 'gateway').map(([name]) => name)
    expect(published).toEqual(['temporal'])
    expect(service('credential').environment?.UV_THREADPOOL_SIZE).toBe('14')
  })

  it('starts Temporal as npm start does', () => {
    const pairs = (args: string[], option: string) =>
      args.flatMap((arg, i) =>
        arg === option ? [args[i + 1]] : arg.startsWith(`${option}=`) ? [arg.slice(option.length + 1)] : [],
      )
    const ours = temporalArgs(scratch, { port: 7233, ui_port: 8233, namespaces: ['default'] })
    for (const option of ['--search-attribute', '--dynamic-config-value', '--namespace'])
      expect(pairs(service('temporal').command ?? [], option).sort()).toEqual(pairs(ours, option).sort())
  })

  it('lets the apps reach one another by name at the ports of the table, and the worker reach the hosts', () => {
    const given = { own: false, url: () => 'given://', admin_url: 'given://', password: () => '' }
    const temporal = { address: 'temporal:7233', ui_url: undefined, namespace: 'default', own: false }
    const servers = { postgres: given, redis: given, nats: given, temporal } as unknown as Servers
    const context = containerContext(scratch, ensureKeys(scratch), servers, true)
    for (const app of APPS) {
      const env = envFor(app, context)
      expect(env[`${app.name.toUpperCase()}__LISTEN__HOST`]).toBe('0.0.0.0')
      const inner = Object.entries(env).filter(([name]) => name !== 'GATEWAY__HTTP__PUBLIC_ORIGIN')
      for (const [name, value] of inner) {
        if (!value?.startsWith('http:')) continue
        const { hostname, port } = new URL(value)
        const other = APPS.find((one) => one.name === hostname)
        expect(other, `${name}=${value}`).toBeDefined()
        expect([other?.http?.[1], other?.internal[1]], `${name}=${value}`).toContain(Number(port))
      }
    }
    const fleet = envFor(APPS.find(({ name }) => name === 'fleet') as (typeof APPS)[number], context)
    expect(fleet.FLEET__HOSTS__ADDRESS).toBe('fleet')
    const file = context.overrides?.WORKER__EXECUTORS__POLICY_FILE?.replace('/signalbox', ROOT) as string
    const [rule] = loadPolicy(file).rulesFor('default', new URL(`http://fleet:${fleet.FLEET__HOSTS__PORT_BASE}/drain`))
    expect(rule?.networks.check('172.18.0.7', 'ipv4')).toBe(true)
    expect(loadPolicy(file).rulesFor('default', new URL('http://127.0.0.1:17200/'))).toEqual([])
  })
})
