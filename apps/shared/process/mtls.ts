import { createPrivateKey, X509Certificate } from 'node:crypto'
import { rootCertificates, type TLSSocket } from 'node:tls'
import Type from 'typebox'
import { Agent, setGlobalDispatcher } from 'undici'
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

/** This app's identity, and the authority and names that it trusts. Texts are PEM. */
export type Mtls = {
  cert: string
  key: string
  ca: string
  allowed_sans: ReadonlySet<string>
  public_sans: ReadonlySet<string>
}

/**
 * Mutual TLS of every listener but the gateway's public one, and of their callers (auth.md 1). Off unless configured,
 * which production refuses; partial settings are an error. Files are read at start: a new certificate needs a restart.
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

/** No peer would accept these, so every call would fail later. */
const refuseUseless = ({ cert, key }: Mtls): void => {
  const own = new X509Certificate(cert)
  if (!own.checkPrivateKey(createPrivateKey(key)))
    throw new ConfigError('AUTH__TLS__KEY_FILE is not the key of the certificate in AUTH__TLS__CERT_FILE.')
  if (Date.parse(own.validTo) < Date.now())
    throw new ConfigError(`The certificate in AUTH__TLS__CERT_FILE expired on ${own.validTo}: run the set-up again.`)
}

let of_process: { mtls: Mtls | undefined } | undefined
/** Returns this process's mutual TLS, read once; then every `fetch` of the process also shows its certificate. */
export const mtlsOfProcess = (): Mtls | undefined => {
  if (!of_process) {
    of_process = { mtls: loadMtls() }
    if (of_process.mtls) refuseUseless(of_process.mtls)
    if (of_process.mtls) fetchWithMtls(of_process.mtls)
  }
  return of_process.mtls
}

/** Reports how long the certificates of this process are still valid; absent without mutual TLS. */
export const measureCertificates = (telemetry: Telemetry): void => {
  const mtls = mtlsOfProcess()
  const gauge = telemetry.gauge('signalbox_certificate_expiry_seconds', 'Until a certificate ends.', ['name'])
  if (!mtls) return
  const ends = Object.entries({ own: mtls.cert, authority: mtls.ca }).map(
    ([name, pem]) => [name, Date.parse(new X509Certificate(pem).validTo)] as const,
  )
  Object.assign(gauge, {
    collect: () => {
      for (const [name, end] of ends) gauge.set({ name }, (end - Date.now()) / 1000)
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

/** How a caller connects: it shows its certificate, and trusts a server of our authority whose name matches the URL. */
export const clientTls = (mtls: Mtls | undefined, url: string) => {
  if (!mtls) return {}
  if (!url.startsWith('https:'))
    throw new ConfigError(`${url} is not https: if AUTH__TLS__CERT_FILE is set, every internal URL must be.`)
  return { cert: mtls.cert, key: mtls.key, ca: mtls.ca, minVersion: 'TLSv1.3' as const }
}

/** Lets every `fetch` of this process show its certificate if a server asks; public authorities stay trusted. */
export const fetchWithMtls = (mtls: Mtls): Agent => {
  const agent = new Agent({ connect: { cert: mtls.cert, key: mtls.key, ca: [...rootCertificates, mtls.ca] } })
  setGlobalDispatcher(agent)
  return agent
}
