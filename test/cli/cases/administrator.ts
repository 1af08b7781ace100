import { describe, expect, it } from 'vitest'
import { json, login, signalbox } from '../client.ts'

describe('an administrator', () => {
  it('creates an account with its link, disables and enables it, and reads who did what from each log', async () => {
    await Promise.all([login('ada'), login('olga')])
    const made = await signalbox('ada', ['user', 'create', 'nadia', '--role', 'viewer'])
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/Link, works once: https?:.*\/enrol#/) })
    const act = (verb: string, ...more: string[]) => signalbox('ada', ['user', verb, 'nadia', ...more])
    expect(await act('disable', '--reason', 'left')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    // A command that cannot do a dry run does nothing.
    expect(await act('disable', '--reason', 'left', '--yes', '--dry-run')).toMatchObject({
      code: 2,
      err: expect.stringContaining('no --dry-run'),
    })
    expect((await signalbox('ada', ['user', 'list', '--q', 'nadia'])).out).toMatch(/nadia +ACTIVE/)
    for (const verb of ['disable', 'enable'])
      expect(await act(verb, '--reason', 'a test', '--yes')).toMatchObject({ code: 0, err: `nadia is ${verb}d.\n` })
    expect(await act('unlock')).toMatchObject({ code: 0 })
    const nobody = await signalbox('ada', ['user', 'unlock', 'nobody-at-all'])
    expect(nobody).toMatchObject({ code: 1, err: expect.stringContaining('No account is called') })
    expect((await signalbox('ada', ['user', 'list', '--q', 'nadia'])).out).toMatch(/nadia +ACTIVE +viewer/)

    const logs = ['operations', 'catalog', 'users', 'sign-ins'].map((source) =>
      signalbox('ada', ['audit', 'list', '--source', source, '-o', 'json']),
    )
    for (const log of await Promise.all(logs)) expect(log).toMatchObject({ code: 0 })
    const { out } = await signalbox('ada', ['audit', 'export', '--source', 'users'])
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).action),
    ).toContain('user.disabled')
    expect(await signalbox('ada', ['audit', 'list', '--source', 'all'])).toMatchObject({ code: 2 })
    expect(await signalbox('olga', ['audit', 'list'])).toMatchObject({ code: 7 })
  })

  it('finds in each log what a person did, by name, and in those of people what was done to one', async () => {
    const rows = async (source: string, ...more: string[]) =>
      json<{ actor: string; action: string; object: string }[]>(
        await signalbox('ada', ['audit', 'list', '--source', source, ...more, '--all', '-o', 'json']),
      )
    const [{ id } = { id: '' }] = json<{ id: string }[]>(
      await signalbox('ada', ['user', 'list', '--q', 'nadia', '-o', 'json']),
    )
    const own = await rows('users', '--actor', 'user:ada')
    expect(own).toContainEqual(expect.objectContaining({ action: 'user.created', object: `user:${id}` }))
    expect(await rows('sign-ins', '--actor', 'user:ada', '--action', 'login')).not.toEqual([])
    expect(await rows('operations', '--actor', 'user:olga')).not.toEqual([])
    const [{ actor } = { actor: '' }] = own
    for (const one of ['ada', actor.slice('user:'.length)]) expect(await rows('users', '--actor', one)).toEqual(own)
    const about = await rows('users', '--object', 'user:nadia')
    expect(about.map(({ action }) => action)).toEqual(expect.arrayContaining(['user.created', 'user.disabled']))
    expect(await rows('users', '--object', 'user:nadia', '--actor', 'user:olga')).toEqual([])
    for (const one of ['user:nobody-at-all', 'nobody-at-all'])
      expect(await signalbox('ada', ['audit', 'list', '--actor', one])).toMatchObject({ code: 1 })
  })

  it('lists the accounts of one status', async () => {
    for (const status of ['active', 'ACTIVE']) {
      const found = await signalbox('ada', ['user', 'list', '--status', status])
      expect(found).toMatchObject({ code: 0, out: expect.stringMatching(/ada +ACTIVE/) })
    }
    expect(await signalbox('ada', ['user', 'list', '--status', 'odd'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('active, disabled, deleted'),
    })
  })
})
