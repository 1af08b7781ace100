import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { type Account, signIn } from '../../../apps/platform/demo/client.ts'
import { approveGate, startOperation } from '../../../apps/platform/demo/operations.ts'
import { accounts, browser, isHeld, jobs, letGo, people, sitDown, stack, start } from '../../e2e/desk.ts'
import { watchFirstRow } from '../../support/first-row.ts'
import { cpuOf, slowDown, watchInteractions } from '../../support/interactions.ts'
import { MOST_HOSTS, startMany } from '../../support/many.ts'
import { until } from '../../support/until.ts'
import { median, quantile } from '../lib/graph.ts'

export type Figure = { name: string; value: number; most: number; unit: string }

const LOADS = 7
const KEYS = 40
/** Longest time from a press to the next paint. */
const PRESS_MS = 100
/** Long enough for all that follows a press on a slow processor. */
const REST_MS = 500
const DECISIONS = 20
const LINES = 100_000
const IDLE_MS = 30_000
const SETTLED_MS = 40_000

/** Runs in the page: when, on its own clock, an element with this selector and text was first painted. */
const seenAt = (selector: string, text = ''): string => `new Promise((resolve) => {
  const look = () => [...document.querySelectorAll(${JSON.stringify(selector)})]
    .some((one) => one.textContent.includes(${JSON.stringify(text)}))
    ? requestAnimationFrame(() => resolve(performance.now()))
    : setTimeout(look, 4)
  look()
})`

/** From a reload until the first row of the inbox, and the number of requests until then. */
export const benchInbox = async (): Promise<Figure[]> => {
  await start('a row of the inbox')
  const { context, page } = await sitDown('eva')
  await page.locator('main [data-row]').first().waitFor()
  const untilRow = await watchFirstRow(page)
  const counts: number[] = []
  const load = async () => {
    let at = 0
    const asked = await untilRow(async () => {
      await page.reload({ waitUntil: 'commit' })
      at = await page.evaluate<number>(seenAt('main [data-row]'))
    })
    counts.push(asked.length)
    return at
  }
  const times = async () => {
    const all: number[] = []
    while (all.length < LOADS) all.push(await load())
    return median(all)
  }
  await load()
  const quick = await times()
  await slowDown(page, 4)
  const slow = await times()
  await context.close()
  return [
    { name: 'requests until the first inbox row', value: median(counts), most: 12, unit: '' },
    { name: 'first screen, warm', value: quick, most: 1000, unit: 'ms' },
    { name: 'first screen, warm, processor 4 times slower', value: slow, most: 1500, unit: 'ms' },
  ]
}

/** Matrices of 2,000 and 10,000 nodes: the time from data to cells, the number of elements, presses on a slow processor. */
export const benchGraph = async (): Promise<Figure[]> => [...(await graphOf(500)), ...(await graphOf(MOST_HOSTS))]

const graphOf = async (hosts: number): Promise<Figure[]> => {
  const operation_id = await startMany(people, hosts)
  const { context, page } = await sitDown('eva')
  const drawn: number[] = []
  const open = async () => {
    await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=matrix`, { waitUntil: 'commit' })
    return page.evaluate<number>(seenAt('[role=gridcell]'))
  }
  for (let i = 0; i < LOADS; i++) {
    const at = await open()
    const read = await page.evaluate<number>(
      `performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/graph'))?.responseEnd`,
    )
    drawn.push(at - read)
  }
  const elements = await page.locator('*').count()
  const acts = actsOn(page)
  const cpu = await acts((all, rest_ms) => cpuOf(page, all, rest_ms))
  await open()
  await slowDown(page, 4)
  const times = await acts(await watchInteractions(page))
  await context.close()
  // The next operation has the same hosts: it starts once this one has released them.
  await people.olga.post(`/v1/operations/${operation_id}/cancel`, { mode: 'graceful', reason: 'a benchmark' })
  const status = async () => (await people.olga.get<{ status: string }>(`/v1/operations/${operation_id}`)).status
  await until(async () => (await status()) === 'cancelled', { what: 'its end', every_ms: 500 })
  const name = `${(hosts * 4).toLocaleString('en')} nodes`
  const p95 = (of: string, all: number[], most: number): Figure => ({
    ...{ name: `${name}: ${of}, p95`, value: quantile(all, 0.95) },
    ...{ most, unit: 'ms' },
  })
  return [
    { name: `${name}: from data to cells`, value: median(drawn), most: 500, unit: 'ms' },
    { name: `${name}: elements of the page`, value: elements, most: 1500, unit: '' },
    ...Object.entries(times).map(([what, all]) => p95(`${what} to next paint, 4 times slower`, all, PRESS_MS)),
    // A busy machine changes this less: the processor time of the page alone, at its own speed.
    ...Object.entries(cpu).map(([what, all]) => p95(`${what}, CPU of the page to next paint`, all, PRESS_MS / 4)),
  ]
}

type Act = () => Promise<unknown>

/** Presses in a matrix, by kind, timed as the caller wants. */
const actsOn = (page: Page) => async (timed: (acts: Act[], rest_ms?: number) => Promise<number[]>) => {
  const press = (key: string) => () => page.keyboard.press(key)
  await page.locator('[role=gridcell][tabindex="0"]').focus()
  const key = await timed(Array.from({ length: KEYS }, (_, i) => press(i % 4 === 3 ? 'PageDown' : 'ArrowDown')))
  const field = page.getByRole('searchbox', { name: 'Find a node' })
  await field.focus()
  const letter = await timed([...'many-02'].map(press), REST_MS)
  const match = await timed(
    Array.from({ length: 4 }, () => press('Enter')),
    REST_MS,
  )
  await field.fill('')
  const filter: number[] = []
  for (const state of [0, 1]) {
    await page.locator('.legend').nth(state).focus()
    filter.push(...(await timed([press('Enter'), press('Enter')], REST_MS)))
  }
  return { key, letter, match, filter }
}

/** From the answer to another person's vote until an open page of the gate shows it. */
export const benchNews = async (): Promise<Figure[]> => {
  const otto = await signIn(stack.gateway_url, accounts.get('otto') as Account)
  const { context, page } = await sitDown('eva')
  const times: number[] = []
  for (let i = 0; i < DECISIONS; i++) {
    const { operation_id, gate } = await start(`news ${i}`)
    const path = `/v1/operations/${operation_id}/gates/go`
    const asked = () => otto.get<Parameters<typeof approveGate>[2] & { status: string }>(path)
    await until(async () => (await asked()).status === 'waiting', { what: 'the gate' })
    await page.goto(gate)
    await page.getByRole('button', { name: 'Approve', exact: false }).first().waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const seen = page.evaluate<number>(`${seenAt('main .badge', 'Approved')}.then(() => Date.now())`)
    await approveGate(otto, operation_id, await asked(), 'benchmark')
    const decided = Date.now()
    times.push(Math.max(0, (await seen) - decided))
  }
  await context.close()
  return [
    { name: 'decision made elsewhere to paint, p50', value: median(times), most: 150, unit: 'ms' },
    { name: 'decision made elsewhere to paint, p95', value: quantile(times, 0.95), most: 300, unit: 'ms' },
  ]
}

/** From the press on "Logs" until the last of 100,000 lines is visible. */
export const benchLog = async (): Promise<Figure[]> => {
  jobs.talk = async (_work, { log }) => {
    for (let n = 1; n <= LINES; n++) log(`said ${n}`)
    return {}
  }
  const node = { node_id: 'talk', executor: 'external', pool: 'lab', with: { job: 'talk', inputs: {} } }
  const { operation_id } = await startOperation(people.olga, 'talked', {
    ...{ kind: 'graph', title: 'talked', reason: 'a benchmark', targets: [], graph: { nodes: [node] } },
  })
  const logs = `/v1/operations/${operation_id}/nodes/talk/logs?limit=1`
  const whole = async () => (await people.eva.get<{ total_lines: number }>(logs)).total_lines === LINES
  await until(whole, { what: 'the log', timeout_ms: 120_000, every_ms: 500 })
  const { context, page } = await sitDown('eva')
  const times: number[] = []
  for (let i = 0; i < LOADS; i++) {
    await page.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/talk`)
    await page.getByRole('link', { name: /^Logs/ }).waitFor()
    const pressed = await page.evaluate<number>(
      `(() => { const at = performance.now(); [...document.querySelectorAll('.tabs a')].find((a) => a.textContent.startsWith('Log')).click(); return at })()`,
    )
    times.push((await page.evaluate<number>(seenAt('.log-lines', `said ${LINES}`))) - pressed)
  }
  await context.close()
  return [{ name: `log of ${LINES} lines opens`, value: median(times), most: 400, unit: 'ms' }]
}

/** What the processes of a tab use while an operation runs and no one touches anything. */
export const benchIdle = async (): Promise<Figure[]> => {
  const { operation_id } = await start('idle', { held: true })
  await isHeld()
  const { context, page } = await sitDown('eva')
  await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph`)
  await page.getByText('Live', { exact: true }).waitFor()
  // After a page has loaded, the browser collects its garbage for about half a minute.
  await delay(SETTLED_MS)
  const session = await browser.newBrowserCDPSession()
  const used = async () => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    return processInfo.filter(({ type }) => type === 'renderer').reduce((sum, { cpuTime }) => sum + cpuTime, 0)
  }
  const before = await used()
  await delay(IDLE_MS)
  const share = ((await used()) - before) / (IDLE_MS / 1000)
  letGo()
  await context.close()
  return [{ name: 'idle tab, share of a core', value: share * 100, most: 0.5, unit: '%' }]
}
