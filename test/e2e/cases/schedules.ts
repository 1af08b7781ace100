import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { accessibilityOf } from '../../support/browser.ts'
import { PATIENCE_MS, people, stack, tabOf } from '../desk.ts'

const PICTURES = process.env.SIGNALBOX_PICTURES

describe('a schedule', () => {
  it(
    'is found in the list, run now by its owner, paused with a reason, and ended',
    async () => {
      const task = { node_id: 'only', name: 'renew', kind: 'task', executor: 'noop', with: {}, idempotent: true }
      const intent = {
        ...{ kind: 'graph', title: 'Renew the certificates', reason: 'They end in 30 days', targets: [] },
        graph: { nodes: [task] },
      }
      const when = { cron: '0 22 * * 1-5', timezone: 'Europe/Berlin' }
      await people.olga.post('/v1/schedules', { when, intent, proceed: 'start' })

      const page = await tabOf('olga')
      const take = async (name: string) => {
        if (PICTURES === undefined) return
        mkdirSync(PICTURES, { recursive: true })
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
          await page.screenshot({ path: join(PICTURES, `${name}-${colorScheme}.png`) })
        }
      }
      await page.goto(`${stack.gateway_url}/inbox`)
      await page.getByRole('link', { name: 'Schedules' }).click()
      await page.getByRole('cell', { name: '0 22 * * 1-5 (Europe/Berlin)' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await take('schedules')
      await page.getByRole('link', { name: 'Renew the certificates' }).click()
      await page.getByText('It has not run yet.').waitFor()

      const press = async (name: string, effect: string) => {
        await page.getByRole('button', { name, exact: true }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByText(effect).waitFor()
        return dialog
      }
      const run = await press('Run now', 'It runs once now')
      await run.getByRole('button', { name: 'Run now' }).click()
      await page.getByRole('link', { name: 'Open the operation' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await take('schedule')

      const pause = await press('Pause', 'No further run begins.')
      expect(await accessibilityOf(page)).toEqual([])
      await pause.getByRole('textbox').fill('The authority is closed')
      await pause.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('The authority is closed').waitFor()
      await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
      const end = await press('End', 'It never runs again.')
      await end.getByRole('button', { name: 'End' }).click()
      await page.getByText('Ended').waitFor()
      expect(await page.getByRole('button', { name: 'Run now' }).count()).toBe(0)
      await page.close()
    },
    PATIENCE_MS,
  )
})
