import { describe, expect, it } from 'vitest'
import { ensurePerson } from '../../../apps/platform/demo/accounts.ts'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import {
  accounts,
  isHeld,
  nodesOf,
  PATIENCE_MS,
  people,
  sitDown,
  stack,
  start,
  tabOf,
  takePictures,
  target,
} from '../desk.ts'

/** An operation whose gate concerns a resource in its own region. */
const placed = async () => {
  const add = (body: object) => people.ada.post('/v1/resources?mode=record_only', body)
  await add({ resource_id: 'north', type_key: 'topology.region', name: 'north', desired_state: { code: 'north' } })
  const desired_state = { provider: 'test', kind: 'thing' }
  const thing = {
    resource_id: 'north-1',
    type_key: 'infra.generic',
    name: 'north-1',
    parent_id: 'north',
    desired_state,
  }
  expect((await add(thing)).status).toBe(201)
  const node = { node_id: 'look', executor: 'noop', with: {}, target_id: 'north-1' }
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] } }
  const gates = [{ gate_id: 'go', question: 'Look at the north?', guards: ['look'], policy }]
  const intent = { kind: 'graph', title: 'looks north', reason: 'a test', graph: { nodes: [node], gates } }
  const begun = async () => {
    try {
      return await startOperation(people.olga, 'looks north', intent)
    } catch {
      return undefined // The projection does not hold the resource yet.
    }
  }
  await until(begun, { what: 'the operation in the north', every_ms: 500 })
  type Sums = { regions: { region_id: string; gates: number }[] }
  const asks = async () =>
    (await people.eva.get<Sums>('/v1/overview')).regions.some(
      ({ region_id, gates }) => region_id === 'north' && gates > 0,
    )
  await until(asks, { what: 'its gate' })
}

describe('the overview', () => {
  it(
    'shows ended, open and planned operations, and each number leads to its list',
    async () => {
      // Due before the gates of other cases: a day shows its first six.
      const [done, open] = await Promise.all([start('sums done'), start('sums open', { deadline_s: 900 })])
      const path = `/v1/operations/${done.operation_id}`
      await until(async () => (await nodesOf(done.operation_id)).second === 'gated', { what: 'the gate to ask' })
      const { digest, round } = await people.eva.get<{ digest: string; round: number }>(`${path}/gates/go`)
      await people.eva.post(`${path}/gates/go/approve`, { reviewed_digest: digest, round })
      await until(async () => (await people.eva.get<{ status: string }>(path)).status === 'succeeded', {
        what: 'the end of the operation',
      })
      const graph = { nodes: [{ node_id: 'only', executor: 'noop', with: {} }] }
      const intent = { kind: 'graph', title: 'Nightly look', reason: 'a test', graph }
      await people.olga.post('/v1/schedules', { when: { every_s: 86_400 }, intent })

      await placed()

      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Overview', exact: true }).click()
      await page.getByRole('img', { name: /^Ended operations by day\. Busiest day: \d+$/ }).waitFor()
      const calendar = page.getByRole('region', { name: 'Next 14 days' })
      await calendar.getByRole('link', { name: 'Nightly look' }).first().waitFor()
      await calendar.getByRole('link', { name: 'sums open' }).waitFor()
      expect(await calendar.locator('.day-cell').count()).toBe(14)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'overview')
      const groups = page.getByRole('region', { name: 'Waiting by group' })
      expect(
        await groups
          .getByRole('row', { name: /^netops/ })
          .locator('td.number')
          .first()
          .textContent(),
      ).toMatch(/^[1-9]/)
      await page.getByText('As a table').click()
      expect(await accessibilityOf(page)).toEqual([])

      const north = page.getByRole('region', { name: 'Regions' }).getByRole('row', { name: /^north/ })
      expect(await north.locator('td.number').allTextContents()).toEqual(['1', '1', '1'])
      await north.getByRole('link', { name: '1 unknown' }).waitFor()

      // Of the north alone, by address too: its calendar has no entry of elsewhere.
      await page.getByLabel('Region', { exact: true }).selectOption('north')
      await page.waitForURL(/region=north/)
      await calendar.getByRole('link', { name: 'sums open' }).waitFor({ state: 'detached' })
      await calendar.getByRole('link', { name: 'looks north' }).first().waitFor()
      // Counts of everywhere are not beside those of the north, and the list has no such filter to link to.
      const present = page.getByRole('region', { name: 'Now', exact: true })
      await present.getByText('One operation is open').waitFor()
      expect(await present.getByText(/in total|for you/).count()).toBe(0)
      expect(await present.getByRole('link').count()).toBe(0)
      expect(await page.getByRole('region', { name: 'Trends' }).getByRole('link').count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Region', { exact: true }).selectOption('')
      await calendar.getByRole('link', { name: 'sums open' }).waitFor()
      await page.getByLabel('Environment', { exact: true }).fill('elsewhere')
      const running = present.getByRole('link', { name: /open$/ })
      await until(async () => (await running.getAttribute('href'))?.includes('env=elsewhere'), { what: 'its list' })
      expect(await present.getByRole('link').count()).toBe(2)
      await page.getByLabel('Environment', { exact: true }).fill('')
      await calendar.getByRole('link', { name: 'sums open' }).waitFor()

      const trends = page.getByRole('region', { name: 'Trends' })
      const number = trends
        .getByRole('row', { name: /^Succeeded/ })
        .getByRole('link')
        .first()
      const count = Number(await number.textContent())
      await number.click()
      await page.waitForURL(/\/operations\?.*tab=succeeded/)
      await page.getByRole('link', { name: 'sums done' }).waitFor()
      // A page of the list holds fifty.
      expect(await page.locator('tbody tr').count()).toBe(Math.min(count, 50))
      expect(await page.getByRole('link', { name: 'sums open' }).count()).toBe(0)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'overview-list')
      await page.getByRole('link', { name: 'Any time' }).click()
      await page.waitForURL((url) => !url.searchParams.has('from'))
      expect((await people.eva.get<{ status: string }>(`/v1/operations/${open.operation_id}`)).status).not.toBe(
        'succeeded',
      )
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'names what runs, and what a failure holds, the longest first, each with its way in',
    async () => {
      const { operation_id } = await start('runs on the overview', { held: true, environment: 'apart' })
      await isHeld()
      const page = await tabOf('eva')
      // Both lists are short, and other cases have left operations too.
      await page.goto(`${stack.gateway_url}/overview?env=apart`)
      const running = page.getByRole('region', { name: 'Running now' })
      await running.getByRole('link', { name: 'runs on the overview' }).waitFor()
      const held = page.getByRole('region', { name: 'Held, longest first' })
      expect(await held.getByText('runs on the overview').count()).toBe(0)
      for (const answer of target.waiting.splice(0)) answer.writeHead(422).end('{}')
      // It leaves the one and enters the other by itself.
      const row = held.getByRole('row', { name: /^runs on the overview/ })
      await row.waitFor()
      await running.getByRole('link', { name: 'runs on the overview' }).waitFor({ state: 'detached' })
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'overview-held')
      // A server that is older than the console tells neither the groups nor the openings.
      await page.route(/\/api\/v1\/(overview|calendar)/, async (route) => {
        const answer = await route.fetch()
        const { waiting: _, ...json } = await answer.json()
        const windows = json.windows?.map(({ openings: __, ...one }: { openings: unknown }) => one)
        await route.fulfill({ response: answer, json: { ...json, ...(windows && { windows }) } })
      })
      await page.reload()
      await page.getByRole('region', { name: 'Next 14 days' }).waitFor()
      await row.getByRole('link', { name: 'task first' }).click()
      await page.getByRole('heading', { level: 1, name: 'task first' }).waitFor()
      await page.unrouteAll({ behavior: 'wait' })
      await page.close()
      const cancel = { mode: 'graceful', reason: 'the test is over' }
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, cancel)
    },
    PATIENCE_MS,
  )

  it(
    'is the first page of a person whose inbox is empty; others see the inbox',
    async () => {
      const idle = { username: 'ida', password: 'qW7hn-tZ4sb-mC8vy-dP2kr', roles: ['viewer'] }
      await ensurePerson(stack.gateway_url, people.ada, idle, 'netops')
      accounts.set('ida', idle)
      const { operation_id } = await start('a first page')
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      for (const [name, title] of [
        ['ida', 'Overview'],
        ['eva', 'Inbox'],
      ] as const) {
        const { context, page } = await sitDown(name)
        await page.goto(`${stack.gateway_url}/`)
        await page.getByRole('heading', { level: 1, name: title }).waitFor()
        await context.close()
      }
    },
    PATIENCE_MS,
  )
})
