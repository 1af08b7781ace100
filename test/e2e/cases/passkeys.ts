import { describe, expect, it } from 'vitest'
import { accessibilityOf, addAuthenticator } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { dialogOf, endSession, nodesOf, PATIENCE_MS, people, press, sitDown, stack, start } from '../desk.ts'

describe('a passkey', () => {
  it(
    'is added, signs in after a sign-out, signs an approval, and is removed',
    async () => {
      const { context, page } = await sitDown('eva')
      await addAuthenticator(context, page)
      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await page.getByText('You have no passkeys.').waitFor()
      await page.getByLabel('Name of the new passkey').fill('laptop')
      await press(page, 'Add a passkey')
      await page.getByText('Passkey added.').waitFor()
      await page.getByRole('button', { name: 'Remove laptop' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])

      await page.getByRole('button', { name: /Signed in as eva/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await press(page, 'Use a passkey')
      await page.getByRole('button', { name: /Signed in as eva/ }).waitFor()

      await endSession(page)
      expect(await accessibilityOf(page)).toEqual([])
      await dialogOf(page).getByRole('button', { name: 'Use a passkey' }).click()
      await dialogOf(page).waitFor({ state: 'detached' })

      const { operation_id, gate } = await start('signed', { signature: 'required' })
      await until(async () => (await nodesOf(operation_id)).second === 'gated', { what: 'the gate to ask' })
      await page.goto(gate)
      await press(page, 'Approve')
      const dialog = dialogOf(page)
      await dialog.getByText('Your passkey signs this approval.').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await dialog.getByRole('button', { name: 'Approve' }).click()
      await until(async () => (await nodesOf(operation_id)).second === 'succeeded', {
        timeout_ms: 30_000,
        what: 'the node behind the signed gate',
      })
      type Records = { records: { kind: string; subject: { signature?: { ballot: object } } }[] }
      const { records } = await people.eva.get<Records>(`/v1/operations/${operation_id}/evidence`)
      const vote = records.find(({ kind }) => kind === 'vote')
      expect(vote?.subject.signature?.ballot).toMatchObject({
        operation_id,
        type: 'gate',
        id: 'go',
        rp_id: 'localhost',
      })

      await page.goto(`${stack.gateway_url}/settings/passkeys`)
      await press(page, 'Remove laptop')
      await page.getByText('Passkey removed.').waitFor()
      await context.close()
    },
    PATIENCE_MS,
  )
})
