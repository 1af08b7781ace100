import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { createPorts } from '../base/ports.ts'
import type { Screen } from '../base/screen.ts'

export type DemoPerson = { sub: string; name: string; email?: string; email_verified?: boolean; groups: string[] }
export type DemoProvider = {
  issuer: string
  client_id: string
  client_secret: string
  /** A token signed by this provider's key. */
  sign: (claims: JWTPayload, header?: { typ?: string }) => Promise<string>
  stop: () => Promise<void>
}
type Options = {
  port: number
  people: readonly DemoPerson[]
  /** Changes the claims of an ID token; for tests. */
  amend?: (claims: JWTPayload) => JWTPayload
  /** Replaces how ID tokens are signed; for tests. */
  seal?: ((claims: JWTPayload) => Promise<string>) | undefined
}
type Grant = { person: DemoPerson; nonce: string; challenge: string; redirect_uri: string; auth_time: number }

const CLIENT = 'signalbox'
const LIFE_S = 300
const now = () => Math.floor(Date.now() / 1000)
const escaped = (text: string) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)

/**
 * A small OpenID Connect provider on the loopback, without passwords: a page asks who you are. It is for `npm start --
 * --sso` and the tests, and keeps its keys and codes in memory.
 */
export const startProvider = async ({
  port,
  people,
  amend = (claims) => claims,
  seal,
}: Options): Promise<DemoProvider> => {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'demo', alg: 'RS256', use: 'sig' }
  const client_secret = randomBytes(24).toString('base64url')
  const codes = new Map<string, Grant>()
  const sign = (claims: JWTPayload, header = {}) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'demo', ...header }).sign(privateKey)

  const answers: Record<string, (url: URL, body: URLSearchParams) => Answer | Promise<Answer>> = {
    'GET /.well-known/openid-configuration': () => ({ json: discoveryOf(issuer) }),
    'GET /jwks': () => ({ json: { keys: [jwk] } }),
    'GET /authorize': ({ searchParams: asked, pathname, search }) => {
      const person = people.find(({ sub }) => sub === asked.get('person'))
      if (asked.get('client_id') !== CLIENT || asked.get('code_challenge_method') !== 'S256') return { status: 400 }
      if (!person) return { html: pageOf(people, `${pathname}${search}`) }
      const code = randomUUID()
      const redirect_uri = asked.get('redirect_uri') ?? ''
      codes.set(code, {
        person,
        redirect_uri,
        nonce: asked.get('nonce') ?? '',
        challenge: asked.get('code_challenge') ?? '',
        auth_time: now(),
      })
      const back = new URL(redirect_uri)
      back.search = String(
        new URLSearchParams({ code, state: asked.get('state') ?? '', iss: issuer, session_state: 'x' }),
      )
      return { location: back.href }
    },
    'POST /token': async (_url, body) => {
      if (body.get('client_id') !== CLIENT || body.get('client_secret') !== client_secret)
        return { status: 401, json: { error: 'invalid_client' } }
      const code = body.get('code') ?? ''
      const grant = codes.get(code)
      codes.delete(code)
      const challenge = createHash('sha256')
        .update(body.get('code_verifier') ?? '')
        .digest('base64url')
      if (grant?.challenge !== challenge || grant.redirect_uri !== body.get('redirect_uri'))
        return { status: 400, json: { error: 'invalid_grant' } }
      const id_token = await (seal ?? sign)(amend(claimsOf(issuer, grant)))
      return { json: { access_token: randomUUID(), token_type: 'Bearer', expires_in: LIFE_S, id_token } }
    },
  }
  const server = createServer(async (req, res) => {
    const url = new URL(req.url ?? '/', issuer)
    const answer = answers[`${req.method} ${url.pathname}`]
    const body = new URLSearchParams(Buffer.concat(await req.toArray()).toString())
    send(res, answer ? await answer(url, body) : { status: 404 })
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { issuer, client_id: CLIENT, client_secret, sign, stop }
}

type Answer = { status?: number; json?: object; html?: string; location?: string }

const send = (res: ServerResponse, { status = 200, json, html, location }: Answer): void => {
  const type = html === undefined ? 'application/json' : 'text/html; charset=utf-8'
  if (location === undefined) res.writeHead(status, { 'content-type': type })
  else res.writeHead(303, { location })
  res.end(html ?? JSON.stringify(json ?? {}))
}

const discoveryOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  token_endpoint_auth_methods_supported: ['client_secret_post'],
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  authorization_response_iss_parameter_supported: true,
  backchannel_logout_supported: true,
})

const claimsOf = (issuer: string, { person, nonce, auth_time }: Grant): JWTPayload => ({
  iss: issuer,
  aud: CLIENT,
  sub: person.sub,
  iat: now(),
  exp: now() + LIFE_S,
  auth_time,
  nonce,
  sid: `sid-${person.sub}`,
  preferred_username: person.name,
  groups: person.groups,
  ...(person.email && { email: person.email, email_verified: person.email_verified ?? false }),
})

const pageOf = (people: readonly DemoPerson[], href: string): string => {
  const links = people.map(
    ({ sub, name, groups }) =>
      `<li><a href="${escaped(`${href}&person=${encodeURIComponent(sub)}`)}">${escaped(name)}</a> ${escaped(groups.join(', '))}</li>`,
  )
  return `<!doctype html><title>Demo provider</title><h1>Who are you?</h1><ul>${links.join('')}</ul>`
}

const DEMO_PEOPLE: DemoPerson[] = [
  { sub: 'demo-mia', name: 'mia', email: 'mia@example.com', email_verified: true, groups: ['staff', 'noc'] },
  { sub: 'demo-tom', name: 'tom', email: 'tom@example.com', email_verified: true, groups: ['staff'] },
  { sub: 'demo-otto', name: 'otto', groups: [] },
]
const DEMO_PORT = 7190

/**
 * A provider for `npm start -- --sso`, and the file that tells the apps of it. mia approves, tom reads, otto has no
 * access.
 */
export const startDemoProvider = async (signalbox_dir: string, screen: Screen): Promise<DemoProvider> => {
  const ports = createPorts((name, port, got) => screen.line(name, `port ${port} is taken, using ${got}`, 'yellow'))
  const port = await ports.take('sso', DEMO_PORT)
  const provider = await startProvider({ port, people: DEMO_PEOPLE })
  const dir = join(signalbox_dir, 'sso')
  mkdirSync(join(dir, 'secrets'), { recursive: true })
  writeFileSync(join(dir, 'secrets/demo-provider'), provider.client_secret, { mode: 0o600 })
  const entry = {
    id: 'demo',
    title: 'Demo provider',
    issuer: provider.issuer,
    client_id: provider.client_id,
    client_secret: 'secret://file/demo-provider',
    max_role: 'approver',
    groups: { map: { noc: { groups: ['netops'], roles: ['engineer', 'approver'] }, staff: { roles: ['viewer'] } } },
    jit: { enabled: true, require_group: ['staff'] },
  }
  const file = join(dir, 'providers.yaml')
  // JSON is YAML.
  writeFileSync(file, `${JSON.stringify({ format: 'signalbox/providers@1', providers: [entry] }, null, 2)}\n`)
  process.env.AUTH__PROVIDERS__FILE = file
  return provider
}
