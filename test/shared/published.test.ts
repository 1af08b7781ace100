import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { createIssuers } from '../../apps/identity/machines/foreign.ts'
import { ANYONES, signAsAnyone } from '../support/authenticator.ts'

/** An issuer that changes its keys and the place where it publishes them, and is down at times. */

const reads: string[] = []
const documents: Record<string, unknown> = {}
let down = false
/** Takes requests and never answers them. */
let silent = false
const server = createServer((req, res) => {
  reads.push(req.url ?? '')
  if (silent) return
  const document = documents[req.url ?? '']
  const status = document && !down ? 200 : 500
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document ?? {}))
}).listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => {
  server.close()
  server.closeAllConnections()
})
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const DISCOVERY = '/.well-known/openid-configuration'

let now_ms = 0
let verify: (token: string) => Promise<unknown>
const pairs = new Map<string, Awaited<ReturnType<typeof generateKeyPair>>>()
const keyOf = async (kid: string) => {
  const pair = pairs.get(kid) ?? (await generateKeyPair('ES256', { extractable: true }))
  pairs.set(kid, pair)
  return pair
}
const publish = async (path: string, ...kids: string[]) => {
  const keys = await Promise.all(
    kids.map(async (kid) => ({ ...(await exportJWK((await keyOf(kid)).publicKey)), kid, alg: 'ES256' })),
  )
  documents[path] = { keys }
  documents[DISCOVERY] = { issuer, jwks_uri: `${issuer}${path}` }
}
const token = async (kid: string) =>
  new SignJWT({}).setProtectedHeader({ alg: 'ES256', kid }).sign((await keyOf(kid)).privateKey)
const unknown = { code: 'ERR_JWKS_NO_MATCHING_KEY' }

beforeEach(async () => {
  down = false
  silent = false
  for (const path of Object.keys(documents)) delete documents[path]
  await publish('/jwks', 'old')
  const key = createIssuers([issuer], () => now_ms).get(issuer)
  if (!key) throw new Error('no issuer')
  verify = (one) => jwtVerify(one, key)
  await verify(await token('old'))
  reads.length = 0
})

it('a new key is found, and so is the place to which the keys moved', async () => {
  await publish('/jwks', 'new', 'old')
  now_ms += 30_000
  await verify(await token('new'))
  expect(reads).toEqual([DISCOVERY, '/jwks'])
  delete documents['/jwks']
  await publish('/moved', 'newest')
  now_ms += 30_000
  await verify(await token('newest'))
  expect(reads.slice(2)).toEqual([DISCOVERY, '/moved'])
  await expect(verify(await token('old'))).rejects.toMatchObject(unknown)
})

it('a key that the issuer withdrew is refused ten minutes later', async () => {
  await publish('/jwks', 'new')
  now_ms += 599_000
  await verify(await token('old'))
  expect(reads).toEqual([])
  now_ms += 1000
  await expect(verify(await token('old'))).rejects.toMatchObject(unknown)
})

it('tokens of unknown keys cause one read in thirty seconds, however many come', async () => {
  for (let second = 0; second < 90; second++) {
    now_ms += 1000
    const tokens = await Promise.all(['a', 'b', 'c'].map(token))
    const refusals = tokens.map((one) => expect(verify(one)).rejects.toMatchObject(unknown))
    await Promise.all(refusals)
  }
  expect(reads).toEqual(Array(3).fill([DISCOVERY, '/jwks']).flat())
})

it('a key with which anyone can sign counts as none', async () => {
  documents['/jwks'] = { keys: [{ ...ANYONES, kid: 'any', alg: 'RS256' }] }
  now_ms += 600_000
  const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'any' })).toString('base64url')
  const text = `${header}.${Buffer.from('{}').toString('base64url')}`
  await expect(verify(`${text}.${signAsAnyone(text).toString('base64url')}`)).rejects.toMatchObject(unknown)
})

it('an issuer that is down is asked ever less often, and its keys are valid for an hour', async () => {
  down = true
  const asked: number[] = []
  const started = now_ms
  for (let s = 0; s < 3600; s++) {
    const before = reads.length
    await verify(await token('old'))
    if (reads.length > before) asked.push(s)
    now_ms += 1000
  }
  expect(asked).toEqual([600, 605, 615, ...Array.from({ length: 99 }, (_, i) => 635 + 30 * i)])
  expect(now_ms - started).toBe(3_600_000)
  await expect(verify(await token('old'))).rejects.toMatchObject({ status: 503, category: 'unavailable' })
  down = false
  // Soon after it is back, it counts again.
  now_ms += 30_000
  await verify(await token('old'))
})

it('an issuer that falls silent holds up no token of a key that is still valid, but those of keys it may have added', async () => {
  silent = true
  now_ms += 600_000
  const begun = performance.now()
  await verify(await token('old'))
  // A read is given up after 3 s.
  expect(performance.now() - begun).toBeLessThan(2900)
  await expect(verify(await token('new'))).rejects.toMatchObject(unknown)
  expect(performance.now() - begun).toBeGreaterThan(2900)
})

it('a document of another issuer, or of keys that are none, replaces nothing (ASVS 9.1.3)', async () => {
  for (const [path, bad] of [
    [DISCOVERY, { issuer: 'https://evil.test', jwks_uri: `${issuer}/jwks` }],
    [DISCOVERY, { issuer, jwks_uri: 'http://evil.test/jwks' }],
    ['/jwks', { keys: 'none' }],
  ] as const) {
    await publish('/jwks', 'old')
    documents[path] = bad
    now_ms += 600_000
    await verify(await token('old'))
  }
})
