import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { atTerminal, credentials, decideDevice, login, passwords, signalbox, stack } from '../client.ts'

describe('signing in', () => {
  it('keeps a session file that only its owner can read, and ends the session', async () => {
    expect(await login('ada')).toMatchObject({ code: 0 })
    expect(statSync(credentials('ada')).mode & 0o777).toBe(0o600)
    expect(readFileSync(credentials('ada'), 'utf8')).not.toContain(passwords.get('ada'))
    expect((await signalbox('ada', ['whoami'])).out).toContain('ada')
    chmodSync(credentials('ada'), 0o644)
    expect(await signalbox('ada', ['whoami'])).toMatchObject({ code: 9, err: expect.stringContaining('chmod 600') })
    chmodSync(credentials('ada'), 0o600)
    expect(await signalbox('ada', ['logout'])).toMatchObject({ code: 0 })
    expect(await signalbox('ada', ['whoami'])).toMatchObject({
      code: 9,
      err: expect.stringContaining('signalbox login'),
    })
  })

  it('ends another session by the end of its id', async () => {
    await login('ada')
    const ids = async () => (await signalbox('ada', ['session', 'list', '-o', 'id'])).out.trim().split('\n')
    const [first = ''] = await ids()
    await login('ada')
    expect(await signalbox('ada', ['session', 'revoke', first.slice(-8)])).toMatchObject({ code: 0 })
    expect(await ids()).not.toContain(first)
  })

  it('names the fault: a wrong password, command or option, an unencrypted address, an absent server', async () => {
    const wrong = await signalbox('nobody', ['login', 'olga', '--password-stdin'], 'not the password\n')
    expect(wrong).toMatchObject({ code: 9, err: expect.stringContaining('invalid_credentials') })
    expect(await signalbox('nobody', ['gates'])).toMatchObject({ code: 2, err: expect.stringContaining('gates') })
    expect(await signalbox('nobody', ['op', 'list', '--wrong'])).toMatchObject({ code: 2 })
    expect(await signalbox('nobody', ['whoami', '--url', 'http://example.com'])).toMatchObject({ code: 2 })
    const away = await signalbox('nobody', ['login', 'olga', '--password-stdin', '--url', 'http://127.0.0.1:1'], 'x\n')
    expect(away).toMatchObject({ code: 1, err: expect.stringContaining('did not answer') })
    for (const { err } of [wrong, away]) expect(err).not.toMatch(/\n\s+at /)
  })

  it('with a device code that its person refuses ends with the next step', async () => {
    const terminal = atTerminal('refused', ['login', '--device'])
    await terminal.shows('Waiting')
    expect(terminal.screen()).toContain(`${stack.gateway_url}/device?code=`)
    expect(await decideDevice('eva', 'deny', terminal.screen())).toBe(204)
    expect(await terminal.code).toBe(9)
    expect(terminal.screen()).toContain('The sign-in was refused. Start again: signalbox login --device')
    expect((await signalbox('refused', ['whoami'])).code).toBe(9)
  })

  it('names an ended token or sign-in with its remedy, and removes the sign-in', async () => {
    const token = await signalbox('nobody', ['whoami'], '', { SIGNALBOX_TOKEN: 'ended' })
    expect(token).toMatchObject({ code: 9, err: expect.stringContaining('hint     Set SIGNALBOX_TOKEN to a valid') })
    await login('ada')
    const kept = JSON.parse(readFileSync(credentials('ada'), 'utf8'))
    const ended = { ...kept[stack.gateway_url], expires_at: 0, refresh_token: 'ended' }
    writeFileSync(credentials('ada'), JSON.stringify({ [stack.gateway_url]: ended }), { mode: 0o600 })
    expect(await signalbox('ada', ['whoami'])).toMatchObject({
      code: 9,
      err: `Your sign-in at ${stack.gateway_url} has ended. Run: signalbox login ada\n`,
    })
    expect(JSON.parse(readFileSync(credentials('ada'), 'utf8'))).toEqual({})
  })

  it('ten parallel commands with an expired access token refresh once, and all succeed', async () => {
    await login('eva')
    const kept = JSON.parse(readFileSync(credentials('eva'), 'utf8'))
    const before = kept[stack.gateway_url]
    kept[stack.gateway_url] = { ...before, expires_at: 0 }
    writeFileSync(credentials('eva'), JSON.stringify(kept), { mode: 0o600 })
    const all = await Promise.all(Array.from({ length: 10 }, () => signalbox('eva', ['whoami', '-o', 'id'])))
    expect(all.map(({ code, out }) => [code, out.trim()])).toEqual(Array(10).fill([0, 'eva']))
    const after = JSON.parse(readFileSync(credentials('eva'), 'utf8'))[stack.gateway_url]
    expect(after.refresh_token).not.toBe(before.refresh_token)
  })
})
