import pg from 'pg'
import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  confirm,
  dialogOf,
  isHeld,
  letGo,
  nodesOf,
  PATIENCE_MS,
  people,
  press,
  stack,
  start,
  tabOf,
  target,
} from '../desk.ts'

describe('steering a running operation', () => {
  it(
    'pauses as the dialog said, live in both tabs, and holds; the second of two resumes learns what is possible',
    async () => {
      const [page, other] = [await tabOf('olga'), await tabOf('olga')]
      const { operation_id, url } = await start('pause me', { held: true })
      await isHeld()
      await Promise.all([page.goto(url), other.goto(`${url}/nodes`)])
      await press(page, 'Pause')
      await dialogOf(page).getByText('One running node finishes; one will not start until it is resumed.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await confirm(page, 'Pause operation')
      await dialogOf(page).getByText('Enter a reason.').waitFor()
      await dialogOf(page).getByLabel('Reason').fill('lunch')
      await confirm(page, 'Pause operation')
      for (const tab of [page, other]) {
        await tab.getByText(/^Pausing by olga, .*: one node is finishing\.$/).waitFor()
        await tab.getByText('“lunch”').waitFor()
      }
      letGo()
      for (const tab of [page, other]) await tab.getByText(/^Paused by olga, .*No new node starts/).waitFor()
      expect(await nodesOf(operation_id)).toEqual({ first: 'succeeded', second: 'ready' })

      for (const tab of [page, other]) {
        await press(tab, 'Resume')
        await dialogOf(tab)
          .getByText(/^Next to start: .*second\.$/)
          .waitFor()
        await dialogOf(tab).getByLabel('Reason').fill('back again')
      }
      await confirm(page, 'Resume operation')
      await page.getByText(/^Succeeded in/).waitFor()
      await confirm(other, 'Resume operation')
      await dialogOf(other).getByText('Not possible now').waitFor()
      await dialogOf(other).getByText('Possible now: None.').waitFor()
      await Promise.all([page.close(), other.close()])
    },
    PATIENCE_MS,
  )

  it(
    'reports that a recorded command was refused later, in its dialog and until the person closes it',
    async () => {
      const page = await tabOf('olga')
      const { url } = await start('refuse me later')
      const command_id = '0195f0c2-0000-7000-8000-0000000000aa'
      const command = { command_id, kind: 'pause', code: null, seq: 9, accepted_at: new Date().toISOString() }
      await page.route('**/pause', (route) =>
        route.request().postDataJSON().dry_run
          ? route.continue()
          : route.fulfill({ status: 202, json: { command: { ...command, status: 'accepted', not_after: null } } }),
      )
      let status = 'accepted'
      const outcome = { category: 'invalid_state_transition', code: 'already_ended', detail: 'It has already ended.' }
      await page.route(`**/commands/${command_id}`, (route) =>
        route.fulfill({
          json: { command: { ...command, status, not_after: null }, outcome: status === 'refused' ? outcome : null },
        }),
      )
      // A fault of the server does not end the asking.
      await page.route(`**/commands/${command_id}`, (route) => route.fulfill({ status: 599 }), { times: 1 })
      await page.goto(url)
      await press(page, 'Pause')
      await dialogOf(page).getByLabel('Reason').fill('lunch')
      await confirm(page, 'Pause operation')
      await dialogOf(page)
        .getByText(/^Recorded at/)
        .waitFor()
      status = 'refused'
      await dialogOf(page).getByText('Recorded, then refused: pause.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'Nodes', exact: true }).click()
      await page.getByText('Recorded, then refused: pause.').waitFor()
      await page.getByText('It has already ended.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await press(page, 'Close')
      await page.getByText('Recorded, then refused: pause.').waitFor({ state: 'detached' })
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'sends no command whose effect could not be shown, except a pause',
    async () => {
      const page = await tabOf('olga')
      const { url } = await start('unseen')
      await page.route(/\/(pause|cancel)$/, (route) => route.fulfill({ status: 599, json: {} }))
      await page.goto(url)
      for (const [open, send, off] of [
        ['Cancel', 'Cancel operation', 'true'],
        ['Pause', 'Pause operation', 'false'],
      ] as const) {
        await press(page, open)
        await dialogOf(page).getByText('Not possible now').waitFor()
        const button = dialogOf(page).getByRole('button', { name: send })
        expect([send, await button.getAttribute('aria-disabled')]).toEqual([send, off])
        expect(await accessibilityOf(page)).toEqual([])
        await page.keyboard.press('Escape')
      }
      // Too many requests are as passing as a fault.
      await page.route(/\/cancel$/, (route) => route.fulfill({ status: 429, json: {} }))
      await press(page, 'Cancel')
      await dialogOf(page).getByText('Not possible now').waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await confirm(page, 'Retry')
      await dialogOf(page).getByText('Not possible now').waitFor({ state: 'detached' })
      await until(
        async () =>
          (await dialogOf(page).getByRole('button', { name: 'Cancel operation' }).getAttribute('aria-disabled')) !==
          'true',
        { what: 'the button' },
      )
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'cancels gracefully: running nodes finish, the rest is canceled, and the page says who and why',
    async () => {
      const page = await tabOf('olga')
      const { operation_id, url } = await start('cancel me', { held: true })
      await isHeld()
      await page.goto(url)
      await press(page, 'Cancel')
      const effect = dialogOf(page).getByText('One running node finishes; one will not start.')
      await effect.waitFor()
      // Another mode: the consequences of the first one are not shown for it.
      const held: Route[] = []
      let slow = true
      await page.route('**/cancel', (route) => (slow ? void held.push(route) : route.continue()))
      await dialogOf(page)
        .getByLabel(/^Stop and undo/)
        .check()
      await until(() => held.length > 0, { what: 'the other dry run' })
      await effect.waitFor({ state: 'detached' })
      slow = false
      for (const route of held) await route.continue()
      await effect.waitFor()
      await dialogOf(page)
        .getByLabel(/^Stop: running/)
        .check()
      await effect.waitFor()
      await dialogOf(page).getByLabel('Reason').fill('not today')
      await confirm(page, 'Cancel operation')
      await page.getByText(/^Canceling by olga, .*: one node is finishing\.$/).waitFor()
      letGo()
      await page.getByText(/^Canceled by olga, /).waitFor()
      await page.getByText('“not today”').waitFor()
      await page.getByText('2 of 2 ended').waitFor()
      expect(await nodesOf(operation_id)).toEqual({ first: 'succeeded', second: 'cancelled' })
      await page.getByRole('button', { name: 'Cancel', exact: true }).waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'closes its dialog when Back leads to another operation',
    async () => {
      const page = await tabOf('olga')
      const [{ url }] = [await start('the one before'), await start('the one after')]
      await page.goto(`${url}/graph`)
      await page.getByRole('heading', { level: 1, name: 'the one before' }).waitFor()
      await page.keyboard.press('Control+k')
      await page.keyboard.type('the one after')
      await page
        .getByRole('option', { name: /^the one after/ })
        .first()
        .click()
      await page.getByRole('heading', { level: 1, name: 'the one after' }).waitFor()
      await press(page, 'Cancel')
      await dialogOf(page).getByLabel('Reason').fill('that one')
      await page.goBack()
      await page.locator('h1', { hasText: 'the one before' }).waitFor()
      expect(await dialogOf(page).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )
})

/** Sends a pause from the page of an operation with one running node. */
const pauseFor = async (page: Page, url: string, reason: string) => {
  await page.goto(url)
  await press(page, 'Pause')
  await dialogOf(page).getByText('One running node finishes').waitFor()
  await dialogOf(page).getByLabel('Reason').fill(reason)
  await confirm(page, 'Pause operation')
}

describe('a command dialog', () => {
  it(
    'cannot be closed while it sends, so that no answer is lost',
    async () => {
      const page = await tabOf('olga')
      const { url } = await start('answered late', { held: true })
      await isHeld()
      const sent: Route[] = []
      await page.route('**/pause', (route) =>
        route.request().postDataJSON().dry_run ? route.continue() : void sent.push(route),
      )
      await pauseFor(page, url, 'slowly')
      await dialogOf(page).getByRole('button', { name: 'Sending' }).waitFor()
      await until(() => sent.length === 1, { what: 'the command to be sent' })
      await page.keyboard.press('Escape')
      await sent[0]?.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        json: { status: 409, category: 'plan_locked', code: 'already_started', detail: 'Too late for it.' },
      })
      await dialogOf(page).getByText('Not possible now').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      letGo()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('an answer that breaks off', () => {
  it(
    'says that the outcome is unknown, and can be closed',
    async () => {
      const page = await tabOf('olga')
      const { url } = await start('broken off', { held: true })
      await isHeld()
      await page.route('**/pause', (route) =>
        route.request().postDataJSON().dry_run
          ? route.continue()
          : route.fulfill({ status: 202, contentType: 'application/json', body: '{' }),
      )
      await pauseFor(page, url, 'cut')
      await dialogOf(page).getByText('It is unknown whether this took effect.').waitFor()
      await page.keyboard.press('Escape')
      await dialogOf(page).waitFor({ state: 'detached' })
      letGo()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('planning again', () => {
  it(
    'is offered to those who may plan, and when a policy forbade the start',
    async () => {
      const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {}, idempotent: true }] }
      const intent = { kind: 'graph', title: 'planned again', reason: 'a test', graph }
      const stated = async (title: string) =>
        (await people.olga.post<{ intent_id: string }>('/v1/intents', { ...intent, title })).body.intent_id
      const path = `/v1/intents/${await stated('planned again')}/plan-preview`
      const { plan_id } = (await people.olga.post<{ plan_id: string }>(path, {})).body
      const database = new pg.Client({ connectionString: stack.database_url })
      await database.connect()
      const become = (status: string) =>
        database.query('update operations.plans set status = $2 where plan_id = $1', [plan_id, status])

      const eva = await tabOf('eva')
      await become('stale')
      await eva.goto(`${stack.gateway_url}/plans/${plan_id}`)
      await eva.getByText('What can’t I do here?').click()
      await eva.getByText('preview', { exact: true }).waitFor()
      expect(await eva.getByRole('button', { name: 'Preview again' }).count()).toBe(0)
      await stated('never planned')
      await eva.goto(`${stack.gateway_url}/intents?whose=all`)
      await eva.getByRole('cell', { name: 'never planned' }).waitFor()
      expect(await eva.getByRole('button', { name: 'Create plan' }).count()).toBe(0)

      const olga = await tabOf('olga')
      await become('blocked_by_policy')
      await olga.goto(`${stack.gateway_url}/plans/${plan_id}`)
      await press(olga, 'Preview again')
      await olga.getByRole('button', { name: 'Start', exact: true, disabled: false }).waitFor()
      await olga.getByRole('button', { name: 'Preview again' }).waitFor({ state: 'detached' })
      expect(await accessibilityOf(olga)).toEqual([])
      await database.end()
      await Promise.all([eva.close(), olga.close()])
    },
    PATIENCE_MS,
  )
})

describe('starting a plan', () => {
  it(
    'names who holds its resources, with a link, before the start and when it is refused',
    async () => {
      await people.ada.post('/v1/resources?mode=record_only', {
        ...{ resource_id: 'contended', type_key: 'infra.generic', name: 'contended' },
        desired_state: { provider: 'test', kind: 'thing' },
      })
      const node = { node_id: 'one', executor: 'http', target_id: 'contended', idempotent: true }
      const planned = async (title: string) => {
        const work = { ...node, with: { request: { method: 'GET', url: target.url } } }
        const intent = { kind: 'graph', title, reason: 'a test', graph: { nodes: [work] } }
        const { intent_id } = (await people.olga.post<{ intent_id: string }>('/v1/intents', intent)).body
        const path = `/v1/intents/${intent_id}/plan-preview`
        return (await people.olga.post<{ plan_id: string; plan_hash: string }>(path, {})).body
      }
      const first = await planned('the holder')
      const second = await planned('the next one')
      const held = { reviewed_plan_hash: first.plan_hash }
      const { operation_id } = (
        await people.olga.post<{ operation_id: string }>(`/v1/plans/${first.plan_id}/start`, held)
      ).body
      await isHeld()
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/plans/${second.plan_id}`)
      await press(page, 'Start')
      const holder = dialogOf(page).getByRole('link', { name: '"the holder" holds contended.' })
      await holder.waitFor()
      expect(await holder.getAttribute('href')).toBe(`/operations/${operation_id}/graph`)
      await dialogOf(page).getByLabel('Do not start it').check()
      await confirm(page, 'Start operation')
      await dialogOf(page).getByText('Other operations hold its resources.').waitFor()
      expect(await holder.count()).toBe(2)
      expect(await accessibilityOf(page)).toEqual([])
      letGo()
      await page.close()
    },
    PATIENCE_MS,
  )
})
