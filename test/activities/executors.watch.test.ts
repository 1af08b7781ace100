import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createWatch } from '../../activities/executors/http/watch.ts'
import { checked } from '../../activities/executors/index.ts'
import { loadPolicy } from '../../activities/executors/policy.ts'
import type { ExecutorContext } from '../../activities/executors/types.ts'
import { EXECUTORS } from '../../apps/operations/graph/executors.ts'
import { until } from '../support/until.ts'

/**
 * Answers probes and, like Prometheus, instant queries: each query from its own list, whose last value repeats forever.
 */
let server: Server
let base = ''
let statuses: number[] = []
let series: Record<string, (string | string[])[]> = {}
let asked: string[] = []
const next = <T>(list: T[]): T | undefined => (list.length > 1 ? list.shift() : list[0])

beforeAll(async () => {
  server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://x')
    asked.push(url.pathname)
    const reply = (status: number, body: unknown) =>
      void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (url.pathname === '/health') return reply(next(statuses) ?? 200, { ok: true })
    const query = url.searchParams.get('query') ?? ''
    if (query === 'slow') return
    if (query === 'broken') return void res.writeHead(500, { 'content-type': 'text/plain' }).end('out of memory')
    if (query === 'huge') return reply(200, { status: 'success', data: 'x'.repeat(2_000_000) })
    if (query === 'range') return reply(200, { status: 'success', data: { resultType: 'matrix', result: [{}] } })
    const value = next(series[query] ?? [])
    if (value === undefined) return reply(400, { status: 'error', errorType: 'bad_data', error: 'parse error' })
    const result = [value].flat().map((text) => ({ metric: {}, value: [1_700_000_000, text] }))
    reply(200, { status: 'success', data: { resultType: 'vector', result } })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  statuses = []
  series = {}
  asked = []
})

const file = join(mkdtempSync(join(tmpdir(), 'policy-')), 'policy.yaml')
writeFileSync(
  file,
  `format: signalbox/executor-policy@1
pools:
  default: { destinations: [{ scheme: http, host: '*', networks: [127.0.0.0/8], ports: ['1-65535'] }], secrets: [] }
  shut: { destinations: [], secrets: [] }`,
)
const executor = checked(createWatch(loadPolicy(file)))

const run = async (values: Record<string, unknown>, more: Partial<ExecutorContext> = {}) => {
  const lines: string[] = []
  const checkpoints: Record<string, unknown>[] = []
  const result = await executor.run({
    operation_id: 'op',
    node_id: 'n',
    role: 'run',
    generation: 1,
    attempt: 1,
    fence: 7,
    key: 'op:n:1',
    pool: 'default',
    with: { for_s: 2, every_s: 1, ...values },
    secrets: {},
    timeouts: { run_s: 60 },
    idempotent: false,
    slice_end: Date.now() + 60_000,
    deadline: Date.now() + 60_000,
    signal: new AbortController().signal,
    leave: new AbortController().signal,
    resume: null,
    repeated: false,
    checkpoint: async (resume) => {
      checkpoints.push(structuredClone(resume))
      return true
    },
    log: (text) => void lines.push(text),
    stored: async () => {},
    artifact: () => {},
    ...more,
  })
  return { result, lines, checkpoints }
}
const probe = () => ({ name: 'health', request: { method: 'GET', url: `${base}/health` } })
const query = (more: Record<string, unknown>) => ({ name: 'errors', prometheus: base, query: 'errors', ...more })

describe('a watch', () => {
  it('passes with its samples in numbers', async () => {
    series.errors = ['0.01', '0.03', '0.02']
    const { result, lines } = await run({ checks: [probe(), query({ max: 0.05 })] })
    expect(result).toEqual({
      status: 'succeeded',
      raw: {
        passed: true,
        samples: 3,
        checks: {
          health: { samples: 3, failed: 0, last: 200, min: 200, max: 200 },
          errors: { samples: 3, failed: 0, last: 0.02, min: 0.01, max: 0.03 },
        },
      },
    })
    expect(lines).toContain('sample 2 of 3: errors 0.03')
  })

  it('fails at the third sample, definitely', async () => {
    statuses = [200, 200, 503]
    const { result } = await run({ checks: [probe()], for_s: 10 })
    expect(result).toMatchObject({
      status: 'failed',
      class: 'condition_failed',
      message: expect.stringContaining('1 of 3 samples are bad, at most 0 may be; sample 3 of 11 503'),
      raw: { passed: false, samples: 3, checks: { health: { samples: 3, failed: 1, last: 503, min: 200, max: 503 } } },
    })
    expect(asked).toHaveLength(3)
  })

  it('tolerates as many bad samples as the step allows', async () => {
    statuses = [503, 200]
    const { result } = await run({ checks: [probe()], tolerate: 1 })
    expect(result).toMatchObject({ status: 'succeeded', raw: { checks: { health: { samples: 3, failed: 1 } } } })
  })

  it.each([
    ['worse than the rest', '0.20000000000000004', '0.05', 'failed'],
    ['as good as the rest', '0.05', '0.05', 'succeeded'],
  ])('a canary %s: %s against %s', async (_what, canary, rest, status) => {
    series = { errors: [canary], rest: [rest] }
    const { result } = await run({ for_s: 1, checks: [query({ baseline: { query: 'rest', max_ratio: 1.5 } })] })
    expect(result.status).toBe(status)
    if (result.status === 'failed')
      expect(result.message).toMatch(/0\.2 \(rest 0\.05\): worse than the rest, which allows 0\.075$/)
  })

  it.each([
    ['no series', [[]], /returned 0 series: it must return one; append `or vector\(0\)` if none means 0$/],
    ['two series', [['1', '2']], /returned 2 series/],
    ['no number', ['NaN'], /not return a number: NaN/],
    ['an error', [], /answered 400: parse error/],
  ])('counts a query that gives %s as bad', async (_what, answers, message) => {
    series.errors = answers as string[][]
    const { result } = await run({ checks: [query({ max: 1 })] })
    expect(result).toMatchObject({ class: 'condition_failed', message: expect.stringMatching(message) })
  })

  it.each([
    ['does not answer in time', 'slow', /no answer in time/],
    ['answers 500', 'broken', /Prometheus answered 500: no result/],
    ['answers too much', 'huge', /longer than 1048576 bytes/],
    ['gives a range', 'range', /returned a range: it must return one value/],
  ])('takes a Prometheus that %s for bad, for the canary and for the rest', async (_what, question, message) => {
    const own = await run({ checks: [query({ query: question, max: 1, timeout_s: 1 })] })
    expect(own.result).toMatchObject({ class: 'condition_failed', message: expect.stringMatching(message) })
    series.errors = ['1']
    const rest = { query: question, max_ratio: 2 }
    const other = await run({ checks: [query({ timeout_s: 1, baseline: rest })] })
    const text = (other.result as { message: string }).message
    expect(text).toMatch(message)
    expect(text).toContain('1 (rest no value): the rest: ')
  })

  it('a canary that is gone is bad, however good the rest is', async () => {
    series = { errors: [[]], rest: ['0.1'] }
    const { result } = await run({ checks: [query({ baseline: { query: 'rest', max_ratio: 1.5 } })] })
    expect(result).toMatchObject({
      class: 'condition_failed',
      message: expect.stringContaining('no value (rest 0.1): the query returned 0 series'),
    })
  })

  it('takes a target that is away for bad, and one that the policy refuses for an end', async () => {
    const gone = { name: 'gone', request: { method: 'GET', url: 'http://127.0.0.1:1/' } }
    expect((await run({ checks: [gone] })).result).toMatchObject({ class: 'condition_failed' })
    expect((await run({ checks: [probe()] }, { pool: 'shut' })).result).toMatchObject({ class: 'address_denied' })
  })

  it('continues where a killed worker stopped, and counts no time without a worker', async () => {
    const { checkpoints } = await run({ checks: [probe()] })
    asked = []
    const resume = { ...checkpoints[0], next: Date.now() - 3_600_000 }
    const { result } = await run({ checks: [probe()] }, { resume })
    expect(result).toMatchObject({ status: 'succeeded', raw: { samples: 3 } })
    expect(asked).toHaveLength(2)
  })

  it('leaves when the worker stops, and stops on request', async () => {
    const stop = new AbortController()
    const values = { checks: [probe()], for_s: 40, every_s: 20 }
    const left = run(values, { leave: stop.signal })
    const told = run(values, { signal: stop.signal })
    await until(() => asked.length === 2)
    stop.abort()
    expect((await left).result).toMatchObject({ status: 'pending', resume: { rounds: 1 } })
    expect((await told).result).toMatchObject({ status: 'failed', class: 'cancelled' })
  })

  it('ends its slice before a sample that would be cut short', async () => {
    const { result } = await run({ checks: [probe()] }, { slice_end: Date.now() + 5000 })
    expect(result).toMatchObject({ status: 'pending', poll_after_s: 1, resume: { rounds: 1 } })
  })

  it('refuses a time that does not fit into its attempt before the first query', async () => {
    expect((await run({ checks: [probe()], for_s: 120 })).result).toMatchObject({ class: 'refused' })
    expect(asked).toEqual([])
  })

  it('passes although it lasts as long as its attempt, which began a moment before', async () => {
    const { result } = await run({ checks: [probe()] }, { deadline: Date.now() + 1999 })
    expect(result).toMatchObject({ status: 'succeeded', raw: { samples: 3 } })
  })

  it('has time for its last sample that does not depend on the timeouts of its checks', async () => {
    const checks = [query({ timeout_s: 1, max: 1 })]
    series.errors = ['0']
    const { result } = await run({ checks }, { deadline: Date.now() + 500 })
    expect(result).toMatchObject({ status: 'succeeded', raw: { samples: 3 } })
  })
})

describe('a watch with values that other nodes returned', () => {
  it.each([
    ['a tolerance in words', { tolerate: 'none', checks: [probe] }],
    ['no check', { checks: [] }],
    ['checks that are no list', { checks: 'abc' }],
    ['no pause', { every_s: 0, checks: [probe] }],
    ['a bound in words', { checks: [() => query({ max: '5%' })] }],
  ])('is refused before the first query for %s', async (_what, { checks, ...values }) => {
    statuses = [503]
    const made = Array.isArray(checks) ? checks.map((check) => check()) : checks
    expect((await run({ ...values, checks: made })).result).toMatchObject({ status: 'failed', class: 'refused' })
    expect(asked).toEqual([])
  })
})

describe('a watch in a plan', () => {
  const faults = (values: Record<string, unknown>) =>
    EXECUTORS.get('watch')?.check({ for_s: 60, every_s: 5, ...values })
  const url = 'http://p:9090'
  const good = { name: 'a', prometheus: url, query: 'up' }
  const get = { method: 'GET', url }
  it.each([
    ['no check', { checks: [] }, '/checks'],
    ['no list', { checks: 'a' }, '/checks'],
    ['a check that is no object', { checks: [1] }, '/checks/0'],
    ['no bound', { checks: [good] }, '/checks/0'],
    ['min over max', { checks: [{ ...good, min: 2, max: 1 }] }, '/checks/0/min'],
    ['a name twice', { checks: [1, 2].map(() => ({ ...good, max: 1 })) }, '/checks/1/name'],
    ['a name with spaces', { checks: [{ ...good, max: 1, name: 'a b' }] }, '/checks/0/name'],
    ['no address', { checks: [{ ...good, max: 1, prometheus: 'p' }] }, '/checks/0/prometheus'],
    ['both kinds', { checks: [{ ...good, max: 1, request: get }] }, '/checks/0'],
    [
      'a probe with an effect',
      { checks: [{ name: 'a', request: { ...get, method: 'POST' } }] },
      '/checks/0/request/method',
    ],
    ['a wrong expression', { checks: [{ name: 'a', request: get, expect: 'a +' }] }, '/checks/0/expect'],
    ['an unknown member', { checks: [{ ...good, max: 1, maximum: 2 }] }, '/checks/0/maximum'],
    ['fewer seconds than an interval', { every_s: 61, checks: [{ ...good, max: 1 }] }, '/every_s'],
    ['a baseline without a ratio', { checks: [{ ...good, baseline: { query: 'b' } }] }, '/checks/0/baseline/max_ratio'],
  ])('refuses %s', (_what, values, pointer) => {
    expect(faults(values)?.map((fault) => fault.pointer)).toEqual([pointer])
  })

  it('accepts valid watches', () => {
    expect(faults({ checks: [{ ...good, baseline: { query: 'b', max_ratio: 1.5, slack: 0.1 } }] })).toEqual([])
  })
})
