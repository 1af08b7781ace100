import { describe, expect, it } from 'vitest'
import { approveGate, startOperation } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { confirm, dialogOf, nodesOf, PATIENCE_MS, people, press, stack, tabOf } from '../desk.ts'

/** A node that fails and is held, in a plan of high risk, with another node behind it. */
const held = (title: string) =>
  startOperation(people.olga, title, {
    kind: 'graph',
    title,
    reason: 'a test',
    targets: [],
    graph: {
      nodes: [
        {
          node_id: 'breaks',
          name: 'task breaks',
          executor: 'http',
          with: { request: { method: 'GET', url: 'http://127.0.0.1:2/' } },
          idempotent: true,
          retry: { max_attempts: 1 },
          risk: 60,
        },
        { node_id: 'after', name: 'task after', executor: 'noop', with: {}, idempotent: true, depends_on: ['breaks'] },
      ],
    },
  })

describe('an intervention at high risk', () => {
  it(
    'is requested by one person, shown to another, carried out with their approval, and recorded with both',
    async () => {
      const [olga, eva] = await Promise.all([tabOf('olga'), tabOf('eva')])
      const { operation_id } = await held('too risky alone')
      await olga.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/breaks`)
      await press(olga, 'Intervene')
      await dialogOf(olga).getByText('Skip: do not run it').click()
      await dialogOf(olga).getByText('The risk is high: a second person must approve this first.').waitFor()
      expect(await accessibilityOf(olga)).toEqual([])
      await dialogOf(olga).getByLabel('Ticket (optional)').fill('OPS-8')
      await dialogOf(olga).getByLabel('Reason').fill('the target is gone for good')
      await confirm(olga, 'Skip node')
      // The requester reaches the gate, but cannot open it.
      await olga.getByRole('region', { name: 'Decision brief' }).waitFor()
      const own = olga.getByRole('main').getByRole('button', { name: 'Approve' })
      expect(await own.getAttribute('aria-disabled')).toBe('true')
      expect(await nodesOf(operation_id)).toMatchObject({ breaks: 'failed' })

      await eva.goto(`${stack.gateway_url}/inbox`)
      await eva.getByText('too risky alone').waitFor()
      await eva.getByRole('link', { name: 'olga asks to skip breaks. Allow it?' }).click()
      await eva.getByText('“the target is gone for good”').waitFor()
      await eva.getByText('OPS-8').waitFor()
      await eva.getByText('Digest checked').waitFor()
      expect(await accessibilityOf(eva)).toEqual([])
      await press(eva, 'Approve')
      await confirm(eva, 'Approve')
      for (const page of [olga, eva])
        await page
          .getByText(/^Approved by eva, /)
          .first()
          .waitFor()

      await olga.goto(`${stack.gateway_url}/operations/${operation_id}`)
      await olga.getByText(/^Succeeded with exceptions in/).waitFor()
      expect(await nodesOf(operation_id)).toEqual({ breaks: 'skipped', after: 'succeeded' })
      await olga.goto(`${stack.gateway_url}/operations/${operation_id}/evidence`)
      for (const who of [/olga/, /eva/]) await olga.getByRole('row').filter({ hasText: who }).first().waitFor()
      await Promise.all([olga.close(), eva.close()])
    },
    PATIENCE_MS,
  )
})

describe('an intervention whose subject has changed since its dialog was opened', () => {
  it(
    'is not sent: not for the next outcome of the node, nor for a gate that was decided',
    async () => {
      const olga = await tabOf('olga')
      const { operation_id } = await held('moves on')
      const generation = async () => {
        const node = await people.olga.get<Node>(`/v1/operations/${operation_id}/nodes/breaks`)
        return node.state === 'failed' ? node.generation : 0
      }
      await until(async () => (await generation()) === 1, { what: 'the failed node' })
      await olga.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/breaks`)
      await press(olga, 'Intervene')
      await dialogOf(olga).getByText('Mark succeeded: it was done by hand').click()
      await dialogOf(olga).getByLabel('Reason').fill('seen at the target')
      // What the server offers from here on shows in the open dialog.
      await olga.route(`**/operations/${operation_id}/nodes/breaks`, async (route) => {
        const answer = await route.fetch()
        const json = await answer.json()
        const refused = { action: 'skip', allowed: false, reason: 'Not after a second failure.', reason_code: null }
        const rest = json.allowed_actions.filter(({ action }: { action: string }) => action !== 'skip')
        await route.fulfill({ response: answer, json: { ...json, allowed_actions: [...rest, refused] } })
      })
      const path = `/v1/operations/${operation_id}/nodes/breaks/retry`
      await people.olga.post(path, { expected_generation: 1, reason: 'again' })
      await until(async () => (await generation()) === 2, { what: 'the next failure' })
      await dialogOf(olga).getByText('This node has changed since this dialog was opened.').waitFor({ timeout: 20_000 })
      await dialogOf(olga).getByText('Not after a second failure.').waitFor()
      const send = dialogOf(olga).getByRole('button', { name: 'Mark succeeded', exact: true })
      expect(await send.getAttribute('aria-disabled')).toBe('true')
      await olga.unrouteAll({ behavior: 'wait' })
      await olga.close()

      const gates = ['one', 'two']
      const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }] }, deadline_s: 3600 }
      const nodes = gates.map((node_id) => ({ node_id, executor: 'noop', with: {}, idempotent: true }))
      const asked = await startOperation(people.olga, 'two gates', {
        ...{ kind: 'graph', title: 'two gates', reason: 'a test', targets: [] },
        graph: {
          nodes,
          gates: gates.map((id) => ({ gate_id: id, question: `Go on with ${id}?`, guards: [id], policy })),
        },
      })
      type Asked = { open_gates: { gate_id: string }[] }
      const at = `/v1/operations/${asked.operation_id}`
      const open = async () => (await people.eva.get<Asked>(at)).open_gates.map(({ gate_id }) => gate_id)
      await until(async () => (await open()).length === 2, { what: 'both gates' })
      const eva = await tabOf('eva')
      await eva.goto(`${stack.gateway_url}/operations/${asked.operation_id}`)
      await press(eva, 'Intervene')
      await dialogOf(eva).getByText('Let one more person decide a gate').click()
      const [first] = await open()
      expect(await dialogOf(eva).getByLabel('Gate', { exact: true }).inputValue()).toBe(first)
      const gate = await people.eva.get<Parameters<typeof approveGate>[2]>(`${at}/gates/${first}`)
      await approveGate(people.eva, asked.operation_id, gate, 'seen elsewhere')
      await dialogOf(eva).getByText('This gate no longer waits.', { exact: false }).waitFor({ timeout: 20_000 })
      expect(await dialogOf(eva).getByLabel('Gate', { exact: true }).inputValue()).toBe(first)
      await eva.close()
    },
    PATIENCE_MS,
  )
})
type Node = { state: string; generation: number }

describe('a retry', () => {
  it(
    'says before it is sent that it needs a reason, which node runs again, and which one waits for that',
    async () => {
      const olga = await tabOf('olga')
      const { operation_id } = await held('retry me')
      await until(async () => (await nodesOf(operation_id)).breaks === 'failed', {
        what: 'the failed node',
        timeout_ms: 60_000,
      })
      await olga.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/breaks`)
      await press(olga, 'Retry node')
      await dialogOf(olga).getByText('This node runs again: task breaks.').waitFor()
      await dialogOf(olga).getByText('This node waits for that: task after.').waitFor()
      await dialogOf(olga).getByText('Required', { exact: true }).waitFor()
      expect(await accessibilityOf(olga)).toEqual([])
      await confirm(olga, 'Retry node')
      await dialogOf(olga).getByText('Enter a reason.').waitFor()
      expect(await dialogOf(olga).getByText('Required', { exact: true }).count()).toBe(0)
      expect(await nodesOf(operation_id)).toEqual({ breaks: 'failed', after: 'pending' })
      await olga.close()
    },
    PATIENCE_MS,
  )
})
