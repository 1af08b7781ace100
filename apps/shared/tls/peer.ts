import { X509Certificate } from 'node:crypto'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type PeerCertificate } from 'node:tls'
import { follow } from './pairs.ts'

const TRY_MS = 5000
const LOOK_MS = 600_000
/** SSLRequest of the Postgres protocol: length 8, code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

export type Server = 'postgres' | 'redis' | 'nats' | 'temporal'
/** A server, the name that its certificate must have, and the texts (PEM) that a client of it trusts and shows. */
export type Peer = {
  host: string
  port: number
  name: string
  tls: { ca?: string | undefined; cert?: string; key?: string }
}

/** The exchange before TLS: NATS speaks first, Postgres is asked, the others have none. */
const agree = async (server: Server, socket: Socket): Promise<void> => {
  if (server === 'redis' || server === 'temporal') return
  if (server === 'postgres') socket.write(SSL_REQUEST)
  const heard = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  const agreed = server === 'postgres' ? /^S/ : /"tls_(required|available)":true/
  if (!agreed.test(heard.toString('latin1'))) throw new Error('the server has no TLS')
}

/** The certificate that a server presents. Throws if TLS fails, or if name, chain or time are wrong. */
export const certificateOf = (server: Server, { host, port, name, tls }: Peer): Promise<PeerCertificate> => {
  const socket = connect({ host, port })
  socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`no answer in ${TRY_MS / 1000} s`)))
  return new Promise<PeerCertificate>((resolve, reject) => {
    const secure = () => {
      const of_name = { host: name, ...(isIP(name) === 0 && { servername: name }) }
      const secured = connectTls({
        socket,
        ...of_name,
        ...tls,
        ...(server === 'temporal' && { ALPNProtocols: ['h2'] }),
      })
      secured.once('secureConnect', () => resolve(secured.getPeerCertificate()))
      secured.once('error', reject)
    }
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the server closed the connection')))
    socket.once('connect', () => agree(server, socket).then(secure, reject))
  }).finally(() => socket.destroy())
}

/** Reports the life of the certificates that these servers present. One that does not answer keeps its last. */
export const followServers = (peers: Record<Server, () => Peer | undefined>): void => {
  const seen: Partial<Record<Server, string>> = {}
  const look = async (server: Server) => {
    const peer = peers[server]()
    if (peer) seen[server] = new X509Certificate((await certificateOf(server, peer)).raw).toString()
  }
  // The app's own check of a server reports its failures.
  const lookAtAll = () => {
    for (const server of Object.keys(peers) as Server[]) look(server).catch(() => {})
  }
  lookAtAll()
  setInterval(lookAtAll, LOOK_MS).unref()
  follow('the servers', { renewed: () => false, certificates: () => seen })
}
