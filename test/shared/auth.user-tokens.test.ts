import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAccessVerifier, createRefreshVerifier } from '../../apps/shared/auth/user-tokens.ts'
import { createJwksClient, type JwksClient } from '../../apps/shared/jwt/jwks.ts'
import { accessClaims, forge, ISSUER, NOW, rsaKey, SECONDS, SESSION } from './support/tokens.ts'

const one = rsaKey()
const two = rsaKey()
const keySet = (key: ReturnType<typeof rsaKey>) => ({ keys: [{ ...key.jwk, kid: 'one', alg: 'RS256', use: 'sig' }] })
const tokenOf = (claims = {}) =>
  forge(one.privateKey, { alg: 'RS256', kid: 'one', typ: 'at+jwt' }, accessClaims(claims))

let server: Server
let published: object
let jwks: JwksClient
let now: Date
let monotonic: number

beforeEach(async () => {
  published = keySet(one)
  now = NOW
  monotonic = 0
  server = createServer((_req, res) => res.end(JSON.stringify(published)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  jwks = createJwksClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    cache_s: 300,
    cooldown_s: 30,
    max_stale_s: 86_400,
    monotonic: () => monotonic,
  })
  await jwks.start()
})
afterEach(() => {
  jwks.close()
  server.closeAllConnections()
  server.close()
})

const verifier = () =>
  createAccessVerifier({ jwks, issuer: ISSUER, audience: 'signalbox-api', skew_s: 5, clock: { now: () => now } })
const at = (seconds: number) => new Date((SECONDS + seconds) * 1000)

describe('an access token that was verified before', () => {
  it('is answered from memory with the same claims, which no caller can change', async () => {
    const verify = verifier()
    const token = tokenOf()
    const first = await verify(token)
    expect(await verify(token)).toBe(first)
    expect(() => Object.assign(first, { sub: 'x' })).toThrow(TypeError)
  })

  it('is refused from its exp on, and before its iat when the clock is set back', async () => {
    const verify = verifier()
    const token = tokenOf()
    await verify(token)
    now = at(899)
    await expect(verify(token)).resolves.toBeDefined()
    now = at(900)
    await expect(verify(token)).rejects.toMatchObject({ reason: 'expired' })
    now = at(-6)
    await expect(verify(token)).rejects.toMatchObject({ reason: 'not_yet_valid' })
  })

  it('is refused at once if its key is killed, replaced or too old', async () => {
    const token = tokenOf()
    const killed = verifier()
    const stale = verifier()
    await killed(token)
    await stale(token)
    monotonic = 86_400_001
    server.closeAllConnections()
    server.close()
    await expect(stale(token)).rejects.toMatchObject({ status: 503 })
    monotonic = 0
    jwks.drop('one')
    await expect(killed(token)).rejects.toMatchObject({ reason: 'unknown_key' })
  })

  it('is refused if another key took its key id', async () => {
    const verify = verifier()
    const token = tokenOf()
    await verify(token)
    published = keySet(two)
    await jwks.start()
    await expect(verify(token)).rejects.toMatchObject({ reason: 'signature' })
  })

  it('does not cover a text that differs in one character', async () => {
    const verify = verifier()
    const token = tokenOf()
    await verify(token)
    const [head, payload, signature = ''] = token.split('.')
    const other = signature.startsWith('A') ? 'B' : 'A'
    await expect(verify(`${head}.${payload}.${other}${signature.slice(1)}`)).rejects.toMatchObject({
      reason: 'signature',
    })
    await expect(verify(`${token}=`)).rejects.toMatchObject({ reason: 'malformed' })
  })

  it('is verified again if it carries nbf', async () => {
    const verify = verifier()
    const token = tokenOf({ nbf: SECONDS })
    expect(await verify(token)).not.toBe(await verify(token))
  })
})

it('a refresh token is verified each time', async () => {
  const verify = createRefreshVerifier({
    jwks,
    issuer: ISSUER,
    audience: 'signalbox-token',
    skew_s: 5,
    clock: { now: () => now },
  })
  const claims = {
    ...accessClaims({ aud: 'signalbox-token', type: 'refresh', exp: SECONDS + 2_592_000 }),
    session_id: SESSION,
  }
  const token = forge(one.privateKey, { alg: 'RS256', kid: 'one', typ: 'rt+jwt' }, claims)
  expect(await verify(token)).not.toBe(await verify(token))
})
