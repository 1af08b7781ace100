import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import type { ProviderView } from '../../apps/shared/contracts/identity/providers.ts'
import { bearer, PASSWORD, send } from '../session/support/auth.ts'
import { type Sso, startSso } from '../session/support/sso.ts'

let sso: Sso
let ada: Record<string, string>
const tokenOf = async (username: string) =>
  bearer((await send(`${sso.gateway.url}/v1/token`, { body: { username, password: PASSWORD } })).body.access_token)
beforeAll(async () => {
  sso = await startSso({ scim: { machine: 'machine:dir', match: 'sub' }, require_amr: ['mfa'] })
  await sso.addUser('ada', ['admin'])
  await sso.addUser('olga', ['operator'])
  ada = await tokenOf('ada')
})
afterAll(() => sso?.stop())

const list = async (headers = ada) => {
  const reply = await send(`${sso.gateway.url}/api/v1/admin/providers`, { method: 'GET', headers })
  return { status: reply.status, ...(reply.body as unknown as { items: ProviderView[]; fault: string | null }) }
}

it('administrators read whom a provider lets in, what its groups grant and how many use it, without its secret', async () => {
  sso.configure({ require_amr: [] })
  expect((await sso.browser().signIn('s-mia')).location).toBe('/inbox')
  sso.configure()
  const { status, items, fault } = await list()
  expect({ status, fault }).toEqual({ status: 200, fault: null })
  expect(items).toEqual([
    {
      ...{ id: 'corp', title: 'Example Corp', enabled: true, issuer: sso.provider.issuer, people: 1 },
      creates_accounts: true,
      requires: [
        { kind: 'group', value: 'staff' },
        { kind: 'method', value: 'mfa' },
      ],
      ...{ max_role: 'approver', session_max_s: 43_200, groups_claim: 'groups' },
      map: [{ name: 'noc', groups: ['netops'], roles: ['approver'] }],
      scim: { machine: 'machine:dir', match: 'sub', people: 0, groups: 0, changed_at: null },
    },
  ])
  expect(JSON.stringify(items)).not.toContain('secret')
  expect((await list(await tokenOf('olga'))).status).toBe(403)
})

it('a provider that is switched off stays listed, and a file that cannot be used is reported while the last one applies', async () => {
  sso.configure({ enabled: false })
  expect((await list()).items).toMatchObject([{ id: 'corp', enabled: false }])
  writeFileSync(sso.file, 'format: signalbox/providers@1\nproviders: [{ id: corp }]\n')
  sso.identity_deps.providers.reread()
  const { items, fault } = await list()
  expect(items).toMatchObject([{ id: 'corp', enabled: false }])
  expect(fault).toContain('providers.0')
  expect(fault).not.toContain(sso.file)
  const told: string[] = []
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => told.push(String(text)) > 0)
  const env = { SIGNALBOX_URL: sso.gateway.url, SIGNALBOX_TOKEN: (ada.authorization ?? '').replace('Bearer ', '') }
  expect(await run(['provider', 'list'], env)).toBe(0)
  vi.restoreAllMocks()
  expect(told.join('')).toMatch(/corp +Example Corp +off +1 +get an account +noc +machine:dir/)
  expect(told.join('')).toContain(fault)
  sso.configure()
  expect((await list()).fault).toBeNull()
})
