import { createPrivateKey, X509Certificate } from 'node:crypto'
import { rootCertificates, type TLSSocket } from 'node:tls'
import Type from 'typebox'
import { Agent, buildConnector, setGlobalDispatcher } from 'undici'
import { ConfigError, loadConfig, readTextFile } from '../config.ts'
import type { Telemetry } from '../telemetry.ts'

const NAME = Type.String({ pattern: '^(DNS|URI|IP Address):' })
const file = (what: string) => Type.Optional(Type.String({ production: 'required', description: what }))
export const schema = Type.Object({
  AUTH__TLS__CERT_FILE: file('A PEM file: the certificate that this app shows to others, as server and as caller.'),
  AUTH__TLS__KEY_FILE: file('A PEM file: the private key of that certificate.'),
  AUTH__TLS__CA_FILE: file('A PEM file: the authority that signs the certificates of all our apps.'),
  AUTH__TLS__ALLOWED_SANS: Type.Array(NAME, {
    default: [],
    description:
      'A JSON array of names such as "DNS:session" that may call; empty: every certificate of the authority.',
  }),
  AUTH__TLS__PUBLIC_SANS: Type.Array(NAME, {
    default: ['DNS:gateway'],
    description:
      'A JSON array of names that may call the public API behind the gateway, so that no one can bypass the gateway.',
  }),
})

type Pair = { cert: string; key: string }
/** This app's identity, and the authority and names that it trusts. Texts are PEM. */
export type Mtls = Pair & { ca: string; allowed_sans: ReadonlySet<string>; public_sans: ReadonlySet<string> }

/**
 * Mutual TLS of every listener but the gateway's public one, and of their callers (auth.md 1). Off unless configured,
 * which production refuses; partial settings are an error.
 */
export const loadMtls = (env: NodeJS.ProcessEnv = process.env): Mtls | undefined => {
  const config = loadConfig(schema, env)
  const files = ['AUTH__TLS__CERT_FILE', 'AUTH__TLS__KEY_FILE', 'AUTH__TLS__CA_FILE'] as const
  const missing = files.filter((name) => !config[name])
  if (missing.length === files.length) return undefined
  if (missing.length > 0) throw new ConfigError(`${missing.join(' and ')} must be set too: mutual TLS needs all three.`)
  const [cert = '', key = '', ca = ''] = files.map((name) => {
    const text = readTextFile(name, config[name] ?? '')
    try {
      if (name.includes('KEY')) createPrivateKey(text)
      else new X509Certificate(text)
    } catch (error) {
      const why = (error as Error).message
      throw new ConfigError(`${name} names ${config[name]}, which is no PEM file of its kind: ${why}.`)
    }
    return text
  })
  const { AUTH__TLS__ALLOWED_SANS: allowed, AUTH__TLS__PUBLIC_SANS: behind_gateway } = config
  return { cert, key, ca, allowed_sans: new Set(allowed), public_sans: new Set(behind_gateway) }
}

/** No peer would accept this pair, so every call would fail later. Throws a ConfigError that names its settings. */
export const refuseUseless = (prefix: 'AUTH__TLS' | 'SIGNALBOX__TLS', { cert, key }: Pair): void => {
  const own = new X509Certificate(cert)
  if (!own.checkPrivateKey(createPrivateKey(key)))
    throw new ConfigError(`${prefix}__KEY_FILE is not the key of the certificate in ${prefix}__CERT_FILE.`)
  if (Date.parse(own.validTo) < Date.now())
    throw new ConfigError(`The certificate in ${prefix}__CERT_FILE expired on ${own.validTo}: run the set-up again.`)
}

let of_process: { mtls: Mtls | undefined } | undefined
/** Returns this process's mutual TLS; then every `fetch` of the process also shows its certificate. */
export const mtlsOfProcess = (): Mtls | undefined => {
  if (!of_process) {
    of_process = { mtls: loadMtls() }
    if (of_process.mtls) refuseUseless('AUTH__TLS', of_process.mtls)
    if (of_process.mtls) fetchWithMtls(of_process.mtls)
  }
  return of_process.mtls
}

const followers = new WeakMap<object, Set<() => void>>()
/** Calls `act` after each change of these texts; returns the function that ends it. */
export const onRenewal = (texts: object, act: () => void): (() => void) => {
  const acts = followers.get(texts) ?? new Set()
  followers.set(texts, acts.add(act))
  return () => void acts.delete(act)
}

/** Changes these texts in place, so that the next connection uses the new ones. Returns whether they differ. */
export const renew = <T extends object>(texts: T, next: { [K in keyof T]?: T[K] }): boolean => {
  const changed = Object.entries(next).some(([name, value]) => texts[name as keyof T] !== value)
  if (!changed) return false
  Object.assign(texts, next)
  for (const act of followers.get(texts) ?? []) act()
  return true
}

/** Reads the files again. Throws if they are no valid pair, as between the writes of a renewal: the old one stays. */
export const renewMtls = (mtls: Mtls, env: NodeJS.ProcessEnv = process.env): boolean => {
  const next = loadMtls(env)
  if (!next) return false
  refuseUseless('AUTH__TLS', next)
  return renew(mtls, { cert: next.cert, key: next.key, ca: next.ca })
}

/** Reports how long the certificates that this process uses now are still valid. */
export const measureCertificates = (telemetry: Telemetry, current: () => Record<string, string | undefined>): void => {
  const gauge = telemetry.gauge('signalbox_certificate_expiry_seconds', 'Until a certificate ends.', ['name'])
  Object.assign(gauge, {
    collect: () => {
      for (const [name, pem] of Object.entries(current()))
        if (pem) gauge.set({ name }, (Date.parse(new X509Certificate(pem).validTo) - Date.now()) / 1000)
    },
  })
}

/** The options of a listener with mutual TLS. A caller without a certificate gets as far as `isAdmitted`. */
export const serverTls = ({ cert, key, ca }: Mtls) =>
  ({ cert, key, ca, requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.3' }) as const

const shown = new WeakMap<TLSSocket, readonly string[]>()

/** Returns the names in the certificate of the other side; none if it is not from our authority. */
const namesOf = (socket: TLSSocket): readonly string[] => {
  const before = shown.get(socket)
  if (before) return before
  // A name with a comma in it arrives in quotes, so no name can pass for two.
  const names = socket.authorized ? (socket.getPeerCertificate()?.subjectaltname?.split(', ') ?? []) : []
  shown.set(socket, names)
  return names
}

/** Whether the other side showed a certificate of our authority with one of these names; an empty set admits any. */
export const isAdmitted = (socket: TLSSocket, admitted: ReadonlySet<string>): boolean =>
  socket.authorized && (admitted.size === 0 || namesOf(socket).some((name) => admitted.has(name)))

/**
 * How a caller connects: it shows its certificate, and trusts a server of our authority whose name matches the URL. Each
 * connection uses the texts of its moment; the connector, which remembers TLS sessions, lives as long as they do.
 */
export const clientTls = (mtls: Mtls | undefined, url: string, timeout: number): buildConnector.connector => {
  if (!mtls) return buildConnector({ timeout })
  if (!url.startsWith('https:'))
    throw new ConfigError(`${url} is not https: if AUTH__TLS__CERT_FILE is set, every internal URL must be.`)
  return connectorOf(mtls, ({ cert, key, ca }) => buildConnector({ timeout, cert, key, ca, minVersion: 'TLSv1.3' }))
}

const connectorOf = (mtls: Mtls, make: (mtls: Mtls) => buildConnector.connector): buildConnector.connector => {
  let connector = make(mtls)
  onRenewal(mtls, () => (connector = make(mtls)))
  return (options, done) => connector(options, done)
}

/** Lets every `fetch` of this process show its certificate if a server asks; public authorities stay trusted. */
export const fetchWithMtls = (mtls: Mtls): Agent => {
  const connect = connectorOf(mtls, ({ cert, key, ca }) => buildConnector({ cert, key, ca: [...rootCertificates, ca] }))
  const agent = new Agent({ connect })
  setGlobalDispatcher(agent)
  return agent
}
