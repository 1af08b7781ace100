import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { REFUSE_QUERY } from '../../workflows/operation/messages.ts'
import { serverUrl } from '../support/database.ts'
import { until } from '../support/until.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** The workflow's query `refuse` answers the same as a dry run of the API, in every state that a command can meet. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let temporal: Client
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-refuse-'))
  const policy_file = join(folder, 'policy.yaml')
  const pools = { default: { destinations: [], secrets: [] } }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({ env: { OPERATIONS__COMMANDS__WAIT_MS: '5000' } })
  worker = await startWorker(p, policy_file)
  temporal = new Client({ connection: await Connection.connect({ address: serverUrl('TEMPORAL_ADDRESS') }) })
}, 90_000)
afterAll(async () => {
  await temporal.connection.close()
  await worker.stop()
  await p.stop()
  rmSync(folder, { recursive: true })
  await worker.end()
})

const reason = 'a question'
const node = (node_id: string, ...depends_on: string[]) => ({
  node_id,
  executor: 'noop',
  with: { delay_ms: 0 },
  depends_on,
})
const fails = { outputs: { n: '/n' }, outputs_schema: { type: 'object', required: ['n'] } }

/** Each command as the API takes it, and as the workflow is asked. */
const COMMANDS = (round: number) => {
  const intervention = (type: string, node_id: string, payload: object) => [
    'interventions',
    { type, node_id, payload },
    { kind: 'intervene', type, node_id },
  ]
  return [
    ['pause', {}, { kind: 'pause' }],
    ['resume', {}, { kind: 'resume' }],
    ...['graceful', 'compensate', 'force'].map((mode) => ['cancel', { mode }, { kind: 'cancel', mode }]),
    ...['a', 'kept', 'boom', 'later'].flatMap((id) => [
      [`nodes/${id}/retry`, {}, { kind: 'retry', node_id: id }],
      intervention('skip', id, {}),
      intervention('mark_failed', id, { message: 'x' }),
      intervention('mark_compensated', id, { note: 'x' }),
      intervention('trigger_compensation', id, {}),
    ]),
    ['interventions', { type: 'set_limits', payload: { max_parallel: 3 } }, { kind: 'intervene', type: 'set_limits' }],
    ['gates/go/reject', { round, comment: 'x' }, { kind: 'reject', gate_id: 'go', round }],
    ['gates/go/reject', { round: round + 1, comment: 'x' }, { kind: 'reject', gate_id: 'go', round: round + 1 }],
  ] as [string, Record<string, unknown>, Record<string, unknown>][]
}

it('answers like a dry run: running, blocked, paused, canceling and ended', async () => {
  const graph = {
    nodes: [
      { ...node('a'), compensate: { executor: 'noop', with: { delay_ms: 0 } } },
      { ...node('kept', 'a'), skippable: false },
      { ...node('boom', 'a'), ...fails },
      { node_id: 'slow', kind: 'wait', with: { signal: 'go-on' }, depends_on: ['a'] },
      node('later', 'slow', 'kept'),
    ],
    gates: [{ gate_id: 'go', policy: { approvals: { groups: [{ group: 'netops', min: 1 }] } }, guards: ['kept'] }],
  }
  const { operation_id } = await p.startOperation(graph)
  const path = `/v1/operations/${operation_id}`
  const handle = temporal.workflow.getHandle(operation_id)
  type Told = { category: string; code: string; detail: string } | null
  const ask = (...asked: object[]) => handle.query<Told, object[]>(REFUSE_QUERY, ...asked)
  const seen = new Map<string, Set<string>>()
  const compare = async (when: string) => {
    const { round } = await p.seen(operation_id, 'go')
    for (const [to, body, asked] of COMMANDS(round)) {
      const by = to.startsWith('gates/') ? 'eva' : 'both'
      const { status, body: said } = await p
        .as(by)
        .post(`${path}/${to}`, { ...body, ...(by === 'both' && { reason }), dry_run: true })
      const answer = await ask(asked)
      const what = `${when}: ${JSON.stringify(asked)}`
      const told = status === 200 ? null : { category: said.category, code: said.code, detail: said.detail }
      const own = answer && { category: answer.category, code: answer.code, detail: answer.detail }
      expect({ what, answer: own }).toEqual({ what, answer: told })
      const codes = seen.get(when) ?? new Set()
      seen.set(when, codes.add(answer?.code ?? 'allowed'))
    }
  }
  const reaches = (status: string) =>
    until(async () => (await p.as('vic').get(path)).body.status === status, { what: status })
  const stateOf = async (id: string) => (await p.as('vic').get(`${path}/nodes/${id}`)).body.state
  await until(async () => (await stateOf('boom')) === 'failed', { timeout_ms: 30_000 })
  await until(async () => (await p.as('eva').get(`${path}/gates/go`)).body.status === 'waiting', { timeout_ms: 30_000 })
  await compare('running')
  expect(await ask()).toMatchObject({ detail: expect.stringContaining('Name a command') })
  expect((await p.as('both').post(`${path}/pause`, { reason })).status).toBe(200)
  await reaches('paused')
  await compare('paused')
  expect((await p.as('both').post(`${path}/resume`, { reason })).status).toBe(200)
  await compare('resumed')
  expect((await p.as('eva').post(`${path}/gates/go/approve`, await p.seen(operation_id, 'go'))).status).toBe(200)
  await until(async () => (await stateOf('kept')) === 'succeeded', { timeout_ms: 30_000 })
  await compare('approved and used')
  expect((await p.as('both').post(`${path}/cancel`, { reason })).status).toBe(200)
  await reaches('cancelled')
  await compare('ended')
  expect([...(seen.get('running') ?? [])]).toEqual(
    expect.arrayContaining([
      'allowed',
      'not_paused',
      'force_needs_cancel_first',
      'node_not_retryable',
      'intervention_not_applicable',
      'round_superseded',
    ]),
  )
  expect([...(seen.get('paused') ?? [])]).toEqual(expect.arrayContaining(['allowed', 'already_paused']))
  expect([...(seen.get('approved and used') ?? [])]).toContain('already_consumed')
  expect([...(seen.get('ended') ?? [])]).toContain('operation_terminal')
  expect(await ask({ kind: 'explode' })).toMatchObject({ category: 'validation_error' })
  expect(await ask({ kind: 'retry', node_id: 'x' })).toMatchObject({ category: 'not_found', code: 'node' })
}, 120_000)
