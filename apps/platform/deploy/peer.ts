import { connect, type Socket } from 'node:net'
import { connect as connectTls, type PeerCertificate } from 'node:tls'
import type { Links } from '../../shared/links.ts'

const TRY_MS = 5000
/** SSLRequest of the Postgres protocol: length 8, code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** What a server says before TLS begins: NATS says INFO, Postgres is asked, the others begin at once. */
const prelude = async (protocol: string, socket: Socket): Promise<void> => {
  const heard = new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve)
    socket.once('close', () => reject(new Error('the server closed the connection')))
  })
  heard.catch(() => {})
  if (protocol.startsWith('postgres')) {
    socket.write(SSL_REQUEST)
    if ((await heard).toString('latin1', 0, 1) !== 'S') throw new Error('the server has no TLS')
  } else if (protocol === 'tls:' || protocol === 'nats:') {
    const text = (await heard).toString('latin1')
    if (!/"tls_(required|available)":true/.test(text)) throw new Error('the server has no TLS')
  }
}

/** The certificate that a server shows. Throws if TLS fails, or if name, chain or time are wrong. */
export const certificateOf = async (
  { protocol, host, port, server_name = host }: { protocol: string; host: string; port: number; server_name?: string },
  { tls }: Links,
): Promise<PeerCertificate> => {
  const socket = connect({ host, port })
  socket.setTimeout(TRY_MS, () => socket.destroy(new Error(`no answer in ${TRY_MS / 1000} s`)))
  try {
    return await new Promise<PeerCertificate>((resolve, reject) => {
      socket.once('error', reject)
      socket.once('connect', () => {
        prelude(protocol, socket).then(() => {
          const secured = connectTls({ socket, host: server_name, ...nameOf(server_name), ...tls, ...alpn(protocol) })
          secured.once('secureConnect', () => resolve(secured.getPeerCertificate()))
          secured.once('error', reject)
          secured.once('close', () => reject(new Error('the server closed the connection')))
        }, reject)
      })
    })
  } finally {
    socket.destroy()
  }
}

const nameOf = (host: string) => (/^[\d.]+$|:/.test(host) ? {} : { servername: host })
const alpn = (protocol: string) => (protocol === 'temporal:' ? { ALPNProtocols: ['h2'] } : {})
