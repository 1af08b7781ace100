import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JWTPayload } from 'jose'
import { stringify } from 'yaml'
import { type DemoPerson, startProvider } from '../../../apps/platform/demo/provider.ts'
import { bearer, startAuth } from './auth.ts'

export const PEOPLE: DemoPerson[] = [
  { sub: 's-mia', name: 'mia', email: 'mia@example.com', email_verified: true, groups: ['staff', 'noc'] },
  { sub: 's-tom', name: 'tom', email: 'tom@example.com', email_verified: false, groups: ['staff'] },
  { sub: 's-eva', name: 'eva', email: 'eva@example.com', email_verified: true, groups: ['staff'] },
  { sub: 's-out', name: 'otto', groups: [] },
  { sub: 's-new', name: 'nova', groups: ['staff'] },
]

/** The five auth apps and a provider `corp`, whose people, claims and entry in the file a test may change. */
export const startSso = async (more: Record<string, unknown> = {}, env: Record<string, string> = {}) => {
  const state = {
    amend: (claims: JWTPayload): JWTPayload => claims,
    /** Signs ID tokens in place of the provider. */
    seal: undefined as ((claims: JWTPayload) => Promise<string>) | undefined,
  }
  const people = PEOPLE.map((person) => ({ ...person }))
  const provider = await startProvider({
    port: 0,
    people,
    amend: (claims) => state.amend(claims),
    seal: (claims) => (state.seal ?? provider.sign)(claims),
  })
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-sso-'))
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), provider.client_secret)
  const file = join(dir, 'providers.yaml')
  const entry = {
    id: 'corp',
    title: 'Example Corp',
    issuer: provider.issuer,
    client_id: provider.client_id,
    client_secret: 'secret://file/corp',
    max_role: 'approver',
    groups: { claim: 'groups', map: { noc: { groups: ['netops'], roles: ['approver'] } } },
    jit: { enabled: true, require_group: ['staff'] },
    ...more,
  }
  const write = (changes: Record<string, unknown> = {}) =>
    writeFileSync(file, stringify({ format: 'signalbox/providers@1', providers: [{ ...entry, ...changes }] }))
  write()
  const auth = await startAuth({ ...env, AUTH__PROVIDERS__FILE: file })
  const gateway = await auth.addGateway()
  /** Overrides the provider's settings, in every app at once. */
  const configure = (changes: Record<string, unknown> = {}) => {
    write(changes)
    for (const { providers } of [auth.session.deps, auth.identity_deps]) providers.reread()
  }
  return {
    ...auth,
    gateway,
    provider,
    people,
    state,
    file,
    configure,
    /** A separate browser, with its own cookies. */
    browser: () => createBrowser(gateway.url, auth.vars.GATEWAY__HTTP__PUBLIC_ORIGIN ?? ''),
    stop: async () => {
      await auth.stop()
      await provider.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
export type Sso = Awaited<ReturnType<typeof startSso>>

/** The browser behavior needed here: keeps cookies by name, follows no redirect by itself. */
export const createBrowser = (gateway_url: string, origin: string) => {
  const cookies = new Map<string, string>()
  const go = async (url: string, init: RequestInit = {}) => {
    const at = url.startsWith('/') ? `${gateway_url}${url}` : url.replace(origin, gateway_url)
    const headers = new Headers(init.headers)
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    if (cookie && at.startsWith(gateway_url)) headers.set('cookie', cookie)
    const reply = await fetch(at, { ...init, headers, redirect: 'manual' })
    for (const line of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const text = await reply.text()
    const body = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
    return {
      status: reply.status,
      location: reply.headers.get('location') ?? '',
      body,
      cookies: reply.headers.getSetCookie(),
    }
  }
  /** Begins at the gateway and answers as this person at the provider; returns the address that leads back. */
  const choose = async (sub: string, query = '') => {
    const started = await go(`/v1/sso/corp/start${query}`)
    return started.status === 303 ? (await go(`${started.location}&person=${sub}`)).location : started.location
  }
  return { cookies, go, choose, signIn: async (sub: string, query = '') => go(await choose(sub, query)) }
}

/** The headers of a signed-in page: its access token, renewed with the cookie, and the CSRF token. */
export const bearerOf = async (browser: ReturnType<typeof createBrowser>) => {
  const csrf = await browser.go('/v1/token/csrf', { headers: { 'sec-fetch-site': 'same-origin' } })
  const reply = await browser.go('/v1/token?response_mode=cookie', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-csrf-token': String(csrf.body.csrf_token) },
    body: JSON.stringify({ grant_type: 'refresh_token' }),
  })
  return { ...bearer(String(reply.body.access_token)), 'x-csrf-token': String(reply.body.csrf_token) }
}
