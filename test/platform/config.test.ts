import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { loadCatalogConfig } from '../../apps/catalog/config.ts'
import { loadPacks } from '../../apps/catalog/packs/library.ts'
import { loadCredentialConfig } from '../../apps/credential/config.ts'
import { loadIdentityConfig } from '../../apps/identity/config.ts'
import { loadOperationsConfig } from '../../apps/operations/config.ts'
import { loadLibrary } from '../../apps/operations/packs/library.ts'
import { QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { APPS, entryOf, takePorts } from '../../apps/platform/run/apps.ts'
import { compileCacheDir } from '../../apps/platform/run/compile-cache.ts'
import { loadRelayConfig } from '../../apps/relay/config.ts'
import { loadSessionConfig } from '../../apps/session/config.ts'
import { keksOf } from '../../apps/shared/codec/kek.ts'
import { loadTokenConfig } from '../../apps/token/config.ts'
import { loadWorkerConfig } from '../../apps/worker/config.ts'
import { testServices } from '../support/services.ts'
import { running } from './support/verb.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 120_000 })

/** Starts an app as the platform does, with only this environment. */
const start = async (app: string, env: Record<string, string> = {}) => {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--import', QUICK_IMPORTS, entryOf(app)],
    {
      cwd: ROOT,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const process_ = running(child)
  const code = await process_.ended
  return { code, text: process_.text().trim() }
}

const KEY = randomBytes(32).toString('base64')
const KEYS = JSON.stringify([KEY])
const POSTGRES = 'postgres://u:p@127.0.0.1:1/x'
let services: ReturnType<typeof testServices>
let scratch: string
beforeAll(() => {
  services = testServices()
  scratch = mkdtempSync(join(tmpdir(), 'signalbox-config-'))
})
afterAll(() => {
  services.remove()
  rmSync(scratch, { recursive: true, force: true })
})

const oneLine = ({ code, text }: { code: number | null; text: string }, app: string, exit = 78) => {
  expect(text.split('\n')).toHaveLength(1)
  expect(text).toMatch(new RegExp(`^${app}: `))
  expect(text).not.toMatch(/\n\s+at |node:internal/)
  expect(code).toBe(exit)
  return text
}

describe('a wrong environment stops an app with one line and exit code 78', () => {
  it('without its database', async () => {
    const env = { TOKEN__SECRET__KEYS: KEYS, TOKEN__KEYS__KEK: KEY }
    expect(oneLine(await start('token', env), 'token')).toBe(
      'token: TOKEN__DATABASE__URL is not set. A Postgres URL: postgres://user:password@host:port/database.',
    )
  })

  it('lists all missing settings, a line each', async () => {
    const { text, code } = await start('token')
    expect(code).toBe(78)
    expect(text.split('\n').map((line) => line.trim().split(' is ')[0])).toEqual([
      'token: 3 settings are wrong:',
      'TOKEN__DATABASE__URL',
      'TOKEN__SECRET__KEYS',
      'TOKEN__KEYS__KEK',
    ])
  })

  it('names the found and the allowed value', async () => {
    const text = oneLine(await start('fleet', { FLEET__HTTP__PORT: '70000' }), 'fleet')
    expect(text).toBe(
      'fleet: FLEET__HTTP__PORT is "70000": it must be <= 65535. The port to listen on; 0 takes a free one. Allowed: a whole number of at least 0 and at most 65535.',
    )
  })

  it.each([
    ['fleet', { SIGNALBOX_LOG_LEVEL: 'verbose' }],
    ['token', { SIGNALBOX_LOG_LEVEL: 'verbose', TOKEN__DATABASE__URL: POSTGRES, TOKEN__SECRET__KEYS: KEYS }],
  ])('of %s names the allowed log levels', async (app, env) => {
    const { code, text } = await start(app, env)
    expect(text).toContain(
      'SIGNALBOX_LOG_LEVEL is "verbose": it must be equal to one of the allowed values. The lowest level of the lines in the log. Allowed: trace, debug, info, warn, error, fatal, silent.',
    )
    expect([code, text.includes('    at ')]).toEqual([78, false])
  })

  it('never prints a secret', async () => {
    const env = { TOKEN__DATABASE__URL: POSTGRES, TOKEN__KEYS__KEK: KEY, TOKEN__SECRET__KEYS: '["hunter2hunter2"]' }
    const text = oneLine(await start('token', env), 'token')
    expect(text).toContain('TOKEN__SECRET__KEYS is (a value that is not shown)')
    expect(text).not.toContain('hunter2')
  })

  it('in production: weak settings, and the switches of tests', async () => {
    const env = {
      NODE_ENV: 'production',
      CREDENTIAL__DATABASE__URL: `${POSTGRES}?sslmode=verify-full`,
      CREDENTIAL__ENROLMENT__KEY: KEY,
      CREDENTIAL__FACTORS__KEK: KEY,
      AUTH__SERVICES__FILE: services.registry_file,
      UV_THREADPOOL_SIZE: '14',
      CREDENTIAL__HASH__TIME: '2',
    }
    expect(oneLine(await start('credential', env), 'credential')).toBe(
      'credential: CREDENTIAL__HASH__TIME is 2: production needs at least 3.',
    )
    expect(oneLine(await start('fleet', { NODE_ENV: 'production', SIGNALBOX_CRASH_AT: 'x' }), 'fleet')).toContain(
      'SIGNALBOX_CRASH_AT',
    )
  })

  it('a port that is none, before the platform starts any app', async () => {
    const gateway = APPS.filter(({ name }) => name === 'gateway')
    for (const port of ['80x', '70000', '-1']) {
      vi.stubEnv('GATEWAY__HTTP__PORT', port)
      const why = `GATEWAY__HTTP__PORT is "${port}": it must be a port number from 0 to 65535; 0 takes a free one.`
      await expect(takePorts(gateway, createPorts())).rejects.toThrow(why)
    }
    vi.unstubAllEnvs()
    const last = createServer()
    // If another program has the port already, that one is the holder.
    await new Promise<void>((done) => last.once('error', () => done()).listen(65_535, '127.0.0.1', done))
    await expect(createPorts().take('gateway', 65_535)).rejects.toThrow('none up to 65535 is free')
    last.close()
  })

  it('a setting that names a missing file', async () => {
    const text = oneLine(await start('fleet', { FLEET__AUTH__TOKEN_FILE: join(scratch, 'none') }), 'fleet')
    expect(text).toContain(`FLEET__AUTH__TOKEN_FILE names ${join(scratch, 'none')}, which cannot be read`)
  })

  it('a port that is taken', async () => {
    const holder = createServer()
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
    const address = holder.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const env = { FLEET__HTTP__PORT: String(port), FLEET__DATA__FILE: join(scratch, 'fleet.sqlite') }
    // The supervisor gives an app that exits with 98 another port.
    expect(oneLine(await start('fleet', env), 'fleet', 98)).toBe(
      `fleet: port ${port} is taken. Set another one in FLEET__…__PORT.`,
    )
    holder.close()
  })
})

it('a dependency that is away stops an app with one line, too, but not as a wrong setting', async () => {
  const act = `
    import { runApp, waitFor } from '${ROOT}/apps/shared/http/lifecycle.ts'
    const away = async () => { throw new Error('connect ECONNREFUSED') }
    await runApp('token', () => waitFor('Postgres', away, 100))`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', act], { stdio: ['ignore', 'pipe', 'pipe'] })
  const app = running(child)
  const ended = { code: await app.ended, text: app.text().trim() }
  expect(oneLine(ended, 'token', 1)).toBe('token: Postgres did not answer within 0.1 s: connect ECONNREFUSED')
})

describe('the settings of every app', () => {
  const LOADERS: Record<string, (env: NodeJS.ProcessEnv) => unknown> = {
    credential: loadCredentialConfig,
    identity: loadIdentityConfig,
    session: loadSessionConfig,
    catalog: loadCatalogConfig,
    operations: loadOperationsConfig,
    worker: loadWorkerConfig,
    relay: loadRelayConfig,
  }
  it.each(Object.entries(LOADERS))('%s needs its database', (app, load) => {
    const variable = `${app.toUpperCase()}__DATABASE__URL`
    expect(() => load({})).toThrow(
      `${variable} is not set. A Postgres URL: postgres://user:password@host:port/database.`,
    )
    const wrong = () => load({ [variable]: 'mysql://admin:hunter2@db' })
    expect(wrong).toThrow(`${variable} is (a value that is not shown): it must match`)
    expect(wrong).not.toThrow(/hunter2/)
  })

  const worker = { WORKER__DATABASE__URL: POSTGRES, WORKER__NATS__URL: 'nats://x' }
  const token = { TOKEN__DATABASE__URL: POSTGRES, TOKEN__SECRET__KEYS: JSON.stringify([KEY]) }
  const relay = { RELAY__DATABASE__URL: POSTGRES, RELAY__REDIS__URL: 'redis://x', RELAY__NATS__URL: 'nats://x' }
  const identity = { IDENTITY__DATABASE__URL: POSTGRES, IDENTITY__SECRET__KEYS: JSON.stringify([KEY]) }
  it.each<[string, () => unknown]>([
    [
      'WORKER__ACTIVITY__SLICE_S is "soon": it must be integer. After how many seconds an activity that still waits hands its place to another. Allowed: a whole number of at least 5 and at most 600.',
      () => loadWorkerConfig({ ...worker, WORKER__ACTIVITY__SLICE_S: 'soon' }),
    ],
    [
      'RELAY__TEMPORAL__SEARCH_ATTRIBUTES is "yes": it must be boolean. Whether workflows are found in Temporal by their search attributes, which its namespace must have. Allowed: true, false.',
      () => loadRelayConfig({ ...relay, RELAY__TEMPORAL__SEARCH_ATTRIBUTES: 'yes' }),
    ],
    [
      'TOKEN__KEYS__RSA_BITS is "1024": it must be >= 2048. The size of new signing keys. Allowed: a whole number of at least 2048 and at most 3072.',
      () => loadTokenConfig({ ...token, TOKEN__KEYS__KEK: KEY, TOKEN__KEYS__RSA_BITS: '1024' }),
    ],
    [
      'TOKEN__KEYS__KEK is (a value that is not shown)',
      () => loadTokenConfig({ ...token, TOKEN__KEYS__KEK: 'hunter2' }),
    ],
    [
      'RELAY__DATABASE__URL is no URL: write / # ? and @ of a password as %2F %23 %3F and %40.',
      () => loadRelayConfig({ ...relay, RELAY__DATABASE__URL: 'postgres://u:hunter2/2@db:5432/x' }),
    ],
    [
      'RELAY__REDIS__URL is no URL: write / # ? and @ of a password as %2F %23 %3F and %40.',
      () => loadRelayConfig({ ...relay, NODE_ENV: 'production', RELAY__REDIS__URL: 'rediss://u:hunter2/2@db:6379' }),
    ],
    [
      'GATEWAY__HTTP__PUBLIC_ORIGIN is "https://": it must be a URL. The http or https URL at which people open the console.',
      () => loadIdentityConfig({ ...identity, GATEWAY__HTTP__PUBLIC_ORIGIN: 'https://' }),
    ],
    [
      'it must be the domain of https://a b or of a parent.',
      () => loadIdentityConfig({ ...identity, AUTH__WEBAUTHN__ORIGINS: '["https://a b"]' }),
    ],
    ['TOKEN__KEYS__KEK must be 32 bytes in base64.', () => keksOf('hunter2'.repeat(7), 'TOKEN__KEYS__KEK')],
  ])('%s', (words, load) => {
    expect(load).toThrow(words)
    expect(load).not.toThrow(/hunter2/)
  })
})

describe('an unusable pack stops its app with one line that names file and place', () => {
  const folder = (name: string, files: Record<string, string>) => {
    const dir = join(scratch, name)
    mkdirSync(dir)
    for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text)
    return dir
  }
  const catalog = (dir: string) =>
    start('catalog', {
      CATALOG__DATABASE__URL: POSTGRES,
      CATALOG__NATS__URL: 'nats://127.0.0.1:1',
      CATALOG__SECRET__KEYS: JSON.stringify([KEY]),
      CATALOG__SERVICE__KEY_FILE: services.keyFile('catalog'),
      AUTH__SERVICES__FILE: services.registry_file,
      CATALOG__PACKS__DIRS: JSON.stringify([dir]),
    })
  const operations = (dir: string) =>
    start('operations', {
      OPERATIONS__DATABASE__URL: POSTGRES,
      OPERATIONS__NATS__URL: 'nats://127.0.0.1:1',
      OPERATIONS__SECRET__KEYS: JSON.stringify([KEY]),
      OPERATIONS__SERVICE__KEY_FILE: services.keyFile('operations'),
      OPERATIONS__EVIDENCE__KEY_FILE: services.keyFile('operations'),
      AUTH__SERVICES__FILE: services.registry_file,
      OPERATIONS__PACKS__DIR: dir,
    })
  const BROKEN = 'pack: site\nversion: [1\n'

  it('a missing folder', () => {
    const nowhere = join(scratch, 'nowhere')
    expect(() => loadPacks([nowhere])).toThrow(`CATALOG__PACKS__DIRS names ${nowhere}, which cannot be read`)
    expect(() => loadLibrary({ packs_dirs: [nowhere] })).toThrow(nowhere)
  })
  it('type packs: broken YAML', async () => {
    const dir = folder('types', { 'site.yaml': BROKEN })
    expect(oneLine(await catalog(dir), 'catalog')).toMatch(new RegExp(`${join(dir, 'site.yaml')}:\\d+:\\d+: `))
  })
  it('procedures: broken YAML, and a file that is not a pack', async () => {
    const broken = folder('procedures', { 'site.yaml': BROKEN })
    expect(oneLine(await operations(broken), 'operations')).toMatch(new RegExp(`${join(broken, 'site.yaml')}:\\d+`))
    const other = folder('other', { 'site.yaml': 'pack: 7\n' })
    expect(() => loadLibrary({ packs_dirs: [other] })).toThrow(join(other, 'site.yaml'))
  })
})
