import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { run } from '../../apps/cli/run.ts'
import { type Auth, PASSWORD, startAuth } from '../session/support/auth.ts'

let auth: Auth
let url: string
const home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
const out: string[] = []

const signalbox = async (who: string, words: string[], env: Record<string, string> = {}) => {
  out.length = 0
  const code = await run(words, { XDG_CONFIG_HOME: join(home, who), SIGNALBOX_URL: url, ...env })
  return { code, out: out.join('') }
}

beforeAll(async () => {
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((text) => out.push(String(text)) > 0)
  auth = await startAuth()
  await auth.addRelay()
  url = (await auth.addGateway()).url
  await auth.addUser('ada', ['admin'])
  await auth.addUser('olga')
  const { createApi } = await import('../../apps/cli/session/api.ts')
  const { createCredentials } = await import('../../apps/cli/session/credentials.ts')
  const credentials = createCredentials({ XDG_CONFIG_HOME: join(home, 'ada') })
  await createApi({ url, credentials, token: undefined, idempotency_key: undefined }).login('ada', PASSWORD)
})
afterAll(async () => {
  vi.restoreAllMocks()
  await auth?.stop()
  rmSync(home, { recursive: true, force: true })
})

it('makes a machine, which signs in by its key, rotates it and is locked out', async () => {
  expect(await signalbox('ada', ['machine', 'create', 'ci', '--owner', 'olga'])).toMatchObject({ code: 0 })
  expect(await signalbox('ada', ['user', 'grant', 'machine:ci', 'auditor'])).toMatchObject({ code: 0 })
  const add = ['machine', 'key', 'add', 'ci', '--permissions', 'identity:read', '--days', '30']
  const added = await signalbox('ada', add)
  const key = /sbk_\S+/.exec(added.out)?.[0] ?? ''
  expect([added.code, key]).toEqual([0, expect.stringMatching(/^sbk_/)])

  const asKey = { SIGNALBOX_TOKEN: key }
  const read = ['api', 'GET', '/v1/users/me']
  expect((await signalbox('none', read, asKey)).out).toContain('machine:ci')

  const file = join(home, 'key.txt')
  writeFileSync(file, `${key}\n`)
  const signed = await signalbox('bot', ['login', '--machine', file])
  expect(signed).toMatchObject({ code: 0, out: expect.stringContaining('as machine:ci') })
  expect((await signalbox('bot', read)).out).toContain('machine:ci')
  // The key replaces an expired access token.
  const kept = join(home, 'bot/signalbox/credentials.json')
  writeFileSync(kept, readFileSync(kept, 'utf8').replace(/"expires_at": \d+/, '"expires_at": 0'), { mode: 0o600 })
  expect((await signalbox('bot', read)).out).toContain('machine:ci')

  expect((await signalbox('ada', ['machine', 'list'])).out).toMatch(/machine:ci.*auditor.*olga/)
  const id = JSON.parse((await signalbox('ada', ['machine', 'list', '-o', 'json'])).out)[0].credentials[0].id
  const rotated = await signalbox('ada', ['machine', 'key', 'rotate', 'ci', id.slice(-6), '--overlap', '60'])
  const next = /sbk_\S+/.exec(rotated.out)?.[0] ?? ''
  expect((await signalbox('none', read, { SIGNALBOX_TOKEN: next })).code).toBe(0)
  expect((await signalbox('none', read, asKey)).code).toBe(0)
  expect((await signalbox('ada', ['machine', 'key', 'revoke', 'ci', id.slice(-6), '--yes'])).code).toBe(0)
  expect((await signalbox('none', read, asKey)).code).toBe(9)
  const leaked = ['machine', 'disable', 'ci', '--reason', 'leaked', '--yes']
  expect((await signalbox('ada', leaked)).code).toBe(0)
  expect((await signalbox('none', read, { SIGNALBOX_TOKEN: next })).code).toBe(9)
  expect((await signalbox('bot', ['logout'])).code).toBe(0)
})
