import { describe, expect, it } from 'vitest'
import { login, signalbox } from '../client.ts'

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
})
