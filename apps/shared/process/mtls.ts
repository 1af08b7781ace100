import { rootCertificates, type TLSSocket } from 'node:tls'
import Type from 'typebox'
import { Agent, setGlobalDispatcher } from 'undici'
import { ConfigError, loadConfig, readTextFile } from '../config.ts'

const file = (what: string) => Type.Optional(Type.String({ production: 'required', description: what }))
export const schema = Type.Object({
  AUTH__TLS__CERT_FILE: file('A PEM file: the certificate that this app shows to others, as server and as caller.'),
  AUTH__TLS__KEY_FILE: file('A PEM file: the private key of that certificate.'),
  AUTH__TLS__CA_FILE: file('A PEM file: the authority that signs the certificates of all our apps.'),
  AUTH__TLS__ALLOWED_SANS: Type.Array(Type.String({ pattern: '^(DNS|URI|IP Address):' }), {
    default: [],
    description:
      'A JSON array of names such as "DNS:session" that may call; empty: every certificate of the authority.',
  }),
})

/** Who this app is to the others, and whom it believes. Texts are PEM. */
export type Mtls = { cert: string; key: string; ca: string; allowed_sans: ReadonlySet<string> }

/**
 * Mutual TLS of RPC and internal listeners and of their callers (auth.md 1): off unless set, which production
 * refuses; a part of it is a mistake. The files are read at the start: a new certificate needs a restart.
 */
export const loadMtls = (env: NodeJS.ProcessEnv = process.env): Mtls | undefined => {
  const config = loadConfig(schema, env)
  const files = ['AUTH__TLS__CERT_FILE', 'AUTH__TLS__KEY_FILE', 'AUTH__TLS__CA_FILE'] as const
  const missing = files.filter((name) => !config[name])
  if (missing.length === files.length) return undefined
  if (missing.length > 0) throw new ConfigError(`${missing.join(' and ')} must be set too: mutual TLS needs all three.`)
  const [cert = '', key = '', ca = ''] = files.map((name) => readTextFile(name, config[name] ?? ''))
  return { cert, key, ca, allowed_sans: new Set(config.AUTH__TLS__ALLOWED_SANS) }
}

let of_process: { mtls: Mtls | undefined } | undefined
/** That of this process, read once; from then on every `fetch` of the process shows its certificate too. */
export const mtlsOfProcess = (): Mtls | undefined => {
  if (!of_process) {
    of_process = { mtls: loadMtls() }
    if (of_process.mtls) fetchWithMtls(of_process.mtls)
  }
  return of_process.mtls
}

/** What a listener with mutual TLS is opened with. Who shows no certificate gets as far as `isAdmitted`. */
export const serverTls = ({ cert, key, ca }: Mtls) =>
  ({ cert, key, ca, requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.3' }) as const

const admitted = new WeakMap<TLSSocket, boolean>()

/** Whether the other side of a connection showed a certificate of our authority with a name that may call. */
export const isAdmitted = (socket: TLSSocket, { allowed_sans }: Mtls): boolean => {
  const before = admitted.get(socket)
  if (before !== undefined) return before
  // A name with a comma in it arrives in quotes, so no name can pass for two.
  const names = socket.getPeerCertificate()?.subjectaltname?.split(', ') ?? []
  const answer = socket.authorized && (allowed_sans.size === 0 || names.some((name) => allowed_sans.has(name)))
  admitted.set(socket, answer)
  return answer
}

/** How a caller connects: it shows its certificate, and believes a server of our authority that has the name of the URL. */
export const clientTls = (mtls: Mtls | undefined, url: string) => {
  if (!mtls) return {}
  if (!url.startsWith('https:'))
    throw new ConfigError(`${url} is not https: with AUTH__TLS__CERT_FILE set every internal URL is.`)
  return { cert: mtls.cert, key: mtls.key, ca: mtls.ca, minVersion: 'TLSv1.3' as const }
}

/** Lets every `fetch` of this process show its certificate where a server asks for one; public authorities stay believed. */
export const fetchWithMtls = (mtls: Mtls): Agent => {
  const agent = new Agent({ connect: { cert: mtls.cert, key: mtls.key, ca: [...rootCertificates, mtls.ca] } })
  setGlobalDispatcher(agent)
  return agent
}
