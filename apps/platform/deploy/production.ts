import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { nkeys } from 'nats'
import { allowed, type Setting, type SettingOptions } from '../../shared/config.ts'
import { bareHost } from '../../shared/web/addresses.ts'
import { DATABASE_ROLES, databaseUrl, roleOf } from '../base/database.ts'
import { writeWhole } from '../base/record.ts'
import { APPS, type App, type AppContext, settingsFor, tablePorts } from '../run/apps.ts'
import { ensureKeys, type Keys } from '../run/keys.ts'
import { authorizationOf } from '../servers/nats.ts'
import { userLine } from '../servers/redis.ts'
import { natsRights, redisRules } from '../servers/rights.ts'
import type { ServerSecrets } from '../servers/up.ts'
import { type AuthorityFiles, ensureCertificates, type Wanted } from './certificates.ts'
import { DATABASE, nextSteps, serverFiles, TEMPORAL_ROLES, withAccount } from './next-steps.ts'
import { EVERY_APP, SCHEMAS } from './reference.ts'
import { ROTATED } from './rotate.ts'
import { kubernetesSecrets } from './secrets.ts'

/** The parameters of the files. URLs of servers contain no account, because each app gets its own. */
export type Production = {
  out: string
  /** Where the folder will be on the hosts. */
  at: string
  /** Where apps keep their own files, on a volume. */
  data: string
  origin: string
  /** The host name of an app for the others; `{app}` is its name. */
  hosts: string
  listen: string
  /** The networks of the proxy before the gateway. */
  proxies?: string[] | undefined
  postgres: string
  redis: string
  nats: string
  temporal: string
  namespace: string
  /** A new one; undefined keeps the one that the folder has. */
  temporal_api_key?: string | undefined
  authority: AuthorityFiles | undefined
  /** Whether to write Secrets for the chart as well. */
  kubernetes: boolean
}

export const SERVERS = ['postgres', 'redis', 'nats', 'temporal'] as const
/** The host of a server; `undefined` if only a person knows it. */
const hostOf = (address: string): string | undefined => {
  const { hostname } = new URL(address)
  return hostname === TO_FILL ? undefined : bareHost(hostname)
}
/** A value that only a person knows. */
export const TO_FILL = 'TO_FILL'
const API_KEY = 'keys/temporal.key'
/** The demo fleet has no place in production. */
export const PRODUCTION_APPS = APPS.filter(({ name }) => name !== 'fleet')

/**
 * Writes the configuration of a production installation below `out`: an environment file for each app, keys,
 * certificates, the accounts of the servers and the remaining steps. All files have mode 0600. Existing files stay, and
 * so do a person's changes in the environment files: a second run only adds what is missing. Returns, by app, the
 * settings that would have a different value now.
 */
export const writeProduction = async (asked: Production): Promise<string[]> => {
  const { out, hosts } = asked
  const keys = ensureKeys(out, false)
  const of_apps = PRODUCTION_APPS.map(
    ({ name }): Wanted => ({ name, host: bareHost(hosts.replaceAll('{app}', name)), as: ['server', 'client'] }),
  )
  const of_servers = SERVERS.map((name): Wanted => ({ name, host: hostOf(asked[name]), as: ['server'] }))
  // Reads /metrics of every app.
  const of_reader: Wanted = { name: 'prometheus', as: ['client'] }
  await ensureCertificates(join(out, 'tls'), [...of_apps, ...of_servers, of_reader], asked.authority)
  const callers = PRODUCTION_APPS.filter(({ uses }) => uses.includes('temporal')).map(
    ({ name }): Wanted => ({ name: `temporal-${name}`, as: ['client'] }),
  )
  await ensureCertificates(join(out, 'tls'), [...callers, TEMPORAL_ROLES], undefined, 'temporal-ca')
  const context = contextOf(asked, keys)
  // A rotation adds keys to it.
  if (!existsSync(join(out, 'keys/payload.json'))) writeWhole(join(out, 'keys/payload.json'), payloadFile(keys))
  if (asked.temporal_api_key) writeWhole(join(out, API_KEY), asked.temporal_api_key)
  const kept: string[] = []
  for (const app of PRODUCTION_APPS) {
    const lines = linesFor(app, { ...settingsFor(app, context), ...ownOf(app, asked) }, asked)
    for (const secret of [false, true]) {
      const own = lines.filter((line) => line.secret === secret)
      const others = writeEnv(join(out, `env/${app.name}${secret ? '.secret' : ''}.env`), own)
      kept.push(...others.map((name) => `${app.name}: ${name}`))
    }
  }
  const users = Object.entries(keys.servers.users)
  const lines = users.map(([name, password]) => userLine({ name, password, rules: redisRules(name) }))
  const accounts = users.map(([name, password]) => ({
    ...{ name, password, nkey: nkeyOf(name, asked), rights: natsRights(name) },
  }))
  const names = PRODUCTION_APPS.map(({ name }) => name)
  const files = {
    'redis/users.acl': ['user default off', ...lines, ''].join('\n'),
    'nats/accounts.conf': authorizationOf(accounts),
    ...serverFiles(asked.at, showsOwn(asked)),
    'NEXT.md': nextSteps(asked, names),
  }
  for (const [file, text] of Object.entries(files)) writeWhole(join(out, file), text)
  if (asked.kubernetes) writeWhole(join(out, 'secrets.yaml'), kubernetesSecrets(out, names, asked.postgres))
  return kept
}

const presentOf = (app: string, { out }: Production): NodeJS.Dict<string> =>
  parseEnv(['', '.secret'].map((kind) => readFileSync(join(out, `env/${app}${kind}.env`), 'utf8')).join('\n'))

/** Whether callers of Temporal still show it the certificate that they show each other, as in an older folder. */
const showsOwn = (asked: Production): boolean =>
  PRODUCTION_APPS.some(({ name }) => presentOf(name, asked).SIGNALBOX__TLS__CERT_FILE === `${asked.at}/tls/${name}.pem`)

/** The public part of an app's NKEY, if its settings name one in the folder; a missing seed is made. */
const nkeyOf = (app: string, asked: Production): string | undefined => {
  const { out, at } = asked
  const named = presentOf(app, asked).SIGNALBOX__NATS__NKEY_FILE
  if (!named?.startsWith(`${at}/`)) return
  const file = join(out, named.slice(at.length))
  if (!existsSync(file)) writeWhole(file, new TextDecoder().decode(nkeys.createUser().getSeed()))
  return nkeys.fromSeed(readFileSync(file)).getPublicKey()
}

/** Adds lines and fills those that still say TO_FILL. Returns the names of lines that were kept but differ. */
const writeEnv = (file: string, lines: readonly Line[]): string[] => {
  const before = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  const given = new Map(lines.map(({ name, value }) => [name, `${name}=${quoted(value)}`]))
  const kept = before.map((line) => (line.includes(TO_FILL) ? (given.get(line.split('=', 1)[0] ?? '') ?? line) : line))
  const added = lines.filter(
    ({ name }) => !before.some((line) => line.startsWith(`${name}=`) || line.startsWith(`${name}_FILE=`)),
  )
  const text = [...kept, ...added.flatMap(({ name, means }) => [`# ${means}`, given.get(name)])]
  writeWhole(file, `${text.join('\n')}\n`)
  // A rotation changes these lines, but no file.
  const isRotated = (name: string) => ROTATED.test(name) && text.some((line) => line?.startsWith(`${name}=`))
  return [...given].flatMap(([name, line]) => (text.includes(line) || isRotated(name) ? [] : [name]))
}

/** A Postgres URL that trusts only a server with its name and our authority's certificate, unless it says otherwise. */
const verified = (url: string, at: string): string => {
  const made = new URL(url)
  if (!made.searchParams.has('sslmode')) made.searchParams.set('sslmode', 'verify-full')
  if (made.searchParams.get('sslmode') === 'verify-full' && !made.searchParams.has('sslrootcert'))
    made.searchParams.set('sslrootcert', join(at, 'tls/ca.pem'))
  return decodeURIComponent(made.href)
}

/** The wiring of `npm start`, with different addresses. */
const contextOf = (asked: Production, keys: Keys): AppContext => {
  const { users } = keys.servers
  const account = (url: string) => (app?: string) => (app ? withAccount(url, app, users[app] ?? '') : url)
  return {
    dir: asked.data,
    keys,
    roles: true,
    database: DATABASE,
    ports: tablePorts(),
    network: { host: (app) => asked.hosts.replaceAll('{app}', app), listen: asked.listen, scheme: 'https' },
    fleet_port_base: 0,
    prefix: { nats: '', redis: '', queue: '' },
    servers: {
      postgres: {
        admin_url: asked.postgres,
        url: (app = '', database = DATABASE) =>
          withAccount(databaseUrl(verified(asked.postgres, asked.at), database), roleOf(app), users[app] ?? ''),
        password: (app) => users[app] ?? '',
        own: false,
      },
      redis: { url: account(asked.redis), own: false },
      nats: { url: account(asked.nats), agents: {}, own: false },
      temporal: { address: asked.temporal, ui_url: undefined, namespace: asked.namespace, own: false },
      managed: [],
      stop: async () => {},
    },
  }
}

/** What production says and development does not. */
const ownOf = ({ name: app, uses }: App, { origin, out, proxies }: Production): Record<string, string> => ({
  NODE_ENV: 'production',
  GATEWAY__HTTP__PUBLIC_ORIGIN: origin,
  ...(proxies && { GATEWAY__HTTP__TRUSTED_PROXIES: JSON.stringify(proxies) }),
  AUTH__TOKENS__ISSUER: origin,
  // Whoever decides or gives rights: a first sign-in may only set the factor up.
  SESSION__SECOND_FACTOR__ROLES: '["approver","admin"]',
  GATEWAY__CONSOLE__ENVIRONMENT: new URL(origin).hostname,
  GATEWAY__CONSOLE__TIER: 'prod',
  // The console of the image, or the one that `npm run console -- build` has built.
  GATEWAY__CONSOLE__DIR: '/signalbox/console',
  GATEWAY__TLS__CERT_FILE: join(out, 'tls/gateway.pem'),
  GATEWAY__TLS__KEY_FILE: join(out, 'tls/gateway.key'),
  AUTH__TLS__CERT_FILE: join(out, 'tls', `${app}.pem`),
  AUTH__TLS__KEY_FILE: join(out, 'tls', `${app}.key`),
  AUTH__TLS__CA_FILE: join(out, 'tls/ca.pem'),
  SIGNALBOX__TLS__CA_FILE: join(out, 'tls/ca.pem'),
  ...(uses.includes('temporal') && {
    SIGNALBOX__TLS__CERT_FILE: join(out, 'tls', `temporal-${app}.pem`),
    SIGNALBOX__TLS__KEY_FILE: join(out, 'tls', `temporal-${app}.key`),
    ...(existsSync(join(out, API_KEY)) && { SIGNALBOX__TEMPORAL__API_KEY_FILE: join(out, API_KEY) }),
  }),
  [`${app.toUpperCase()}__TEMPORAL__PAYLOAD_KEYS`]: join(out, 'keys/payload.json'),
})

const payloadFile = ({ payload_keys }: Keys): string => {
  const [key = ''] = JSON.parse(payload_keys) as string[]
  return `${JSON.stringify({ current: '1', keys: { 1: Buffer.from(key, 'base64').toString('base64url') } })}\n`
}

type Line = { name: string; value: string; means: string; secret: boolean }

/** The settings that this app reads and that are set or required. */
const linesFor = ({ name: app }: App, values: Record<string, string>, { out, at }: Production): Line[] => {
  const { properties, required = [] } = SCHEMAS[app as keyof typeof SCHEMAS] as Schema
  const read = Object.entries({ ...properties, ...EVERY_APP }).flatMap(([name, setting]): Line[] => {
    const { production, secret = false } = setting as SettingOptions
    const needed =
      (production !== undefined && production !== 'tls') || (required.includes(name) && setting.default === undefined)
    const value = (values[name] ?? (needed ? TO_FILL : '')).replaceAll(`${out}/`, `${at}/`)
    return value === '' ? [] : [{ name, value, means: allowed(setting), secret: secret || hasPassword(value) }]
  })
  return [{ name: 'NODE_ENV', value: 'production', means: 'Weak settings are refused.', secret: false }, ...read]
}
type Schema = { properties: Record<string, Setting>; required?: readonly string[] }

const hasPassword = (value: string): boolean => /^[a-z]+:\/\/[^/]*@/.test(value)
/** Quotes a value as systemd, Docker Compose and `node --env-file` read it. */
const quoted = (value: string): string => (/^[\w./:@-]+$/.test(value) ? value : `'${value}'`)

/** The passwords of the database accounts by app, from the files of `writeProduction`. */
export const passwordsIn = (dir: string): ((app: string) => string) => {
  const kept = JSON.parse(readFileSync(join(dir, 'keys/secrets.json'), 'utf8')) as { servers: ServerSecrets }
  return (app) => {
    const password = kept.servers.users[app]
    if (!password || !(app in DATABASE_ROLES)) throw new Error(`${dir} has no account of ${app}.`)
    return password
  }
}
