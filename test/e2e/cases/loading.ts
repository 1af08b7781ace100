import { expect, it } from 'vitest'
import { approveGate } from '../../../apps/platform/demo/operations.ts'
import type { Gate } from '../../../apps/shared/contracts/operations/gates.ts'
import { watchFirstRow } from '../../support/first-row.ts'
import { until } from '../../support/until.ts'
import { nodesOf, PATIENCE_MS, people, sitDown, start } from '../desk.ts'

/** console.md 10. A busy machine may draw the first row only after the live stream has asked once more. */
const RELOADS = 5

it(
  'the inbox shows its first row after at most 12 requests, and the user menu works afterwards',
  async () => {
    await start('a first row')
    const { context, page } = await sitDown('eva')
    await page.locator('main [data-row]').first().waitFor()
    const untilRow = await watchFirstRow(page)
    const counts: string[][] = []
    while (counts.length < RELOADS) counts.push(await untilRow(() => page.reload({ waitUntil: 'commit' })))
    const [fewest = []] = counts.sort((a, b) => a.length - b.length)
    expect(fewest.length, fewest.join(', ')).toBeLessThanOrEqual(12)
    expect(fewest).toContain('/api/v1/gates')
    await page.getByRole('button', { name: 'Signed in as eva' }).click()
    await page.getByRole('menuitem', { name: 'Display settings' }).waitFor()
    await context.close()
  },
  PATIENCE_MS,
)

it(
  'the number of the inbox is in the title, the navigation, the favicon and on the app, and follows',
  async () => {
    const { context, page } = await sitDown('eva')
    await page.addInitScript('navigator.setAppBadge = async (n) => { window.badge = n }')
    await page.goto(page.url())
    const title = async () => Number(/^\((\d+)\) Inbox/.exec(await page.title())?.[1] ?? 0)
    const marks = () =>
      page.evaluate<unknown[]>(`[
        Number(document.querySelector('.nav .count')?.firstChild.textContent ?? 0),
        decodeURIComponent(document.querySelector('link[rel=icon]').href).match(/>([^<]*)<.text>/)?.[1],
        window.badge,
      ]`)
    const counted = async () => {
      const { counts } = await people.eva.get<{ counts: Record<string, number> }>('/v1/me')
      return ['gates_mine', 'patches_mine', 'failures_mine'].reduce((sum, name) => sum + (counts[name] ?? 0), 0)
    }
    const isShown = async () => {
      const n = await counted()
      const shown = [await title(), ...(await marks())]
      return n > 0 && shown.join() === [n, n, n > 9 ? '9+' : n, n].join()
    }
    const { operation_id } = await start('a number')
    await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
    await until(isShown, { what: 'the number with the gate' })
    const before = await title()
    const gate = await people.eva.get<Gate>(`/v1/operations/${operation_id}/gates/go`)
    await approveGate(people.eva, operation_id, gate, 'a test')
    await until(async () => (await title()) < before, { what: 'the number without the gate' })
    await context.close()
  },
  PATIENCE_MS,
)
