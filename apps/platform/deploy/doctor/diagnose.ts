import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { loadCatalogConfig } from '../../../catalog/config.ts'
import { loadCredentialConfig } from '../../../credential/config.ts'
import { loadGatewayConfig } from '../../../gateway/config.ts'
import { loadIdentityConfig } from '../../../identity/config.ts'
import { loadOperationsConfig } from '../../../operations/config.ts'
import { loadRelayConfig } from '../../../relay/config.ts'
import { loadSessionConfig } from '../../../session/config.ts'
import { loadProviders } from '../../../shared/auth/providers.ts'
import { loadPayloadCodec } from '../../../shared/codec/payload.ts'
import { faultsOf, readTextFile } from '../../../shared/config.ts'
import { loadLinks, peerOf } from '../../../shared/links.ts'
import { type RegistryEntry, readKeyFile } from '../../../shared/service/keys.ts'
import { loadMtls, type Mtls } from '../../../shared/tls/mtls.ts'
import type { Pair } from '../../../shared/tls/pairs.ts'
import { certificateOf } from '../../../shared/tls/peer.ts'
import { bareHost } from '../../../shared/web/addresses.ts'
import { loadTokenConfig } from '../../../token/config.ts'
import { loadWorkerConfig } from '../../../worker/config.ts'
import { paint } from '../../base/screen.ts'
import { issuerOf } from '../certificates.ts'
import { PRODUCTION_APPS, SERVERS } from '../production.ts'
import { productionEnv, schemaOf } from '../reference.ts'
import { type Subject, type Weakness, weak, weakNats, weakPostgres, weakRedis, weakTemporal } from './weaknesses.ts'

export type Finding = { app: string; about: string; what: string; remedy: string }
const DAY_MS = 86_400_000
const LEAST_DAYS = 14
const FOUND = 3

type Load = (env: NodeJS.ProcessEnv) => unknown
const LOADERS: Record<string, Load> = {
  gateway: loadGatewayConfig,
  session: loadSessionConfig,
  identity: loadIdentityConfig,
  credential: loadCredentialConfig,
  token: loadTokenConfig,
  catalog: loadCatalogConfig,
  operations: loadOperationsConfig,
  worker: loadWorkerConfig,
  relay: loadRelayConfig,
}

/**
 * `npm run doctor -- --production --env DIR`: connects as each app with the files that the setup wrote, and names every
 * weakness with its remedy. Returns the exit code: 3 if it finds one.
 */
export const diagnose = async (dir: string | undefined): Promise<number> => {
  const missing = PRODUCTION_APPS.flatMap(({ name }) => [`env/${name}.env`, `env/${name}.secret.env`]).filter(
    (file) => !existsSync(join(dir ?? '', file)),
  )
  if (!dir || missing.length > 0) {
    console.error(
      'usage: npm run doctor -- --production --env DIR: the folder that "npm run setup -- production" wrote.',
    )
    if (dir) console.error(`${dir} has no ${missing[0]}.`)
    return 2
  }
  const envs = new Map(
    PRODUCTION_APPS.map(({ name }): [string, NodeJS.ProcessEnv] => [name, productionEnv(dir, name) ?? {}]),
  )
  // One app after another: on a busy host the servers give up on many handshakes with one process at once.
  const of_apps: Finding[][] = []
  for (const [app, env] of envs) of_apps.push(await findingsOf(app, env))
  const found = [...of_apps.flat(), ...weakTogether(envs), ...openFiles(dir, envs)]
  for (const { app, about, what, remedy } of found)
    console.log(`${paint('red', 'wrong')}  ${app.padEnd(11)} ${about.padEnd(12)} ${what}. ${remedy}.`)
  const checked = `${PRODUCTION_APPS.length} apps with their settings, certificates, Postgres, Redis, NATS and Temporal`
  console.log(
    found.length === 0 ? `${paint('green', 'ok')}     ${checked}` : `Findings: ${found.length}, in ${checked}`,
  )
  return found.length === 0 ? 0 : FOUND
}

/** Settings on which apps must agree. Relay and worker meet in one namespace and queue. */
const AGREED = [
  'AUTH__SECRET__KEYS',
  'AUTH__TOKENS__ISSUER',
  'SIGNALBOX__NATS__PREFIX',
  'AUTH__REDIS__PREFIX',
  ...['NAMESPACE', 'QUEUE_PREFIX', 'PAYLOAD_KEYS'].flatMap((name) =>
    ['RELAY', 'WORKER'].map((app) => `${app}__TEMPORAL__${name}`),
  ),
]

/** Of keys of payloads the text must agree, not the place of their file; who has none sends and takes plain ones. */
const agreedIn = (app: string, name: string, env: NodeJS.ProcessEnv): unknown => {
  const setting = schemaOf(app)[name]
  if (!setting || !name.endsWith('PAYLOAD_KEYS')) return env[name] ?? setting?.default
  const read = () => readTextFile(name, env[name] ?? '')
  return faultsOf(read).length === 0 ? read() : env[name] || ''
}

/** Settings on which apps must agree, names by which they call each other, and keys that the others must know. */
const weakTogether = (envs: ReadonlyMap<string, NodeJS.ProcessEnv>): Finding[] => {
  const found: Finding[] = wronglyNamed(envs)
  const first = new Map<string, { app: string; value: string }>()
  for (const [app, env] of envs) {
    const tell = (what: string, remedy: string) => found.push({ app, about: 'settings', what, remedy })
    for (const name of AGREED) {
      const value = agreedIn(app, name, env)
      if (typeof value !== 'string') continue
      const shared = name.replace(/^(RELAY|WORKER)__/, '')
      const other = first.get(shared)
      if (!other) first.set(shared, { app, value })
      else if (other.value !== value) tell(`${name} differs from that of ${other.app}`, 'Give both the same value')
    }
    if (/\/0"/.test(env.GATEWAY__HTTP__TRUSTED_PROXIES ?? ''))
      tell('GATEWAY__HTTP__TRUSTED_PROXIES trusts everyone to name the address of a client', 'Name your proxy alone')
    if (app === 'gateway' && /^(\[\s*\])?$/.test(env.GATEWAY__HTTP__TRUSTED_PROXIES ?? ''))
      tell(
        'GATEWAY__HTTP__TRUSTED_PROXIES is empty: all people have the address of your proxy, and share its limits',
        'Run the set-up with --proxies and the networks of the proxy',
      )
    const [key, registry] = [env[`${app.toUpperCase()}__SERVICE__KEY_FILE`] ?? '', env.AUTH__SERVICES__FILE ?? '']
    if (existsSync(key) && existsSync(registry) && !isRegistered(app, key, registry))
      tell(`${registry} does not have its key`, 'Run the set-up again, and bring the file to every host')
  }
  return found
}

const CALLED = /__(SESSION|IDENTITY|CREDENTIAL|TOKEN|JWKS|CATALOG|OPERATIONS)__?URL$/

/** Callers accept a certificate only for the host of their URL. */
const wronglyNamed = (envs: ReadonlyMap<string, NodeJS.ProcessEnv>): Finding[] => {
  const found = new Map<string, Finding>()
  for (const [caller, env] of envs)
    for (const [name, url = ''] of Object.entries(env)) {
      const called = CALLED.exec(name)?.[1]?.toLowerCase().replace('jwks', 'token') ?? ''
      const pem = mtlsIn(envs.get(called) ?? {})?.cert
      if (!pem || !URL.canParse(url)) continue
      const cert = new X509Certificate(pem)
      const host = bareHost(new URL(url).hostname)
      if (isIP(host) ? cert.checkIP(host) : cert.checkHost(host)) continue
      const what = `its certificate is not for ${host}, by which ${caller} calls it`
      const remedy = `Give it one that is, or write its name in ${name}`
      const key = `${called} ${host}`
      if (!found.has(key)) found.set(key, { app: called, about: 'certificate', what, remedy })
    }
  return [...found.values()]
}

const isRegistered = (app: string, key: string, registry: string): boolean => {
  const entries = JSON.parse(readFileSync(registry, 'utf8')) as Record<string, RegistryEntry>
  return entries[app]?.keys.some(({ kid }) => kid === readKeyFile('the key', key).kid) ?? false
}

/** Secrets that any account of this machine can read: in the folder, or where a setting names one. */
const openFiles = (dir: string, envs: ReadonlyMap<string, NodeJS.ProcessEnv>): Finding[] => {
  const own = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(key|json|nk)$|secret|accounts\.conf/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
  const named = [...envs.values()].flatMap((env) =>
    Object.entries(env).flatMap(([name, file = '']) =>
      /(KEY|PASSWORD|TOKEN|REGISTRY|HEADERS)_FILE$/.test(name) && existsSync(file) ? [file] : [],
    ),
  )
  return [...new Set([...own, ...named])]
    .filter((file) => (statSync(file).mode & 0o004) !== 0)
    .map((file) => ({
      app: 'all',
      about: 'files',
      what: `everyone can read ${file}`,
      remedy: `Run "chmod 600 ${file}"`,
    }))
}

const findingsOf = async (app: string, given: NodeJS.ProcessEnv): Promise<Finding[]> => {
  // Without it, an app refuses no weak setting.
  const env: NodeJS.ProcessEnv = { ...given, NODE_ENV: 'production' }
  const told = (about: string, weaknesses: readonly Weakness[]) =>
    weaknesses.map(([what, remedy]): Finding => ({ app, about, what, remedy }))
  const payload_keys = `${app.toUpperCase()}__TEMPORAL__PAYLOAD_KEYS`
  const loads: (Load | undefined)[] = [
    ...[loadMtls, loadLinks, LOADERS[app]],
    ({ [payload_keys]: file }) => loadPayloadCodec(payload_keys, file || undefined),
    ({ AUTH__PROVIDERS__FILE: file }) => file && loadProviders(file, true),
  ]
  const is_strict = given.NODE_ENV === env.NODE_ENV
  const faults = loads.flatMap((load) => faultsOf(() => load?.(env)))
  const weak_settings = faults.map(
    (fault): Weakness => [fault.replace(/\.$/, ''), 'Repair it, or run the set-up again'],
  )
  const found = [
    ...told(
      'settings',
      weak(!is_strict, 'NODE_ENV is not production', `Write NODE_ENV=production into env/${app}.env`),
    ),
    ...told('settings', weak_settings),
    ...told('certificate', weakCertificate(app, env)),
    ...told('telemetry', weakTelemetry(env)),
    ...told('edge', app === 'gateway' ? weakEdge(env) : []),
  ]
  // A link whose settings cannot be read was reported above.
  if (faultsOf(() => loadLinks(env)).length > 0) return found
  const links = loadLinks(env)
  const { cert, key } = links.tls
  if (cert && key) found.push(...told('certificate', weakPair({ cert, key }, 'its SIGNALBOX__TLS')))
  const namespace = env[`${app.toUpperCase()}__TEMPORAL__NAMESPACE`] ?? 'default'
  const subject = { app, links, prefix: env.AUTH__REDIS__PREFIX ?? '', namespace }
  const looks = SERVERS.map(async (server) => told(server, await weakLink(subject, server, env)))
  return [...found, ...(await Promise.all(looks)).flat()]
}

/** What cannot be read was reported with its setting. */
const mtlsIn = (env: NodeJS.ProcessEnv): Mtls | undefined =>
  faultsOf(() => loadMtls(env)).length === 0 ? loadMtls(env) : undefined

const RENEW = 'Remove it and set up again'
/** The extended key usages of a server and of a client. */
const USES = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']

/** The weaknesses of an app's certificate: its time, its name, its uses, its chain and its key. */
const weakCertificate = (app: string, env: NodeJS.ProcessEnv): Weakness[] => {
  const mtls = mtlsIn(env)
  if (!mtls) return []
  const cert = new X509Certificate(mtls.cert)
  const issuer = authorityOf(cert, mtls)
  // One that names no use is for all.
  const uses: string[] | undefined = cert.keyUsage
  const lacks_use = uses !== undefined && !USES.every((use) => uses.includes(use))
  return [
    ...weakPair(mtls),
    ...(issuer ? soon(issuer.validTo, 'Rotate the authority, or sign by a newer one', 'the authority of its') : []),
    ...weak(Date.parse(cert.validFrom) > Date.now(), 'its certificate is not valid yet', 'Set the clocks by NTP'),
    ...weak(!cert.checkHost(app), `its certificate is not for ${app}`, RENEW),
    ...weak(lacks_use, 'its certificate is not for server and client alike', RENEW),
    ...weak(!issuer, 'its certificate is not signed by the authority in AUTH__TLS__CA_FILE', RENEW),
  ]
}

const weakPair = ({ cert: pem, key }: Pair, whose = 'its'): Weakness[] => {
  const cert = new X509Certificate(pem)
  const is_own = cert.checkPrivateKey(createPrivateKey(key))
  return [...soon(cert.validTo, RENEW, whose), ...weak(!is_own, `its key does not match ${whose} certificate`, RENEW)]
}

/** The trusted authority of a certificate; others between the two may follow it in its file. */
const authorityOf = (cert: X509Certificate, { cert: chain, ca }: Mtls): X509Certificate | undefined => {
  const seen = new Set<string>()
  for (let at: X509Certificate | undefined = cert; at && !seen.has(at.fingerprint256); at = issuerOf(at, chain)) {
    const authority = issuerOf(at, ca)
    if (authority) return authority
    seen.add(at.fingerprint256)
  }
  return undefined
}

/** One that is unreadable, expired or missing was reported with its setting. */
const weakEdge = (env: NodeJS.ProcessEnv): Weakness[] => {
  if (faultsOf(() => loadGatewayConfig(env)).length > 0) return []
  const { tls } = loadGatewayConfig(env)
  return tls ? soon(new X509Certificate(tls.cert).validTo, 'Renew it for the proxy', "the public listener's") : []
}

/** A collector beside the app may be plain: spans leave no host. */
const weakTelemetry = ({ SIGNALBOX__TELEMETRY__OTLP_URL: url = '' }: NodeJS.ProcessEnv): Weakness[] =>
  weak(
    /^http:\/\/(?!([^/@]*@)?(localhost|127\.0\.0\.1|\[::1\])(:|\/|$))/.test(url),
    'spans and metrics go to the collector in plain text',
    'Write https in SIGNALBOX__TELEMETRY__OTLP_URL, or run a collector on each host',
  )

const soon = (valid_to: string, remedy: string, whose = 'its'): Weakness[] => {
  const days = Math.floor((Date.parse(valid_to) - Date.now()) / DAY_MS)
  const what = days < 0 ? `expired on ${valid_to}` : `expires in ${days} days`
  return weak(days < LEAST_DAYS, `${whose} certificate ${what}`, remedy)
}

const LINKS = {
  postgres: ['DATABASE__URL', weakPostgres],
  redis: ['REDIS__URL', weakRedis],
  nats: ['NATS__URL', weakNats],
  temporal: ['TEMPORAL__ADDRESS', weakTemporal],
} as const

const REMEDIES: [RegExp, string][] = [
  [/EXPIRED/, 'Renew the certificate of the server'],
  [/ALTNAME/, 'Give the server a certificate with this name, or use the name that it has'],
  [/SELF_SIGNED|UNABLE_TO|ISSUER/, 'Name the authority of the server in the CA file, or renew its certificate'],
  [/has no TLS/, 'Give the server a certificate: NEXT.md, steps 2 to 4'],
  [/UNAUTHENTICATED|PERMISSION_DENIED/, 'Set up again with --temporal-api-key and a key that is valid'],
  [/password|WRONGPASS|NOAUTH|AUTHORIZATION|28P01/i, 'Make the account of the server as the set-up wrote it'],
]
const remedyOf = (error: Error & { code?: string }): Weakness => {
  // The client of Temporal says by the cause why it has no connection.
  const message = error.cause instanceof Error ? error.cause.message : error.message
  const text = `${error.code ?? ''} ${message}`
  const remedy = REMEDIES.find(([words]) => words.test(text))?.[1]
  return [message || text, remedy ?? 'See that the server runs, and that this host reaches it']
}

/** A plain-text address was reported with its setting; no byte is sent to it. */
const weakLink = async (subject: Subject, server: keyof typeof LINKS, env: NodeJS.ProcessEnv): Promise<Weakness[]> => {
  const [setting, look] = LINKS[server]
  const url = env[`${subject.app.toUpperCase()}__${setting}`] ?? ''
  try {
    const peer = peerOf(server, url, subject.links)
    if (!peer) return []
    const { valid_to } = await certificateOf(server, peer)
    return [...soon(valid_to, 'Renew the certificate of the server'), ...(await look(subject, url))]
  } catch (error) {
    return [remedyOf(error as Error)]
  }
}
