import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCatalogClient } from '../../apps/operations/catalog/client.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type CatalogLog, catalogLog } from './support/catalog.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'

const HOSTS = 1200
const SICK = 9
const MAIN = new URL('../../apps/worker/main.ts', import.meta.url).pathname
const ids = Array.from({ length: HOSTS }, (_, i) => `h${String(i).padStart(4, '0')}`)
/** Spread over the waves, none of them in the canary. */
const sick = new Set(Array.from({ length: SICK }, (_, i) => ids[150 + i * 100] ?? ''))

const PACK = `format: signalbox/pack@1
pack: sweep
version: 1.0.0
title: Sweep
owners: [netops]
procedures:
  - key: touch
    kind: runbook
    title: Touch every host
    steps:
      - id: touch
        executor: http
        idempotent: true
        with:
          base_url: BASE
          request: { method: POST, url: { $join: ['/', { $from: target/name }] }, body: {} }
`

/** The hosts: their effects, by key, are counted only here. */
const effects = new Map<string, Set<string>>()
const fails = new Set<string>(sick)
const hosts = createServer((req, res) => {
  const name = (req.url ?? '').slice(1)
  const key = String(req.headers['idempotency-key'])
  req.resume()
  if (fails.has(name)) return void res.writeHead(409).end('{}')
  effects.set(name, (effects.get(name) ?? new Set()).add(key))
  res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
})
const touched = () => effects.size

let catalog: CatalogLog
let p: Platform
let folder: string
const workers: ChildProcess[] = []
const startWorker = () => {
  const worker = spawn(process.execPath, [MAIN], {
    stdio: 'ignore',
    env: {
      ...process.env,
      WORKER__DATABASE__URL: p.config.OPERATIONS__DATABASE__URL,
      WORKER__NATS__URL: serverUrl('NATS_URL'),
      WORKER__INTERNAL__PORT: '0',
      WORKER__SERVICE__KEY_FILE: p.services.keyFile('worker'),
      WORKER__TEMPORAL__ADDRESS: serverUrl('TEMPORAL_ADDRESS'),
      WORKER__TEMPORAL__QUEUE_PREFIX: p.prefix,
      WORKER__OPERATIONS__URL: p.running[0]?.internal_url,
      WORKER__EXECUTORS__POLICY_FILE: join(folder, 'policy.yaml'),
      OPERATIONS__CATALOG__URL: catalog.url,
      SIGNALBOX__NATS__PREFIX: p.prefix,
    },
  })
  workers.push(worker)
  return worker
}
const kill = async (worker: ChildProcess) => {
  worker.kill('SIGKILL')
  await once(worker, 'exit')
}

beforeAll(async () => {
  await new Promise<void>((resolve) => hosts.listen(0, '127.0.0.1', resolve))
  folder = mkdtempSync(join(tmpdir(), 'bulk-'))
  mkdirSync(join(folder, 'packs'))
  const base = `http://127.0.0.1:${(hosts.address() as AddressInfo).port}`
  writeFileSync(join(folder, 'packs', 'sweep.yaml'), PACK.replace('BASE', base))
  const destinations = [{ scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  const policy = { format: 'signalbox/executor-policy@1', pools: { default: { destinations, secrets: [] } } }
  writeFileSync(join(folder, 'policy.yaml'), JSON.stringify(policy))
  catalog = await catalogLog()
  catalog.loadTypes()
  for (const id of ids) catalog.put(id)
  p = await startPlatform({
    catalog: createCatalogClient(catalog.url, () => 'token'),
    env: { OPERATIONS__PACKS__DIR: join(folder, 'packs'), WORKER__EXECUTORS__POLICY_FILE: join(folder, 'policy.yaml') },
  })
}, 120_000)
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
  await p.stop()
  await catalog.close()
  hosts.closeAllConnections()
  hosts.close()
  rmSync(folder, { recursive: true })
})

const plan = async (constraints: Record<string, unknown>, when?: string) => {
  const targets = [{ selector: { type_key: 'fleet.host', ...(when && { when }) } }]
  const intent = {
    kind: 'runbook',
    title: 'Touch them all',
    reason: 'a bulk',
    targets,
    constraints,
    runbook: { pack: 'sweep', procedure: 'touch' },
  }
  const { intent_id } = must(await p.as('olga').post('/v1/intents', intent), 201).body
  return must(await p.as('olga').post(`/v1/intents/${intent_id}/plan-preview`, {}), 201).body
}
const begin = async (constraints: Record<string, unknown>, when?: string) => {
  const { plan_id, plan_hash } = await plan(constraints, when)
  const started = await p.as('olga').post(`/v1/plans/${plan_id}/start`, { reviewed_plan_hash: plan_hash })
  return must(started, 201, 202).body.operation_id as string
}
const read = async (operation_id: string) => must(await p.as('olga').get(`/v1/operations/${operation_id}`), 200).body
const reaches = (operation_id: string, status: string) =>
  until(
    async () => {
      const operation = await read(operation_id)
      return operation.status === status ? operation : undefined
    },
    { timeout_ms: 120_000, what: `the operation ${status}` },
  )
const resume = async (operation_id: string) =>
  must(await p.as('olga').post(`/v1/operations/${operation_id}/resume`, { reason: 'they are mended' }), 200, 202)
const states = async (operation_id: string) =>
  (
    await p.query<{ state: string; n: number }>(
      `select state, count(*)::int as n from operations.nodes where operation_id = $1 and kind = 'task' group by state`,
      [operation_id],
    )
  ).reduce<Record<string, number>>((all, { state, n }) => Object.assign(all, { [state]: n }), {})

describe('one intent over more than a thousand targets', () => {
  it('runs in waves, survives a kill of its worker, pauses when its budget is spent, and resumes there', async () => {
    const operation_id = await begin({ batch: { size: 200, canary: 5 }, failure_budget: 4, max_parallel: 50 })
    const first = startWorker()
    await until(() => touched() > 300, { what: '300 hosts touched' })
    await kill(first)
    startWorker()
    const paused = await reaches(operation_id, 'paused')
    expect(paused).toMatchObject({ pause_reason: 'failure_budget', progress: { failed: 5 } })
    // People and scripts read it at every change, so it names only some of its leases.
    expect(paused.leases).toHaveLength(100)
    expect(paused.blocked_on[0].message).toBe('Paused because more nodes failed than the plan allows.')
    const [stood, before] = [touched(), new Map([...effects].map(([name, keys]) => [name, [...keys]]))]
    expect(stood).toBeGreaterThan(500)
    expect(stood).toBeLessThan(HOSTS - SICK)
    // Nothing moves while it is paused.
    expect(await states(operation_id)).toMatchObject({ failed: 5, succeeded: stood })
    fails.clear()
    // The waves after it did not wait for this host: its retry repeats none of them.
    const [first_sick] = sick
    const retry = { reason: 'this one is mended', dry_run: true }
    const again = await p.as('olga').post(`/v1/operations/${operation_id}/nodes/touch.${first_sick}/retry`, retry)
    expect(must(again, 200).body.effect.reset_cone).toEqual([`touch.${first_sick}`])
    await resume(operation_id)
    await reaches(operation_id, 'succeeded_with_exceptions')
    expect(await states(operation_id)).toEqual({ failed: 5, succeeded: HOSTS - 5 })
    expect(touched()).toBe(HOSTS - 5)
    // Everything repeated after the kill used its original key, and no finished node was repeated.
    expect([...effects].filter(([, keys]) => keys.size !== 1)).toEqual([])
    for (const [name, keys] of before) expect([...(effects.get(name) ?? [])]).toEqual(keys)
  }, 240_000)

  it('pauses at the first failure without a budget, and each wave waits for the previous one', async () => {
    fails.add('h0003')
    const operation_id = await begin(
      { batch: { size: 10, canary: 1 }, failure_budget: 0, max_parallel: 1 },
      "target.name < 'h0030'",
    )
    const paused = await reaches(operation_id, 'paused')
    expect(paused.pause_reason).toBe('failure_budget')
    expect(await states(operation_id)).toEqual({ succeeded: 3, failed: 1, ready: 7, pending: 19 })
    fails.clear()
    const retry = { scope: 'downstream', reason: 'mended', expected_generation: 1 }
    must(await p.as('olga').post(`/v1/operations/${operation_id}/nodes/touch.h0003/retry`, retry), 200, 202)
    await resume(operation_id)
    await reaches(operation_id, 'succeeded')
    const group = (id: string) => (id === 'h0000' ? 'canary' : String(Math.ceil(Number(id.slice(1)) / 10)))
    const rows = await p.query<{ node_id: string; group_id: string }>(
      `select node_id, group_id from operations.nodes where operation_id = $1 and kind = 'task'`,
      [operation_id],
    )
    for (const { node_id, group_id } of rows) expect(group_id).toBe(group(node_id.slice('touch.'.length)))
  }, 120_000)

  it('never skips its canary, whatever the budget is', async () => {
    fails.add('h0000')
    const operation_id = await begin({ batch: { size: 10, canary: 1 }, failure_budget: 9 }, "target.name < 'h0030'")
    const held = await reaches(operation_id, 'blocked')
    expect(held.blocked_on).toMatchObject([{ kind: 'failed_node', id: 'touch.h0000' }])
    expect(await states(operation_id)).toEqual({ failed: 1, pending: 29 })
    must(await p.as('olga').post(`/v1/operations/${operation_id}/cancel`, { mode: 'graceful', reason: 'enough' }), 200)
  }, 60_000)
})
