import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { home, hooks, login, signalbox } from '../client.ts'

describe('notifications', () => {
  it('are set up, tried and removed', async () => {
    await login('eva')
    const notify = (...args: string[]) => signalbox('eva', ['notify', ...args])
    const address = `${hooks.url}/cli?key=s3cret`
    expect((await notify('add', 'webhook', address, '--dry-run')).out).toContain('Would be')
    expect(await notify('add', 'webhook', 'http://10.0.0.1/')).toMatchObject({
      code: 2,
      err: expect.stringContaining('address_refused'),
    })
    const id = (await notify('add', 'webhook', address, '--name', 'chat', '-o', 'id')).out.trim()
    const listed = await notify('list')
    expect(listed.out).toMatch(/ACTIVE +chat +webhook +http:\/\/127\.0\.0\.1:\d+/)
    expect(listed.out).not.toContain('s3cret')
    expect((await notify('secret', id.slice(-8))).out).toMatch(/^whsec_/)
    expect(await notify('test', id)).toMatchObject({ code: 0 })
    await expect.poll(() => hooks.calls.filter(({ path }) => path.includes('/cli')).length, { timeout: 30_000 }).toBe(1)
    await expect
      .poll(async () => (await notify('log', '--state', 'sent')).out, { timeout: 30_000 })
      .toMatch(/SENT.* test /)

    const steps = [{ destination_id: id, after_s: 600 }]
    const quiet = { timezone: 'UTC', from: '22:00', to: '07:00', days: ['sat', 'sun'] }
    const rules = { events: ['gate.waiting'], min_risk: 'high', steps, quiet, digest_s: 60 }
    writeFileSync(join(home, 'rules.json'), JSON.stringify(rules))
    const set = await notify('rules', '-f', 'rules.json')
    expect(set.out).toMatch(/gate\.waiting +from risk high\nafter 600 s/)
    expect(set.out).toContain('22:00 to 07:00 (UTC), beginning on sat, sun')
    expect(JSON.parse((await notify('rules', '-o', 'json')).out)).toEqual(rules)
    expect((await notify('rules', '--reset')).out).toContain('every active destination')
    expect(await notify('list', '--group', 'netops')).toMatchObject({ code: 7 })
    expect(await notify('remove', id)).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await notify('remove', id, '--yes')).toMatchObject({ code: 0 })
    expect((await notify('list')).out).not.toContain('chat')
  })
})
