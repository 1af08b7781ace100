import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type Dispatcher, type Pool } from 'undici'
import { stringify } from 'yaml'
import { type DemoProvider, startProvider } from '../../../apps/platform/demo/provider.ts'
import { type Authenticator, createAuthenticator } from '../../support/authenticator.ts'
import { besideRefresh } from './beside.ts'
import { type Bench, json, type Row, type Tokens } from './clients.ts'

const PEOPLE = 64

/** A provider in the load generator's process: no figure includes its work. */
export const startCorp = async () => {
  const people = Array.from({ length: PEOPLE }, (_, at) => ({ sub: `s-${at}`, name: `sso-${at}`, groups: ['staff'] }))
  const provider = await startProvider({ port: 0, people })
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-bench-sso-'))
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), provider.client_secret)
  const file = join(dir, 'providers.yaml')
  const { issuer, client_id } = provider
  const named = { id: 'corp', title: 'Corp', issuer, client_id, client_secret: 'secret://file/corp' }
  const rights = {
    groups: { claim: 'groups', map: {} },
    jit: { enabled: true, require_group: ['staff'] },
    scim: { machine: 'machine:dir', match: 'sub' },
  }
  writeFileSync(file, stringify({ format: 'signalbox/providers@1', providers: [{ ...named, ...rights }] }))
  const stop = async () => {
    await provider.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { file, provider, stop }
}

type Answer = { status: number; location: string; cookie: string; text: string }
const go = async (at: Dispatcher, path: string, headers = {}, body?: object): Promise<Answer> => {
  const sent = body === undefined ? { method: 'GET' as const } : { method: 'POST' as const, body: JSON.stringify(body) }
  const reply = await at.request({ path, headers: { ...(body && json), ...headers }, ...sent })
  const text = await reply.body.text()
  const { location = '', 'set-cookie': set = '' } = reply.headers
  return { status: reply.statusCode, location: String(location), cookie: [set].flat()[0]?.split(';')[0] ?? '', text }
}

/** One sign-in as a browser makes it: the answer to its return from the provider, if it got that far. */
const arrive = async (gateway: Pool, corp: Dispatcher, person: number): Promise<Answer | undefined> => {
  const started = await go(gateway, '/v1/sso/corp/start')
  if (started.status !== 303) return undefined
  const asked = new URL(started.location)
  const back = new URL((await go(corp, `${asked.pathname}${asked.search}&person=s-${person}`)).location)
  return go(gateway, `${back.pathname}${back.search}`, { cookie: started.cookie })
}

/** Sign-ins of all people in turn, so that no two of one person overlap; returns who has signed in. */
const signInAt = (gateway: Pool, corp: Dispatcher) => {
  let turn = 0
  return async (): Promise<number | undefined> => {
    turn += 1
    const person = turn % PEOPLE
    const done = await arrive(gateway, corp, person)
    return done?.status === 303 && done.location === '/inbox' ? person : undefined
  }
}

/** The calls of federation one by one, each as often as the loop reaches it. */
const callsOf = async ({ gateway }: Bench, access_token: string) => {
  const asked = { client_id: 'signalbox-cli', host: 'bench' }
  const { device_code } = JSON.parse((await go(gateway, '/v1/device', {}, asked)).text) as { device_code: string }
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  const authorization = `Bearer ${access_token}`
  return {
    'start of a sign-in': async () => (await go(gateway, '/v1/sso/corp/start')).status === 303,
    'list of providers': async () => (await go(gateway, '/v1/providers')).status === 200,
    'codes of a device': async () => (await go(gateway, '/v1/device', {}, asked)).status === 200,
    'poll of a device': async () => (await go(gateway, '/v1/token', {}, { grant_type, device_code })).status === 400,
    'list of sessions': async () => (await go(gateway, '/api/v1/sessions', { authorization })).status === 200,
  } satisfies Record<string, () => Promise<boolean>>
}

/** The headers of a page that has just signed in. */
const signedIn = async (gateway: Pool, { cookie = '' }: Partial<Answer> = {}) => {
  const page = { cookie, 'sec-fetch-site': 'same-origin' }
  const { csrf_token } = JSON.parse((await go(gateway, '/v1/token/csrf', page)).text)
  const headers = { ...page, 'x-csrf-token': csrf_token }
  const reply = await go(gateway, '/v1/token?response_mode=cookie', headers, { grant_type: 'refresh_token' })
  const { access_token, csrf_token: next } = JSON.parse(reply.text)
  return { authorization: `Bearer ${access_token}`, 'x-csrf-token': String(next), 'idempotency-key': randomUUID() }
}

/** A passkey for each person, synced to all their devices and so without a counter, and sign-ins with them in turn. */
const passkeysAt = async ({ gateway, stack }: Bench, corp: Dispatcher) => {
  const origin = stack.gateway_url
  const site = { origin, rp_id: new URL(origin).hostname }
  const question = async () =>
    String(JSON.parse((await go(gateway, '/v1/token/passkey-options', {}, {})).text).challenge)
  const keys: Authenticator[] = []
  for (let person = 0; person < PEOPLE; person++) {
    const key = createAuthenticator(site, { counts: false })
    const headers = await signedIn(gateway, await arrive(gateway, corp, person))
    const { id } = JSON.parse((await go(gateway, '/api/v1/users/me', headers)).text) as { id: string }
    const attested = { name: 'bench', attestation: key.attest(await question(), id) }
    const { status, text } = await go(gateway, '/api/v1/users/me/passkeys', headers, attested)
    if (status !== 201) throw new Error(`a passkey was refused: ${text}`)
    keys.push(key)
  }
  let turn = 0
  const signIn = async () => {
    const assertion = keys[turn++ % PEOPLE]?.assert(await question())
    return (await go(gateway, '/v1/token', {}, { grant_type: 'passkey', assertion })).status === 200
  }
  return { question: async () => (await question()).length > 0, signIn }
}

/** Reports that this person has signed out at the provider. */
const logoutAt =
  ({ gateway }: Bench, { issuer, client_id, sign }: DemoProvider) =>
  async (person: number) => {
    const iat = Math.floor(Date.now() / 1000)
    const claims = { iss: issuer, aud: client_id, sid: `sid-s-${person}`, jti: randomUUID(), iat, exp: iat + 60 }
    const logout_token = await sign({ ...claims, events: EVENTS }, { typ: 'logout+jwt' })
    return (await go(gateway, '/v1/sso/corp/backchannel-logout', {}, { logout_token })).status === 200
  }
const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

/**
 * Sign-ins through a provider and by passkeys, and the other calls of federation, alongside refreshes in the same run.
 */
export const benchSso =
  (provider: DemoProvider) =>
  async (bench: Bench, sessions: Tokens[], { access_token }: Tokens): Promise<Row[]> => {
    const corp = new Client(provider.issuer, { pipelining: 8 })
    try {
      const signIn = signInAt(bench.gateway, corp)
      const logout = logoutAt(bench, provider)
      const passkey = await passkeysAt(bench, corp)
      const calls = {
        'sign-in through a provider': async () => (await signIn()) !== undefined,
        'the same and its logout there': async () => {
          const person = await signIn()
          return person !== undefined && (await logout(person))
        },
        ...(await callsOf(bench, access_token)),
        'question to a passkey': passkey.question,
        'sign-in by a passkey': passkey.signIn,
      }
      return await besideRefresh('federation', bench, sessions, calls, {
        '  its return from the provider': ['sign-in through a provider', 'start of a sign-in'],
        '  its logout there': ['the same and its logout there', 'sign-in through a provider'],
        '  the answer of a passkey': ['sign-in by a passkey', 'question to a passkey'],
      })
    } finally {
      await corp.close()
    }
  }
