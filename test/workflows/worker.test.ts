import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { Client, Connection } from '@temporalio/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { linksOfProcess } from '../../apps/shared/links.ts'
import { renew } from '../../apps/shared/tls/pairs.ts'
import { type Platform, startPlatform } from '../operations/support/platform.ts'
import { startWorker, workerSettings } from '../operations/support/worker.ts'
import { serverUrl } from '../support/database.ts'
import { startLink } from '../support/link.ts'
import { until } from '../support/until.ts'
import { TEST_POLICY } from './support/engine.ts'

let p: Platform
beforeAll(async () => {
  p = await startPlatform()
})
afterAll(() => p.stop())

it('keeps its threads while Temporal refuses its namespace, and polls once there is one', async () => {
  const namespace = `${p.prefix}-later`
  const child = spawn(process.execPath, ['apps/worker/main.ts'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      ...{ ...process.env, ...workerSettings(p, TEST_POLICY) },
      ...{ WORKER__INTERNAL__PORT: '0', WORKER__TEMPORAL__NAMESPACE: namespace, SIGNALBOX_LOG_LEVEL: 'info' },
    },
  })
  const ended = once(child, 'exit')
  let said = ''
  child.stdout.on('data', (chunk) => (said += chunk))
  const refusals = () => said.split('Temporal is unavailable').length - 1
  const threads = () => readdirSync(`/proc/${child.pid}/task`).length
  try {
    await until(() => refusals() >= 2, { what: 'refusals' })
    const before = threads()
    await until(() => refusals() >= 8, { what: 'more refusals' })
    expect(threads()).toBeLessThanOrEqual(before + 2)
    const connection = await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') })
    const { workflowService } = new Client({ connection })
    await workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    })
    await connection.close()
    await until(() => said.includes('"polling"'), { what: 'the worker polling', timeout_ms: 120_000 })
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}, 240_000)

it('takes new certificates with a new connection, and what runs goes on', async () => {
  const link = await startLink(`http://${serverUrl('TEMPORAL_ADDRESS')}`)
  const connections = new Set<object>()
  link.watch((connection) => void connections.add(connection))
  const worker = await startWorker(p, TEST_POLICY, { WORKER__TEMPORAL__ADDRESS: new URL(link.url).host })
  const { operation_id } = await p.startOperation({
    nodes: [{ node_id: 'slow', executor: 'noop', with: { delay_ms: 40_000 }, timeouts: { run_s: 100 } }],
  })
  const row = async () =>
    (await p.query('select state from operations.nodes where operation_id = $1', [operation_id]))[0]
  await until(async () => (await row())?.state === 'running', { what: 'the start' })
  const before = connections.size
  renew(linksOfProcess().tls, { ca: 'a new authority' })
  await until(() => connections.size > before, { what: 'a new connection' })
  expect(worker.isPolling()).toBe(true)
  await until(async () => (await row())?.state !== 'running', { what: 'the end', timeout_ms: 90_000 })
  expect(await row()).toEqual({ state: 'succeeded' })
  await worker.stop()
  link.stop()
}, 180_000)
