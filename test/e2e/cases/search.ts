import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { dialogOf, PATIENCE_MS, people, stack, start, tabOf, takePictures, untilFound } from '../desk.ts'

describe('the go-to field', () => {
  it(
    'leads to every page that a person may open and every action on the page, and sends no command',
    async () => {
      const { operation_id, url } = await start('steered from the field')
      const page = await tabOf('olga')
      const sent: string[] = []
      page.on('request', (request) => {
        if (request.method() === 'POST' && request.url().includes('/api/')) sent.push(request.url())
      })
      await page.goto(`${url}/graph`)
      await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
      const box = page.getByRole('combobox', { name: 'Go to a page, operation or resource' })
      const options = page.getByRole('listbox').getByRole('option')
      const texts = async () =>
        (await options.allInnerTexts()).map((text) =>
          text
            .replaceAll(/\s+/g, ' ')
            .replace(/ action$/, '')
            .trim(),
        )
      await page.keyboard.press('Control+k')
      await page.keyboard.type('>')
      await options.first().waitFor()
      // The actions that the API allows, by their button labels.
      const operation = await people.olga.get<{ allowed_actions: { action: string; allowed: boolean }[] }>(
        `/v1/operations/${operation_id}`,
      )
      const may = new Set(operation.allowed_actions.flatMap(({ action, allowed }) => (allowed ? [action] : [])))
      const words = { pause: 'Pause operation', resume: 'Resume operation', cancel: 'Cancel operation' }
      const offered = await texts()
      for (const [action, word] of Object.entries(words)) expect(offered.includes(word), word).toBe(may.has(action))
      expect(offered).toContain('Review the gate: Go on with steered from the field?')
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'go-to-actions')

      // Every page of the navigation and of the account, by its own name.
      const ways = await page
        .getByRole('navigation', { name: 'Main' })
        .getByRole('link')
        .locator('.word')
        .allInnerTexts()
      for (const name of [...ways, 'Freezes', 'Packs', 'Display settings', 'Change password', 'Timeline', 'Evidence']) {
        await box.fill(name)
        await until(async () => (await texts()).includes(`${name} page`), { what: name })
      }
      for (const name of ['Audit', 'Grants', 'Service accounts']) {
        await box.fill(name)
        await until(async () => (await texts()).every((text) => !text.startsWith(name)), { what: name })
      }

      await box.fill('#second')
      await page.getByRole('option', { name: /^task second/ }).waitFor()
      await box.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'task second' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('>pause')
      await page.getByRole('option', { name: /^Pause operation/ }).waitFor()
      await box.press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Pause operation' }).waitFor()
      const commands = sent.filter((one) => one.endsWith('/pause'))
      expect(commands.length).toBeLessThanOrEqual(1)
      expect((await people.olga.get<{ status: string }>(`/v1/operations/${operation_id}`)).status).not.toMatch(/^paus/)
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.getByRole('option', { name: /^task second opened before/ }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a plan that nobody started', () => {
  it(
    'is found by a part of its title, its ticket and the end of its id',
    async () => {
      const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
      const intent = { kind: 'graph', title: 'Shelved for now', reason: 'a test', ticket: 'CHG-8100', graph }
      const made = await people.olga.post<{ intent_id: string }>('/v1/intents', intent)
      const of = `/v1/intents/${made.body.intent_id}/plan-preview`
      const { plan_id } = (await people.olga.post<{ plan_id: string }>(of, {})).body
      // Later ones of the same name, already started, do not take its place.
      for (let n = 0; n < 6; n++) await startOperation(people.olga, `shelved ${n}`, { ...intent, ticket: undefined })
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/inbox`)
      const box = page.getByRole('combobox', { name: 'Go to a page, operation or resource' })
      for (const q of ['shelved', 'chg-8100', plan_id.slice(-6)]) {
        await box.fill(q)
        await page.getByRole('option', { name: new RegExp(`^Shelved for now plan ${plan_id.slice(-6)}`) }).waitFor()
      }
      expect(await accessibilityOf(page)).toEqual([])
      await box.press('Enter')
      await page.waitForURL(new RegExp(`/plans/${plan_id}`))
      // An operation too is found by the end of its id.
      const { operation_id } = await start('found by its end')
      await box.fill(operation_id.slice(-6))
      await page.getByRole('option', { name: /^found by its end/ }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the actions of the go-to field', () => {
  it(
    'are told apart by what they open, however alike they read',
    async () => {
      const { operation_id, url } = await start('two patches')
      for (const reason of ['one by one', 'two by two'])
        await people.olga.post(`/v1/operations/${operation_id}/patches`, {
          ...{ base_revision: 1, changes: [{ op: 'set_limits', max_parallel: 1 }], reason },
        })
      const page = await tabOf('eva')
      await page.goto(`${url}/graph`)
      await page.getByRole('heading', { level: 1, name: 'two patches' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('>review')
      await until(async () => (await page.getByRole('option').count()) === 3, { what: 'the gate and two patches' })
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('ArrowDown')
      await page.getByRole('option', { name: /^Review the patch: two by two/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'two by two' }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the actions of the go-to field on what has ended or repeats', () => {
  it(
    'are those of the page',
    async () => {
      const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {}, idempotent: true }] }
      const intent = { kind: 'graph', title: 'over soon', reason: 'a test', targets: [], graph }
      const { operation_id } = await startOperation(people.olga, 'over soon', intent)
      const when = { cron: '0 23 * * 1-5', timezone: 'Europe/Berlin' }
      const made = { when, intent: { ...intent, title: 'now and then' }, proceed: 'start' }
      const { body } = await people.olga.post<{ schedule_id: string }>('/v1/schedules', made)
      const page = await tabOf('olga')
      const find = async (path: string, typed: string) => {
        await page.goto(`${stack.gateway_url}${path}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.keyboard.press('Control+k')
        await page.keyboard.type(typed)
      }
      await find(`/operations/${operation_id}/graph`, '>roll')
      await page.getByRole('option', { name: /^Roll back/ }).waitFor()
      await find(`/schedules/${body.schedule_id}`, '>pause')
      await page.getByRole('option', { name: /^Pause/, selected: true }).waitFor()
      await page.getByRole('combobox', { name: 'Go to a page, operation or resource' }).fill('>')
      await page.getByRole('option', { name: /^Run now/ }).waitFor()
      expect(await page.getByRole('option', { name: /^Resume/ }).count()).toBe(0)
      await page.getByRole('combobox', { name: 'Go to a page, operation or resource' }).fill('>pause')
      await page.getByRole('option', { name: /^Pause/, selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await dialogOf(page).getByRole('button', { name: 'Pause', exact: true }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the actions of the go-to field on a page', () => {
  it.each([
    ['eva', 'approve', 'Approve 1 change'],
    ['eva', 'reject', 'Reject'],
    ['olga', 'withdraw', 'Withdraw'],
    ['olga', 'start', 'Start operation'],
  ])(
    'decide on its patch or start its plan, each in its dialog: %s, %s',
    async (name, action, button) => {
      const intent = {
        ...{ kind: 'graph', title: `to ${action}`, reason: 'a test', targets: [] },
        graph: { nodes: [{ node_id: 'only', executor: 'noop', with: {}, idempotent: true }] },
      }
      const planned = async () => {
        const { body: stated } = await people.olga.post<{ intent_id: string }>('/v1/intents', intent)
        const made = await people.olga.post<{ plan_id: string }>(`/v1/intents/${stated.intent_id}/plan-preview`, {})
        return `${stack.gateway_url}/plans/${made.body.plan_id}`
      }
      const patched = async () => {
        const { operation_id, url } = await start(`to ${action}`)
        const changes = [{ op: 'set_limits', max_parallel: 1 }]
        const patch = { base_revision: 1, changes, reason: `to ${action}` }
        const made = await people.olga.post<{ patch_id: string }>(`/v1/operations/${operation_id}/patches`, patch)
        return `${url}/patches/${made.body.patch_id}`
      }
      const page = await tabOf(name)
      await page.goto(action === 'start' ? await planned() : await patched())
      await page.getByRole('heading', { level: 1, name: `to ${action}` }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type(`>${action}`)
      await page.getByRole('option', { name: new RegExp(`^${action}`, 'i'), selected: true }).waitFor()
      await page.keyboard.press('Enter')
      await dialogOf(page).getByRole('button', { name: button, exact: true }).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a search field', () => {
  it(
    'keeps what is typed while the address follows, and the filters chosen meanwhile',
    async () => {
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations`)
      const field = page.getByRole('searchbox', { name: 'Search title or ticket' })
      await field.pressSequentially('web ')
      await page.waitForURL(/q=web/)
      await page.getByText('No operations match.').or(page.getByRole('table')).first().waitFor()
      await field.press('2')
      expect(await field.inputValue()).toBe('web 2')
      await page.waitForURL(/q=web(\+|%20)2/)
      await field.fill('gone')
      await page.getByRole('link', { name: 'Failed', exact: true }).click()
      await page.waitForURL(/q=gone/)
      expect(new URL(page.url()).searchParams.get('tab')).toBe('failed')
      // A link changes the address for the field too.
      await page.getByRole('link', { name: 'Clear filters' }).click()
      await until(async () => (await field.inputValue()) === '', { what: 'the empty field' })
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('searching for resources', () => {
  const generic = (resource_id: string, over: Record<string, unknown> = {}) => ({
    resource_id,
    type_key: 'infra.generic',
    name: resource_id,
    desired_state: { provider: 'test', kind: 'thing' },
    ...over,
  })

  it(
    'ranks matching resources and says where they match, in the search box and in the list; a filter stays a filter',
    async () => {
      const add = (body: object) => people.ada.post('/v1/resources?mode=record_only', body)
      await add({ resource_id: 'ledger', type_key: 'org.team', name: 'Ledger crew', desired_state: {} })
      const owned_by = [{ type_key: 'owned_by', target_id: 'ledger' }]
      await add(generic('billing-db', { display_name: 'Billing database', relationships: owned_by }))
      const attributes = { note: 'moved from ledger-2', mac: 'aa:bb:cc:00:11:22' }
      await add(
        generic('archive', { labels: { tier: 'gold' }, desired_state: { provider: 't', kind: 'k', attributes } }),
      )
      await untilFound('ledger', 3)

      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/resources`)
      const box = page.getByRole('combobox', { name: 'Go to a page, operation or resource' })
      await box.fill('ledger')
      const options = page.getByRole('listbox').getByRole('option')
      await page.getByRole('option', { name: /Billing database in relation/ }).waitFor()
      expect((await options.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim())).toEqual([
        'Ledger crew org.team',
        'Billing database in relation infra.generic',
        'archive in attribute infra.generic',
      ])
      await takePictures(page, 'go-to')
      await box.fill('billing')
      await page.getByRole('option', { name: /^Billing database infra/ }).waitFor()
      await box.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Billing database' }).waitFor()

      await page.goto(`${stack.gateway_url}/resources`)
      const field = page.getByRole('searchbox', { name: 'Search resources, or filter' })
      const rows = async () =>
        Promise.all((await page.locator('tbody tr').all()).map((row) => row.locator('td').allInnerTexts()))
      await field.fill('ledger')
      await page.getByRole('columnheader', { name: 'Found in' }).waitFor()
      expect((await rows()).map((cells) => cells.slice(0, 2))).toEqual([
        ['Ledger crew', 'name'],
        ['Billing database', 'relation'],
        ['archive', 'attribute'],
      ])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'list')
      // The file of a search that found more says so, as the page does.
      await page.route('**/api/v1/search?**', async (route) => {
        const answer = await route.fetch()
        await route.fulfill({ response: answer, json: { ...(await answer.json()), more: true } })
      })
      await field.fill('Ledger')
      await page.getByText('The best 3 are shown.').waitFor()
      await page.getByRole('button', { name: 'Export as CSV' }).click()
      await page.getByText('Saved the first 3 rows.').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await field.fill('aa:bb:cc')
      await until(async () => (await rows()).length === 1, { what: 'the one with the address' })
      await field.fill('labels.tier=gold')
      await page.getByRole('columnheader', { name: 'Drift' }).waitFor()
      await until(async () => (await rows()).length === 1, { what: 'the filtered list' })
      await field.fill('nowhere-to-be-found-xyz')
      await page.getByText('No resources match.').waitFor()
      await takePictures(page, 'none')
      await page.close()
    },
    PATIENCE_MS,
  )
})
