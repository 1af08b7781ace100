import { createPrivateKey, X509Certificate } from 'node:crypto'
import fs, { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { nkeys } from 'nats'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { answers } from '../../apps/platform/base/probes.ts'
import { createProcess } from '../../apps/platform/base/process.ts'
import { silentScreen } from '../../apps/platform/base/screen.ts'
import { writeProduction } from '../../apps/platform/deploy/production.ts'
import { endRotation, needOld, type Rotation, rotate, SERVERS } from '../../apps/platform/deploy/rotate.ts'
import { locateNats } from '../../apps/platform/servers/nats.ts'
import { createAuthority } from '../support/certificates.ts'
import { filesBelow, NAMES } from './support/installation.ts'
import { runVerb } from './support/verb.ts'

/** Each step of a rotation, killed at its writes, then run again as its user would. */
vi.setConfig({ testTimeout: 300_000 })

const home = mkdtempSync(join(tmpdir(), 'signalbox-rotation-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

const out = join(home, 'config')
const setUp = async (step?: Rotation) => {
  const hindrance = await rotate(out, step)
  if (hindrance) throw new Error(hindrance)
  await writeProduction({
    ...{ out, at: out, data: '/var/lib/signalbox', hosts: '{app}', listen: '0.0.0.0', namespace: 'signalbox' },
    ...{ origin: 'https://signalbox.example.com', postgres: 'postgres://db', redis: 'rediss://redis' },
    ...{ nats: 'tls://nats', temporal: 'tls://temporal:7233', authority: undefined, kubernetes: false },
  })
  endRotation(out)
}

const WRITES = ['writeFileSync', 'renameSync', 'rmSync'] as const
/** Runs `act` until its n-th write, of which half is done; false if it ended before that. */
const killedAt = async (n: number, act: () => Promise<void>): Promise<boolean> => {
  const real = Object.fromEntries(WRITES.map((name) => [name, fs[name]])) as unknown as Pick<
    typeof fs,
    (typeof WRITES)[number]
  >
  const killed = new Error('killed')
  let count = 0
  for (const name of WRITES)
    Object.assign(fs, {
      [name]: (...args: unknown[]) => {
        if (++count < n) return (real[name] as (...given: unknown[]) => unknown)(...args)
        if (name === 'writeFileSync') {
          const [file, text, options] = args as [string, string, object]
          real.writeFileSync(file, text.slice(0, text.length / 2), options)
        }
        throw killed
      },
    })
  syncBuiltinESMExports()
  try {
    await act()
    return false
  } catch (error) {
    if (error !== killed) throw error
    return true
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
}

const textOf = (file: string) => readFileSync(join(out, file), 'utf8')
const jsonOf = (file: string) => JSON.parse(textOf(file))
const secretsOf = (app: string) => parseEnv(textOf(`env/${app}.secret.env`)) as Record<string, string>
const LIST = /__(SECRET__KEYS|KEK)$/

/** The state of the folder with each key as old or new, by the texts from before. */
const stateOf = (before: string) => {
  const aged = (key: string) => (before.includes(key) ? 'old' : 'new')
  const lists = NAMES.flatMap((app) =>
    Object.entries(secretsOf(app))
      .filter(([name]) => LIST.test(name))
      .map(([name, value]) => ({ app, name, keys: value.startsWith('[') ? JSON.parse(value) : [value] })),
  )
  const [issuer = '', ...others] = textOf('tls/ca.pem').split(/(?<=-----END CERTIFICATE-----\n)/)
  const authority = new X509Certificate(issuer).publicKey
  const { users } = jsonOf('keys/secrets.json').servers
  const registry = jsonOf('keys/services.json') as Record<string, { keys: { kid: string }[] }>
  const payload = jsonOf('keys/payload.json')
  return {
    files: filesBelow(out).map((file) => file.replace(out, '').replace(/\d{13}/, 'TIME')),
    lists: lists.map(({ app, name, keys }) => [app, name, keys.map(aged)]),
    // A setting of two apps has the same keys in both.
    distinct: [...Map.groupBy(lists, ({ name }) => name)].map(([name, of]) => [
      name,
      new Set(of.map(({ keys }) => JSON.stringify(keys))).size,
    ]),
    authorities: [issuer, ...others].map(aged),
    callers: ['temporal-relay', 'temporal-roles'].map((name) => {
      const [own, issuer] = [`tls/${name}.pem`, 'tls/temporal-ca.pem'].map((file) => new X509Certificate(textOf(file)))
      return [aged(textOf(`tls/${name}.pem`)), issuer && own?.verify(issuer.publicKey)]
    }),
    signed: NAMES.map((app) => new X509Certificate(textOf(`tls/${app}.pem`)).verify(authority)),
    matching: NAMES.map((app) =>
      new X509Certificate(textOf(`tls/${app}.pem`)).checkPrivateKey(createPrivateKey(textOf(`tls/${app}.key`))),
    ),
    accounts: NAMES.map((app) => [app, aged(users[app]), textOf(`env/${app}.secret.env`).includes(`:${users[app]}@`)]),
    registry: Object.entries(registry).map(([app, { keys }]) => [
      app,
      keys.map(({ kid }) => (kid === jsonOf(`keys/${app}.json`).kid ? 'own' : 'other')),
      aged(jsonOf(`keys/${app}.json`).d),
    ]),
    payload: [payload.current, Object.keys(payload.keys)],
    rest: ['audit', 'evidence', 'push'].map((name) => [name, aged(jsonOf(`keys/${name}.json`).d)]),
    enrolment: aged(secretsOf('credential').CREDENTIAL__ENROLMENT__KEY ?? ''),
    agreed: secretsOf('credential').CREDENTIAL__ENROLMENT__KEY === jsonOf('keys/secrets.json').enrolment,
  }
}
const allTexts = () =>
  filesBelow(out)
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
const copy = (from: string, to: string) => {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true })
}
const keep = (name: string) => copy(out, join(home, name))
const goBack = (name: string) => copy(join(home, name), out)

beforeAll(() => setUp())

/** The first writes are each tried, then every seventh: all are made in the same way. */
const [EACH, STRIDE] = [12, 7]

describe.each<[Rotation]>([['next'], ['use'], ['retire'], ['accounts'], ['evidence'], ['push'], ['enrolment']])(
  '--rotate %s',
  (step) => {
    it('that was killed at a write is completed by the same command, and by a run without it', async () => {
      const before = allTexts()
      keep('before')
      await setUp(step)
      const wanted = stateOf(before)
      keep('after')
      let n = 1
      for (; ; n += n < EACH ? 1 : STRIDE) {
        goBack('before')
        if (!(await killedAt(n, () => setUp(step)))) break
        // Before the first change is made, the step has not begun.
        const has_begun = existsSync(join(out, 'rotation.json'))
        await setUp(has_begun && n % 2 ? undefined : step)
        expect([n, stateOf(before)]).toEqual([n, wanted])
      }
      expect(n).toBeGreaterThan(30)
      goBack('after')
    })
  },
)

describe('a rotation', () => {
  it('that was interrupted is completed before another begins', async () => {
    keep('before')
    await killedAt(6, () => setUp('accounts'))
    await expect(setUp('push')).rejects.toThrow('run --rotate accounts again first')
    await setUp('accounts')
    await setUp('push')
    goBack('before')
  })

  it('has its steps in order, and none of them without keys', async () => {
    await expect(setUp('use')).rejects.toThrow('run --rotate next first')
    await setUp('next')
    await expect(setUp('next')).rejects.toThrow('run --rotate use')
    expect(await rotate(home, 'next')).toContain('run the set-up without --rotate first')
  })

  it('keeps each key that may still open a row, also of a backup', async () => {
    keep('before')
    const { TOKEN__KEYS__KEK: first } = secretsOf('token')
    for (const step of ['use', 'next', 'use', 'next'] as const) await setUp(step)
    const keks = JSON.parse(secretsOf('token').TOKEN__KEYS__KEK ?? '') as string[]
    expect(keks).toEqual(expect.arrayContaining(JSON.parse(first ?? '') as string[]))
    expect(keks).toHaveLength(new Set(keks).size)
    goBack('before')
  })

  it('retires the authorities and service keys of before alone, once no one uses them', async () => {
    keep('before')
    await expect(setUp('retire')).rejects.toThrow('run --rotate use first')
    await setUp('use')
    const [lists, first] = [['token', 'credential'].map(secretsOf), textOf('tls/ca.pem')]
    fs.writeFileSync(join(out, 'tls/redis.pem'), readFileSync(join(home, 'before/tls/redis.pem')))
    await expect(setUp('retire')).rejects.toThrow('still signs for tls/redis.pem: delete')
    fs.rmSync(join(out, 'tls/redis.pem'))
    await setUp()
    await setUp('retire')
    for (const authority of ['ca', 'temporal-ca'])
      expect(textOf(`tls/${authority}.pem`).match(/BEGIN CERTIFICATE/g)).toHaveLength(1)
    expect(first.startsWith(textOf('tls/ca.pem'))).toBe(true)
    for (const app of NAMES) {
      const own = new X509Certificate(textOf(`tls/${app}.pem`))
      expect([app, own.verify(new X509Certificate(textOf('tls/ca.pem')).publicKey)]).toEqual([app, true])
    }
    const registry = jsonOf('keys/services.json') as Record<string, { keys: { kid: string }[] }>
    for (const app of Object.keys(registry))
      expect(registry[app]?.keys.map(({ kid }) => kid)).toEqual([jsonOf(`keys/${app}.json`).kid])
    expect(['token', 'credential'].map(secretsOf)).toEqual(lists)
    await expect(setUp('retire')).rejects.toThrow('No earlier authority or service key is trusted')
    goBack('before')
  })

  it('asks the servers that trust an authority of before, as far as it can, and no others', async () => {
    keep('before')
    const needing = async (...unasked: string[]) => {
      const lines = await needOld(out, out, unasked)
      return [...new Set(lines.map((line) => line.split(' ')[0]))].sort()
    }
    const trust = (file: string) => {
      for (const name of NAMES.map((app) => `env/${app}.secret.env`))
        fs.writeFileSync(join(out, name), textOf(name).replaceAll(/sslrootcert=[^'\s]+/g, `sslrootcert=${file}`))
    }
    await setUp('use')
    expect(await needing()).toEqual([...SERVERS].sort())
    expect(await needing('postgres', 'temporal')).toEqual(['nats', 'redis'])
    fs.writeFileSync(join(out, 'other.pem'), createAuthority().ca)
    trust(join(out, 'other.pem'))
    expect(await needing()).toEqual(['nats', 'redis', 'temporal'])
    trust('/nowhere.pem')
    expect(await needOld(out, out, ['redis', 'nats', 'temporal'])).toEqual([
      expect.stringMatching(/^postgres cannot be asked: .*nowhere/),
    ])
    fs.writeFileSync(join(out, 'rotation.json'), '{}')
    expect(await needing()).toEqual([])
    endRotation(out)
    await setUp('retire')
    expect(await needing()).toEqual([])
    goBack('before')
  })

  it('ends the trust in authorities whose keys are kept elsewhere, and leaves the chain of a given one', async () => {
    keep('before')
    for (const step of ['use', 'retire'] as const) await setUp(step)
    keep('settled')
    for (const step of ['next', 'use', 'retire'] as const) {
      for (const authority of ['ca', 'temporal-ca']) if (step !== 'use') rmSync(join(out, `tls/${authority}.key`))
      await setUp(step)
    }
    for (const authority of ['ca', 'temporal-ca'])
      expect(textOf(`tls/${authority}.pem`).match(/BEGIN CERTIFICATE/g)).toHaveLength(1)
    goBack('settled')
    // The key of an authority of before may still be there.
    const chain = [createAuthority(), createAuthority()].map(({ ca }) => ca).join('')
    for (const step of ['next', 'use', 'retire'] as const) {
      fs.writeFileSync(join(out, 'tls/ca.pem'), chain)
      expect([await rotate(out, step), textOf('tls/ca.pem')]).toEqual([undefined, chain])
      endRotation(out)
    }
    goBack('before')
  })

  it('keeps the certificate of a server that another authority issued, and its key', async () => {
    keep('before')
    const { cert, key } = createAuthority().issue('postgres') // ends tomorrow
    const own = { 'tls/postgres.pem': cert, 'tls/postgres.key': key, 'tls/postgres.chain': cert }
    for (const [file, text] of Object.entries(own)) fs.writeFileSync(join(out, file), text)
    const issued = ['tls/redis.pem', 'tls/temporal-relay.pem']
    const before = issued.map(textOf)
    for (const step of [undefined, 'use'] as const) {
      await setUp(step)
      expect(Object.keys(own).map(textOf)).toEqual(Object.values(own))
    }
    for (const [i, file] of issued.entries()) expect(textOf(file)).not.toBe(before[i])
    goBack('before')
  })

  it('replaces a leaked key alone, and keeps the public part of that of the evidence', async () => {
    const { x, d } = jsonOf('keys/evidence.json')
    const [audit, env] = [textOf('keys/audit.json'), secretsOf('credential')]
    for (const step of ['evidence', 'push', 'enrolment'] as const) await setUp(step)
    const kept = readdirSync(join(out, 'keys')).filter((name) => name.endsWith('.public.json'))
    const publics = kept.map((name) => jsonOf(`keys/${name}`))
    expect(publics).toContainEqual({ kty: 'OKP', crv: 'Ed25519', x })
    expect(allTexts()).not.toContain(d)
    expect(textOf('keys/audit.json')).toBe(audit)
    const { CREDENTIAL__ENROLMENT__KEY: now, ...others } = secretsOf('credential')
    const { CREDENTIAL__ENROLMENT__KEY: then, ...same } = env
    expect([now !== then, others]).toEqual([true, same])
    expect(statSync(join(out, 'env/credential.secret.env')).mode & 0o777).toBe(0o600)
  })
})

describe('an NKEY', () => {
  it('is kept by each set-up, and replaced with the accounts', async () => {
    const users = () =>
      textOf('nats/accounts.conf')
        .split('\n')
        .filter((line) => line.includes('permissions'))
    fs.appendFileSync(join(out, 'env/catalog.env'), `SIGNALBOX__NATS__NKEY_FILE=${join(out, 'keys/catalog.nk')}\n`)
    await setUp()
    const first = users()
    expect(first.filter((line) => /nkey: U[A-Z2-7]{55}, permissions/.test(line))).toHaveLength(1)
    expect(first.filter((line) => line.includes('password'))).toHaveLength(NAMES.length - 1)
    expect(textOf('keys/catalog.nk')).toMatch(/^SU[A-Z2-7]{56}$/)
    expect(statSync(join(out, 'keys/catalog.nk')).mode & 0o777).toBe(0o600)
    await setUp()
    expect(users()).toEqual(first)
    await setUp('accounts')
    const nkeyOf = (lines: string[]) => lines.join().match(/nkey: \w+/)?.[0]
    expect(nkeyOf(users())).toMatch(/nkey: U/)
    expect(nkeyOf(users())).not.toBe(nkeyOf(first))
  })

  it('of the relay is the one by which repairs sign in, whichever apps have one', async () => {
    const dir = join(home, 'repairs')
    const ports = createPorts()
    const [port, watched] = [await ports.take('nats', 0), await ports.take('its monitoring', 0)]
    const write = () =>
      writeProduction({
        ...{ out: dir, at: dir, data: home, hosts: '127.0.0.1', listen: '127.0.0.1', namespace: 'signalbox' },
        // No one listens at these ports.
        ...{
          origin: 'https://signalbox.example.com',
          postgres: 'postgres://127.0.0.1:9',
          redis: 'rediss://127.0.0.1:9',
        },
        ...{ nats: `tls://127.0.0.1:${port}`, temporal: 'tls://127.0.0.1:9', authority: undefined, kubernetes: false },
      })
    await write()
    for (const app of ['identity', 'relay'])
      fs.appendFileSync(join(dir, `env/${app}.env`), `SIGNALBOX__NATS__NKEY_FILE=${join(dir, `keys/${app}.nk`)}\n`)
    await write()
    const config = join(dir, 'nats/here.conf')
    const tls = `tls { cert_file: "${join(dir, 'tls/nats.pem')}", key_file: "${join(dir, 'tls/nats.key')}" }`
    fs.writeFileSync(
      config,
      `host: 127.0.0.1\nport: ${port}\nhttp_port: ${watched}\njetstream { store_dir: "${home}/jetstream" }\n${tls}\ninclude "accounts.conf"\n`,
    )
    const program = await locateNats(silentScreen)
    const command = () => ({ command: program, args: ['-c', config] })
    const nats = createProcess({ name: 'nats', command, probe: () => answers(port, '', /INFO/) }, home)
    await nats.start()
    try {
      const verb = runVerb('ops', ['accept-restore', '--dry-run', '--env', dir])
      expect([await verb.ended, verb.text()]).toEqual([1, expect.stringContaining('Postgres does not answer')])
      const answer = await fetch(`http://127.0.0.1:${watched}/connz?auth=true&state=closed`)
      const { connections } = (await answer.json()) as { connections: { name: string; authorized_user: string }[] }
      const users = connections.filter(({ name }) => name === 'ops').map((one) => one.authorized_user)
      expect(users).toEqual([nkeys.fromSeed(readFileSync(join(dir, 'keys/relay.nk'))).getPublicKey()])
    } finally {
      await nats.stop()
    }
  })
})
