import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createAnswers } from '../../apps/gateway/counts.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { createPorts } from '../../apps/platform/base/ports.ts'
import { createTelemetry, exposition } from '../../apps/shared/telemetry.ts'
import { until } from '../support/until.ts'

/** A real Prometheus reads an app's metrics, with the exemplars in them, and our rules. */
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-prometheus-'))
const TRACE = 'ab'.repeat(16)
const telemetry = createTelemetry('gateway', { level: 'silent' })
let app: Server
let prometheus: ChildProcess
let base: string

beforeAll(async () => {
  createAnswers(telemetry)('decide', 'answered', 0.3, `00-${TRACE}-${'cd'.repeat(8)}-01`)
  telemetry.counter('signalbox_test_total', 'Of the test.').inc(7)
  app = createServer(async (req, res) => {
    const { type, text } = await exposition(telemetry, req.headers.accept)
    res.setHeader('content-type', type)
    res.end(text)
  })
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo
  const address = `127.0.0.1:${await createPorts().take('prometheus', 0)}`
  base = `http://${address}/api/v1`
  const config = join(scratch, 'prometheus.yml')
  const job = { job_name: 'signalbox', static_configs: [{ targets: [`127.0.0.1:${port}`] }] }
  const rule_files = [join(ROOT, 'apps/platform/deploy/observe/rules.yaml')]
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: '1s' }, rule_files, scrape_configs: [job] }))
  prometheus = spawn(
    process.env.CHART_PROMETHEUS ?? '',
    [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${join(scratch, 'data')}`, `--web.listen-address=${address}`],
      '--enable-feature=exemplar-storage',
    ],
    { stdio: 'ignore' },
  )
})
afterAll(() => {
  prometheus?.kill()
  app?.close()
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
})

// biome-ignore lint/suspicious/noExplicitAny: answers of Prometheus, which are not ours
const ask = async (path: string): Promise<any> => {
  const reply = await fetch(`${base}/${path}`).catch(() => undefined)
  return reply?.ok ? ((await reply.json()) as { data: unknown }).data : undefined
}

it('the metrics are read, under the names that the rules use', async () => {
  const resultOf = async (query: string) => (await ask(`query?query=${query}`))?.result?.[0]?.value[1]
  await until(async () => (await resultOf('signalbox_test_total')) === '7', { what: 'a scrape' })
  expect(await resultOf('signalbox_gateway_answer_seconds_count{class="decide",result="answered"}')).toBe('1')
  expect(await resultOf('up')).toBe('1')
}, 60_000)

it('a slow answer leads to its trace', async () => {
  const query = `query_exemplars?query=signalbox_gateway_answer_seconds_bucket&start=${Date.now() / 1000 - 600}&end=${Date.now() / 1000 + 60}`
  const found = await ask(query)
  expect(found?.[0]?.exemplars[0]).toMatchObject({ labels: { trace_id: TRACE }, value: '0.3' })
})

it('every rule is loaded and evaluates without an error', async () => {
  const rules = async () => {
    const { groups = [] } = (await ask('rules')) ?? {}
    return groups.flatMap(({ rules: of }: { rules: { health: string; lastError?: string }[] }) => of)
  }
  await until(async () => (await rules()).every(({ health }: { health: string }) => health !== 'unknown'), {
    what: 'an evaluation of each rule',
    timeout_ms: 90_000,
  })
  expect((await rules()).length).toBeGreaterThan(20)
  expect((await rules()).filter(({ health }: { health: string }) => health !== 'ok')).toEqual([])
}, 120_000)
