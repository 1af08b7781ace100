import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { approveGate, startOperation, waitForEnd, waitForGate } from '../../apps/platform/demo/operations.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { MADE, PANELS, RULES } from './support/alerts.ts'
import { startCollector } from './support/collector.ts'
import { familiesOf, seriesOf } from './support/exposition.ts'
import { unanswered } from './support/promql.ts'

/** A running platform seen from outside: its metrics, and the traces of commands. */
const APPS = ['token', 'credential', 'identity', 'session', 'catalog', 'operations', 'worker', 'relay', 'gateway']
const REASON = 'planted-reason-4711'
const COMMENT = 'planted-comment-4712'

let stack: Stack
let collector: Awaited<ReturnType<typeof startCollector>>

const task = (node_id: string, depends_on: string[] = []) => ({
  node_id,
  name: `task ${node_id}`,
  kind: 'task',
  executor: 'noop',
  with: {},
  idempotent: true,
  depends_on,
})
const policy = { approvals: { quorum: 1, groups: [{ group: 'netops', min: 1 }], four_eyes: true }, deadline_s: 3600 }

beforeAll(async () => {
  collector = await startCollector()
  const env_overrides = { SIGNALBOX__TELEMETRY__OTLP_URL: collector.url, SIGNALBOX__TELEMETRY__METRICS_S: '1' }
  stack = await startStack({ apps: APPS, env_overrides, agent_url: 'http://127.0.0.1:9/work' })
  const { olga, eva } = await stack.people()
  const start = (name: string) =>
    startOperation(olga, name, {
      kind: 'graph',
      title: 'observed',
      reason: REASON,
      targets: [],
      graph: {
        nodes: [task('first'), task('second', ['first'])],
        gates: [{ gate_id: 'go', question: 'Go on?', guards: ['second'], policy }],
      },
    })
  const { operation_id } = await start('observed')
  await approveGate(eva, operation_id, await waitForGate(eva, operation_id), COMMENT)
  await waitForEnd(olga, operation_id)
  await start('open')
}, 150_000)
afterAll(async () => {
  await stack?.stop()
  collector?.close()
}, 60_000)

describe('a trace', () => {
  it('goes from one approval through the signal to the activity of the node behind the gate, and through its event to the catalog', async () => {
    const tracesOf = (name: RegExp) =>
      new Set(collector.spans.filter((one) => name.test(one.name)).map((s) => s.trace_id))
    const approved = /^POST .*\/gates\/.*approve$/
    const spansOfApproval = () => collector.spans.filter(({ trace_id }) => tracesOf(approved).has(trace_id))
    const wanted = [
      /^gateway POST /,
      /^operations POST /,
      /^relay relay\.send$/,
      /^worker activity run_attempt$/,
      /^catalog event /,
    ]
    const missing = () => {
      const found = spansOfApproval().map(({ app, name }) => `${app.replace('signalbox-', '')} ${name}`)
      return wanted.filter((one) => !found.some((name) => one.test(name)))
    }
    await until(() => missing().length === 0, { what: 'the spans of all apps' })
    expect(tracesOf(approved).size).toBe(1)
    const spans = spansOfApproval()
    const ids = new Set(spans.map(({ span_id }) => span_id))
    expect(spans.filter(({ parent }) => !parent || !ids.has(parent)).map(({ app }) => app)).toEqual([
      'signalbox-gateway',
    ])
  }, 60_000)

  it('contains no text by people, and no tokens', () => {
    expect(collector.bodies.length).toBeGreaterThan(0)
    for (const secret of [REASON, COMMENT, 'eyJ', 'observed', 'olga', 'eva'])
      expect(collector.bodies.join('')).not.toContain(secret)
  })
})

describe('the metrics', () => {
  it('of every app are in the text format of Prometheus, each by its prefix', async () => {
    const given = /^(http_requests|token_refreshed|token_refresh_attempts|csrf_errors|user_login)_total$/
    for (const app of APPS) {
      const families = familiesOf(await (await fetch(`${stack.internal(app)}/metrics`)).text())
      expect(families, app).toContain('signalbox_build_info')
      const others = [...families].filter((name) => !/^(signalbox|temporal|process|nodejs)_/.test(name))
      expect(
        others.filter((name) => !given.test(name)),
        app,
      ).toEqual([])
    }
  })

  it('lead from a slow answer to its trace, for a reader of OpenMetrics', async () => {
    const read = async (accept: string) => {
      const reply = await fetch(`${stack.internal('gateway')}/metrics`, { headers: { accept } })
      return { type: reply.headers.get('content-type') ?? '', text: await reply.text() }
    }
    const plain = await read('text/plain')
    const { type, text } = await read('application/openmetrics-text;version=1.0.0,text/plain;q=0.5')
    expect([plain.type, type]).toEqual([
      expect.stringContaining('text/plain'),
      expect.stringContaining('application/openmetrics-text'),
    ])
    expect(text.endsWith('\n# EOF\n')).toBe(true)
    const [, trace_id] =
      /^signalbox_gateway_answer_seconds_bucket\{.*class="decide".*# \{trace_id="([0-9a-f]{32})"\}/m.exec(text) ?? []
    expect(collector.spans.map((span) => span.trace_id)).toContain(trace_id)
    // The same series under the same names, and each counter ends as OpenMetrics wants it.
    const seriesIn = (of: string) => of.split('\n').flatMap((line) => /^(\w+(?:\{.*?\})?) /.exec(line)?.[1] ?? [])
    // One may begin between two reads.
    const later = seriesIn((await read('text/plain')).text)
    expect(seriesIn(text)).toEqual(expect.arrayContaining(seriesIn(plain.text)))
    expect(later).toEqual(expect.arrayContaining(seriesIn(text)))
    for (const app of APPS) {
      const types = (await (await fetch(`${stack.internal(app)}/metrics`)).text()).matchAll(/^# TYPE (\w+) counter$/gm)
      for (const [, name] of types) expect(name).toMatch(/_total$/)
    }
    expect(plain.text).not.toContain('trace_id')
  })

  it('go to a collector under the names that /metrics shows', async () => {
    for (const app of APPS) {
      const sent = () =>
        new Set(collector.metrics.filter((one) => one.app === `signalbox-${app}`).map(({ name }) => name))
      const shown = familiesOf(await (await fetch(`${stack.internal(app)}/metrics`)).text())
      const missing = () => [...shown].filter((name) => !sent().has(name))
      await until(() => missing().length === 0, { what: `the metrics of ${app}`, timeout_ms: 10_000 }).catch(() => {})
      expect(missing(), app).toEqual([])
    }
    const answered = collector.metrics.findLast(({ name }) => name === 'signalbox_gateway_answer_seconds')
    expect(answered?.histogram?.dataPoints[0]?.bucketCounts?.length).toBeGreaterThan(5)
  })

  it("of the worker include those of the Temporal SDK, without an operation's id", async () => {
    const read = async () => (await fetch(`${stack.internal('worker')}/metrics`)).text()
    const wanted = [
      'temporal_workflow_task_execution_latency_seconds',
      'temporal_activity_schedule_to_start_latency_seconds',
      'temporal_workflow_completed_total',
    ]
    const hasAll = (families: Set<string>) => wanted.every((name) => families.has(name))
    await until(async () => hasAll(familiesOf(await read())), { what: 'the metrics of the SDK' })
    expect(await read()).not.toMatch(/^temporal_.*[0-9a-f]{8}-[0-9a-f]{4}-7/m)
  })

  it('have the age of each loop that an alert watches', async () => {
    const text = await (await fetch(`${stack.internal('catalog')}/metrics`)).text()
    for (const loop of ['history', 'import', 'search', 'sweep'])
      expect(text).toMatch(new RegExp(`^signalbox_loop_age_seconds\\{[^}]*loop="${loop}"`, 'm'))
  })

  it('hold every name, label and value that a rule or the dashboard asks for', async () => {
    await plantRows()
    const panels = PANELS.flatMap(({ targets = [] }) => targets)
    const missing = async () => {
      const texts = await Promise.all(APPS.map(async (app) => (await fetch(`${stack.internal(app)}/metrics`)).text()))
      const series = [...MADE, ...texts.flatMap(seriesOf)]
      return [...RULES, ...panels].flatMap(({ expr }) => unanswered(expr, series))
    }
    // Gauges of rows are read once a second.
    await until(async () => (await missing()).length === 0, { what: 'all series', timeout_ms: 5000 }).catch(() => {})
    expect(await missing()).toEqual([])
  })
})

/** The families in the rules that have no series in a healthy platform without agents. */
const plantRows = async () => {
  const client = new pg.Client({ connectionString: stack.database_url })
  await client.connect()
  await client.query(
    `insert into operations.dead_letter (consumer, event_id, agg_type, agg_id, agg_version, error, tries)
      values ('catalog', gen_random_uuid(), 'resource', 'r', 1, 'planted', 1)`,
  )
  await client.query(
    `insert into operations.agents (agent, machine, pools, labels, draining) values ('a', 'machine:a', '{planted}', '{}', false)`,
  )
  await client.query(
    `insert into operations.executions (token_sha256, operation_id, node_id, attempt, generation, fence, pool, heartbeat_s, start_before, deadline_at)
      select 'planted', gen_random_uuid(), 'n', 1, 1, 1, 'planted', 30, t, t from (select clock_timestamp() + interval '1 h' as t)`,
  )
  await client.end()
}
