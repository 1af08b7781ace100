import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  confirm,
  dialogOf,
  isHeld,
  letGo,
  nodesOf,
  PATIENCE_MS,
  people,
  press,
  sitDown,
  stack,
  start,
  tabOf,
  takePictures,
} from '../desk.ts'

describe('the administration', () => {
  it(
    'grants a role, and disables a user, who is signed out at once',
    async () => {
      const ulla = { username: 'ulla', password: 'bN4sd-yW8ms-hF3vb-tA6kk', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, ulla, 'netops')
      accounts.set('ulla', ulla)
      const hers = await sitDown('ulla')

      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Administration' }).click()
      await page.getByRole('searchbox', { name: 'Find users by name' }).fill('ull')
      await page.waitForURL(/q=ull/)
      await page.getByRole('cell', { name: 'olga' }).waitFor({ state: 'detached' })
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'users')
      await page.getByRole('link', { name: 'ulla' }).click()
      await page.getByRole('heading', { level: 1, name: 'ulla' }).waitFor()

      await press(page, 'Grant a role to ulla')
      await dialogOf(page).getByLabel('Role').selectOption('planner')
      await dialogOf(page).getByLabel('Region').fill('eu1')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'grant')
      await confirm(page, 'Grant a role')
      await page.getByRole('cell', { name: 'Region eu1', exact: true }).waitFor()
      const user_id = new URL(page.url()).pathname.split('/').at(-1)
      type User = { grants: { role: string; scope: object }[]; status: string }
      const read = () => people.ada.get<User>(`/v1/admin/users/${user_id}`)
      expect((await read()).grants).toContainEqual(
        expect.objectContaining({ role: 'planner', scope: { region_id: 'eu1' } }),
      )
      await press(page, 'Remove planner (Region eu1) from ulla')
      await confirm(page, 'Remove')
      await page.getByRole('cell', { name: 'Region eu1', exact: true }).waitFor({ state: 'detached' })
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'user')

      await press(page, 'Disable')
      await dialogOf(page).getByText('No open gate loses a voter.').waitFor()
      await confirm(page, 'Disable')
      await dialogOf(page).getByText('Enter a reason.').waitFor()
      expect((await read()).status).toBe('ACTIVE')
      await dialogOf(page).getByLabel('Reason').fill('Left the team')
      await confirm(page, 'Disable')
      await page.getByRole('button', { name: 'Enable' }).waitFor()
      await hers.page.goto(`${stack.gateway_url}/operations`)
      await hers.page.waitForURL(/\/login/)
      await hers.context.close()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'names the people of all grants with one read, and which right of whom a button takes away',
    async () => {
      const page = await tabOf('ada')
      const asked: string[] = []
      page.on('request', (one) => asked.push(new URL(one.url()).pathname))
      await page.goto(`${stack.gateway_url}/admin/grants`)
      const buttons = page.getByRole('button', { name: /^Remove .* from / })
      await page.getByRole('link', { name: 'olga' }).first().waitFor()
      await page.getByRole('link', { name: 'eva' }).first().waitFor()
      expect(asked.filter((path) => path.startsWith('/api/v1/admin/users'))).toEqual([])
      const names = await buttons.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
      expect(names).toContain('Remove operator (Everywhere) from olga')
      expect(new Set(names).size).toBe(names.length)
      await takePictures(page, 'grants')
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'takes a page away from a person whose grant is removed',
    async () => {
      const uwe = { username: 'uwe', password: 'kR5tw-xM9qc-jD2nb-gL8ss', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, uwe, 'netops')
      accounts.set('uwe', uwe)
      const { gate } = await start('hidden from uwe')
      const { context, page } = await sitDown('uwe')
      await page.goto(gate)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Approve' }).waitFor()
      const ada = await tabOf('ada')
      // Before someone who may decide it is disabled, the dialog names what open gates lose.
      await ada.goto(`${stack.gateway_url}/admin/users?q=eva`)
      await ada.getByRole('link', { name: 'eva', exact: true }).click()
      await press(ada, 'Disable')
      const loses = dialogOf(ada).getByText(/can still vote\.|too few people are left to approve it\./)
      await loses.first().waitFor()
      expect(await accessibilityOf(ada)).toEqual([])
      await takePictures(ada, 'losing')
      await ada.goto(`${stack.gateway_url}/admin/users?q=uwe`)
      await ada.getByRole('link', { name: 'uwe' }).click()
      await press(ada, 'Remove viewer (Everywhere) from uwe')
      await confirm(ada, 'Remove')
      await page.getByText(/^Not (allowed|found)$/).waitFor()
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await Promise.all([ada.close(), context.close()])
    },
    PATIENCE_MS,
  )

  it(
    'creates a service account, and shows its key once',
    async () => {
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/admin/service-accounts`)
      // As with more people than a list holds: the others are found by their names.
      await page.route(/\/admin\/users\?.*status=ACTIVE/, (route) =>
        route.continue({
          url: route
            .request()
            .url()
            .replace(/page_size=\d+/, 'page_size=1'),
        }),
      )
      await press(page, 'New service account')
      await dialogOf(page).getByLabel('Name', { exact: true }).fill('ci-deploy')
      await dialogOf(page).getByRole('searchbox', { name: 'Find users by name' }).fill('olga')
      await dialogOf(page).getByLabel('Owner').selectOption('olga')
      await dialogOf(page).getByRole('searchbox', { name: 'Find users by name' }).fill('eva')
      await dialogOf(page).getByLabel('Owner').selectOption('eva')
      await dialogOf(page).getByRole('button', { name: 'Remove eva' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'New service account')
      await page.getByText('Owners: eva, olga').waitFor()
      await press(page, 'New key: machine:ci-deploy')
      await dialogOf(page).getByLabel('Name of the key').fill('deploy')
      await dialogOf(page).getByLabel('operation:read').check()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'key')
      await confirm(page, 'New key')
      const key = await dialogOf(page).getByText(/^sbk_/).textContent()
      expect(key?.length).toBeGreaterThan(60)
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'Close')
      await page.getByRole('cell', { name: 'deploy (key)' }).waitFor()
      expect(await page.content()).not.toContain(key ?? 'sbk_')
      await takePictures(page, 'machines')
      await page.reload()
      await press(page, 'Revoke deploy')
      expect(await page.content()).not.toContain(key ?? 'sbk_')
      await confirm(page, 'Revoke')
      await page.getByRole('cell', { name: 'Revoked' }).waitFor()
      for (const [tab, title] of [
        ['Groups', 'netops'],
        ['Grants', 'approver'],
        ['Changes', 'No changes.'],
      ] as const) {
        await page.getByRole('link', { name: tab, exact: true }).click()
        await page.getByText(title, { exact: true }).first().waitFor()
        expect(await accessibilityOf(page)).toEqual([])
        await takePictures(page, tab)
      }
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'registers a public key and a trust of a service account, and never sends a private half',
    async () => {
      const { items } = await people.ada.get<{ items: { id: string }[] }>('/v1/admin/users?q=olga')
      await people.ada.post('/v1/admin/machines', { name: 'signer', owners: [items[0]?.id] })
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/admin/service-accounts`)
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const named = { kid: 'signer-1', alg: 'EdDSA' }
      await press(page, 'New public key: machine:signer')
      const key = dialogOf(page).getByLabel('Public key, a JWK')
      await key.fill(JSON.stringify({ ...privateKey.export({ format: 'jwk' }), ...named }))
      await dialogOf(page).getByLabel('Name', { exact: true }).fill('signing')
      await dialogOf(page).getByLabel('operation:read').check()
      await dialogOf(page).getByText('This is the private half of a key.').waitFor()
      const send = dialogOf(page).getByRole('button', { name: 'New public key', exact: true })
      expect(await send.getAttribute('aria-disabled')).toBe('true')
      await key.fill(JSON.stringify({ ...publicKey.export({ format: 'jwk' }), ...named }))
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'New public key')
      await page.getByRole('cell', { name: 'signing (jwk)' }).waitFor()

      await press(page, 'New CI trust: machine:signer')
      await dialogOf(page).getByLabel('Issuer').fill('https://ci.example')
      await dialogOf(page).getByLabel('Claims').fill('{"sub": "job-1"}')
      await dialogOf(page).getByLabel('Name', { exact: true }).fill('ci')
      await dialogOf(page).getByLabel('operation:read').check()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'trust')
      await confirm(page, 'New CI trust')
      await dialogOf(page)
        .getByText(/does not trust https:\/\/ci\.example/)
        .waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'creates a group, renames it, and deletes it unless it has changed meanwhile',
    async () => {
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/admin/groups`)
      await press(page, 'New group')
      await dialogOf(page).getByLabel('Key').fill('night')
      await dialogOf(page).getByLabel('Name').fill('Night shift')
      await confirm(page, 'New group')
      await press(page, 'Rename Night shift')
      await dialogOf(page).getByLabel('Name').fill('Late shift')
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'Rename')
      await page.getByRole('button', { name: 'Rename Late shift' }).waitFor()

      type Group = { group_key: string; name: string; version: number }
      const read = async () => {
        const { items } = await people.ada.get<{ items: Group[] }>('/v1/admin/groups?page_size=100')
        return items.find(({ group_key }) => group_key === 'night')
      }
      expect(await read()).toMatchObject({ name: 'Late shift', version: 2 })
      await page.route('**/api/v1/admin/groups/night', (route) =>
        route.continue({ headers: { ...route.request().headers(), 'if-match': '"1"' } }),
      )
      await press(page, 'Delete Late shift')
      await dialogOf(page).getByText('Its memberships and grants end at once.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'Delete')
      await dialogOf(page).getByRole('alert').waitFor()
      expect(await read()).toMatchObject({ name: 'Late shift' })
      await page.unrouteAll({ behavior: 'wait' })
      await confirm(page, 'Delete')
      await until(async () => (await read()) === undefined, { what: 'the end of the group' })
      await page.getByRole('button', { name: 'Delete Late shift' }).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows each person only the pages that they may read, also by address',
    async () => {
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/admin/users`)
      await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor()
      expect(await page.getByRole('table').count()).toBe(0)
      await page.getByRole('link', { name: 'Administration' }).click()
      await page.getByRole('heading', { level: 1, name: 'Freezes' }).waitFor()
      const tabs = page.getByRole('navigation', { name: 'Pages of the administration' }).getByRole('link')
      expect(await tabs.allTextContents()).toEqual(['Freezes', 'Agents', 'Packs'])
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the audit log as a sheet', () => {
  it(
    'has text that a spreadsheet would run as text, with its quotes and line breaks',
    async () => {
      const { operation_id } = await start('exported', { held: true })
      await isHeld()
      const reason = '=HYPERLINK("http://x.example","a, b")\n+1'
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { reason })
      letGo()
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/audit?source=operations&object=operation:${operation_id}`)
      await page
        .getByRole('cell', { name: /HYPERLINK/ })
        .first()
        .waitFor()
      const csv = page.getByRole('button', { name: 'Export as CSV' })
      const [saved] = await Promise.all([page.waitForEvent('download'), csv.click()])
      const text = readFileSync(await saved.path(), 'utf8')
      expect(text).toMatch(/^\uFEFFat,actor,/)
      expect(text).toContain(`,"'${reason.replaceAll('"', '""')}",`)
      await page.close()
    },
    PATIENCE_MS,
  )
})

type Action = { action: string; allowed: boolean; reason_code: string | null; reason: string | null }
const OWN_BUTTON: Record<string, string> = { pause: 'Pause', cancel: 'Cancel', propose_patch: 'Propose a patch' }
const INTERVENTIONS = ['extend_deadline', 'set_limits', 'release_leases', 'delegate_gate', 'override_freeze']

describe('the filters of the audit log', () => {
  it(
    'are one step of Back each, not one for each letter or digit',
    async () => {
      const page = await tabOf('ada')
      await page.goto(`${stack.gateway_url}/audit?source=operations`)
      const becomes = (name: string, value: string) =>
        page.waitForURL((url) => (url.searchParams.get(name) ?? '') === value)
      for (const day of ['0020-01-02', '0202-01-02', '2026-01-02']) {
        await page.getByLabel('From day (UTC)').fill(day)
        await becomes('from', day)
      }
      const actor = page.getByRole('searchbox', { name: 'Actor, such as olga' })
      await actor.pressSequentially('o')
      await becomes('actor', 'o')
      // The field is left before its moment of rest has passed.
      await actor.pressSequentially('l')
      await actor.press('Tab')
      await becomes('actor', 'ol')
      await page.goBack()
      await becomes('actor', '')
      await page.goBack()
      await becomes('from', '')
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the audit log of more accounts than one page has', () => {
  it(
    'finds a person by name, and names them in its rows',
    async () => {
      await start('by somebody far down the list')
      const page = await tabOf('ada')
      const isFirst = (url: URL) => url.pathname === '/api/v1/admin/users' && !url.searchParams.has('q')
      await page.route(isFirst, async (route) => {
        const json = await (await route.fetch()).json()
        await route.fulfill({ json: { ...json, items: [], next_page_token: 'more' } })
      })
      await page.goto(`${stack.gateway_url}/audit?source=operations&action=start`)
      const olga = page.getByRole('link', { name: 'user:olga' }).first()
      await olga.waitFor()
      await page.goto(`${stack.gateway_url}/audit?source=operations&actor=olga`)
      await olga.waitFor()
      const { id } = await people.olga.get<{ id: string }>('/v1/users/me')
      const asked = page.waitForRequest((one) => one.url().includes('/auth-events?'))
      await page.goto(`${stack.gateway_url}/audit?source=sign-ins&actor=olga`)
      expect(new URL((await asked).url()).searchParams.get('actor')).toBe(`user:${id}`)
      const about = page.waitForRequest((one) => one.url().includes('/user-events?'))
      await page.goto(`${stack.gateway_url}/audit?source=users&object=user:olga`)
      expect(new URL((await about).url()).searchParams.get('user_id')).toBe(id)
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('every action of the server, for each role', () => {
  it.each(['vera', 'olga', 'eva', 'otto', 'ada'])(
    'is a button, a button with its reason, or in the list of what this person cannot do: %s',
    async (name) => {
      const vera = { username: 'vera', password: 'hT7wq-zN3pk-sB9vx-dL5ry', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, vera, 'netops')
      accounts.set('vera', vera)
      const { operation_id, gate } = await start(`actions of ${name}`)
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      const { context, page } = await sitDown(name)
      const read = async (path: string): Promise<Action[]> => {
        const reply = page.waitForResponse((one) => new URL(one.url()).pathname === `/api/v1${path}`)
        await page.goto(`${stack.gateway_url}${path}`)
        const { allowed_actions } = await (await reply).json()
        return allowed_actions
      }
      const main = page.getByRole('main')
      /** How the page treats an action. */
      const shown = async (button: string, action: string) => {
        const listed = await main.locator('details p').allTextContents()
        const names = listed.flatMap((line) => line.split(':')[0]?.split(', ') ?? [])
        if (names.includes(action.replaceAll('_', ' '))) return 'listed'
        const named = { name: button, exact: true }
        const found = main.getByRole('button', named).or(main.getByRole('link', named))
        if ((await found.count()) === 0) return 'absent'
        return (await found.first().getAttribute('aria-disabled')) === 'true' ? 'refused' : 'allowed'
      }
      const may = ({ allowed, reason_code }: Action) => allowed || reason_code === 'reauth_required'
      const never = ({ reason_code }: Action) => reason_code === 'permission_missing'

      const actions = await read(`/operations/${operation_id}`)
      await main
        .getByText('What can’t I do here?')
        .or(main.getByRole('button', { name: 'Pause', exact: true }))
        .first()
        .waitFor()
      const told: [string, string][] = []
      const wanted: [string, string][] = []
      for (const one of actions) {
        const button = OWN_BUTTON[one.action]
        if (button === undefined && !INTERVENTIONS.includes(one.action)) continue
        told.push([one.action, await shown(button ?? 'Intervene', one.action)])
        const offered = actions.filter(({ action }) => INTERVENTIONS.includes(action))
        const folded = never(one) || (!button && !may(one) && offered.some(may))
        const state = folded ? 'listed' : (button ? may(one) : offered.some(may)) ? 'allowed' : 'refused'
        wanted.push([one.action, state])
        if (!may(one) && one.reason) expect(await main.textContent()).toContain(one.reason)
      }
      expect(wanted.length).toBeGreaterThan(3)
      expect(told).toEqual(wanted)

      const votes = await read(gate.slice(stack.gateway_url.length))
      await page.getByText('Digest checked').waitFor()
      for (const [action, button] of [
        ['approve', 'Approve'],
        ['reject', 'Reject'],
        ['break_glass', 'Break glass'],
      ] as const) {
        const one = votes.find((each) => each.action === action) as Action
        const state = may(one) ? 'allowed' : action === 'break_glass' ? 'listed' : 'refused'
        expect([action, await shown(button, action)]).toEqual([action, state])
        if (state === 'listed') expect(await main.textContent()).toContain(one.reason)
      }
      await context.close()
    },
    PATIENCE_MS,
  )
})
