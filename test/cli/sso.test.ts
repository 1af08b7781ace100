import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApi } from '../../apps/cli/session/api.ts'
import { codeByBrowser } from '../../apps/cli/session/browser.ts'
import { createCredentials } from '../../apps/cli/session/credentials.ts'
import { PASSWORD } from '../session/support/auth.ts'
import { type Sso, startSso } from '../session/support/sso.ts'

/** `signalbox login --sso`: the person's browser brings a code to the loopback; only this process can redeem it. */

let sso: Sso
const home = mkdtempSync(join(tmpdir(), 'signalbox-cli-'))
const credentials = createCredentials({ XDG_CONFIG_HOME: home })
beforeAll(async () => {
  sso = await startSso()
})
afterAll(async () => {
  await sso?.stop()
  rmSync(home, { recursive: true, force: true })
})

const apiOf = () => createApi({ url: sso.gateway.url, credentials, token: undefined, idempotency_key: undefined })
/** What a person does with the address: signs in there, and lands at the loopback. */
const personAt = (sub: string, pages: string[]) => async (address: string) => {
  const browser = sso.browser()
  const started = await browser.go(address)
  const back = await browser.go((await browser.go(`${started.location}&person=${sub}`)).location)
  const foreign = new URL(back.location)
  foreign.searchParams.set('state', 'other')
  pages.push(String((await fetch(foreign)).status), await (await fetch(back.location)).text())
}

describe('signalbox login --sso', () => {
  it('signs in through the browser and keeps the session', async () => {
    const [shown, pages]: [string[], string[]] = [[], []]
    const open = personAt('s-mia', pages)
    const grant = await codeByBrowser(sso.gateway.url, 'corp', (address) => shown.push(address), open)
    const api = apiOf()
    expect(await api.redeem(grant)).toBe('mia')
    expect(shown[0]).toMatch(/\/v1\/sso\/corp\/start\?redirect_uri=http%3A%2F%2F127\.0\.0\.1/)
    expect(pages).toEqual(['404', 'You are signed in. Go back to the terminal.\n'])
    expect(await api.get('/api/v1/users/me')).toMatchObject({ username: 'mia' })
    expect(credentials.get(sso.gateway.url)).toMatchObject({ username: 'mia', refresh_token: expect.any(String) })
    // The next sign-in sends the token of the person who signed in last.
    expect(credentials.device(sso.gateway.url)).toBe(credentials.device(sso.gateway.url, 'mia'))
    expect(credentials.device(sso.gateway.url)).toMatch(/^d1\./)
    credentials.saveDevice(sso.gateway.url, 'eva', 'd1.x.y')
    expect(credentials.device(sso.gateway.url)).toBe('d1.x.y')
    const mias = credentials.device(sso.gateway.url, 'mia') ?? ''
    credentials.saveDevice(sso.gateway.url, 'mia', mias)
    expect(credentials.device(sso.gateway.url)).toBe(mias)
  })

  it('names why a sign-in was refused, and lists the providers', async () => {
    const refused = codeByBrowser(sso.gateway.url, 'corp', () => {}, personAt('s-out', []))
    await expect(refused).rejects.toThrow('The sign-in was refused (no_account).')
    expect(await apiOf().open('/v1/providers')).toMatchObject({ items: [{ id: 'corp', title: 'Example Corp' }] })
  })

  it('of a test brings the name of a trial, which opens no session', async () => {
    const pages: string[] = []
    const open = personAt('s-mia', pages)
    const { code, code_verifier, redirect_uri } = await codeByBrowser(sso.gateway.url, 'corp', () => {}, open, 'trial')
    await expect(apiOf().redeem({ code, code_verifier, redirect_uri })).rejects.toThrow()
    await sso.addUser('ada', ['admin'])
    const api = apiOf()
    await api.login('ada', PASSWORD, () => Promise.reject(new Error('no code is asked for')))
    const trial = `/api/v1/admin/provider-trials/${code}`
    expect(await api.get(trial)).toMatchObject({ provider: 'corp', account: 'mia', refusal: null })
    expect(pages[1]).toBe('The test is over. Go back to the terminal.\n')
  })
})
