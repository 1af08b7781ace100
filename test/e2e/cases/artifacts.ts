import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { jobs, PATIENCE_MS, people, press, sitDown, stack, tabOf, takePictures } from '../desk.ts'

describe('artifacts', () => {
  it(
    'of an agent appear while the page is open, are saved unchanged, and hostile ones stay text',
    async () => {
      const report = Buffer.from('all twelve hosts answered\n')
      const page_html = Buffer.from('<script>window.pwned = true</script><img src=x onerror="window.pwned = true">')
      let bring = () => {}
      const asked = new Promise<void>((resolve) => {
        bring = resolve
      })
      jobs.inspect = async (_work, { keep }) => {
        await asked
        await keep({ name: 'report.txt', kind: 'report', media_type: 'text/plain' }, report)
        await keep({ name: 'page.html', kind: 'report', media_type: 'text/html' }, page_html)
        return {}
      }
      const { operation_id } = await startOperation(people.olga, 'inspected', {
        kind: 'graph',
        title: 'inspected',
        reason: 'a test',
        targets: [],
        graph: {
          nodes: [{ node_id: 'look', executor: 'external', pool: 'lab', with: { job: 'inspect', inputs: {} } }],
        },
      })
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/artifacts`)
      await page.getByText('No artifacts yet.').waitFor()
      bring()
      await page.getByRole('button', { name: 'Download report.txt' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      const [saved] = await Promise.all([page.waitForEvent('download'), press(page, 'Download report.txt')])
      expect(saved.suggestedFilename()).toBe('report.txt')
      expect(readFileSync(await saved.path())).toEqual(report)
      await page.getByText('report.txt: the content matches the recorded digest.').waitFor()

      await press(page, 'Preview page.html')
      await page.getByText('Shown as source; no code in it runs.').waitFor()
      await page.getByText(page_html.toString(), { exact: true }).waitFor()
      expect(await page.evaluate('"pwned" in window')).toBe(false)

      // Bytes other than the recorded ones are neither saved nor shown.
      await page.route('**/artifacts/*/content', (route) => route.fulfill({ body: 'all eleven hosts answered' }))
      await press(page, 'Preview report.txt')
      await page.getByText('report.txt: the content does not match the recorded digest. It was not saved.').waitFor()
      expect(await page.getByText('all eleven hosts answered').count()).toBe(0)
      await page.unroute('**/artifacts/*/content')
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('a log without the stream', () => {
  it(
    'is read again every few seconds',
    async () => {
      const { promise: told, resolve: tell } = Promise.withResolvers<void>()
      jobs.wait = async (_work, { log }) => {
        log('said before')
        await told
        log('said later')
        return {}
      }
      const { operation_id } = await startOperation(people.olga, 'unstreamed', {
        ...{ kind: 'graph', title: 'unstreamed', reason: 'a test', targets: [] },
        graph: { nodes: [{ node_id: 'talk', executor: 'external', pool: 'lab', with: { job: 'wait', inputs: {} } }] },
      })
      const { context, page } = await sitDown('eva')
      await page.route('**/api/v1/events?**', (route) => route.abort())
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/talk?tab=logs`)
      await page.getByText('said before', { exact: true }).waitFor()
      tell()
      await page.getByText('said later', { exact: true }).waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})

describe('a long log', () => {
  const COUNT = 10_000
  it(
    'is scrolled by the keys of its own box, linked to by line, and searched from its newest match',
    async () => {
      jobs.talk = async (_work, { log }) => {
        for (let n = 1; n <= COUNT; n++) log(`said ${n}`)
        return {}
      }
      const { operation_id } = await startOperation(people.olga, 'talked', {
        kind: 'graph',
        title: 'talked',
        reason: 'a test',
        targets: [],
        graph: { nodes: [{ node_id: 'talk', executor: 'external', pool: 'lab', with: { job: 'talk', inputs: {} } }] },
      })
      const nodes = `/v1/operations/${operation_id}/nodes`
      const total = async () =>
        (await people.eva.get<{ total_lines: number }>(`${nodes}/talk/logs?limit=1`)).total_lines
      await until(async () => (await total()) === COUNT, { what: 'the log', timeout_ms: 120_000 })
      const page = await tabOf('eva')
      const url = `${stack.gateway_url}/operations/${operation_id}/nodes/talk?tab=logs`
      await page.goto(url)
      const box = page.getByRole('region', { name: 'Lines of the log' })
      const line = (n: number) => box.getByText(`said ${n}`, { exact: true })
      await line(COUNT).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      // The focused box is the one that scrolls: its keys move the lines.
      await box.focus()
      await page.keyboard.press('PageUp')
      await line(COUNT).waitFor({ state: 'detached' })
      await page.keyboard.press('End')
      await line(COUNT).waitFor()
      // In quick succession: the last key decides, whatever is still in flight.
      for (const keys of [['Home'], ['End', 'Home'], ['Home', 'End', 'Home']]) {
        for (const key of keys) await page.keyboard.press(key)
        await line(1).waitFor()
      }
      await page.keyboard.press('Home')
      await page.keyboard.press('End')
      await line(COUNT).waitFor()

      await page.getByLabel('Search the log').fill('said')
      await page.keyboard.press('Enter')
      await page.getByText('1 of 10,000, newest first').waitFor()
      await line(COUNT).waitFor()
      await press(page, 'Previous match')
      await page.getByText('2 of 10,000, newest first').waitFor()
      await page.getByLabel('Search the log').fill('said 999')
      await page.keyboard.press('Enter')
      await page.getByText('1 of 11, newest first').waitFor()
      for (let at = 2; at <= 11; at++) {
        await press(page, 'Previous match')
        await page.getByText(`${at} of 11, newest first`).waitFor()
      }
      await line(999).waitFor()

      // A link to lines, in a tab without any state, and the range made by Shift.
      await page.goto('about:blank')
      await page.goto(`${url}#L5703-L5705`)
      await line(5704).waitFor()
      expect(await box.locator('[aria-current=true]').count()).toBe(3)
      await box.getByRole('link', { name: 'Line 5706', exact: true }).click()
      await until(async () => (await box.locator('[aria-current=true]').count()) === 1)
      await box.getByRole('link', { name: 'Line 5708', exact: true }).click({ modifiers: ['Shift'] })
      await until(async () => (await box.locator('[aria-current=true]').count()) === 3)
      expect(page.url()).toContain('#L5706-L5708')

      // By keys: one end stays, the other moves across it; the way back is one step.
      const hash = (wanted: string) => page.waitForURL((at) => at.hash === wanted)
      await box.focus()
      for (const [key, wanted] of [
        ['ArrowDown', '#L5706-L5709'],
        ['ArrowUp', '#L5706-L5708'],
        ['ArrowUp', '#L5706-L5707'],
        ['ArrowUp', '#L5706'],
        ['ArrowUp', '#L5705-L5706'],
        ['ArrowDown', '#L5706'],
      ] as const) {
        await page.keyboard.press(`Shift+${key}`)
        await hash(wanted)
      }
      // The end of the selection stays in view, as far as one goes.
      for (let n = 0; n < 60; n++) await page.keyboard.press('Shift+ArrowDown')
      await hash('#L5706-L5766')
      await page.getByText('Lines 5,706 to 5,766 selected').waitFor({ state: 'attached' })
      const [inner, outer] = [await line(5766).boundingBox(), await box.boundingBox()]
      expect(inner && outer && inner.y + inner.height <= outer.y + outer.height + 1).toBe(true)
      await takePictures(page, 'log-selected')

      // Times, wrapping and the end have keys of the box, too.
      const times = box.locator('.log-time')
      for (const [key, label] of [
        ['t', 'Times'],
        ['w', 'Wrap lines'],
      ] as const)
        for (const on of [false, true]) {
          await box.press(key)
          await until(async () => (await page.getByLabel(label, { exact: true }).isChecked()) === on, { what: key })
          expect((await box.getAttribute('class'))?.includes('wrapped')).toBe(key !== 'w' || on)
          expect((await times.count()) > 0).toBe(key !== 't' || on)
        }
      await box.press('f')
      await line(COUNT).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the log of a failed attempt', () => {
  it(
    'opens at its first error, and beside that of another attempt shows only what differs',
    async () => {
      const COUNT = 300
      const BAD = 40
      jobs.try = async ({ attempt }, { log }) => {
        for (let n = 1; n <= COUNT; n++)
          if (n === BAD || n === BAD + 200) log(`attempt ${attempt} found no disk ${n}`, 'error')
          else log(`${new Date().toISOString()} step ${n} took ${attempt * 7} ms`)
        throw new Error('no disk')
      }
      const { operation_id } = await startOperation(people.olga, 'tried', {
        kind: 'graph',
        title: 'tried',
        reason: 'a test',
        targets: [],
        graph: { nodes: [{ node_id: 'try', executor: 'external', pool: 'lab', with: { job: 'try', inputs: {} } }] },
      })
      const path = `/v1/operations/${operation_id}/nodes/try`
      const failed = (attempt: number) =>
        until(
          async () => {
            const node = await people.eva.get<{ state: string; attempt: number }>(path)
            return node.state === 'failed' && node.attempt === attempt
          },
          { what: `attempt ${attempt} to fail`, timeout_ms: 30_000 },
        )
      await failed(1)
      const page = await tabOf('eva')
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stack.gateway_url })
      const url = `${stack.gateway_url}/operations/${operation_id}/nodes/try?tab=logs`
      await page.goto(url)
      const box = page.getByRole('region', { name: 'Lines of the log' })
      const number = box.getByRole('link', { name: `Line ${BAD}`, exact: true })
      const names = (address: string | null, attempt: number) => {
        const { searchParams, hash } = new URL(address ?? '')
        expect([searchParams.get('tab'), searchParams.get('attempt'), hash]).toEqual(['logs', `${attempt}`, `#L${BAD}`])
      }
      names(await number.getAttribute('href'), 1)
      await number.click()
      await page.waitForURL((at) => at.searchParams.get('attempt') === '1' && at.hash === `#L${BAD}`)
      await people.olga.post(`${path}/retry`, { reason: 'once more' })
      await failed(2)

      // A retry neither moves the reader of a named line nor changes what its link shows.
      await page.getByLabel('Attempts').locator('option').nth(1).waitFor({ state: 'attached' })
      await box.getByText(`attempt 1 found no disk ${BAD}`).waitFor()
      const link = page.url()
      // The way back leads over the same addresses.
      const at = (attempt: string, hash: string) =>
        page.waitForURL((to) => to.searchParams.get('attempt') === attempt && to.hash === hash)
      await page.getByLabel('Attempts').selectOption('2')
      await at('2', '')
      // Until the page has heard that it failed, the log of the attempt opens at its end.
      await page.reload()
      await box.getByRole('link', { name: 'Line 41', exact: true }).click()
      await at('2', '#L41')
      for (let n = 0; n < 3 && new URL(page.url()).searchParams.get('attempt') !== '1'; n++) {
        await page.goBack()
        await page.waitForTimeout(500)
      }
      await at('1', `#L${BAD}`)
      await box.getByText(`attempt 1 found no disk ${BAD}`).waitFor()
      await page.goto('about:blank')
      await page.goto(link)
      await box.getByText(`attempt 1 found no disk ${BAD}`).waitFor()
      await page.goto(url)
      const marked = async () => (await box.locator('[aria-current=true] .log-seq').allTextContents()).join()
      await until(async () => (await marked()) === String(BAD), { what: 'the first error' })
      await box.focus()
      await page.keyboard.press('y')
      await until(async () => (await page.evaluate<string>('navigator.clipboard.readText()')).includes('attempt=2'))
      await page.keyboard.press('e')
      await until(async () => (await marked()) === String(BAD + 200), { what: 'the next error' })
      await page.keyboard.press('e')
      await page.getByText('No more errors in this direction.').waitFor()
      await page.keyboard.press('Shift+E')
      await until(async () => (await marked()) === String(BAD), { what: 'the error before' })

      await page.getByLabel('Compare with').selectOption('Attempt 1')
      await page.getByText(`2 of ${COUNT} lines differ`).waitFor()
      expect(await box.locator('.log-text').allTextContents()).toEqual(
        [BAD, BAD + 200].flatMap((n) => [`attempt 1 found no disk ${n}`, `attempt 2 found no disk ${n}`]),
      )
      expect(await accessibilityOf(page)).toEqual([])
      await page.getByLabel('Only differences').uncheck()
      await box.getByText('step 1 took 14 ms').waitFor()
      await page.reload()
      await page.getByText(`2 of ${COUNT} lines differ`).waitFor()
      await page.close()
    },
    PATIENCE_MS,
  )
})

describe('the parts of a log', () => {
  it(
    'fold with their number of lines and errors, open for a match, and are walked by the keys of the box',
    async () => {
      const lines = [
        ...['::group::Install packages', ...Array.from({ length: 30 }, (_, at) => `package ${at + 1}`), '::endgroup::'],
        ...['between the parts', '--- Verify', 'package list is complete', '--- a/diff is no part'],
      ]
      jobs.build = async (_work, { log }) => {
        for (const line of lines) log(line, line === 'package 7' ? 'error' : 'info')
        return {}
      }
      const node = { node_id: 'build', executor: 'external', pool: 'lab', with: { job: 'build', inputs: {} } }
      const { operation_id } = await startOperation(people.olga, 'built', {
        ...{ kind: 'graph', title: 'built', reason: 'a test', targets: [], graph: { nodes: [node] } },
      })
      const logs = `/v1/operations/${operation_id}/nodes/build/logs`
      const read = () => people.eva.get<{ total_lines: number; complete: boolean }>(`${logs}?limit=1`)
      await until(async () => (await read()).complete, { what: 'the whole log' })
      const page = await tabOf('eva')
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: stack.gateway_url })
      const url = `${stack.gateway_url}/operations/${operation_id}/nodes/build?tab=logs`
      await page.goto(url)
      const box = page.getByRole('region', { name: 'Lines of the log' })
      const line = (n: number) => box.getByText(`package ${n}`, { exact: true })
      const head = box.getByRole('button', { name: 'Install packages' })
      await head.waitFor()
      await box.getByText('30 lines').waitFor()
      await box.getByText('1 error').waitFor()
      expect(await head.getAttribute('aria-expanded')).toBe('false')
      expect(await box.getByRole('button').allTextContents()).toEqual(['Install packages', 'Verify'])
      expect(await line(1).count()).toBe(0)
      await box.getByText('package list is complete').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'log-folds')
      await head.click()
      await line(1).waitFor()
      await head.press('Enter')
      await line(1).waitFor({ state: 'detached' })

      // The newest match is outside, the next ones are in the closed part.
      await box.focus()
      await page.keyboard.press('/')
      await page.keyboard.type('package')
      await page.keyboard.press('Enter')
      await page.getByText('1 of 32, newest first').waitFor()
      await page.keyboard.press('Escape')
      const marked = async () => (await box.locator('[aria-current=true] .log-text').allTextContents()).join()
      for (const [key, at, text] of [
        ['n', 2, 'package 30'],
        ['n', 3, 'package 29'],
        ['Shift+N', 2, 'package 30'],
      ] as const) {
        await page.keyboard.press(key)
        await page.getByText(`${at} of 32, newest first`).waitFor()
        await until(async () => (await marked()) === text, { what: text })
      }
      expect(new URL(page.url()).pathname).toContain('/nodes/build')

      // A range in a closed part opens it; a copy of it is as it was stored.
      await page.goto('about:blank')
      await page.goto(`${url}#L2-L4`)
      await line(3).waitFor()
      await box.focus()
      await page.keyboard.press('c')
      await until(async () => (await box.locator('[aria-current=true]').count()) === 3, { what: 'the range' })
      const copied = async () => page.evaluate<string>('navigator.clipboard.readText()')
      await until(async () => (await copied()) === 'package 1\npackage 2\npackage 3\n', { what: 'the copy' })
      const [saved] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')])
      expect(readFileSync(await saved.path(), 'utf8')).toBe(lines.map((text) => `${text}\n`).join(''))
      // A line number is typed into the field at the top.
      await box.focus()
      await page.keyboard.type(':')
      await page.getByText('type a line number of its log').waitFor()
      await page.keyboard.type('33')
      await page.getByRole('option', { name: /^Line 33 of this log/ }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(/#L33$/)
      expect(await box.evaluate((lines) => lines.matches(':focus'))).toBe(true)
      await page.close()
    },
    PATIENCE_MS,
  )
})
