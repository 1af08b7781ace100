import { describe, expect, it } from 'vitest'
import { approveGate, startOperation, waitForGate } from '../../../apps/platform/demo/operations.ts'
import { accessibilityOf } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { jobs, nodesOf, PATIENCE_MS, people, stack, tabOf, takePictures, target } from '../desk.ts'

const HOSTS = ['rack-1', 'rack-2', 'rack-3', 'rack-4', 'rack-5', 'rack-6']

const addHosts = async (hosts: readonly string[]) => {
  for (const resource_id of hosts) {
    const desired_state = { provider: 'test', kind: 'rack' }
    const body = { resource_id, type_key: 'infra.generic', name: resource_id, desired_state }
    await people.ada.post('/v1/resources?mode=record_only', body)
  }
}

/** Three steps on each of six hosts, a gate before the last step. */
const startOnHosts = async (): Promise<string> => {
  await addHosts(HOSTS)
  const step = (name: string, host: string, before?: string) => ({
    ...{
      node_id: `${name}.${host}`,
      name: `${name} ${host}`,
      kind: 'task',
      executor: 'noop',
      with: {},
      idempotent: true,
    },
    ...{ target_id: host, depends_on: before === undefined ? [] : [`${before}.${host}`] },
  })
  const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true }, deadline_s: 3600 }
  const { operation_id } = await startOperation(people.olga, 'Move the racks', {
    ...{
      kind: 'graph',
      title: 'Move the racks',
      reason: 'a test',
      targets: HOSTS.map((resource_id) => ({ resource_id })),
    },
    graph: {
      nodes: HOSTS.flatMap((host) => [step('drain', host), step('move', host, 'drain'), step('verify', host, 'move')]),
      gates: [{ gate_id: 'go', question: 'Move them now?', guards: HOSTS.map((host) => `move.${host}`), policy }],
    },
  })
  return operation_id
}

/** Runs in the page: the size on the screen of every visible label of the drawing. */
const LABELS = `(() => {
  const zoom = new DOMMatrix(getComputedStyle(document.querySelector('.react-flow__viewport')).transform).a
  return [...document.querySelectorAll('.step p')]
    .filter((label) => label.offsetHeight > 0)
    .map((label) => parseFloat(getComputedStyle(label).fontSize) * zoom)
})()`

/** Runs in the page: the place of every box that is drawn. */
const BOXES = `Object.fromEntries([...document.querySelectorAll('.react-flow__node')]
  .map((box) => [box.dataset.id, box.style.transform]))`

describe('the graph of many hosts', () => {
  it(
    'shows hosts by steps, finds a node by keyboard, and names what it waits for',
    async () => {
      const operation_id = await startOnHosts()
      const drained = async () => (await nodesOf(operation_id))['drain.rack-6'] === 'succeeded'
      await until(drained, { what: 'the drained hosts' })
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph`)
      // Six hosts with the same steps are a matrix from the start.
      const grid = page.getByRole('grid', { name: 'Hosts by steps' })
      await grid.getByRole('gridcell', { name: 'drain rack-1, Succeeded' }).waitFor()
      // The rows after the first are drawn once the height of the window is known.
      await expect.poll(() => grid.getByRole('gridcell').count()).toBe(18)
      expect((await grid.getByRole('columnheader').allInnerTexts()).map((text) => text.split('\n')[0])).toEqual([
        ...['Target', 'drain', 'move', 'verify'],
      ])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'matrix')

      // A phone shows two steps beside the hosts, and no map over the drawing.
      await page.setViewportSize({ width: 320, height: 640 })
      const second = await grid.getByRole('columnheader', { name: /^move/ }).boundingBox()
      expect((second?.x ?? 320) + (second?.width ?? 0)).toBeLessThanOrEqual(320)
      await page.getByRole('button', { name: 'Drawing', exact: true }).click()
      await page.locator('.react-flow__minimap').waitFor({ state: 'hidden' })
      await page.setViewportSize({ width: 1360, height: 900 })
      await page.locator('.react-flow__minimap').waitFor()
      await page.getByRole('button', { name: 'Matrix', exact: true }).click()

      // The gate before the last two steps is a bar before its column; each head shows how many are done, and the time.
      const head = grid.getByRole('columnheader', { name: /^move/ })
      await head.getByRole('button', { name: /^Move them now\? Waiting/ }).waitFor()
      await head.getByText('0 of 6 done').waitFor()
      await grid.getByText(/^6 of 6 done · median\s\d/).waitFor()

      // One tab stop: from the first cell, the arrows reach every other cell, and Enter opens it.
      await grid.locator('[tabindex="0"]').focus()
      for (const key of ['ArrowDown', 'End', 'Enter']) await page.keyboard.press(key)
      const panel = page.getByRole('complementary', { name: 'Selected node' })
      await panel.getByRole('heading', { name: 'verify rack-2' }).waitFor()
      const focused = () => page.evaluate<string>('document.activeElement.getAttribute("aria-label")')
      for (const [key, name] of [
        ['Control+End', 'verify rack-6'],
        ['Control+Home', 'drain rack-1'],
      ] as const) {
        await grid.locator('[tabindex="0"]').press(key)
        await until(async () => (await focused())?.startsWith(`${name}, `), { what: `${key} to ${name}` })
      }
      const why = panel.getByRole('region', { name: 'Waits for' })
      await why.getByRole('button', { name: 'Move them now?' }).waitFor()
      expect(await why.getByRole('button').allInnerTexts()).toEqual(['move rack-2', 'Move them now?'])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'matrix-why')
      await why.getByRole('button', { name: 'Move them now?' }).click()
      await page.getByRole('complementary', { name: 'Selected gate' }).waitFor()

      await page.locator('h1').first().click()
      await page.keyboard.press('/')
      await page.keyboard.type('rack-5 waiting')
      await page.getByText('1 node', { exact: true }).waitFor()
      await page.keyboard.press('Enter')
      await page.getByText('1 of 1', { exact: true }).waitFor()
      await panel.getByRole('heading', { name: 'move rack-5' }).waitFor()
      await takePictures(page, 'matrix-found')

      await page.getByRole('button', { name: 'Drawing', exact: true }).click()
      await page.locator('.step.chosen', { hasText: 'move rack-5' }).waitFor()
      const field = page.getByRole('searchbox', { name: 'Find a node' })
      await field.fill('verify rack-1')
      await field.press('Enter')
      await page.locator('.step.chosen', { hasText: 'verify rack-1' }).waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'drawing-found')
      const sizes: number[] = []
      for (let step = 0; step < 8; step++) {
        sizes.push(...(await page.evaluate<number[]>(LABELS)))
        await page.getByRole('button', { name: 'Zoom out' }).click()
        await page.getByRole('button', { name: 'Zoom out' }).click({ delay: 400 })
      }
      expect(sizes.length).toBeGreaterThan(20)
      expect(Math.min(...sizes)).toBeGreaterThan(11.9)

      await page.goto(`${stack.gateway_url}/operations/${operation_id}/nodes?q=rack-5`)
      const names = page.getByRole('table').locator('tbody td:first-child')
      await names.nth(2).waitFor()
      expect((await names.allInnerTexts()).toSorted()).toEqual(['drain rack-5', 'move rack-5', 'verify rack-5'])
      await page.getByRole('searchbox', { name: 'Find a node' }).fill('rack-5 succeeded')
      await names.nth(1).waitFor({ state: 'detached' })
      expect(await names.allInnerTexts()).toEqual(['drain rack-5'])

      // The events of a run move no box.
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=drawing`)
      await page.locator('.step').first().waitFor()
      const before = await page.evaluate<Record<string, string>>(BOXES)
      await approveGate(people.eva, operation_id, await waitForGate(people.eva, operation_id), 'a test')
      await page
        .getByText(/^Succeeded in/)
        .first()
        .waitFor()
      const after = await page.evaluate<Record<string, string>>(BOXES)
      expect(Object.keys(before).length).toBeGreaterThan(2)
      expect(Object.fromEntries(Object.entries(after).filter(([id]) => id in before))).toEqual(before)
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'names the failed nodes above every view, and keys lead from one to the next in the matrix',
    async () => {
      const hosts = ['bad-1', 'bad-2', 'bad-3']
      await addHosts(hosts)
      const checked = (host: string) => ({
        ...{ node_id: `check.${host}`, name: `check ${host}`, target_id: host, depends_on: [`drain.${host}`] },
        ...{ executor: 'http', idempotent: true },
        with: { request: { method: 'GET', url: `${target.url}?host=${host}` } },
      })
      const drained = (host: string) => ({
        ...{ node_id: `drain.${host}`, name: `drain ${host}`, target_id: host, executor: 'noop', with: {} },
      })
      const once = { ...drained('bad-2'), node_id: 'wipe.bad-2', name: 'wipe bad-2', depends_on: ['check.bad-2'] }
      const { operation_id } = await startOperation(people.olga, 'Check the racks', {
        ...{ kind: 'graph', title: 'Check the racks', reason: 'a test' },
        targets: hosts.map((resource_id) => ({ resource_id })),
        graph: { nodes: [...hosts.flatMap((host) => [drained(host), checked(host)]), once] },
      })
      await until(() => target.waiting.length === 3, { what: 'the checks' })
      for (const answer of target.waiting.splice(0))
        answer.writeHead(answer.req.url?.includes('bad-2') ? 200 : 422).end('{}')
      const page = await tabOf('olga')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=matrix`)
      const named = page.getByRole('list', { name: 'Failed nodes' }).getByRole('button')
      await named.nth(1).waitFor()
      expect(await named.allInnerTexts()).toEqual(['check bad-1', 'check bad-3'])
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'failed-nodes')
      // The text of an error finds its nodes here as in the table of nodes.
      const find = page.getByRole('searchbox', { name: 'Find a node' })
      await find.fill('check 422')
      await page.getByRole('main').getByRole('search').getByText('2 nodes', { exact: true }).waitFor()
      await find.fill('')
      const grid = page.getByRole('grid', { name: 'Hosts by steps' })
      await grid.locator('[tabindex="0"]').focus()
      const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label")')
      for (const [key, host] of [
        [']', 'bad-1'],
        [']', 'bad-3'],
        [']', 'bad-3'],
        ['[', 'bad-1'],
      ] as const) {
        await page.keyboard.press(key)
        await until(async () => (await focused()) === `check ${host}, Failed`, { what: `${key} to ${host}` })
      }
      expect(new URL(page.url()).pathname).toBe(`/operations/${operation_id}/graph`)
      // A phone shows the dot of a host without the step.
      await page.setViewportSize({ width: 320, height: 640 })
      await grid.getByRole('gridcell', { name: 'Not planned' }).first().getByText('·').waitFor()
      await page.setViewportSize({ width: 1360, height: 900 })
      for (const view of ['List', 'Drawing']) {
        await page.getByRole('button', { name: view, exact: true }).click()
        await named.last().click()
        await page
          .getByRole('complementary', { name: 'Selected node' })
          .getByRole('heading', { name: 'check bad-3' })
          .waitFor()
      }
      // On a phone the panel is below every node, and comes into view.
      await page.setViewportSize({ width: 390, height: 400 })
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=list`)
      await named.first().click()
      const panel = page.getByRole('complementary', { name: 'Selected node' })
      await panel.getByRole('heading', { name: 'check bad-1' }).waitFor()
      const top = async () => (await panel.boundingBox())?.y ?? -1
      await until(async () => (await top()) >= 0 && (await top()) < 200, { what: 'the panel in view' })
      await page.setViewportSize({ width: 1360, height: 900 })
      // The address follows each choice a moment later: a second choice in that moment stays, and so does a tab.
      const graph_url = `${stack.gateway_url}/operations/${operation_id}/graph`
      for (const gap_ms of [0, 20, 40, 80]) {
        await page.goto(`${graph_url}?view=list`)
        await named.last().waitFor()
        await page.evaluate(`(async () => {
          document.querySelector('button.legend').click()
          await new Promise((resolve) => setTimeout(resolve, ${gap_ms}))
          document.querySelector('ul[aria-label="Failed nodes"] button').click()
        })()`)
        await page.waitForURL((url) => url.searchParams.has('only') && url.searchParams.get('node') === 'check.bad-1')
      }
      await page.evaluate(`(() => {
        document.querySelector('button.legend').click()
        document.querySelector('a[href$="/timeline"]').click()
      })()`)
      await page.getByRole('table', { name: /^Events/ }).waitFor()
      expect(new URL(page.url()).pathname).toBe(`/operations/${operation_id}/timeline`)
      await people.olga.post(`/v1/operations/${operation_id}/cancel`, { reason: 'a test', mode: 'graceful' })
      await page.close()
    },
    PATIENCE_MS,
  )

  it(
    'shows how far running nodes are, in the words of their agents, as cells and on the page of the node',
    async () => {
      const hosts = ['slow-1', 'slow-2']
      await addHosts(hosts)
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      jobs.copy = async (_work, { tell }) => {
        await tell('3 of 12 files are copied')
        await first.promise
        await tell('9 of 12 files are copied')
        await second.promise
        return {}
      }
      const { operation_id } = await startOperation(people.olga, 'Copy the files', {
        ...{ kind: 'graph', title: 'Copy the files', reason: 'a test' },
        targets: hosts.map((resource_id) => ({ resource_id })),
        graph: {
          nodes: hosts.map((host) => ({
            ...{ node_id: `copy.${host}`, name: `copy ${host}`, target_id: host, executor: 'external', pool: 'lab' },
            with: { job: 'copy', inputs: {} },
          })),
        },
      })
      const page = await tabOf('eva')
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/graph?view=matrix`)
      const cell = page.getByRole('gridcell', { name: 'copy slow-1, Running' })
      await cell.getByText('3 of 12 files are copied').waitFor()
      expect(await cell.getAttribute('title')).toMatch(/^copy slow-1 .*3 of 12 files are copied$/)
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'matrix-progress')
      await cell.click()
      const panel = page.getByRole('complementary', { name: 'Selected node' })
      await panel.getByText('3 of 12 files are copied').waitFor()
      await page.goto(`${stack.gateway_url}/operations/${operation_id}/nodes/copy.slow-1`)
      await page.getByRole('main').getByText('3 of 12 files are copied').waitFor()
      first.resolve()
      await page.getByRole('main').getByText('9 of 12 files are copied').waitFor()
      expect(await accessibilityOf(page)).toEqual([])
      await takePictures(page, 'node-progress')
      second.resolve()
      await page.getByText('9 of 12 files are copied').waitFor({ state: 'detached' })
      await page.close()
    },
    PATIENCE_MS,
  )
})
