import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { wrongSettings } from '../../shared/config.ts'
import { follow, onRenewal, type Pair, readPair, refuseUseless, renew } from '../../shared/tls/pairs.ts'

const LOOPBACK = /^(127(\.\d+){3}|::1|localhost)$/

type Settings = {
  GATEWAY__TLS__CERT_FILE?: string
  GATEWAY__TLS__KEY_FILE?: string
  GATEWAY__HTTP__TRUSTED_NETWORK: boolean
  GATEWAY__LISTEN__HOST: string
}

/**
 * The pair of the public listener; undefined if it is plain. In production, tokens leave this host unencrypted only if
 * a setting says that the network is the proxy's alone.
 */
export const loadEdgePair = (config: Settings, env: NodeJS.ProcessEnv): Pair | undefined => {
  const pair = readPair('GATEWAY__TLS', config)
  if (pair) refuseUseless('GATEWAY__TLS', pair)
  const { GATEWAY__LISTEN__HOST: host, GATEWAY__HTTP__TRUSTED_NETWORK: trusted } = config
  if (!pair && !trusted && env.NODE_ENV === 'production' && !LOOPBACK.test(host))
    throw wrongSettings([
      `The public listener at ${host} is plain: set GATEWAY__TLS__CERT_FILE and GATEWAY__TLS__KEY_FILE, as "npm run setup -- production" does. If no one but your proxy is in its network, set GATEWAY__HTTP__TRUSTED_NETWORK=true.`,
    ])
  return pair
}

/** Reads the files of the pair again; throws if they are no valid pair. */
export const renewEdgePair = (pair: Pair, config: Settings): boolean => {
  const next = readPair('GATEWAY__TLS', config)
  if (!next) return false
  refuseUseless('GATEWAY__TLS', next)
  return renew(pair, next)
}

/** Has this process renew the pair of its public listener, and report its life. */
export const followEdgePair = (pair: Pair, config: Settings): void =>
  follow('GATEWAY__TLS', { renewed: () => renewEdgePair(pair, config), certificates: () => ({ public: pair.cert }) })

/** A listener by TLS if there is a pair; new connections get the one of their moment. */
export const createListener = (options: ServerOptions, pair: Pair | undefined, begin: RequestListener): Server => {
  if (!pair) return createServer(options, begin)
  const server = createSecureServer({ ...options, ...pair }, begin)
  server.once(
    'close',
    onRenewal(pair, () => server.setSecureContext(pair)),
  )
  return server
}
