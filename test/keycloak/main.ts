import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { groups } from '../../db/identity/tables.ts'
import { ORIGIN, startAuth } from '../session/support/auth.ts'
import { bearerOf, createBrowser } from '../session/support/sso.ts'
import { until } from '../support/until.ts'

/**
 * Sign-in, groups, confirmation and back-channel logout with a real Keycloak in KEYCLOAK_HOME, set up as in
 * apps/identity/connect-keycloak.md. `npm run test:keycloak` starts it.
 */
const SECRET = 'keycloak-client-secret'
const PASSWORD = 'mia-at-keycloak'
/** Its first start rebuilds it. */
const START_MS = 480_000

const realmOf = (gateway_url: string) => ({
  realm: 'corp',
  enabled: true,
  sslRequired: 'none',
  groups: [{ name: 'staff' }, { name: 'noc' }],
  users: [
    {
      username: 'mia',
      enabled: true,
      email: 'mia@example.com',
      emailVerified: true,
      firstName: 'Mia',
      lastName: 'Moreau',
      credentials: [{ type: 'password', value: PASSWORD, temporary: false }],
      groups: ['/staff', '/noc'],
    },
  ],
  clients: [
    {
      clientId: 'signalbox',
      secret: SECRET,
      protocol: 'openid-connect',
      publicClient: false,
      standardFlowEnabled: true,
      redirectUris: [`${ORIGIN}/v1/sso/corp/callback`],
      attributes: {
        'pkce.code.challenge.method': 'S256',
        'backchannel.logout.url': `${gateway_url}/v1/sso/corp/backchannel-logout`,
        'backchannel.logout.session.required': 'true',
      },
      protocolMappers: [
        {
          name: 'groups',
          protocol: 'openid-connect',
          protocolMapper: 'oidc-group-membership-mapper',
          config: { 'claim.name': 'groups', 'full.path': 'false', 'id.token.claim': 'true' },
        },
      ],
    },
  ],
})

const dir = mkdtempSync(join(tmpdir(), 'signalbox-keycloak-'))
const port = await createPorts().take('keycloak', 0)
const base = `http://localhost:${port}`
const issuer = `${base}/realms/corp`
mkdirSync(join(dir, 'secrets'))
writeFileSync(join(dir, 'secrets/corp'), SECRET)
const file = join(dir, 'providers.yaml')
const provider = {
  id: 'corp',
  title: 'Example Corp',
  issuer,
  client_id: 'signalbox',
  client_secret: 'secret://file/corp',
  allowed_domains: ['example.com'],
  groups: { map: { noc: { groups: ['netops'], roles: ['approver'] } } },
  max_role: 'approver',
  jit: { enabled: true, require_group: ['staff'] },
}
writeFileSync(file, JSON.stringify({ format: 'signalbox/providers@1', providers: [provider] }))
const auth = await startAuth({ AUTH__PROVIDERS__FILE: file })
const gateway = await auth.addGateway()
await auth.identity_deps.db.insert(groups).values({ group_key: 'netops', name: 'Network operations' })

const home = process.env.KEYCLOAK_HOME ?? ''
rmSync(join(home, 'data'), { recursive: true, force: true })
mkdirSync(join(home, 'data/import'), { recursive: true })
writeFileSync(join(home, 'data/import/corp-realm.json'), JSON.stringify(realmOf(gateway.url)))
const args = ['start-dev', '--import-realm', `--http-port=${port}`, '--http-host=127.0.0.1', `--hostname=${base}`]
const keycloak = spawn(join(home, 'bin/kc.sh'), args, {
  stdio: ['ignore', 'pipe', 'inherit'],
  detached: true,
  env: { ...process.env, KC_BOOTSTRAP_ADMIN_USERNAME: 'root', KC_BOOTSTRAP_ADMIN_PASSWORD: PASSWORD },
})
let said = ''
keycloak.stdout.on('data', (chunk: Buffer) => {
  said = (said + chunk.toString()).slice(-8000)
})

/**
 * Types name and password into Keycloak's page, as a browser with its own cookies; returns the address leading back.
 */
const typeAt = async (location: string): Promise<string> => {
  const page = await fetch(location, { redirect: 'manual' })
  const cookie = page.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const action = /action="([^"]+)"/.exec(await page.text())?.[1]?.replaceAll('&amp;', '&')
  assert.ok(action, `Keycloak shows no form: ${page.status} ${page.headers.get('location')}`)
  const body = new URLSearchParams({ username: 'mia', password: PASSWORD })
  const done = await fetch(action, { method: 'POST', headers: { cookie }, body, redirect: 'manual' })
  assert.equal(done.status, 302)
  return done.headers.get('location') ?? ''
}

/** Ends all sessions of mia at Keycloak, as its administrator does. */
const logoutAtKeycloak = async (): Promise<void> => {
  const login = { grant_type: 'password', client_id: 'admin-cli', username: 'root', password: PASSWORD }
  const body = new URLSearchParams(login)
  const token = await fetch(`${base}/realms/master/protocol/openid-connect/token`, { method: 'POST', body })
  const { access_token } = (await token.json()) as { access_token: string }
  const headers = { authorization: `Bearer ${access_token}` }
  const found = await fetch(`${base}/admin/realms/corp/users?username=mia`, { headers })
  const [mia] = (await found.json()) as { id: string }[]
  const ended = await fetch(`${base}/admin/realms/corp/users/${mia?.id}/logout`, { method: 'POST', headers })
  assert.equal(ended.status, 204)
}

try {
  const discovery = () =>
    fetch(`${issuer}/.well-known/openid-configuration`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(discovery, { timeout_ms: START_MS, every_ms: 500, what: 'the start of Keycloak' })
  const browser = createBrowser(gateway.url, ORIGIN)
  const started = await browser.go('/v1/sso/corp/start?return_to=/operations')
  assert.equal(started.status, 303)
  const signed_in = await browser.go(await typeAt(started.location))
  assert.deepEqual([signed_in.status, signed_in.location], [303, '/operations'], JSON.stringify(signed_in.body))
  const headers = await bearerOf(browser)
  const me = await browser.go('/api/v1/users/me', { headers })
  assert.deepEqual([me.body.username, me.body.roles, me.body.groups], ['mia', ['approver'], ['netops']])
  console.log('signed in; groups and roles are mapped')

  const body = JSON.stringify({ purpose: 'reauth' })
  const json = { ...headers, 'content-type': 'application/json' }
  const asked = await browser.go('/v1/sso/corp/start', { method: 'POST', headers: json, body })
  const confirmed = await browser.go(await typeAt(String(asked.body.location)))
  assert.equal(confirmed.location, '/inbox', JSON.stringify(confirmed.body))
  console.log('confirmed with prompt=login and a fresh auth_time')

  await logoutAtKeycloak()
  await until(async () => (await browser.go('/api/v1/users/me', { headers })).status === 401)
  console.log('a logout at Keycloak ended the session')
} catch (error) {
  console.error(said)
  throw error
} finally {
  if (keycloak.pid !== undefined) process.kill(-keycloak.pid, 'SIGKILL')
  await auth.stop()
  rmSync(dir, { recursive: true, force: true })
}
