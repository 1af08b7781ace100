import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { must, type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** The target, and next to it Prometheus: the error rates of the canary and of the rest. */
let rates = { canary: 0.4, rest: 0.1 }
const done: string[] = []
const world = createServer((req, res) => {
  const url = new URL(req.url ?? '/', 'http://x')
  const query = url.searchParams.get('query') as keyof typeof rates | null
  if (req.method === 'POST') done.push(url.pathname)
  const body = query ? { status: 'success', data: { resultType: 'scalar', result: [1, String(rates[query])] } } : {}
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})
let base = ''
let folder: string
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
beforeAll(async () => {
  await new Promise<void>((resolve) => world.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(world.address() as AddressInfo).port}`
  folder = mkdtempSync(join(tmpdir(), 'watches-'))
  const destinations = [{ scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }]
  const file = join(folder, 'policy.yaml')
  const pools = { default: { destinations, secrets: [] } }
  writeFileSync(file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({ env: { WORKER__EXECUTORS__POLICY_FILE: file } })
  worker = await startWorker(p, file)
}, 90_000)
afterAll(async () => {
  await worker.stop()
  await p.stop()
  world.closeAllConnections()
  world.close()
  rmSync(folder, { recursive: true })
  await worker.end()
})
beforeEach(() => {
  rates = { canary: 0.4, rest: 0.1 }
  done.length = 0
})

const call = (path: string) => ({ base_url: base, request: { method: 'POST', url: `/${path}`, body: {} } })
const canary = () => ({ node_id: 'canary', executor: 'http', with: call('canary'), compensate: { with: call('undo') } })
const watch = (on_failure: string) => ({
  node_id: 'observe',
  executor: 'watch',
  depends_on: ['canary'],
  on_failure,
  with: {
    for_s: 1,
    every_s: 1,
    checks: [{ name: 'errors', prometheus: base, query: 'canary', baseline: { query: 'rest', max_ratio: 1.5 } }],
  },
})
const rest = (after: string) => ({ node_id: 'rest', executor: 'http', depends_on: [after], with: call('rest') })
const policy = { approvals: { groups: [{ group: 'netops', min: 1 }] }, on_reject: 'cancel_operation' }
/** A person is asked only if the watch failed; otherwise the guarded step is skipped. */
const asking = () => ({
  nodes: [
    canary(),
    watch('tolerate'),
    { node_id: 'ask', executor: 'noop', depends_on: ['observe'], when: '!nodes.observe.outputs.passed' },
    rest('ask'),
  ],
  gates: [{ gate_id: 'go', policy, guards: ['ask'], question: 'The canary is worse than the rest. Go on?' }],
})
const figures = { samples: 1, failed: 1, last: 0.4, min: 0.4, max: 0.4, baseline: 0.1 }
const outputs = { passed: false, samples: 1, checks: { errors: figures } }
const reaches = (operation_id: string, status: string) =>
  until(
    async () => {
      const { body } = await p.as('olga').get(`/v1/operations/${operation_id}`)
      return body.status === status ? body : undefined
    },
    { what: `the operation ${status}` },
  )
const node = async (operation_id: string, id: string) =>
  must(await p.as('olga').get(`/v1/operations/${operation_id}/nodes/${id}`), 200).body

it('that fails and holds keeps its numbers for the person who reviews it', async () => {
  const { operation_id } = await p.startOperation({ nodes: [canary(), watch('hold'), rest('observe')] })
  const held = await reaches(operation_id, 'blocked')
  expect(held.blocked_on).toMatchObject([{ kind: 'failed_node', id: 'observe' }])
  expect(await node(operation_id, 'observe')).toMatchObject({ state: 'failed', outputs })
  expect(done).toEqual(['/canary'])
  rates = { canary: 0.1, rest: 0.1 }
  const retry = { reason: 'it has settled', expected_generation: 1 }
  must(await p.as('olga').post(`/v1/operations/${operation_id}/nodes/observe/retry`, retry), 200, 202)
  await reaches(operation_id, 'succeeded')
  expect((await node(operation_id, 'observe')).outputs).toMatchObject({ passed: true, samples: 2 })
  expect(done).toEqual(['/canary', '/rest'])
})

it('that fails before a gate asks with its numbers, and they are approved', async () => {
  const { operation_id } = await p.startOperation(asking())
  await reaches(operation_id, 'blocked')
  const path = `/v1/operations/${operation_id}/gates/go`
  const gate = must(await p.as('eva').get(path), 200).body
  expect(gate).toMatchObject({
    status: 'waiting',
    subject: { bound_outputs: [{ pointer: 'nodes/observe/outputs', value: outputs }] },
  })
  expect(done).toEqual(['/canary'])
  must(await p.as('eva').post(`${path}/approve`, await p.seen(operation_id, 'go')), 200, 202)
  await reaches(operation_id, 'succeeded_with_exceptions')
  expect(done).toEqual(['/canary', '/rest'])
})

it('that passes asks no one', async () => {
  rates = { canary: 0.1, rest: 0.1 }
  const { operation_id } = await p.startOperation(asking())
  await reaches(operation_id, 'succeeded')
  expect((await node(operation_id, 'ask')).state).toBe('skipped')
  expect(done).toEqual(['/canary', '/rest'])
})

it('that fails and compensates undoes the change before it and says why in numbers', async () => {
  const { operation_id } = await p.startOperation({ nodes: [canary(), watch('compensate'), rest('observe')] })
  const ended = await reaches(operation_id, 'failed')
  expect(ended.end_reason).toBe('node_failed')
  expect(await node(operation_id, 'canary')).toMatchObject({ state: 'compensated' })
  const observed = await node(operation_id, 'observe')
  expect(observed).toMatchObject({ state: 'failed', outputs })
  expect(observed.error_message).toContain('0.4 (rest 0.1): worse than the rest')
  expect(done).toEqual(['/canary', '/undo'])
})
