import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { carryOut, type Job, listenForWork, type Work } from '../support/agent/agent.ts'
import { until } from '../support/until.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import { startWorker } from './support/worker.ts'

/** Both reference agents from the first message to the last, over a proxy that fails every message once. */
let p: Platform
let worker: Awaited<ReturnType<typeof startWorker>>
let folder: string
let way: Server
const closing: (() => Promise<void>)[] = []
const failures: number[] = []
const reason = 'a test'

/** A proxy between an agent and us: each message fails at first, in another way than the one before. */
const FAILS = [502, 503, 504, 429, 'cut'] as const
const startWay = async () => {
  const seen = new Set<string>()
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const message = `${req.method} ${req.url} ${createHash('sha256').update(body).digest('hex')}`
    const forward = () =>
      fetch(new URL(req.url ?? '/', p.running[0]?.internal_url), {
        method: req.method ?? 'POST',
        headers: { authorization: req.headers.authorization ?? '', 'content-type': req.headers['content-type'] ?? '' },
        body,
      })
    if (!seen.has(message)) {
      const fail = FAILS[seen.size % FAILS.length] ?? 502
      seen.add(message)
      if (fail !== 'cut') {
        failures.push(fail)
        return res.writeHead(fail, { 'content-type': 'text/html', 'retry-after': '1' }).end('<h1>later</h1>')
      }
      // The message arrives, but its answer is lost.
      await forward()
      failures.push(0)
      return req.socket.destroy()
    }
    const answer = await forward()
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
const throughIt = (work: Work): Work => {
  const at = (url: string) => `http://127.0.0.1:${(way.address() as AddressInfo).port}${new URL(url).pathname}`
  return { ...work, results_url: at(work.results_url), artifacts_url: at(work.artifacts_url) }
}

const jobs: Record<string, Job> = {
  uptime: async (_work, { log, keep }) => {
    log('looks around')
    await keep({ name: 'uname.txt', kind: 'report', media_type: 'text/plain' }, Buffer.from('a machine'))
    return { kernel: 'test' }
  },
  stall: (_work, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
}
const SCRIPT = new URL('../support/agent/agent.sh', import.meta.url).pathname
const scripts = new Map<number, ChildProcess>()
/** Work in flight: its agent has the last word, even if we have already received it. */
const under_way: Promise<unknown>[] = []
const byScript = async (work: Work) => {
  const script = spawn('bash', [SCRIPT], { stdio: ['pipe', 'ignore', 'inherit'] })
  scripts.set(work.fence, script)
  under_way.push(once(script, 'exit'))
  script.stdin.end(JSON.stringify(work))
}
/** Takes work for the script, and stops it as the script does: by SIGTERM. */
const listenForScript = async () => {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    res.writeHead(202).end()
    const work = JSON.parse(Buffer.concat(chunks).toString()) as Work
    if (req.url?.endsWith('/cancel')) scripts.get(work.fence)?.kill('SIGTERM')
    else await byScript(throughIt(work))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(() => resolve())))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

beforeAll(async () => {
  way = await startWay()
  const lab = await listenForWork(async (work) => {
    under_way.push(carryOut(throughIt(work), jobs[work.job]))
  })
  closing.push(lab.close)
  folder = mkdtempSync(join(tmpdir(), 'signalbox-agents-'))
  const policy_file = join(folder, 'policy.yaml')
  const loopback = { scheme: 'http', host: '127.0.0.1', networks: ['127.0.0.0/8'], ports: ['1024-65535'] }
  const pool = (endpoint: string) => ({
    destinations: [loopback],
    secrets: [],
    mode: 'http',
    endpoint,
    max_in_flight: 5,
  })
  const pools = {
    default: { destinations: [], secrets: [] },
    typescript: pool(lab.url),
    shell: pool(await listenForScript()),
  }
  writeFileSync(policy_file, JSON.stringify({ format: 'signalbox/executor-policy@1', pools }))
  p = await startPlatform({
    env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', WORKER__EXECUTORS__POLICY_FILE: policy_file },
  })
  worker = await startWorker(p, policy_file)
}, 90_000)
afterAll(async () => {
  await Promise.all(under_way)
  await worker.stop()
  await p.stop()
  for (const close of closing) await close()
  way.closeAllConnections()
  way.close()
  rmSync(folder, { recursive: true })
  await worker.end()
})

describe.each(['typescript', 'shell'])('the reference agent in %s', (pool) => {
  // Members of the inputs have the names of handover members: an agent must not confuse them.
  const inputs = { fence: 1, attempt: 9, job: 'stall', results_url: 'http://127.0.0.1:1/', heartbeat_s: 1 }
  const external = (job: string, more: Record<string, unknown> = {}) => ({
    node_id: 'job',
    executor: 'external',
    pool,
    with: { job, inputs },
    ...more,
  })
  const start = async (...nodes: Record<string, unknown>[]) => {
    const { operation_id } = await p.startOperation({ nodes })
    return { operation_id, path: `/v1/operations/${operation_id}` }
  }
  const reaches = (path: string, status: string) =>
    until(async () => (await p.as('vic').get(path)).body.status === status, { what: status })
  const refused = async (path: string) =>
    (await p.as('vic').get(`${path}/timeline?types=node.result_refused`)).body.events

  it('does its work once, stores an artifact and undoes it, although each message fails at first', async () => {
    failures.length = 0
    const rest = { node_id: 'rest', kind: 'wait', with: { duration_s: 600 }, depends_on: ['job'] }
    const { path } = await start(external('uptime', { compensate: { with: { job: 'uptime', inputs } } }), rest)
    const node = async () => (await p.as('vic').get(`${path}/nodes/job`)).body
    await until(async () => (await node()).state === 'succeeded', { what: 'the work done' })
    const { artifacts } = await node()
    expect(artifacts).toMatchObject([{ name: 'uname.txt', status: 'stored' }])
    const kept = await p.as('vic').get(`${path}/artifacts/${artifacts[0].artifact_id}/content`)
    expect(kept.text.length).toBeGreaterThan(5)
    expect((await p.as('olga').post(`${path}/cancel`, { reason, mode: 'compensate' })).status).toBe(200)
    await reaches(path, 'cancelled')
    const { state, outputs, attempts } = await node()
    expect(state).toBe('compensated')
    expect(Object.keys(outputs)).toEqual(['kernel'])
    expect(attempts.map(({ role, phase }: Record<string, string>) => `${role} ${phase}`)).toEqual([
      'run succeeded',
      'undo succeeded',
    ])
    expect(await refused(path)).toEqual([])
    expect([...new Set(failures)].sort((a, b) => a - b)).toEqual([0, 429, 502, 503, 504])
  }, 120_000)

  it('sends heartbeats while it works, and stops on request', async () => {
    const { operation_id, path } = await start(external('stall', { timeouts: { run_s: 600, heartbeat_s: 5 } }))
    const beats = async () =>
      Number(
        (
          await p.query<{ sequence: string }>('select sequence from operations.executions where operation_id = $1', [
            operation_id,
          ])
        )[0]?.sequence ?? 0,
      )
    await until(async () => (await beats()) >= 2, { what: 'a heartbeat' })
    expect((await p.as('both').post(`${path}/cancel`, { reason })).status).toBe(200)
    await p.query(
      `update operations.operation_control set cancelled_at = cancelled_at - interval '1 h' where operation_id = $1`,
      [operation_id],
    )
    expect((await p.as('both').post(`${path}/cancel`, { reason, mode: 'force' })).status).toBe(200)
    await reaches(path, 'cancelled')
    const { body } = await p.as('vic').get(`${path}/nodes/job`)
    expect(body).toMatchObject({ state: 'failed', error_class: 'cancelled', error_message: 'It was told to stop.' })
    expect(await refused(path)).toEqual([])
  }, 90_000)
})
