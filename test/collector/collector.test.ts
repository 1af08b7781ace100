import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { beginAttempt } from '../../apps/cli/agent/span.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import type { Work } from '../../apps/shared/contracts/engine/executions.ts'
import { startMetering } from '../../apps/shared/metering.ts'
import { createTelemetry } from '../../apps/shared/telemetry.ts'
import { beginSpan, startTracing } from '../../apps/shared/tracing.ts'
import { startCollector } from '../platform/support/collector.ts'
import { until } from '../support/until.ts'

/** The collector that deploy/observe sets up, between this process and a store. */
const CONFIG = join(ROOT, 'apps/platform/deploy/observe/collector.yaml')
const program = process.env.OTEL_COLLECTOR ?? ''
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-collector-'))
let store: Awaited<ReturnType<typeof startCollector>>
let collector: ChildProcess
let env: NodeJS.ProcessEnv
const ending: (() => Promise<void>)[] = []
const telemetry = createTelemetry('test', { level: 'silent' })

beforeAll(async () => {
  store = await startCollector()
  const port = await createPorts().take('collector', 0)
  const address = `127.0.0.1:${port}`
  const quick = join(scratch, 'quick.yaml')
  // This test's store reads JSON, and a half-minute wait would be too long.
  writeFileSync(
    quick,
    JSON.stringify({
      processors: { batch: { timeout: '100ms' }, tail_sampling: { decision_wait: '3s' } },
      exporters: { otlp_http: { encoding: 'json', compression: 'none' } },
      service: { telemetry: { metrics: { level: 'none' } } },
    }),
  )
  collector = spawn(program, ['--config', CONFIG, '--config', quick], {
    env: { LISTEN: address, STORE_URL: store.url },
    stdio: 'ignore',
  })
  env = { SIGNALBOX__TELEMETRY__OTLP_URL: `http://${address}`, SIGNALBOX__TELEMETRY__METRICS_S: '1' }
  const asked = () =>
    fetch(`http://${address}/v1/traces`).then(
      () => true,
      () => false,
    )
  await until(asked, { what: 'the collector' })
  ending.push(await startTracing('test', env))
})
afterAll(async () => {
  for (const end of ending) await end()
  collector?.kill()
  store?.close()
  rmSync(scratch, { recursive: true, force: true })
})

it('is given a valid configuration', () => {
  execFileSync(program, ['validate', '--config', CONFIG], { env: { STORE_URL: 'http://127.0.0.1:1' }, stdio: 'pipe' })
})

describe('a trace', () => {
  const READS = 200
  beforeAll(async () => {
    for (let n = 0; n < READS; n++) beginSpan(`read ${n}`, undefined, { priority: 'read' })?.end()
    for (const priority of ['stop', 'decide']) {
      const first = beginSpan(priority, undefined, { priority })
      beginSpan(`${priority} behind`, first?.traceparent)?.end()
      first?.end()
    }
    beginSpan('failed', undefined, { priority: 'read' })?.end({}, true)
    const slow = beginSpan('slow', undefined, { priority: 'read' })
    await delay(1100)
    slow?.end()
  })

  it('with a stop, a decision, a failure or a long duration is kept whole', async () => {
    const wanted = ['decide', 'decide behind', 'failed', 'slow', 'stop', 'stop behind']
    const kept = () => store.spans.map(({ name }) => name).filter((name) => !name.startsWith('read '))
    await until(() => kept().length >= wanted.length, { what: 'the spans' })
    expect(kept().sort()).toEqual(wanted)
    expect(store.spans.every(({ app }) => app === 'signalbox-test')).toBe(true)
  })

  it('has the attempt of an agent too', async () => {
    const click = beginSpan('click', undefined, { priority: 'decide' })
    const work = { trace: click?.traceparent, job: 'command', operation_id: 'o', node_id: 'n', attempt: 1 }
    await beginAttempt(work as Work, env.SIGNALBOX__TELEMETRY__OTLP_URL).end('succeeded')
    click?.end()
    const found = () => store.spans.find(({ name }) => name === 'agent command')
    await until(found, { what: 'the span of the agent' })
    const [, trace_id, span_id] = click?.traceparent.split('-') ?? []
    expect(found()).toMatchObject({ app: 'signalbox-agent', trace_id, parent: span_id })
  })

  it('with reads only is rarely kept', () => {
    expect(store.spans.filter(({ name }) => name.startsWith('read ')).length).toBeLessThan(READS / 4)
  })
})

it('metrics arrive with the names, labels and values of /metrics', async () => {
  telemetry.counter('signalbox_test_total', 'Of the test.', ['kind']).inc({ kind: 'a' }, 3)
  telemetry.gauge('signalbox_test_unknown', 'Of the test.').set(Number.NaN)
  const histogram = telemetry.histogram('signalbox_test_seconds', 'Of the test.', [], [1, 5])
  for (const seconds of [0.5, 2, 2.5, 60]) histogram.observe(seconds)
  ending.push(await startMetering('test', telemetry.metrics, env))
  const metric = (wanted: string) => store.metrics.findLast(({ name }) => name === wanted)
  await until(() => metric('signalbox_test_total'), { what: 'the metrics' })
  expect(metric('signalbox_test_total')?.sum).toMatchObject({ isMonotonic: true, dataPoints: [{ asDouble: 3 }] })
  expect(metric('signalbox_test_total')?.sum?.dataPoints[0]?.attributes).toEqual([
    { key: 'kind', value: { stringValue: 'a' } },
    { key: 'app', value: { stringValue: 'test' } },
  ])
  const [point] = metric('signalbox_test_seconds')?.histogram?.dataPoints ?? []
  expect(point).toMatchObject({ sum: 65, bucketCounts: ['1', '2', '1'], explicitBounds: [1, 5] })
  // An unknown value is not reported as a number.
  expect(metric('signalbox_test_unknown')?.gauge?.dataPoints ?? []).toEqual([])
}, 30_000)
