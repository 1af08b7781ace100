import { createECDH, createPublicKey, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import ece from 'http_ece'
import { type JWTPayload, jwtVerify } from 'jose'

export type Pushed = {
  headers: IncomingHttpHeaders
  size: number
  /** What the browser reads. */
  payload: { tag: string; title: string; body: string; url: string; silent: boolean }
  claims: JWTPayload
}

/** A real push service (RFC 8030) with browsers that read their pushes by the reference implementation of RFC 8188. */
export const startPushService = async () => {
  const browsers = new Map<string, { ecdh: ReturnType<typeof createECDH>; auth: Buffer; got: Pushed[] }>()
  const state = { status: 201 }
  const faults: unknown[] = []
  const server = createServer((req, res) => {
    void buffer(req).then(async (body) => {
      const browser = browsers.get(req.url ?? '')
      if (!browser) return res.writeHead(404).end()
      if (state.status === 201)
        await read(browser, body, req.headers)
          .then((pushed) => browser.got.push(pushed))
          .catch((fault) => faults.push(fault))
      res.writeHead(state.status, { location: '/messages/1' }).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    state,
    /** Pushes that a browser or the service could not read. */
    faults,
    /** A subscribed browser: the body for the server, and the pushes that arrive. */
    browser: (host = '127.0.0.1') => {
      const path = `/push/${randomBytes(12).toString('base64url')}`
      const ecdh = createECDH('prime256v1')
      const p256dh = ecdh.generateKeys('base64url')
      const auth = randomBytes(16)
      const got: Pushed[] = []
      browsers.set(path, { ecdh, auth, got })
      const endpoint = `http://${host}:${port}${path}`
      const body = { name: 'Phone', endpoint, keys: { p256dh, auth: auth.toString('base64url') } }
      return { body, got, leave: () => browsers.delete(path) }
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const read = async (
  { ecdh, auth }: { ecdh: ReturnType<typeof createECDH>; auth: Buffer },
  body: Buffer,
  headers: IncomingHttpHeaders,
): Promise<Pushed> => {
  const [, token = '', k = ''] = /^vapid t=(\S+), k=(\S+)$/.exec(headers.authorization ?? '') ?? []
  const point = Buffer.from(k, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  const key = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y } as never, format: 'jwk' })
  const { payload: claims } = await jwtVerify(token, key, { audience: `http://${headers.host}`, algorithms: ['ES256'] })
  const plain = ece.decrypt(body, { version: 'aes128gcm', privateKey: ecdh, authSecret: auth })
  return { headers, size: body.length, payload: JSON.parse(plain.toString('utf8')), claims }
}
