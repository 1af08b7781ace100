import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { APP_NAMES } from '../../apps/platform/run/apps.ts'
import { locateNats } from '../../apps/platform/servers/nats.ts'
import { systemPackage } from '../../apps/platform/servers/packages.ts'
import { unprivileged } from '../../apps/platform/servers/postgres.ts'
import { locateRedis } from '../../apps/platform/servers/redis.ts'
import { locate, onPath } from '../../apps/platform/servers/sources.ts'
import { locateTemporal } from '../../apps/platform/servers/temporal.ts'
import { hasNamespaces } from '../support/namespaces.ts'
import { until } from '../support/until.ts'
import { compose, type Service, service } from './support/compose.ts'
import { type ImageFacts, startMachine } from './support/containers.ts'
import { HEALTHCHECK, layOutImage } from './support/image.ts'
import { filesBelow, findPostgres, type Image } from './support/installation.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 180_000 })

let image: Image
let digests: string[]
beforeAll(() => {
  image = layOutImage()
  digests = digestsOf(image)
}, 240_000)
afterAll(() => image?.remove())

/** Of all files with their names, modes and contents; times are those of the commit in an image. */
const digestsOf = ({ root }: Image): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const file = join(root, name)
      const found = lstatSync(file)
      const content = found.isFile() ? readFileSync(file) : found.isSymbolicLink() ? readlinkSync(file) : ''
      return `${found.mode.toString(8)} ${name} ${createHash('sha256').update(content).digest('hex')}`
    })

/** `docker compose up` without Docker: each service by its own command, environment, volumes, user and health check. */
describe.runIf(hasNamespaces())('the services of docker-compose.yml', () => {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-compose-'))
  const root = { uid: 0, gid: 0 }
  const SERVERS: Record<string, ImageFacts> = {
    postgres: {
      // What the entrypoint of the official image does before it starts the command.
      entrypoint: [
        'sh',
        '-ec',
        `export PGDATA=/var/lib/postgresql/18/docker
        printf %s "$POSTGRES_PASSWORD" > /tmp/pw.$$
        initdb --username postgres --pwfile /tmp/pw.$$ $POSTGRES_INITDB_ARGS
        rm /tmp/pw.$$
        echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
        exec "$@" -c listen_addresses='*' -c unix_socket_directories=/tmp`,
        'sh',
      ],
      ...{ env: {}, user: unprivileged() ?? root, at: '/' },
    },
    // The image is built without the protected mode.
    redis: { entrypoint: ['sh', '-c', 'exec "$@" --protected-mode no', 'sh'], env: {}, user: root, at: '/data' },
    nats: { entrypoint: ['nats-server'], env: {}, user: root, at: '/' },
    temporal: { entrypoint: ['temporal'], env: { HOME: '/home/temporal' }, user: root, at: '/' },
  }
  let machine: Awaited<ReturnType<typeof startMachine>>
  beforeAll(async () => {
    for (const folder of [home, image.root])
      for (let at = folder; at.includes('signalbox-'); at = dirname(at)) chmodSync(at, statSync(at).mode | 0o011)
    const bin = join(await findPostgres(), 'bin')
    const programs = {
      node: image.program,
      'redis-server': await locateRedis(silentScreen),
      'nats-server': await locateNats(silentScreen),
      temporal: await locateTemporal(silentScreen),
      'redis-cli': await locate(
        'redis-cli',
        [onPath(['redis-cli'], '7.0.0'), systemPackage({ apt: 'redis-tools' }, ['redis-cli'])],
        'install redis-tools',
        silentScreen,
      ),
      ...Object.fromEntries(['initdb', 'postgres', 'pg_isready'].map((name) => [name, join(bin, name)])),
    }
    machine = await startMachine(home, Object.keys(compose.services), programs)
  }, 240_000)
  afterAll(async () => {
    await machine?.remove()
    rmSync(home, { recursive: true, force: true })
  })

  const ours = (): ImageFacts => ({
    files: { '/signalbox': image.root },
    env: Object.fromEntries(
      Object.entries(image.env).map(([name, value]) => [name, value.replaceAll(image.root, '/signalbox')]),
    ),
    user: { uid: 65532, gid: 65532 },
    at: '/signalbox',
  })
  it('of other projects start and pass their health checks', async () => {
    for (const [name, facts] of Object.entries(SERVERS)) machine.start(name, service(name), facts)
    for (const name of Object.keys(SERVERS))
      await machine.healthy(name, service(name).healthcheck as NonNullable<Service['healthcheck']>)
  })

  it('"setup" ends with 0, and once more changes no key', async () => {
    const run = async () => {
      const child = machine.start('setup', service('setup'), ours())
      await until(() => child.exitCode !== null, { what: 'the end of setup', timeout_ms: 120_000 })
      expect([machine.logOf('setup'), child.exitCode]).toEqual([expect.stringContaining('The environments of'), 0])
      const keys = join(home, 'volumes/data/keys')
      return filesBelow(keys).map((file) => [file, readFileSync(file, 'utf8')])
    }
    const keys = await run()
    expect(keys.length).toBeGreaterThan(APP_NAMES.length)
    expect(await run()).toEqual(keys)
  })

  it('of our apps become healthy, and people sign in through the gateway alone', async () => {
    for (const name of APP_NAMES) machine.start(name, service(name), ours())
    for (const name of APP_NAMES) await machine.healthy(name, { test: HEALTHCHECK, interval: '10s', retries: 12 })
    const [port = ''] = service('gateway').ports?.map((one) => one.split(':').at(-1)) ?? []
    const asked = (path: string, body?: object) =>
      machine.exec('gateway', [
        ...['node', '-e'],
        `const body = ${JSON.stringify(body ? JSON.stringify(body) : null)}
        const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
        fetch('http://gateway:${port}${path}', body ? { method: 'POST', headers, body } : {})
          .then(async (reply) => console.log(reply.status, await reply.text()))`,
      ])
    expect(asked('/')).toMatch(/^200 [\s\S]*<script/)
    // As the head of docker-compose.yml says.
    const command = ['node', 'apps/platform/admin.ts', 'identity', 'bootstrap-admin', '--username', 'root']
    const [, enrolment_token] = /\/enrol#(\S+)/.exec(machine.exec('identity', command)) ?? []
    const password = 'Aa1-correct-horse-9'
    expect(asked('/api/v1/users/enrol', { enrolment_token, new_password: password })).toMatch(/^204/)
    expect(asked('/v1/token', { grant_type: 'password', username: 'root', password })).toMatch(/^200/)
  })

  it('of our apps end in order within the grace period', async () => {
    const grace_ms = Number.parseInt(String(service('gateway').stop_grace_period), 10) * 1000
    const ended = await Promise.all(APP_NAMES.map(async (name) => [name, await machine.stop(name, grace_ms)]))
    expect(ended).toEqual(APP_NAMES.map((name) => [name, 0]))
  })
})

describe('the files of the image', () => {
  it('are the same, byte by byte, if it is built again', () => {
    const again = layOutImage()
    try {
      const [first, second] = [new Set(digests), digestsOf(again)]
      expect(second.filter((line) => !first.has(line))).toEqual([])
      expect(second).toHaveLength(first.size)
    } finally {
      again.remove()
    }
  })

  it('are our code, the console and the packages of production: no test, no key, no setting, no tool', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean }>
    }
    const found = filesBelow(image.root).map((file) => file.slice(image.root.length + 1))
    const top = new Set(found.map((file) => file.split('/')[0]))
    const code = ['activities', 'apps', 'db', 'workflows']
    expect([...top].sort()).toEqual(
      [...code, 'LICENSE', 'console', 'node_modules', 'package-lock.json', 'package.json'].sort(),
    )
    const installed = new Set(found.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []))
    expect(installed.size).toBeGreaterThan(100)
    expect([...installed].filter((path) => packages[path]?.dev !== undefined || !packages[path])).toEqual([])
    const ours = found.filter((file) => !file.startsWith('node_modules/'))
    expect(
      ours.filter((file) => /\.test\.|(^|\/)(test|\.env|\.git|\.signalbox)(\/|$)|\.(pem|key|p12)$/.test(file)),
    ).toEqual([])
    const texts = ours.filter((file) => readFileSync(join(image.root, file), 'utf8').includes('-----BEGIN PRIVATE KEY'))
    expect(texts).toEqual([])
    expect(found.filter((file) => /node_modules\/\.bin\//.test(file))).toEqual([])
  })
})
