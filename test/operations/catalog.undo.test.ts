import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHosts } from '../../apps/fleet/hosts.ts'
import { openStore } from '../../apps/fleet/store.ts'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { startCatalog } from '../catalog/support/platform.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'

/** Operations, catalog, worker and hosts as they run: an undo leaves the same state at all of them. */
const MAIN = new URL('../../apps/worker/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname
const TOKEN = 'Bearer of-the-fleet'
const folder = mkdtempSync(join(tmpdir(), 'signalbox-undo-'))
const store = openStore(':memory:')
const fleet = createHosts(store, {
  address: '127.0.0.1',
  known_as: '127.0.0.1',
  port_base: 21_000 + Math.floor(Math.random() * 20_000),
  token: TOKEN,
  log: createTelemetry('fleet').log,
})
const HOSTS = ['canary', 'other']
let catalog: Awaited<ReturnType<typeof startCatalog>>
let p: Platform
const workers: ChildProcess[] = []

beforeAll(async () => {
  const destinations = [{ scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  const pools = { default: { destinations, secrets: ['secret://file/fleet-*'] } }
  writeFileSync(join(folder, 'policy.yaml'), JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  writeFileSync(join(folder, 'fleet-token.1'), TOKEN)
  catalog = await startCatalog()
  catalog.deps.graph.start()
  const ada = catalog.as('ada')
  await ada.record({ resource_id: 'eu1', type_key: 'topology.region', name: 'eu1', desired_state: { code: 'eu1' } })
  await ada.record({
    resource_id: 'eu1-a',
    type_key: 'topology.datacenter',
    name: 'eu1-a',
    parent_id: 'eu1',
    desired_state: { code: 'eu1-a' },
  })
  for (const name of HOSTS) {
    const host = await fleet.put(name, { resource_id: name, region: 'eu1' })
    await ada.record({
      resource_id: name,
      type_key: 'fleet.host',
      name,
      parent_id: 'eu1-a',
      lifecycle_status: 'active',
      labels: { environment: 'demo' },
      desired_state: { hostname: name, release: '1.0.0' },
      observed_state: { base_url: fleet.urlOf(host), release: '1.0.0' },
    })
  }
  await catalog.followed()
  p = await startPlatform({
    catalog: createCatalogClient(catalog.internal_url, catalog.services.signer('operations')),
    env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', OPERATIONS__PROJECTION__MAX_LAG_MS: '0' },
  })
}, 90_000)
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
  await p.stop()
  await catalog.stop()
  await fleet.closeAll()
  rmSync(folder, { recursive: true })
})

const startWorker = (crash_at?: string): ChildProcess => {
  const worker = spawn(process.execPath, [MAIN], {
    cwd: ROOT,
    stdio: 'ignore',
    env: {
      ...process.env,
      WORKER__DATABASE__URL: p.config.OPERATIONS__DATABASE__URL,
      WORKER__NATS__URL: serverUrl('NATS_URL'),
      WORKER__INTERNAL__PORT: '0',
      WORKER__SERVICE__KEY_FILE: catalog.services.keyFile('worker'),
      WORKER__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
      WORKER__TEMPORAL__QUEUE_PREFIX: p.prefix,
      SIGNALBOX__NATS__PREFIX: p.prefix,
      OPERATIONS__CATALOG__URL: catalog.internal_url,
      WORKER__EXECUTORS__POLICY_FILE: join(folder, 'policy.yaml'),
      WORKER__EXECUTORS__SECRETS_DIR: folder,
      ...(crash_at !== undefined && { SIGNALBOX_CRASH_AT: crash_at }),
    },
  })
  workers.push(worker)
  return worker
}

const olga = () => p.as('olga')
const release = async (value: string): Promise<string> => {
  await catalog.followed()
  const targets = HOSTS.map((resource_id) => ({ resource_id }))
  const change = { op: 'update', desired_state_patch: { release: value }, parameters: { drain_s: 0 } }
  const stated = { kind: 'change', title: `release ${value}`, reason: 'a test', targets, change }
  const { intent_id } = must(await olga().post('/v1/intents', stated), 201).body
  const plan = must(await olga().post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
  const path = `/v1/plans/${plan.plan_id}/start`
  return must(await olga().post(path, { reviewed_plan_hash: plan.plan_hash }), 201, 202).body.operation_id
}
const look = async (operation_id: string) => (await olga().get(`/v1/operations/${operation_id}`)).body
const asksAtGate = (operation_id: string) =>
  until(
    async () => {
      const { items } = (await olga().get(`/v1/operations/${operation_id}/gates?status=waiting`)).body
      const { status, blocked_on, progress } = await look(operation_id)
      if (items.length === 0) throw new Error(JSON.stringify({ status, blocked_on, progress }))
      return true
    },
    { timeout_ms: 120_000, what: 'the gate after the canary' },
  )
const ends = (operation_id: string) =>
  until(async () => (await look(operation_id)).status === 'cancelled', { timeout_ms: 120_000, what: 'the end' })
const takeBack = async (operation_id: string) =>
  must(await olga().post(`/v1/operations/${operation_id}/cancel`, { mode: 'compensate', reason: 'back' }), 200, 202)
const known = async (resource_id: string) => (await catalog.as('ada').get(`/v1/resources/${resource_id}`)).body
const stateOf = async (resource_id: string) => {
  const { desired_state, observed_state, lifecycle_status } = await known(resource_id)
  return { desired_state, observed_state, lifecycle_status }
}

it('a compensating cancel is also undone in the catalog: the next plan starts without drift', async () => {
  const worker = startWorker()
  const before = await stateOf('canary')
  const operation_id = await release('2.0.0')
  await asksAtGate(operation_id)
  expect(store.host('canary')?.release).toBe('2.0.0')
  expect(await known('canary')).toMatchObject({ version: 2, desired_state: { release: '2.0.0' } })
  await takeBack(operation_id)
  await ends(operation_id)
  expect(store.host('canary')?.release).toBe('1.0.0')
  expect(await stateOf('canary')).toEqual(before)
  expect((await known('canary')).version).toBe(3)
  expect((await known('other')).version).toBe(1)
  const timeline = (await olga().get(`/v1/operations/${operation_id}/timeline?limit=1000`)).body.events
  const writes = timeline.filter(({ type }: { type: string }) => type === 'catalog.applied')
  expect(writes.map(({ data }: { data: unknown }) => data)).toEqual([{ version: 2 }, { version: 3, role: 'undo' }])
  const { items } = (await catalog.as('ada').get('/v1/resources/canary/versions')).body
  expect(items.find(({ version }: { version: number }) => version === 3)).toMatchObject({ operation_id })

  const again = await release('2.0.0')
  await asksAtGate(again)
  await takeBack(again)
  await ends(again)
  expect(await stateOf('canary')).toEqual(before)
  worker.kill('SIGKILL')
  await once(worker, 'exit')
}, 420_000)

it('a worker killed between the undo and its catalog write repeats one command: one version, once', async () => {
  const { version } = await known('canary')
  const before = await stateOf('canary')
  const operation_id = await release('3.0.0')
  // The first write is that of the canary, the second that of its undo.
  const doomed = startWorker('catalog.before_save@2')
  await asksAtGate(operation_id)
  await takeBack(operation_id)
  await once(doomed, 'exit')
  expect((await look(operation_id)).status).toBe('cancelling')
  expect((await known('canary')).version).toBe(version + 2)
  startWorker()
  await ends(operation_id)
  expect((await known('canary')).version).toBe(version + 2)
  expect(await stateOf('canary')).toEqual(before)
  expect(store.host('canary')?.release).toBe('1.0.0')
}, 420_000)
