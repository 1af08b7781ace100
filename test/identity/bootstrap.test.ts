import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { verbs } from '../../apps/identity/admin.ts'
import { bootstrapAdmin, enrolHere } from '../../apps/identity/users/bootstrap.ts'
import { user_events, users } from '../../db/identity/tables.ts'
import { startIdentity, type TestIdentity } from './support/harness.ts'

let p: TestIdentity
beforeAll(async () => {
  p = await startIdentity()
  // The migrations make no account (ASVS 6.3.2).
  expect(await p.deps.db.select().from(users)).toEqual([])
})
afterAll(() => p.stop())
beforeEach(async () => {
  await p.deps.db.execute(
    'truncate identity.users, identity.grants, identity.groups, identity.group_members, identity.user_events, identity.changes, identity.dual_control cascade',
  )
})

/** Runs the verb as `npm run admin` does, in this process. */
const run = async (...args: string[]) => {
  for (const [name, value] of Object.entries(p.env)) vi.stubEnv(name, value)
  const out = { stdout: '', stderr: '' }
  const log = vi.spyOn(console, 'log').mockImplementation((line) => {
    out.stdout += `${line}\n`
  })
  const error = vi.spyOn(console, 'error').mockImplementation((line) => {
    out.stderr += `${line}\n`
  })
  try {
    const code = await verbs['bootstrap-admin']?.(args)
    return { code, ...out }
  } finally {
    log.mockRestore()
    error.mockRestore()
    vi.unstubAllEnvs()
  }
}

describe('bootstrap-admin', () => {
  it('prints only the link of the first administrator, who signs in with it (ASVS 6.3.2)', async () => {
    const { code, stdout } = await run('--username', 'ada', '--roles', 'operator,approver')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^http:\/\/localhost:8080\/enrol#e1\.[0-9a-f-]{36}\.[0-9a-f-]{36}\.[A-Za-z0-9_-]{43}\n$/)
    const token = stdout.trim().split('#')[1] ?? ''
    expect((await p.enrol(token)).status).toBe(204)
    expect((await p.as(token.split('.')[1]).get('/v1/users/me')).body.roles).toEqual(['admin', 'approver', 'operator'])
    expect(await p.deps.db.select().from(user_events)).toMatchObject([
      { action: 'user.bootstrapped', actor: 'system' },
      { action: 'user.enrolled', actor: `user:${token.split('.')[1]}` },
    ])
  })
  it('is refused once an administrator has a password', async () => {
    await p.firstAdmin('ada')
    for (const name of ['ada', 'eve']) {
      const { code, stderr, stdout } = await run('--username', name)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain('there is an administrator already')
    }
  })
  it('gives the only administrator a new link until a password is set, and ends the older link', async () => {
    const first = await bootstrapAdmin(p.bootstrap, 'ada', ['admin'])
    const again = await bootstrapAdmin(p.bootstrap, 'ADA', ['admin'])
    expect(again.token.split('.')[1]).toBe(first.token.split('.')[1])
    expect((await p.enrol(first.token)).status).toBe(422)
    expect((await p.enrol(again.token)).status).toBe(204)
  })
  it('creates one administrator from several parallel calls', async () => {
    const outcomes = await Promise.allSettled(
      ['a1', 'a2', 'a3', 'a4'].map((name) => bootstrapAdmin(p.bootstrap, name, ['admin'])),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(1)
  })
  it('makes several links of one account at once, of which only the newest works', async () => {
    await p.firstAdmin('ada')
    const made = await Promise.allSettled(Array.from({ length: 6 }, () => enrolHere(p.bootstrap, 'ada', undefined)))
    const links = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value.token] : []))
    const used = []
    for (const link of links) used.push((await p.enrol(link, 'Vellum.Otter.Hinge.83')).status)
    expect(used.filter((status) => status === 204)).toEqual([204])
    const [ada] = await p.deps.db.select().from(users)
    expect(ada?.link_shown).toBe(false)
  })
  it('leaves it to enrol to let an administrator in again', async () => {
    await p.firstAdmin('ada')
    expect((await run('--username', 'ada')).stderr).toContain('enrol --username')
    const { token } = await enrolHere(p.bootstrap, 'Ada', undefined)
    expect((await p.enrol(token, 'Vellum.Otter.Hinge.83')).status).toBe(204)
  })
  it.each([
    [[]],
    [['--username']],
    [['--username', 'a b']],
    [['--username', 'x', '--roles', 'root']],
    [['--frobnicate']],
  ])('explains itself if called as %j', async (args) => {
    const { code, stderr } = await run(...args)
    expect([code, stderr.startsWith('usage:')]).toEqual([2, true])
  })
})
