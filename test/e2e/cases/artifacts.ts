import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { jobs, PATIENCE_MS, people, press, stack, tabOf } from '../desk.ts'

describe('artifacts', () => {
  it(
    'of an agent appear while one looks, are saved as they are, and hostile ones stay text',
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

      // Other bytes than those that are recorded are neither saved nor shown.
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
