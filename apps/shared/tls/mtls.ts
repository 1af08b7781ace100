import { rootCertificates, type TLSSocket } from 'node:tls'
import Type from 'typebox'
import { Agent, buildConnector, setGlobalDispatcher } from 'undici'
import { ConfigError, loadConfig } from '../config.ts'
import { follow, onRenewal, type Pair, readPem, refuseUseless, renew } from './pairs.ts'

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
  const [cert = '', key = '', ca = ''] = files.map((name) => readPem(name, config[name] ?? ''))
  const { AUTH__TLS__ALLOWED_SANS: allowed, AUTH__TLS__PUBLIC_SANS: behind_gateway } = config
  return { cert, key, ca, allowed_sans: new Set(allowed), public_sans: new Set(behind_gateway) }
}

let of_process: { mtls: Mtls | undefined } | undefined
/** Returns this process's mutual TLS; then every `fetch` of the process also shows its certificate. */
export const mtlsOfProcess = (): Mtls | undefined => {
  if (!of_process) {
    of_process = { mtls: loadMtls() }
    const { mtls } = of_process
    if (mtls) {
      refuseUseless('AUTH__TLS', mtls)
      fetchWithMtls(mtls)
      follow('AUTH__TLS', {
        renewed: () => renewMtls(mtls),
        certificates: () => ({ own: mtls.cert, authority: mtls.ca }),
      })
    }
  }
  return of_process.mtls
}

/** Reads the files again. Throws if they are no valid pair, as between the writes of a renewal: the old one stays. */
export const renewMtls = (mtls: Mtls, env: NodeJS.ProcessEnv = process.env): boolean => {
  const next = loadMtls(env)
  if (!next) return false
  refuseUseless('AUTH__TLS', next)
  return renew(mtls, { cert: next.cert, key: next.key, ca: next.ca })
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

/** A connector of these texts, made again whenever they change. */
export const connectorOf = <T extends object>(
  texts: T,
  make: (texts: T) => buildConnector.connector,
): buildConnector.connector => {
  let connector = make(texts)
  onRenewal(texts, () => (connector = make(texts)))
  return (options, done) => connector(options, done)
}

/** Lets every `fetch` of this process show its certificate if a server asks; public authorities stay trusted. */
export const fetchWithMtls = (mtls: Mtls): Agent => {
  const connect = connectorOf(mtls, ({ cert, key, ca }) => buildConnector({ cert, key, ca: [...rootCertificates, ca] }))
  const agent = new Agent({ connect })
  setGlobalDispatcher(agent)
  return agent
}
