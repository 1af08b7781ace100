import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { ensurePerson, readDemo } from '../../apps/platform/demo/accounts.ts'
import type { Account, Person } from '../../apps/platform/demo/client.ts'
import { startOperation } from '../../apps/platform/demo/operations.ts'
import { type DemoProvider, startProvider } from '../../apps/platform/demo/provider.ts'
import { startPushService } from '../operations/support/push-service.ts'
import { startMailServer } from '../operations/support/receivers.ts'
import { carryOut, type Job, listenForWork } from '../support/agent/agent.ts'
import { complaintsOf, launchBrowser, signInAs } from '../support/browser.ts'
import { manySettings } from '../support/many.ts'
import { scratchFolder } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

/** A browser next to a whole platform on two cores is slow; no test waits for time to pass. */
export const PATIENCE_MS = 300_000

/** One platform and one browser for all cases: both are expensive to start. */
export let stack: Stack
export let browser: Browser
/** Where the platform sends mail. */
export let mail: Awaited<ReturnType<typeof startMailServer>>
/** Where its browsers' pushes go. */
export let pushes: Awaited<ReturnType<typeof startPushService>>
export let people: Record<'ada' | 'olga' | 'eva', Person>
export const accounts = new Map<string, Account>()
/** What pages complained about until they were closed. */
export const complaints: string[] = []
/** The same without the errors that tests cause: they block the stream, cut the network and answer 599. */
export const unmeantComplaints = (): string[] => {
  const meant =
    /ERR_FAILED|ERR_INTERNET_DISCONNECTED|status of 599|code of this page could not be fetched|dynamically imported module|session cannot be resumed/
  return complaints.filter((line) => !meant.test(line))
}

/** A slow outside target: every request is answered when the test says so. */
export const target = {
  url: '',
  waiting: [] as ServerResponse[],
  server: createServer((_req, res) => void target.waiting.push(res)),
}
export const letGo = () => {
  for (const answer of target.waiting.splice(0)) answer.end('{}')
}
export const isHeld = () => until(() => target.waiting.length > 0, { what: 'the first node at its target' })

/** What the outside agent can do, by name. */
export const jobs: Record<string, Job> = {}
let agent: Awaited<ReturnType<typeof listenForWork>>
/** Where lena and mia have an identity too. */
let provider: DemoProvider
const providersFile = (): string => {
  const dir = scratchFolder()
  const { issuer, client_id, client_secret } = provider
  mkdirSync(join(dir, 'secrets'))
  writeFileSync(join(dir, 'secrets/corp'), client_secret)
  const corp = { id: 'corp', title: 'Example Corp', issuer, client_id, client_secret: 'secret://file/corp' }
  const file = join(dir, 'providers.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ format: 'signalbox/providers@1', providers: [corp] }))
  return file
}

const APPS = ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway']

/** `settings` override those of a test platform. */
export const openDesk = async (settings: Record<string, string> = {}): Promise<void> => {
  await new Promise<void>((resolve) => target.server.listen(0, '127.0.0.1', resolve))
  target.url = `http://127.0.0.1:${(target.server.address() as AddressInfo).port}/work`
  agent = await listenForWork((work) => carryOut(work, jobs[work.job]))
  mail = await startMailServer()
  pushes = await startPushService()
  const known = ['lena', 'mia'].map((name) => ({ sub: name, name, groups: [] }))
  provider = await startProvider({ port: 0, people: known })
  stack = await startStack({
    console: true,
    apps: APPS,
    agent_url: agent.url,
    env_overrides: {
      AUTH__PROVIDERS__FILE: providersFile(),
      // No one at the desk is an auditor, but for the case about it.
      SESSION__SECOND_FACTOR__ROLES: '["auditor"]',
      OPERATIONS__TICKETS__URL: 'https://tickets.example/browse/{ticket}',
      ...manySettings(),
      NOTIFY__ENABLED: 'true',
      NOTIFY__SMTP__HOST: '127.0.0.1',
      NOTIFY__SMTP__PORT: String(mail.port),
      NOTIFY__SMTP__TLS: 'none',
      NOTIFY__SMTP__FROM: 'signalbox@example.org',
      NOTIFY__GATHER_S: '0',
      NOTIFY__PUSH__HOSTS: '["127.0.0.1"]',
      NOTIFY__EGRESS__ALLOW: JSON.stringify([
        { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: [String(pushes.port)] },
      ]),
      ...settings,
    },
  })
  people = await stack.people()
  for (const account of readDemo(stack.dir)?.users ?? []) accounts.set(account.username, account)
  // Someone who may start operations and decide gates: the case that four eyes guard against.
  const otto = { username: 'otto', password: 'rT5hw-xC7pP-kJ2pa-qR4zz', roles: ['operator', 'approver'] }
  await ensurePerson(stack.gateway_url, people.ada, otto, 'netops')
  accounts.set('otto', otto)
  browser = await launchBrowser()
}

export const closeDesk = async (): Promise<void> => {
  target.server.closeAllConnections()
  target.server.close()
  await agent?.close()
  await browser?.close()
  await stack?.stop()
  await mail.close()
  pushes.close()
  await provider.stop()
}

export const openTab = async (context: BrowserContext): Promise<Page> => {
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const said = complaintsOf(page)
  page.on('close', () => complaints.push(...said))
  return page
}

/** A separate browser with this person signed in, for tests that end or disturb the session. */
export const sitDown = async (username: string): Promise<{ context: BrowserContext; page: Page }> => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: 'reduce' })
  const page = await openTab(context)
  await signInAs(page, stack.gateway_url, accounts.get(username) as Account)
  return { context, page }
}

/** Ends the session of a page: its next read is refused, and so is its refresh. The session dialog opens. */
export const endSession = async (page: Page): Promise<void> => {
  const refresh = '**/v1/token?response_mode=cookie'
  const isRefresh = (data: string | null) => data?.includes('refresh_token') === true
  await page.route(refresh, (route) =>
    isRefresh(route.request().postData()) ? route.fulfill({ status: 401 }) : route.continue(),
  )
  await page.route('**/api/v1/resources?**', (route) => route.fulfill({ status: 401 }), { times: 1 })
  await page.getByRole('link', { name: 'Resources' }).click()
  await dialogOf(page).getByRole('heading', { name: 'Your session has ended' }).waitFor()
  await page.unroute(refresh)
}

const desks = new Map<string, Promise<{ context: BrowserContext; page: Page }>>()
/** Another tab at this person's desk. */
export const tabOf = async (username: string): Promise<Page> => {
  if (!desks.has(username)) desks.set(username, sitDown(username))
  const desk = desks.get(username) as ReturnType<typeof sitDown>
  return openTab((await desk).context)
}

type Wanted = {
  signature?: 'required'
  held?: boolean
  deadline_s?: number
  owner?: Person
  reason?: string
  ticket?: string
  step?: string
  environment?: string
}
/** Two nodes, the second behind a gate; `held`: without a gate, and the first runs until `letGo`. */
export const start = async (title: string, wanted: Wanted = {}) => {
  const {
    signature,
    held = false,
    deadline_s = 3600,
    owner,
    reason = 'a test',
    ticket,
    step = 'task',
    environment,
  } = wanted
  const task = (node_id: string, depends_on: string[] = []) => ({
    node_id,
    name: `${step} ${node_id}`,
    kind: 'task',
    executor: 'noop',
    with: {},
    idempotent: true,
    depends_on,
  })
  const first = { ...task('first'), executor: 'http', with: { request: { method: 'GET', url: target.url } } }
  const policy = {
    approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true, ...(signature && { signature }) },
    deadline_s,
  }
  const { operation_id } = await startOperation(owner ?? people.olga, title, {
    kind: 'graph',
    title,
    reason,
    ...(ticket !== undefined && { ticket }),
    ...(environment !== undefined && { labels: { environment } }),
    targets: [],
    graph: {
      nodes: [held ? first : task('first'), task('second', ['first'])],
      gates: held ? [] : [{ gate_id: 'go', question: `Go on with ${title}?`, guards: ['second'], policy }],
    },
  })
  return {
    operation_id,
    url: `${stack.gateway_url}/operations/${operation_id}`,
    gate: `${stack.gateway_url}/operations/${operation_id}/gates/go`,
  }
}

export const nodesOf = async (operation_id: string): Promise<Record<string, string>> => {
  const { items } = await people.eva.get<{ items: { node_id: string; state: string }[] }>(
    `/v1/operations/${operation_id}/nodes`,
  )
  return Object.fromEntries(items.map(({ node_id, state }) => [node_id, state]))
}

/** Until search, which follows the log of the catalog, holds as many resources for these words. */
export const untilFound = (words: string, count: number) => {
  const found = async () => (await people.eva.get<{ items: object[] }>(`/v1/search?q=${words}`)).items.length
  return until(async () => (await found()) === count, { what: `search to hold ${count}`, timeout_ms: 60_000 })
}

/** Goes to a page by its pair of keys. A busy machine may bring the second one too late: then both are pressed again. */
export const goByKeys = (page: Page, key: string, path: string) => {
  const isThere = async () => {
    if (page.url().includes(path)) return true
    for (const one of ['g', key]) await page.keyboard.press(one)
    return page.url().includes(path)
  }
  return until(isThere, { what: `g ${key} to open ${path}`, every_ms: 1000 })
}

export const dialogOf = (page: Page) => page.getByRole('dialog')
export const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
export const confirm = (page: Page, name: string) => dialogOf(page).getByRole('button', { name, exact: true }).click()

/** Pictures of the page in light and dark, and on a phone, in the folder that SIGNALBOX_PICTURES names; none unless it is set. */
export const takePictures = async (page: Page, name: string): Promise<void> => {
  const folder = process.env.SIGNALBOX_PICTURES
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) })
  }
  const size = page.viewportSize()
  await page.setViewportSize({ width: 390, height: 844 })
  await page.screenshot({ path: join(folder, `${name}-phone.png`) })
  if (size) await page.setViewportSize(size)
}
