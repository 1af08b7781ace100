import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import { Code, ConnectError } from '@connectrpc/connect'
import { Agent, getGlobalDispatcher, Pool, request, setGlobalDispatcher } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Identity } from '../../apps/shared/contracts/gen/auth_pb.ts'
import { createHttpApp, type HttpApp } from '../../apps/shared/http/app.ts'
import { AUTH_CODES, OPERATIONS_CODES } from '../../apps/shared/http/edge-codes.ts'
import { serveHealth } from '../../apps/shared/http/health.ts'
import { createRpcClient, registerRpc, rpcService } from '../../apps/shared/rpc/client.ts'
import { loadRegistry, type Registry } from '../../apps/shared/service/tokens.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { clientTls, fetchWithMtls, loadMtls, type Mtls, renewMtls } from '../../apps/shared/tls/mtls.ts'
import { createAuthority, type Identity as Papers } from '../support/certificates.ts'
import { testServices } from '../support/services.ts'
import { until } from '../support/until.ts'

/** auth.md 1: RPC and internal listeners with mutual TLS in addition to service tokens. */

const authority = createAuthority()
const foreign = createAuthority()
const as = (papers: Papers, allowed: string[] = []): Mtls => ({
  ...papers,
  allowed_sans: new Set(allowed),
  public_sans: new Set(['DNS:gateway']),
})
const telemetry = createTelemetry('test', { level: 'silent' })
let services: ReturnType<typeof testServices>
let registry: Registry
let app: HttpApp
let url: string
let calls: number

beforeAll(async () => {
  services = testServices()
  registry = loadRegistry(services.registry_file)
  const mtls = as(authority.issue('identity'), ['DNS:session', 'DNS:gateway'])
  app = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true, mtls })
  serveHealth(app, telemetry, {})
  const scopes = Object.fromEntries(Identity.methods.map(({ localName }) => [localName, 'identity:read'])) as never
  const nothing = () => {
    calls += 1
    return {}
  }
  const methods = Object.fromEntries(Identity.methods.map(({ localName }) => [localName, nothing])) as never
  registerRpc(app, { registry, audience: 'identity-internal', services: [rpcService(Identity, scopes, methods)] })
  url = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app.close()
  registry.close()
  services.remove()
})
beforeEach(() => {
  calls = 0
})

const callAs = (mtls: Mtls, at = url) =>
  createRpcClient(Identity, { url: at, signer: services.signer('session'), audience: 'identity-internal', mtls })
    .getUser({ id: 'u' })
    .then(
      () => 'ok',
      (error: unknown) => ConnectError.from(error).code,
    )
const open = (path: string, connect: object = {}) =>
  request(`${url}${path}`, { dispatcher: new Agent({ connect: { ca: authority.ca, ...connect } }) })

describe('an internal listener with mutual TLS', () => {
  it('serves a caller with a certificate of the authority and a permitted name', async () => {
    expect(url).toMatch(/^https:/)
    expect(await callAs(as(authority.issue('session')))).toBe('ok')
    expect(calls).toBe(1)
  })

  it('refuses everyone else on every method, whatever service token they hold', async () => {
    const strangers = [
      { cert: undefined, key: undefined },
      foreign.issue('session'),
      authority.issue('session', { expired: true }),
      authority.issue('catalog'),
      authority.issue('session.evil.example'),
    ]
    const authorization = `Bearer ${services.signer('session')('identity-internal')}`
    for (const { cert, key } of strangers) {
      const dispatcher = new Agent({ connect: { ca: authority.ca, ...(cert && { cert, key }) } })
      for (const path of ['/signalbox.auth.v1.Identity/GetUser', '/metrics', '/nothing']) {
        const answer = await request(`${url}${path}`, {
          dispatcher,
          method: path === '/metrics' ? 'GET' : 'POST',
          headers: { authorization, 'content-type': 'application/json' },
          ...(path !== '/metrics' && { body: '{}' }),
        })
        const body = (await answer.body.json()) as { code: string }
        expect([path, answer.statusCode, body.code]).toEqual([path, 401, 'certificate_required'])
      }
      await dispatcher.close()
    }
    expect(calls).toBe(0)
    expect(await callAs(as({ ...foreign.issue('session'), ca: authority.ca }))).toBe(Code.Unauthenticated)
  })

  it('takes no resumed session for a certificate, even if it admits every name', async () => {
    const anyone = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true, mtls: as(authority.issue('session')) })
    serveHealth(anyone, telemetry, {})
    const { port } = new URL(await anyone.listen({ host: '127.0.0.1', port: 0 }))
    const ask = async (papers: object, session?: Buffer) => {
      const socket = connect({
        port: Number(port),
        host: '127.0.0.1',
        ca: authority.ca,
        ...papers,
        ...(session && { session }),
      })
      let ticket: Buffer | undefined
      let reused = false
      socket.on('session', (given) => (ticket = given))
      socket.on('secureConnect', () => (reused = socket.isSessionReused()))
      socket.end('GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      const answer = await text(socket)
      return { status: Number(answer.split(' ')[1]), reused, ticket }
    }
    const { cert, key } = authority.issue('gateway')
    for (const [papers, status] of [
      [{}, 401],
      [foreign.issue('gateway'), 401],
      [{ cert, key }, 200],
    ] as const) {
      const { cert, key } = papers as { cert?: string; key?: string }
      const first = await ask(cert ? { cert, key } : {})
      expect([first.status, first.reused]).toEqual([status, false])
      const again = await ask({}, first.ticket)
      expect([again.status, again.reused]).toEqual([status, true])
    }
    await anyone.close()
  })

  it('does not speak plain HTTP', async () => {
    await expect(fetch(`${url.replace('https', 'http')}/health/live`)).rejects.toThrow()
  })

  it('tells a probe without a certificate whether it is alive, and a known caller its metrics', async () => {
    for (const path of ['/health/live', '/health/startup', '/health/ready']) {
      expect((await open(path)).statusCode).toBe(200)
    }
    const { cert, key } = authority.issue('gateway')
    expect((await open('/metrics', { cert, key })).statusCode).toBe(200)
  })

  it('closes at once while a caller holds a connection over which it has sent nothing', async () => {
    const mtls = as(authority.issue('identity'))
    const brief = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true, mtls })
    const { port } = new URL(await brief.listen({ host: '127.0.0.1', port: 0 }))
    const { cert, key } = authority.issue('session')
    const held = connect({ port: Number(port), host: '127.0.0.1', ca: authority.ca, cert, key })
    held.on('error', () => {})
    await once(held, 'secureConnect')
    const late = delay(5000, 'late')
    expect(await Promise.race([brief.close(), late])).toBeUndefined()
    held.destroy()
  })

  it('refuses with a category of its own API', async () => {
    const mtls = as(authority.issue('operations'))
    const operations = createHttpApp({ telemetry, codes: OPERATIONS_CODES, internal: true, mtls })
    operations.get('/internal/v1/x', async () => ({}))
    const at = await operations.listen({ host: '127.0.0.1', port: 0 })
    const answer = await request(`${at}/internal/v1/x`, { dispatcher: new Agent({ connect: { ca: authority.ca } }) })
    expect([answer.statusCode, await answer.body.json()]).toMatchObject([401, { category: 'policy_denied' }])
    await operations.close()
  })
})

describe('a caller with mutual TLS', () => {
  it('trusts no server of another authority or another name', async () => {
    const papers = authority.issue('session')
    expect(await callAs(as({ ...papers, ca: foreign.ca }))).toBe(Code.Unavailable)
    expect(await callAs(as(papers), url.replace('127.0.0.1', 'localhost'))).toBe(Code.Unavailable)
    expect(calls).toBe(0)
  })

  it('accepts only https for internal URLs', () => {
    const options = { url: 'http://127.0.0.1:1', signer: services.signer('session'), audience: 'identity-internal' }
    expect(() => createRpcClient(Identity, { ...options, mtls: as(authority.issue('session')) })).toThrow('not https')
  })

  it('sends its certificate with fetch too', async () => {
    const before = getGlobalDispatcher()
    const agent = fetchWithMtls(as(authority.issue('session')))
    try {
      expect((await fetch(`${url}/metrics`)).status).toBe(200)
    } finally {
      setGlobalDispatcher(before)
      await agent.close()
    }
  })
})

describe('certificates that change while the process runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-renewed-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const env: Record<string, string> = {}
  /** Writes the files, as far as they are given. */
  const write = (papers: Partial<Papers>) => {
    for (const [name, text] of Object.entries(papers)) {
      env[`AUTH__TLS__${name.toUpperCase()}_FILE`] = join(folder, name)
      writeFileSync(join(folder, name), text)
    }
  }
  const serialOf = (port: number, papers: Papers) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', ...papers }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      })
      socket.on('error', reject)
    })

  it('are those of new connections, at a listener and at its callers; an open call ends well', async () => {
    const next = createAuthority()
    const both = authority.ca + next.ca
    write({ ...authority.issue('identity'), ca: both })
    const mtls = loadMtls(env) as Mtls
    const own = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true, mtls })
    serveHealth(own, telemetry, {})
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    own.get('/slow', () => held.then(() => ({ done: true })))
    const { origin, port } = new URL(await own.listen({ host: '127.0.0.1', port: 0 }))
    const before = getGlobalDispatcher()
    const agent = fetchWithMtls(mtls)
    const pool = new Pool(origin, { connect: clientTls(mtls, origin, 2000) })
    const ask = async () => (await pool.request({ path: '/metrics', method: 'GET' })).body.text()
    try {
      const old = authority.issue('session')
      const first = await serialOf(Number(port), old)
      const slow = fetch(`${origin}/slow`).then((answer) => answer.status)
      await ask()
      const renewed = next.issue('identity')
      write({ key: renewed.key }) // the first write of a renewal
      expect(() => renewMtls(mtls, env)).toThrow('AUTH__TLS__KEY_FILE is not the key')
      expect(await serialOf(Number(port), old)).toBe(first)
      write({ ...next.issue('identity', { expired: true }) })
      expect(() => renewMtls(mtls, env)).toThrow('expired on')
      write({ ...renewed, ca: next.ca })
      expect([renewMtls(mtls, env), renewMtls(mtls, env)]).toEqual([true, false])
      release()
      expect(await slow).toBe(200)
      await expect(serialOf(Number(port), old)).rejects.toThrow()
      expect(await serialOf(Number(port), next.issue('session'))).not.toBe(first)
      // A caller of the old authority is refused, and our own callers use the new one.
      const dispatcher = new Agent({ connect: { ...old, ca: next.ca } })
      expect((await request(`${origin}/metrics`, { dispatcher })).statusCode).toBe(401)
      await own.close()
      const again = createHttpApp({ telemetry, codes: AUTH_CODES, internal: true, mtls: as(next.issue('identity')) })
      serveHealth(again, telemetry, {})
      await again.listen({ host: '127.0.0.1', port: Number(port) })
      // The connections of before end first.
      await until(() => ask().then(Boolean, () => false), { what: 'a call with the new certificate' })
      expect((await fetch(`${origin}/metrics`)).status).toBe(200)
      await again.close()
    } finally {
      setGlobalDispatcher(before)
      await Promise.all([agent.close(), pool.close()])
    }
  })
})

describe('the settings of mutual TLS', () => {
  it('are off unless set, all or none, and required in production', () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-tls-'))
    const papers = authority.issue('session')
    const env: Record<string, string> = { AUTH__TLS__ALLOWED_SANS: '["DNS:gateway"]' }
    for (const [name, text] of [
      ['CERT', papers.cert],
      ['KEY', papers.key],
      ['CA', papers.ca],
    ] as const) {
      env[`AUTH__TLS__${name}_FILE`] = join(folder, `${name}.pem`)
      writeFileSync(join(folder, `${name}.pem`), text)
    }
    expect(loadMtls({})).toBeUndefined()
    expect(loadMtls({ ...env, NODE_ENV: 'production' })).toEqual({
      cert: papers.cert.trim(),
      key: papers.key.trim(),
      ca: papers.ca.trim(),
      allowed_sans: new Set(['DNS:gateway']),
      public_sans: new Set(['DNS:gateway']),
    })
    const { AUTH__TLS__KEY_FILE: _, ...partial } = env
    expect(() => loadMtls(partial)).toThrow('AUTH__TLS__KEY_FILE')
    expect(() => loadMtls({ ...env, AUTH__TLS__CA_FILE: '/nowhere.pem' })).toThrow('AUTH__TLS__CA_FILE')
    expect(() => loadMtls({ ...env, AUTH__TLS__ALLOWED_SANS: '["session"]' })).toThrow('AUTH__TLS__ALLOWED_SANS')
    expect(() => loadMtls({ NODE_ENV: 'production' })).toThrow('AUTH__TLS__CERT_FILE')
    rmSync(folder, { recursive: true })
  })
})
