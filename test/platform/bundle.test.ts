import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { createInstallation, filesBelow } from './support/installation.ts'

/** Real processes, on a machine that may be busy. */
vi.setConfig({ testTimeout: 120_000 })

const { home, out, setUp, verb } = createInstallation()
afterAll(() => rmSync(home, { recursive: true, force: true }))

const random = (bytes = 24) => randomBytes(bytes).toString('base64url')
const planted = new Map<string, string>()
/** A secret of this place. */
const plant = (place: string, text: string = random()): string => {
  planted.set(place, text)
  return text
}
const file = (name: string, text: string): string => {
  const path = join(home, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  return path
}

it('has no secret of a production installation, wherever the secret is kept and in whatever form it is logged', async () => {
  const servers = [
    '--postgres',
    'postgres://db.example',
    '--redis',
    'rediss://redis.example',
    '--nats',
    'tls://nats.example',
  ]
  const temporal_key = file('temporal.key', plant('the API key of Temporal'))
  await setUp(...servers, '--temporal', 'temporal.example:7233', '--temporal-api-key', temporal_key)
  const docker = `robot:${plant('a registry password, as docker login writes it')}`
  const settings: Record<string, Record<string, string>> = {
    operations: {
      OPERATIONS__DATABASE__URL: `postgres://db.example/signalbox?password=${plant('a password after the ?')}`,
      NOTIFY__SMTP__PASSWORD_FILE: file('smtp', `${plant('the SMTP password')}\n`),
      OPERATIONS__PACKS__REGISTRY_FILE: file(
        'docker.json',
        JSON.stringify({ auths: { 'r.example': { auth: Buffer.from(docker).toString('base64') } } }),
      ),
    },
    relay: {
      RELAY__SIEM__TOKEN_FILE: file('siem', plant('the token of the SIEM')),
      RELAY__SIEM__URL: `https://${plant('a token before the @')}@siem.example/in`,
      SIGNALBOX__NATS__NKEY_FILE: file('nkey', plant('an NKEY seed', `SUA${'B7Q'.repeat(18)}X`)),
    },
    catalog: {
      CATALOG__NATS__URL: `tls://catalog:${encodeURIComponent(plant('a password with signs', `p@/${random()}`))}@n`,
    },
    session: {
      AUTH__PROVIDERS__FILE: file('sso/providers.yaml', 'providers: []\n'),
      SIGNALBOX__TELEMETRY__OTLP_URL: `http://u:${plant('the password of the collector')}@c.example:4318`,
      SIGNALBOX__TELEMETRY__OTLP_HEADERS_FILE: file(
        'otlp',
        JSON.stringify({ 'x-key': plant('a header for the store') }),
      ),
      SIGNALBOX__REDIS__SENTINEL_PASSWORD_FILE: file('sentinel', plant('the password of the Sentinels')),
    },
    worker: { WORKER__EXECUTORS__SECRETS_DIR: join(home, 'executors') },
  }
  file('sso/secrets/keycloak', plant('the secret of an identity provider'))
  file('executors/forge', `Bearer ${plant('a credential of an executor')}\n`)
  file('executors/nested/key', plant('a credential in a folder'))
  for (const [app, values] of Object.entries(settings))
    appendFileSync(
      join(out, `env/${app}.secret.env`),
      Object.entries(values)
        .map(([name, value]) => `${name}='${value}'\n`)
        .join(''),
    )
  // The set-up made these itself.
  const leaves = (value: unknown): string[] =>
    typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(leaves)
  for (const [i, text] of leaves(JSON.parse(readFileSync(join(out, 'keys/secrets.json'), 'utf8'))).entries())
    plant(`secrets.json ${i}`, text)
  for (const name of readdirSync(join(out, 'keys')).filter((one) => !/^(secrets|services|payload)/.test(one)))
    if (name.endsWith('.json')) plant(name, JSON.parse(readFileSync(join(out, 'keys', name), 'utf8')).d)
  for (const name of readdirSync(join(out, 'tls')).filter((one) => one.endsWith('.key')))
    plant(name, readFileSync(join(out, 'tls', name), 'utf8').split('\n')[1])

  // Secrets that no setting has, as they are written: of people, machines, links and requests.
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const loose: Record<string, [secret: string, line?: (secret: string) => string]> = {
    'a private key': [pem.split('\n')[1] ?? '', () => pem],
    jwt: [`${part({ alg: 'EdDSA', kid: 'k' })}.${part({ sub: 'u' })}.${random(64)}`],
    'api key': [`sbk_${random(16)}_${random(32)}A1b2C3`],
    'execution token': [`exe_${random(32)}`],
    'webhook secret': [`whsec_${randomBytes(24).toString('base64')}`],
    'bearer of another system': [random(), (text) => `authorization: Bearer ${text}`],
    basic: [Buffer.from(`root:${random()}`).toString('base64'), (text) => `authorization: Basic ${text}`],
    'address of another server': [random(), (text) => `amqp://user:${text}@queue.example`],
    'enrolment link': [random(40), (text) => `https://signalbox.example.com/enrol#${text}`],
  }
  const logs = join(home, 'logs')
  const time = new Date().toISOString()
  const forms = [...planted.values()].flatMap((text) => [
    text,
    Buffer.from(text).toString('base64'),
    encodeURIComponent(text),
    JSON.stringify({ nested: JSON.stringify({ text }) }),
  ])
  const written = Object.values(loose).map(([secret, line = (text: string) => text]) => line(secret))
  for (const [place, [secret]] of Object.entries(loose)) plant(place, secret)
  const lines = [...forms, ...written, docker].map((msg) => JSON.stringify({ time, msg }))
  file('logs/gateway.log', `${lines.join('\n')}\n${JSON.stringify({ time, msg: 'the last line' })}\n${pem}`)

  // A log that is longer than its part in the archive, which begins within a secret.
  const whole = random(30)
  const rest = `${plant('the end of a secret at the cut', whole.slice(20))}"}\n`
  const filler = `${JSON.stringify({ time, msg: '' })}\n`
  const long = JSON.stringify({ time, msg: 'y'.repeat(5_000_000 - rest.length - filler.length) })
  file('logs/catalog.log', `{"time":"${time}","msg":"Bearer ${whole.slice(0, 20)}${rest}${long}\n`)

  const to = join(home, 'bundle.tgz')
  const { status, text } = await verb('ops', 'support-bundle', '--env', out, '--logs', logs, '--to', to)
  expect([text, status]).toEqual([expect.stringContaining('without their secrets'), 0])
  execFileSync('tar', ['-xzf', to, '-C', home])
  const all = filesBelow(join(home, 'bundle')).map((path) => readFileSync(path, 'utf8'))
  expect(all.join('\n')).toContain('the last line')
  expect(planted.size).toBeGreaterThan(50)
  const seen = [...planted].flatMap(([place, secret]) => {
    const shown = [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)]
    return all.some((content) => shown.some((form) => content.includes(form))) ? [place] : []
  })
  expect(seen).toEqual([])
})
