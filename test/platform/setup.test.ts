import { spawnSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureInstallation } from '../../apps/platform/base/installation.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { createProcess, type Managed } from '../../apps/platform/base/process.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { APPS, entryOf } from '../../apps/platform/run/apps.ts'
import { ensureServers, type Servers, startServers } from '../../apps/platform/servers/up.ts'
import { withoutGivenServers } from '../support/servers.ts'

/** A production installation from its own files alone: nothing but them and PATH reaches an app. */
const ORIGIN = 'https://signalbox.example.com'
const NAMES = APPS.map(({ name }) => name).filter((name) => name !== 'fleet')
const home = mkdtempSync(join(tmpdir(), 'signalbox-production-'))
const out = join(home, 'config')
const ports = createPorts()
/** Where each listener of the table really is. */
const moved = new Map<number, number>()
const apps: Managed[] = []
let servers: Servers

const verb = (name: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, `apps/platform/deploy/${name}.ts`), ...args],
    { cwd: home, env: { PATH: process.env.PATH }, encoding: 'utf8' },
  )
  return { status, text: `${stdout}${stderr}` }
}
const setUp = (...args: string[]) => verb('setup', 'production', '--out', out, '--origin', ORIGIN, ...args)
const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  )
const digests = () =>
  filesBelow(out)
    .sort()
    .map((file) => `${file} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`)
const envFilesOf = (app: string) => ['', '.secret'].map((kind) => `--env-file=${join(out, `env/${app}${kind}.env`)}`)
const portOf = (app: string, listener: 'http' | 'internal') =>
  moved.get(APPS.find(({ name }) => name === app)?.[listener]?.[1] ?? 0)
const shownBy = (app: string) =>
  new Agent({
    connect: {
      cert: readFileSync(join(out, `tls/${app}.pem`)),
      key: readFileSync(join(out, `tls/${app}.key`)),
      ca: readFileSync(join(out, 'tls/ca.pem')),
    },
  })
const statusAs = async (app: string, url: string) => {
  const { statusCode, body } = await request(url, { dispatcher: shownBy(app) })
  return [statusCode, ((await body.json()) as { code?: string }).code]
}

/** Ports of this machine are shared with other tests: what a person edits stays. */
const moveListeners = async () => {
  for (const { name, http, internal } of APPS)
    for (const [, port] of [http, internal].filter((listener) => listener !== undefined))
      moved.set(port, await ports.take(`${name} ${port}`, 0))
  for (const file of filesBelow(join(out, 'env'))) {
    const text = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      text.replace(/(?<=PORT=|https:\/\/127\.0\.0\.1:)\d+/g, (port) => String(moved.get(Number(port)) ?? port)),
    )
  }
}

beforeAll(async () => {
  const installation = ensureInstallation(home)
  const base = ['--hosts', '127.0.0.1', '--data', home, '--namespace', installation.namespace]
  expect(setUp(...base).text).toContain('--postgres --redis --nats --temporal')
  const { servers: secrets } = JSON.parse(readFileSync(join(out, 'keys/secrets.json'), 'utf8'))
  servers = await withoutGivenServers(['postgres', 'redis', 'nats', 'temporal'], async () =>
    startServers({
      dir: home,
      programs: await ensureServers(silentScreen),
      secrets,
      installation,
      prefer_ports: { postgres: 0, redis: 0, nats: 0, temporal: 0, temporal_ui: 0 },
    }),
  )
  const bare = (url: string) => Object.assign(new URL(url), { username: '', password: '' }).href
  const made = setUp(
    ...base,
    ...['--temporal', servers.temporal.address],
    ...['--postgres', bare(servers.postgres.admin_url), '--redis', bare(servers.redis.url())],
    ...['--nats', bare(servers.nats.url())],
  )
  expect(made).toMatchObject({ status: 0 })
  expect(
    filesBelow(join(out, 'env'))
      .map((file) => readFileSync(file, 'utf8'))
      .join(),
  ).not.toContain('TO_FILL')
  await moveListeners()
  const migrated = verb('migrate', '--config', out, '--owner-url', servers.postgres.admin_url)
  expect(migrated).toMatchObject({ status: 0 })
  for (const name of NAMES) {
    const internal = `https://127.0.0.1:${portOf(name, 'internal')}/health/ready`
    const app = createProcess(
      {
        name,
        command: () => ({
          command: process.execPath,
          args: [...envFilesOf(name), entryOf(name)],
          cwd: home,
          env: { PATH: process.env.PATH },
        }),
        probe: async () => {
          const { statusCode, body } = await request(internal, { dispatcher: shownBy(name) })
          const text = await body.text()
          if (statusCode !== 200) throw new Error(text)
        },
      },
      join(home, 'logs'),
    )
    apps.push(app)
  }
  await Promise.all(apps.map((app) => app.start()))
}, 240_000)
afterAll(async () => {
  await Promise.all(apps.map((app) => app.stop()))
  await servers?.stop()
  rmSync(home, { recursive: true, force: true })
}, 60_000)

describe('a production installation', () => {
  it('signs in its first administrator, who reads through every app', async () => {
    const gateway = `http://127.0.0.1:${portOf('gateway', 'http')}`
    // One of each class that a password needs.
    const password = `Aa1-${randomBytes(9).toString('hex')}`
    const made = spawnSync(
      process.execPath,
      [
        ...envFilesOf('identity'),
        join(ROOT, 'apps/platform/admin.ts'),
        'identity',
        'bootstrap-admin',
        '--username',
        'root',
      ],
      { cwd: home, env: { PATH: process.env.PATH }, encoding: 'utf8' },
    )
    const enrolment_token = made.stdout.split(`${ORIGIN}/enrol#`)[1]?.trim() ?? made.stderr
    const send = async (path: string, body?: object, token?: string) => {
      const { statusCode, body: reply } = await request(`${gateway}${path}`, {
        method: body ? 'POST' : 'GET',
        headers: {
          ...(body && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
          ...(token && { authorization: `Bearer ${token}` }),
        },
        body: body ? JSON.stringify(body) : null,
      })
      const text = await reply.text()
      return { status: statusCode, body: text ? JSON.parse(text) : undefined }
    }
    expect(await send('/api/v1/users/enrol', { enrolment_token, new_password: password })).toMatchObject({
      status: 204,
    })
    const { body } = await send('/v1/token', { grant_type: 'password', username: 'root', password })
    for (const path of ['/api/v1/me', '/api/v1/resource-types', '/api/v1/admin/users', '/api/v1/operations'])
      expect([path, (await send(path, undefined, body.access_token)).status]).toEqual([path, 200])
  })

  it('takes nobody round the gateway', async () => {
    const url = `https://127.0.0.1:${portOf('identity', 'http')}/v1/me`
    expect(await statusAs('catalog', url)).toEqual([401, 'certificate_required'])
    expect((await statusAs('gateway', url))[1]).not.toBe('certificate_required')
    expect(await statusAs('catalog', `https://127.0.0.1:${portOf('token', 'http')}/jwks`)).toEqual([200, undefined])
    await expect(request(url.replace('https', 'http'))).rejects.toThrow()
  })

  it('is written once: a second run changes nothing, whatever was edited by hand', () => {
    const before = digests()
    expect(setUp('--hosts', '127.0.0.1', '--data', home).status).toBe(0)
    expect(digests().filter((line) => !line.includes('NEXT.md'))).toEqual(
      before.filter((line) => !line.includes('NEXT.md')),
    )
    for (const file of filesBelow(out).filter((name) => !/tls\/.*\.pem$/.test(name)))
      expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600])
  })

  it.each([
    [['--out', home], 'What to set up is missing'],
    [['production', '--origin', ORIGIN], '--out is missing'],
    [['production', '--out', home, '--origin', 'http://x'], '--origin must be an https origin'],
    [['production', '--out', home, '--origin', ORIGIN, '--ca', 'none.pem,none.key'], '--ca names two files'],
  ])('refuses %j', (args, why) => {
    const { status, text } = verb('setup', ...args)
    expect([status, text]).toEqual([2, expect.stringContaining(why)])
  })
})
