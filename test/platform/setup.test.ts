import { spawn } from 'node:child_process'
import { createHash, createPrivateKey, KeyObject, webcrypto, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, createServer } from 'node:tls'
import { parseEnv } from 'node:util'
import 'reflect-metadata' // needed by tsyringe, below x509
import * as x509 from '@peculiar/x509'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { QUICK_IMPORTS, ROOT } from '../../apps/platform/base/paths.ts'
import { takeFolder } from '../../apps/platform/base/record.ts'
import {
  type AuthorityFiles,
  ensureCertificates,
  issuerOf,
  type Wanted,
} from '../../apps/platform/deploy/certificates.ts'
import { until } from '../support/until.ts'
import { createInstallation, filesBelow, NAMES, ORIGIN } from './support/installation.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 120_000 })

const { home, out, setUp, verb, edit } = createInstallation()
afterAll(() => rmSync(home, { recursive: true, force: true }))

const digests = () =>
  filesBelow(out)
    .sort()
    .map((file) => `${file} ${createHash('sha256').update(readFileSync(file)).digest('hex')}`)
const envText = () =>
  filesBelow(`${out}/env`)
    .map((file) => readFileSync(file, 'utf8'))
    .join()

/** Each key has its certificate, its entry in the registry and its place in the settings. */
const expectOneSet = (dir: string) => {
  const textOf = (file: string) => readFileSync(join(dir, file), 'utf8')
  const jsonOf = (file: string) => JSON.parse(textOf(file))
  const ca = new X509Certificate(textOf('tls/ca.pem')).publicKey
  const { users } = jsonOf('keys/secrets.json').servers
  for (const app of NAMES) {
    const cert = new X509Certificate(textOf(`tls/${app}.pem`))
    expect([app, cert.checkPrivateKey(createPrivateKey(textOf(`tls/${app}.key`))), cert.verify(ca)]).toEqual([
      ...[app, true, true],
    ])
    const digest = createHash('sha256').update(users[app]).digest('hex')
    expect([app, textOf('redis/users.acl').includes(digest)]).toEqual([app, true])
    const urls = [...textOf(`env/${app}.secret.env`).matchAll(new RegExp(`//${app}:([^@]+)@`, 'g'))]
    expect([app, urls.filter(([, password]) => password !== users[app])]).toEqual([app, []])
  }
  for (const [app, { keys }] of Object.entries(jsonOf('keys/services.json') as Record<string, { keys: object[] }>))
    expect([app, keys]).toEqual([app, [expect.objectContaining({ x: jsonOf(`keys/${app}.json`).x })]])
}

describe('the set-up of production', () => {
  it('marks unknown addresses, and fills them in later', async () => {
    expect((await setUp('--hosts', '127.0.0.1')).text).toContain('--postgres --redis --nats --temporal')
    const made = await setUp(
      ...['--hosts', '127.0.0.1', '--postgres', 'postgres://db.example:5432', '--redis', 'rediss://redis.example:6379'],
      ...['--nats', 'tls://nats.example:4222', '--temporal', 'temporal.example:7233'],
    )
    expect(made).toMatchObject({ status: 0 })
    expect(envText()).not.toContain('TO_FILL')
    expect(envText()).toContain(`@db.example:5432/signalbox?sslmode=verify-full&sslrootcert=${out}/tls/ca.pem`)
    expect(envText()).toContain('RELAY__TEMPORAL__ADDRESS=tls://temporal.example:7233')
    // An older Node, from which the npm commands switch over, cannot run these files.
    const next = readFileSync(`${out}/NEXT.md`, 'utf8')
    expect(next.split('apps/<app>/main.ts')[0]).toContain(`export PATH=${dirname(process.execPath)}:$PATH`)
    expect(next.split('apps/<app>/main.ts')[1]).not.toMatch(/\.ts\b/)
  })

  it('names files by their place on the hosts alone, whatever the name of this folder', async () => {
    const dir = join(home, 'jörg x')
    const args = ['production', '--out', dir, '--origin', ORIGIN, '--format', 'kubernetes']
    expect(await verb('deploy/setup', ...args)).toMatchObject({ status: 0 })
    const texts = filesBelow(join(dir, 'env')).map((file) => readFileSync(file, 'utf8'))
    expect(texts.filter((text) => text.includes(home))).toEqual([])
    expect(texts.join()).toContain('sslrootcert=/etc/signalbox/tls/ca.pem')
  })

  it('has Postgres accept as many connections as two of each app take', () => {
    const [, most] = /^max_connections = (\d+)$/m.exec(readFileSync(`${out}/postgres/postgresql.conf`, 'utf8')) ?? []
    expect(Number(most)).toBeGreaterThan(282)
  })

  /** Whether a listener of Temporal, by its part of temporal/tls.yaml, serves who shows this pair. */
  const admits = async (listener: 'frontend' | 'internode', pair: string | undefined) => {
    const { server: given } = parse(readFileSync(`${out}/temporal/tls.yaml`, 'utf8')).global.tls[listener]
    const text = (file: string) => readFileSync(file, 'utf8')
    const server = createServer(
      {
        ...{ cert: text(given.certFile), key: text(given.keyFile), ca: given.clientCaFiles.map(text) },
        ...{ requestCert: given.requireClientAuth, rejectUnauthorized: true },
      },
      (socket) => socket.end('served'),
    ).on('tlsClientError', () => {})
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const shown = pair && { cert: text(`${out}/tls/${pair}.pem`), key: text(`${out}/tls/${pair}.key`) }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...shown })
    const said = await textOf(socket).catch((error: Error) => error.message)
    server.close()
    return said === 'served'
  }

  it('asks whoever decides or gives rights for a second factor', () => {
    expect(parseEnv(readFileSync(`${out}/env/session.env`, 'utf8')).SESSION__SECOND_FACTOR__ROLES).toBe(
      '["approver","admin"]',
    )
  })

  it('gives Temporal an authority of its own, whose certificates only its callers have', async () => {
    for (const app of ['relay', 'worker'])
      expect(readFileSync(`${out}/env/${app}.env`, 'utf8')).toContain(
        `SIGNALBOX__TLS__CERT_FILE=${out}/tls/temporal-${app}.pem`,
      )
    const callers = ['temporal-relay', 'temporal-worker', 'temporal-roles']
    const pairs = filesBelow(`${out}/tls`).flatMap((file) => /([\w-]+)(?<!ca)\.pem$/.exec(file)?.[1] ?? [])
    expect(pairs).toEqual(expect.arrayContaining(['prometheus', 'postgres', 'relay', ...callers]))
    for (const listener of ['frontend', 'internode'] as const)
      for (const pair of [undefined, ...pairs])
        expect([listener, pair, await admits(listener, pair)]).toEqual([
          ...[listener, pair, callers.includes(pair ?? '')],
        ])
  })

  it('names keys that a file of a person holds, which no rotation changes', async () => {
    const mend = edit('env/catalog.secret.env', (text) =>
      text.replace(/^CATALOG__SECRET__KEYS=.*$/m, 'CATALOG__SECRET__KEYS_FILE=/run/keys'),
    )
    expect((await setUp()).text).toMatch(/keep the values[\s\S]+catalog: CATALOG__SECRET__KEYS$/m)
    mend()
    expect((await setUp()).text).not.toContain('keep the values')
  })

  it('has Temporal serve callers with the settings of an older folder too, until those are changed', async () => {
    const served = async (listener: 'frontend' | 'internode') =>
      Promise.all([undefined, 'relay', 'temporal-relay', 'temporal-roles'].map((pair) => admits(listener, pair)))
    const mends = ['relay', 'worker'].map((app) =>
      edit(`env/${app}.env`, (text) => text.replaceAll(`/tls/temporal-${app}.`, `/tls/${app}.`)),
    )
    expect((await setUp()).text).toContain('relay: SIGNALBOX__TLS__CERT_FILE')
    expect([await served('frontend'), await served('internode')]).toEqual([
      [false, true, true, true],
      [false, false, true, true],
    ])
    for (const mend of mends) mend()
    expect((await setUp()).status).toBe(0)
    expect(await served('frontend')).toEqual([false, false, true, true])
  })

  it.each([
    ['catalog', ['serverAuth', 'clientAuth']],
    ['postgres', ['serverAuth']],
    ['redis', ['serverAuth']],
    ['nats', ['serverAuth']],
    ['temporal', ['serverAuth']],
    ['prometheus', ['clientAuth']],
    ['temporal-relay', ['clientAuth']],
  ] as const)('gives %s a certificate for %j', (name, uses) => {
    const { keyUsage } = new X509Certificate(readFileSync(`${out}/tls/${name}.pem`))
    expect(keyUsage).toEqual(uses.map((use) => x509.ExtendedKeyUsage[use]))
  })

  it('has the gateway believe the proxy whose networks it is given', async () => {
    const dir = join(home, 'proxied')
    const args = ['production', '--out', dir, '--origin', ORIGIN, '--proxies', '10.0.0.0/8,fd00::/8']
    expect((await verb('deploy/setup', ...args)).status).toBe(0)
    const { GATEWAY__HTTP__TRUSTED_PROXIES } = parseEnv(readFileSync(join(dir, 'env/gateway.env'), 'utf8'))
    expect(GATEWAY__HTTP__TRUSTED_PROXIES).toBe('["10.0.0.0/8","fd00::/8"]')
  })

  it('gives a server with an IPv6 address a certificate for it', async () => {
    const dir = join(home, 'six')
    const [listen, hosts] = ['::', '127.0.0.1']
    const args = ['production', '--out', dir, '--origin', ORIGIN, '--listen', listen, '--hosts', hosts]
    const { status, text } = await verb('deploy/setup', ...args, '--nats', 'tls://[2001:db8::1]:4222')
    expect([text, status]).toEqual([expect.any(String), 0])
    const cert = new X509Certificate(readFileSync(join(dir, 'tls/nats.pem')))
    expect(cert.checkIP('2001:db8::1')).toBeDefined()
  })

  it('writes once: a second run changes no byte, whatever was edited by hand', async () => {
    edit('env/gateway.env', (text) => text.replace(/PORT=\d+/, 'PORT=1'))
    const before = digests()
    expect((await setUp('--hosts', '127.0.0.1')).status).toBe(0)
    const kept = (lines: string[]) => lines.filter((line) => !line.includes('NEXT.md'))
    expect(kept(digests())).toEqual(kept(before))
    for (const file of filesBelow(out).filter((name) => !/tls\/.*\.pem$/.test(name)))
      expect([file, statSync(file).mode & 0o777]).toEqual([file, 0o600])
  })

  it('that was killed at any moment is completed by the same command, which keeps each key that was written', async () => {
    const dir = join(home, 'killed')
    const args = ['production', '--out', dir, '--origin', ORIGIN, '--format', 'kubernetes']
    const program = ['--import', QUICK_IMPORTS, join(ROOT, 'apps/platform/deploy/setup.ts'), ...args]
    const run = async (kill_ms?: number) => {
      const child = spawn(process.execPath, program, { stdio: 'ignore', env: { PATH: process.env.PATH } })
      const closed = once(child, 'close')
      // It takes the folder first; the modules before that take longer than all files.
      if (kill_ms !== undefined) {
        await Promise.race([closed, until(() => existsSync(join(dir, 'setup.pid')), { every_ms: 1 })])
        await sleep(kill_ms)
        child.kill('SIGKILL')
      }
      return (await closed)[0]
    }
    const names = () => filesBelow(dir).map((file) => file.slice(dir.length))
    const begun = performance.now()
    expect(await run()).toBe(0)
    const whole = names().sort()
    const [took_ms, rounds] = [performance.now() - begun, 5]
    let interrupted = 0
    // A machine that grew faster meanwhile has ended before most kills.
    for (let round = 0; round < rounds || (interrupted === 0 && round < 4 * rounds); round++) {
      rmSync(dir, { recursive: true })
      const code = await run((Math.random() * took_ms) / 2)
      const kept = new Map(filesBelow(dir).map((file) => [file, readFileSync(file, 'utf8')]))
      if (code === null && names().length < whole.length) interrupted++
      expect(await run()).toBe(0)
      expect(names().sort()).toEqual(whole)
      // A file whose name is its own is whole: an app or server may have it already.
      for (const [file, text] of kept)
        if (/keys.[\w.]+\.json$|tls.ca\.pem$/.test(file) && !file.endsWith('services.json'))
          expect([file, readFileSync(file, 'utf8')]).toEqual([file, text])
      expectOneSet(dir)
    }
    expect(interrupted).toBeGreaterThan(0)
  }, 300_000)

  it('admits one run at a time: another one ends with one line, and changes no file', async () => {
    const dir = join(home, 'twice')
    const run = () => verb('deploy/setup', 'production', '--out', dir, '--origin', ORIGIN)
    const release = takeFolder(dir, 'setup.pid')
    const why = `setup: process ${process.pid} is writing ${dir}: run it again once that has ended.\n`
    expect(await run()).toEqual({ status: 1, text: why })
    expect(filesBelow(dir)).toEqual([join(dir, 'setup.pid')])
    release()
    const ended = await Promise.all([run(), run(), run()])
    expect(ended.map(({ status }) => status)).toContain(0)
    for (const { text } of ended.filter(({ status }) => status !== 0)) expect(text).toContain('is writing')
    expectOneSet(dir)
    expect(existsSync(join(dir, 'setup.pid'))).toBe(false)
  })

  it.each([
    [['--out', home], 'The target of the set-up is missing'],
    [['production', '--origin', ORIGIN], '--out is missing'],
    [['production', '--out', home, '--origin', 'http://x'], '--origin must be an https origin'],
    [['production', '--out', home, '--origin', 'https://X.example:443'], 'an https origin, such as https://x.example.'],
    [
      ['production', '--out', home, '--origin', 'https://me:pw@x.example'],
      'an https origin, such as https://x.example.',
    ],
    [['production', '--out', home, '--origin', ORIGIN, '--temporal', 'a:b:c'], '--temporal is not a URL'],
    [['production', '--out', home, '--origin', ORIGIN, '--nats', 'tls://a:4222,tls://b:4222'], '--nats takes one name'],
    [['production', '--out', home, '--origin', ORIGIN, '--format', 'helm'], '--format must be files or kubernetes'],
    [
      ['production', '--out', home, '--origin', ORIGIN, '--format', 'kubernetes', '--data', '/srv'],
      '--data must be /var/lib/signalbox with --format kubernetes',
    ],
    [['production', '--out', home, '--origin', ORIGIN, '--proxies', 'proxy.local'], '--proxies takes networks'],
    [['production', '--out', home, '--origin', ORIGIN, '--ca', 'none.pem,none.key'], '--ca names two files'],
  ])('refuses %j', async (args, why) => {
    const { status, text } = await verb('deploy/setup', ...args)
    expect([status, text]).toEqual([2, expect.stringContaining(why)])
  })
})

describe('the Secrets of the chart', () => {
  const dir = join(home, 'cluster')
  const again = () => verb('deploy/setup', 'production', '--out', dir)
  const edited = async (app: string, line: string) => {
    const file = join(dir, `env/${app}.env`)
    const before = readFileSync(file, 'utf8')
    appendFileSync(file, `${line}\n`)
    const said = await again()
    writeFileSync(file, before)
    return said
  }
  const secretsText = () => readFileSync(join(dir, 'secrets.yaml'), 'utf8')

  it('have files that settings name; a folder is for the executors alone, and others are mounted', async () => {
    await verb('deploy/setup', 'production', '--out', dir, '--origin', ORIGIN, '--format', 'kubernetes')
    for (const folder of ['policy', 'executors']) mkdirSync(join(dir, folder))
    writeFileSync(join(dir, 'smtp'), 'of the mail server')
    expect((await edited('operations', 'NOTIFY__SMTP__PASSWORD_FILE=/etc/signalbox/smtp')).status).toBe(0)
    expect(secretsText()).toContain('smtp: of the mail server')
    expect((await edited('worker', 'WORKER__EXECUTORS__SECRETS_DIR=/etc/signalbox/executors')).status).toBe(0)
    expect(secretsText()).toContain('WORKER__EXECUTORS__SECRETS_DIR: /run/signalbox/executors')
    const { status, text } = await edited('operations', 'OPERATIONS__POLICY__DIR=/etc/signalbox/policy')
    expect([status, text]).toEqual([1, expect.stringMatching(/OPERATIONS__POLICY__DIR .*apps\.operations\.mounts/)])
  })

  it('cannot have the secrets beside a file of providers, so these are mounted too', async () => {
    const line = 'AUTH__PROVIDERS__FILE=/etc/signalbox/providers.yaml'
    writeFileSync(join(dir, 'providers.yaml'), 'format: signalbox/providers@1\nproviders: []\n')
    expect((await edited('session', line)).status).toBe(0)
    appendFileSync(join(dir, 'providers.yaml'), '# client_secret: secret://file/corp\n')
    const { status, text } = await edited('session', line)
    expect([status, text]).toEqual([1, expect.stringMatching(/AUTH__PROVIDERS__FILE .*apps\.session\.mounts/)])
  })
})

describe('an authority', () => {
  const folder = (name: string) => {
    const dir = join(home, name)
    mkdirSync(dir)
    return dir
  }
  /** A person's own, with a key in the form that its tools wrote. */
  const given = async (
    dir: string,
    algorithm: object,
    form: 'pkcs1' | 'sec1' | 'pkcs8',
    { is_ca = true, signer, ...more }: { is_ca?: boolean; notAfter?: Date; signer?: AuthorityFiles } = {},
  ) => {
    const keys = (await webcrypto.subtle.generateKey(algorithm as webcrypto.EcKeyGenParams, true, [
      'sign',
      'verify',
    ])) as webcrypto.CryptoKeyPair
    const above = signer && new x509.X509Certificate(readFileSync(signer.cert_file, 'utf8'))
    const cert = await x509.X509CertificateGenerator.create({
      ...{ subject: `CN=Ours ${dir}`, issuer: above?.subject ?? `CN=Ours ${dir}`, signingAlgorithm: algorithm },
      publicKey: keys.publicKey,
      signingKey: signer
        ? createPrivateKey(readFileSync(signer.key_file)).toCryptoKey(algorithm as never, false, ['sign'])
        : keys.privateKey,
      ...more,
      extensions: [new x509.BasicConstraintsExtension(is_ca, undefined, true)],
    })
    const [cert_file, key_file] = [join(dir, 'ours.pem'), join(dir, 'ours.key')]
    writeFileSync(cert_file, cert.toString('pem'))
    writeFileSync(key_file, KeyObject.from(keys.privateKey).export({ type: form, format: 'pem' } as never))
    return { cert_file, key_file }
  }
  const RSA = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    publicExponent: new Uint8Array([1, 0, 1]),
    modulusLength: 2048,
  }
  const P384 = { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' }
  const app = (name: string, host?: string): Wanted[] => [{ name, host, as: ['server', 'client'] }]
  const hosts = app('catalog', 'catalog.example')

  it.each([
    ['RSA', RSA, 'pkcs1'],
    ['RSA in PKCS 8', RSA, 'pkcs8'],
    ['P-384', P384, 'sec1'],
  ] as const)('of yours may have a key of %s', async (name, algorithm, form) => {
    const dir = folder(name)
    const files = await given(dir, algorithm, form)
    await ensureCertificates(join(dir, 'tls'), hosts, files)
    const [cert, ca] = [join(dir, 'tls/catalog.pem'), files.cert_file].map(
      (file) => new X509Certificate(readFileSync(file)),
    )
    expect([cert?.verify(ca?.publicKey as KeyObject), cert?.checkHost('catalog.example')]).toEqual([
      true,
      'catalog.example',
    ])
  })

  it('whose key is kept elsewhere stays, until a certificate is due', async () => {
    const dir = folder('away')
    await ensureCertificates(dir, hosts)
    const ca = readFileSync(join(dir, 'ca.pem'), 'utf8')
    renameSync(join(dir, 'ca.key'), join(dir, 'away'))
    await ensureCertificates(dir, hosts)
    expect(readFileSync(join(dir, 'ca.pem'), 'utf8')).toBe(ca)
    await expect(ensureCertificates(dir, app('token'))).rejects.toThrow('ca.key is missing')
    const other = await given(dir, P384, 'pkcs8')
    renameSync(other.key_file, join(dir, 'ca.key'))
    await expect(ensureCertificates(dir, app('token'))).rejects.toThrow('is not the key of')
    expect(readFileSync(join(dir, 'ca.pem'), 'utf8')).toBe(ca)
  })

  it('of yours takes the place of another: its certificates replace those of the other', async () => {
    const dir = folder('changed')
    await ensureCertificates(join(dir, 'tls'), hosts)
    const files = await given(dir, P384, 'pkcs8')
    await ensureCertificates(join(dir, 'tls'), hosts, files)
    const [cert, ca, trusted] = ['tls/catalog.pem', 'ours.pem', 'tls/ca.pem'].map((name) =>
      readFileSync(join(dir, name), 'utf8'),
    )
    expect(trusted).toBe(ca)
    expect(issuerOf(new X509Certificate(cert ?? ''), ca ?? '')).toBeDefined()
    // The files may be away until a certificate is due.
    renameSync(files.key_file, join(dir, 'away'))
    renameSync(files.cert_file, join(dir, 'away.pem'))
    await ensureCertificates(join(dir, 'tls'), hosts, files)
    expect(readFileSync(join(dir, 'tls/catalog.pem'), 'utf8')).toBe(cert)
  })

  it('of yours may have issued a pair that names no use: it stays', async () => {
    const dir = folder('all uses')
    const files = await given(dir, P384, 'pkcs8')
    const keys = await webcrypto.subtle.generateKey(P384, true, ['sign', 'verify'])
    const cert = await x509.X509CertificateGenerator.create({
      ...{ subject: 'CN=catalog', issuer: new x509.X509Certificate(readFileSync(files.cert_file, 'utf8')).subject },
      ...{ notAfter: new Date(Date.now() + 80 * 86_400_000), signingAlgorithm: P384, publicKey: keys.publicKey },
      signingKey: createPrivateKey(readFileSync(files.key_file)).toCryptoKey(P384 as never, false, ['sign']),
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          ['catalog', 'catalog.example'].map((value) => ({ type: 'dns', value })),
        ),
      ],
    })
    mkdirSync(join(dir, 'tls'))
    writeFileSync(join(dir, 'tls/catalog.pem'), cert.toString('pem'))
    await ensureCertificates(join(dir, 'tls'), hosts, files)
    expect(readFileSync(join(dir, 'tls/catalog.pem'), 'utf8')).toBe(cert.toString('pem'))
  })

  it.each([
    ['that is not one', { is_ca: false }, 'may not issue certificates'],
    ['that has expired', { notAfter: new Date(Date.now() - 1000) }, 'expired on'],
  ])('%s is refused', async (name, more, why) => {
    const dir = folder(name)
    const files = await given(dir, P384, 'pkcs8', { ...more })
    await expect(ensureCertificates(join(dir, 'tls'), hosts, files)).rejects.toThrow(why)
  })

  it('below another needs its chain up to the root: TLS ends there', async () => {
    const [dir, above] = [folder('below'), folder('above')]
    const root = await given(above, P384, 'pkcs8')
    const files = await given(dir, P384, 'pkcs8', { signer: root })
    await expect(ensureCertificates(join(dir, 'tls'), hosts, files)).rejects.toThrow('append the chain')
    appendFileSync(files.cert_file, `\n${readFileSync(root.cert_file, 'utf8')}`)
    await ensureCertificates(join(dir, 'tls'), hosts, files)
    expect(readFileSync(join(dir, 'tls/ca.pem'), 'utf8')).toBe(readFileSync(files.cert_file, 'utf8'))
  })
})
