import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import type { RedisOptions } from 'ioredis'
import Type from 'typebox'
import { ConfigError, loadConfig, readTextFile } from './config.ts'
import { follow, readPair, refuseUseless, renew } from './tls/pairs.ts'
import type { Peer, Server } from './tls/peer.ts'
import { bareHost } from './web/addresses.ts'

/** host:port; an IPv6 address is in brackets. */
const SENTINEL = '([^\\s,:\\[\\]]+|\\[[\\da-fA-F:.]+\\]):\\d+'
const file = (description: string) => Type.Optional(Type.String({ description }))

/** How an app connects to Redis, NATS and Temporal; for Postgres the URL contains all. The address decides on TLS. */
export const schema = Type.Object({
  SIGNALBOX__TLS__CA_FILE: file(
    'A PEM file: the authorities that sign the certificates of Redis, NATS and Temporal; without it, public ones.',
  ),
  SIGNALBOX__TLS__CERT_FILE: file('A PEM file: the certificate that Redis, NATS and Temporal see, where they ask.'),
  SIGNALBOX__TLS__KEY_FILE: file('A PEM file: the private key of that certificate.'),
  SIGNALBOX__REDIS__SENTINELS: Type.Optional(
    Type.String({
      pattern: `^${SENTINEL}(,${SENTINEL})*$`,
      description:
        'host:port of each Redis Sentinel, with commas between and an IPv6 address in brackets: they say which server is the primary, and the REDIS__URL says only the account and whether by TLS.',
    }),
  ),
  SIGNALBOX__REDIS__SENTINEL_NAME: Type.String({
    default: 'signalbox',
    description: 'The name that the Sentinels give to the primary and its replicas.',
  }),
  SIGNALBOX__REDIS__SENTINEL_PASSWORD_FILE: file('A file with the password of the Sentinels, if they ask for one.'),
  SIGNALBOX__NATS__NKEY_FILE: file("A file with the NKEY seed of this app's NATS user, instead of a password."),
  SIGNALBOX__NATS__REPLICAS: Type.Integer({
    ...{ default: 1, minimum: 1, maximum: 5 },
    description:
      'How many NATS servers hold each stream: 3 in a cluster of three. It is raised at start, never lowered.',
  }),
  SIGNALBOX__NATS__STREAM_BYTES: Type.Optional(
    Type.Integer({
      minimum: 1024 ** 3,
      description:
        'How many bytes each stream of events may hold: 1 GiB if it is not set. It is raised at start, never lowered.',
    }),
  ),
  SIGNALBOX__TEMPORAL__API_KEY_FILE: file(
    'A file with the API key for Temporal, as in Temporal Cloud; a new key counts within 10 s, without a restart.',
  ),
  SIGNALBOX__TEMPORAL__SERVER_NAME: file("The name in Temporal's certificate, if it is not that of the address."),
})

/** Texts are PEM. */
export type Links = {
  tls: { ca?: string; cert?: string; key?: string }
  /** The sentinels that name the primary of Redis; undefined if its address is fixed. */
  sentinels: { servers: { host: string; port: number }[]; name: string; password: string | undefined } | undefined
  nkey_seed: string | undefined
  nats_replicas: number
  /** Undefined: what each stream has, or the least. */
  nats_stream_bytes: number | undefined
  api_key_file: string | undefined
  server_name: string | undefined
}

export const loadLinks = (env: NodeJS.ProcessEnv = process.env): Links => {
  const config = loadConfig(schema, env)
  const read = (name: `${string}_FILE` & keyof typeof config) => {
    const path = config[name]
    return path === undefined ? undefined : readTextFile(name, path)
  }
  const ca = read('SIGNALBOX__TLS__CA_FILE')
  const pair = readPair('SIGNALBOX__TLS', config)
  read('SIGNALBOX__TEMPORAL__API_KEY_FILE') // an unreadable one stops the start
  return {
    tls: { ...(ca && { ca }), ...pair },
    sentinels: config.SIGNALBOX__REDIS__SENTINELS
      ? {
          servers: config.SIGNALBOX__REDIS__SENTINELS.split(',').map((address) => {
            const { hostname, port } = new URL(`redis://${address}`)
            return { host: bareHost(hostname), port: Number(port) }
          }),
          name: config.SIGNALBOX__REDIS__SENTINEL_NAME,
          password: read('SIGNALBOX__REDIS__SENTINEL_PASSWORD_FILE'),
        }
      : undefined,
    nkey_seed: read('SIGNALBOX__NATS__NKEY_FILE'),
    nats_replicas: config.SIGNALBOX__NATS__REPLICAS,
    nats_stream_bytes: config.SIGNALBOX__NATS__STREAM_BYTES,
    api_key_file: config.SIGNALBOX__TEMPORAL__API_KEY_FILE,
    server_name: config.SIGNALBOX__TEMPORAL__SERVER_NAME,
  }
}

const refuseUselessPair = ({ tls: { cert, key } }: Links): void => {
  if (cert && key) refuseUseless('SIGNALBOX__TLS', { cert, key })
}

let of_process: Links | undefined
/** The links of this process, whose `tls` changes in place. */
export const linksOfProcess = (): Links => {
  if (of_process) return of_process
  const links = loadLinks()
  refuseUselessPair(links)
  of_process = links
  follow('SIGNALBOX__TLS', {
    renewed: () => renewLinks(links),
    certificates: () => ({ link: links.tls.cert, link_authority: links.tls.ca }),
  })
  return links
}

/** Reads the files of TLS again. Throws if they are no valid pair: the old one stays. */
export const renewLinks = (links: Links, env: NodeJS.ProcessEnv = process.env): boolean => {
  const next = loadLinks(env)
  refuseUselessPair(next)
  return renew(links.tls, next.tls)
}

/**
 * How a client of Redis finds and trusts its server: by the address itself or, with Sentinels, the server that they
 * name as primary. A Sentinel ends the connections of a server that it demotes to a replica, so the client asks again.
 */
export const redisLink = (url: string, { tls, sentinels }: Links = linksOfProcess()): RedisOptions => {
  const secured = url.startsWith('rediss:')
  if (!sentinels) return secured ? { tls } : {}
  const { servers, name, password } = sentinels
  return {
    sentinels: servers,
    name,
    ...(password && { sentinelPassword: password }),
    sentinelCommandTimeout: 1000,
    ...(secured && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  }
}

type TemporalOptions = {
  address: string
  tls?: { serverRootCACertificate?: Buffer; serverNameOverride?: string; clientCertPair?: { crt: Buffer; key: Buffer } }
  apiKey?: () => string
}

/** The authorities of Temporal: whoever asks for an API key, as Temporal Cloud does, may have its certificate from a public one. */
export const temporalAuthorities = ({ tls: { ca }, api_key_file }: Links): string | undefined =>
  ca && api_key_file ? [ca, ...rootCertificates].join('\n') : ca

/**
 * How a client of Temporal connects: `tls://host:port` by TLS, `host:port` plain. An API key goes over TLS alone, and
 * without a certificate: it says who calls. It is read for each call.
 */
export const temporalOptions = (address: string, links: Links = linksOfProcess()): TemporalOptions => {
  const { api_key_file, server_name } = links
  const { cert, key } = links.tls
  const secured = address.startsWith('tls://')
  if (api_key_file && !secured)
    throw new ConfigError('SIGNALBOX__TEMPORAL__API_KEY_FILE is set: write the address of Temporal as tls://host:port.')
  if (!secured) return { address }
  const ca = temporalAuthorities(links)
  return {
    address: address.slice('tls://'.length),
    tls: {
      ...(ca && { serverRootCACertificate: Buffer.from(ca) }),
      ...(server_name && { serverNameOverride: server_name }),
      ...(cert && key && !api_key_file && { clientCertPair: { crt: Buffer.from(cert), key: Buffer.from(key) } }),
    },
    ...(api_key_file && { apiKey: () => readFileSync(api_key_file, 'utf8').trim() }),
  }
}

const PORTS: Record<Server, number> = { postgres: 5432, redis: 6379, nats: 4222, temporal: 7233 }

/** Where a client finds the server of this URL, and the certificate that it expects; undefined if the URL is plain. */
export const peerOf = (server: Server, url: string, links: Links = linksOfProcess()): Peer | undefined => {
  if (!/^(postgres(ql)?|rediss|tls):/.test(url) || !URL.canParse(url)) return undefined
  const { hostname, port: own_port, searchParams } = new URL(url)
  // If Sentinels name the primary, its configured address may be meaningless.
  const [sentinel] = (server === 'redis' && links.sentinels?.servers) || []
  const { host, port } = sentinel ?? { host: bareHost(hostname), port: Number(own_port || PORTS[server]) }
  const ca_file = searchParams.get('sslrootcert')
  const ca = server === 'temporal' ? temporalAuthorities(links) : undefined
  return {
    ...{ host, port, name: (server === 'temporal' && links.server_name) || host },
    tls: ca_file ? { ca: readFileSync(ca_file, 'utf8') } : { ...links.tls, ...(ca && { ca }) },
  }
}
