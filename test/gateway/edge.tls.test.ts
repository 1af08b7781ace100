import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadGatewayConfig } from '../../apps/gateway/config.ts'
import { loadEdgePair, renewEdgePair } from '../../apps/gateway/edge/tls.ts'
import { type Auth, startAuth } from '../session/support/auth.ts'
import { createAuthority } from '../support/certificates.ts'

/** The public listener by TLS: no one between the proxy and the gateway reads a token. */
const authority = createAuthority()
const folder = mkdtempSync(join(tmpdir(), 'signalbox-edge-'))
const FILES = {
  GATEWAY__TLS__CERT_FILE: join(folder, 'gateway.pem'),
  GATEWAY__TLS__KEY_FILE: join(folder, 'gateway.key'),
}
const write = ({ cert, key }: { cert?: string; key?: string }) => {
  if (key) writeFileSync(FILES.GATEWAY__TLS__KEY_FILE, key)
  if (cert) writeFileSync(FILES.GATEWAY__TLS__CERT_FILE, cert)
}
let auth: Auth
let gateway: Awaited<ReturnType<Auth['addGateway']>>
beforeAll(async () => {
  write(authority.issue('gateway'))
  auth = await startAuth()
  gateway = await auth.addGateway(FILES)
})
afterAll(async () => {
  await auth?.stop()
  rmSync(folder, { recursive: true })
})

const serialShown = () =>
  new Promise<string>((resolve, reject) => {
    const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', ca: authority.ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })

describe('a public listener with a pair', () => {
  it('serves by TLS alone', async () => {
    const dispatcher = new Agent({ connect: { ca: authority.ca } })
    const keys = await request(`${gateway.url}/.well-known/jwks.json`, { dispatcher })
    expect([keys.statusCode, await keys.body.json()]).toMatchObject([200, { keys: [{ kty: 'RSA' }, {}] }])
    await expect(request(gateway.url.replace('https', 'http'))).rejects.toThrow()
    await dispatcher.close()
  })

  it('shows a new pair to new connections, and keeps its own while the files are no valid one', async () => {
    const { tls, ...config } = gateway.deps.config
    if (!tls) throw new Error('no pair')
    const before = await serialShown()
    const next = authority.issue('gateway')
    write({ key: next.key }) // the first write of a renewal
    expect(() => renewEdgePair(tls, config)).toThrow('GATEWAY__TLS__KEY_FILE is not the key')
    write(authority.issue('gateway', { expired: true }))
    expect(() => renewEdgePair(tls, config)).toThrow('expired on')
    expect(await serialShown()).toBe(before)
    write(next)
    expect([renewEdgePair(tls, config), renewEdgePair(tls, config)]).toEqual([true, false])
    expect(await serialShown()).not.toBe(before)
  })
})

describe('a public listener without a pair', () => {
  const plain = { GATEWAY__HTTP__TRUSTED_NETWORK: false, GATEWAY__LISTEN__HOST: '0.0.0.0' }
  const production = { NODE_ENV: 'production' }

  it.each([
    ['every address', {}],
    ['an address of the network', { GATEWAY__LISTEN__HOST: '10.1.2.3' }],
    ['a name', { GATEWAY__LISTEN__HOST: '127.0.0.1.example.com' }],
    ['every IPv6 address', { GATEWAY__LISTEN__HOST: '::' }],
  ])('at %s is refused in production, with the remedy', (_what, more) => {
    expect(() => loadEdgePair({ ...plain, ...more }, production)).toThrow(
      /is plain: set GATEWAY__TLS__CERT_FILE .*GATEWAY__HTTP__TRUSTED_NETWORK/,
    )
    expect(loadEdgePair({ ...plain, ...more }, {})).toBeUndefined()
  })

  it('may start in a network of its proxy alone, or on this host', () => {
    expect(loadEdgePair({ ...plain, GATEWAY__HTTP__TRUSTED_NETWORK: true }, production)).toBeUndefined()
    for (const GATEWAY__LISTEN__HOST of ['127.0.0.1', '127.0.1.2', '::1', 'localhost'])
      expect(loadEdgePair({ ...plain, GATEWAY__LISTEN__HOST }, production)).toBeUndefined()
  })

  it('is not the result of half a pair', () => {
    const { GATEWAY__TLS__CERT_FILE } = FILES
    expect(() => loadEdgePair({ ...plain, GATEWAY__TLS__CERT_FILE }, {})).toThrow('belong together')
    expect(() => loadGatewayConfig({ ...auth.vars, GATEWAY__TLS__CERT_FILE })).toThrow('belong together')
  })
})
