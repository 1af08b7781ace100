import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../../apps/platform/base/paths.ts'
import { compileCacheDir } from '../../../apps/platform/run/compile-cache.ts'
import { must, type Platform, person, startPlatform } from '../../operations/support/platform.ts'
import { type spawnWorker, startWorker } from '../../operations/support/worker.ts'
import { CLI } from '../../support/cli.ts'
import { startLink } from '../../support/link.ts'
import { until } from '../../support/until.ts'

/**
 * The public API as a gateway would expose it: under /api. `shift_ms`: of the times of handed-out work. `refused`: the
 * identity. `astray`: reports end at a proxy. */
const startFront = async (p: Platform, times: { shift_ms: number; refused: boolean; astray: boolean }) => {
  const asked: string[] = []
  const traced: string[] = []
  const server = createServer(async (req, res) => {
    asked.push(`${req.method} ${req.url}`)
    traced.push(`${req.method} ${req.url} ${req.headers.traceparent}`)
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const refusal = { status: 401, category: 'unauthenticated', code: 'token_invalid', detail: 'Revoked.' }
    const reports = /^\/api\/v1\/(execution-results|artifacts)/.test(req.url ?? '')
    if (times.astray && reports) return res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>404</h1>')
    if (times.refused && !reports)
      return res.writeHead(401, { 'content-type': 'application/problem+json' }).end(JSON.stringify(refusal))
    const { host: _, connection: __, 'content-length': ___, ...headers } = req.headers
    const gone = new AbortController()
    res.on('close', () => gone.abort())
    const answer = await fetch(`${p.running[0]?.url}${(req.url ?? '').replace(/^\/api/, '')}`, {
      method: req.method ?? 'GET',
      signal: gone.signal,
      headers: headers as Record<string, string>,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    }).catch(() => undefined)
    if (!answer) return res.destroy()
    res.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
    if (!/json/.test(answer.headers.get('content-type') ?? '')) return res.end(Buffer.from(await answer.arrayBuffer()))
    const text = await answer.text()
    const shifted = (at: string) => new Date(Date.parse(at) + times.shift_ms).toISOString()
    const later = (_: string, name: string, at: string) => `"${name}":"${shifted(at)}"`
    // As from a control plane that is newer than the agent.
    const newer = text.replace(/^\{(?=")/, '{"from_a_later_version":{"v":2},')
    res.end(newer.replace(/"(deadline_at|start_before)":"([^"]+)"/g, later))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, asked, traced }
}

/** A node leaves these only by a command, which may be on its way. */
const SETTLED = new Set(['succeeded', 'failed', 'outcome_unknown', 'cancelled', 'compensated', 'compensation_failed'])
const SETTLED_MS = 15_000

/** As `npx signalbox` does in a clone: the entry point of every script starts the client, as a group of its own. */
const CLONE = [join(ROOT, 'apps/platform/bootstrap.mjs'), 'signalbox']

export type Agent = { child: ChildProcess; said: () => string; ended: Promise<number | null> }

/** The exit code of an agent that must end by itself; fails with its words if it does not. */
export const exitOf = async ({ child, said }: Agent): Promise<number | null> => {
  const over = () => child.exitCode !== null || child.signalCode !== null
  const why = () => Promise.reject(new Error(`the agent still runs: ${said().slice(-500)}`))
  await until(() => over() || why(), { what: 'the end of the agent' })
  return child.exitCode
}

/** Operations, a worker, and agents as separate processes, signed in as the machine that the pools name. */
export const startLab = async (
  pools: readonly string[],
  { bringWorker = startWorker as typeof startWorker | typeof spawnWorker, more = {}, env = {} } = {},
) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-lab-'))
  chmodSync(folder, 0o755)
  const policy_file = join(folder, 'policy.yaml')
  const infra = { destinations: [], secrets: [], mode: 'nats', agents: ['machine:runner'], max_in_flight: 20 }
  const named = Object.fromEntries(pools.map((pool) => [pool, infra]))
  const document = {
    format: 'signalbox/executor-policy@1',
    pools: { default: { destinations: [], secrets: [] }, ...named, ...more },
  }
  writeFileSync(policy_file, JSON.stringify(document))
  const p = await startPlatform({
    env: { OPERATIONS__COMMANDS__WAIT_MS: '5000', WORKER__EXECUTORS__POLICY_FILE: policy_file, ...env },
  })
  const machine = (name: string) => {
    const made = person(name, ['viewer'])
    made.machine = { permissions: ['operation:read'], behind: [p.people.olga.id] }
    return made
  }
  const runner = machine('machine:runner')
  const stranger = machine('machine:stranger')
  Object.assign(p.people, { runner, stranger })
  let worker = await bringWorker(p, policy_file)
  const times = { shift_ms: 0, refused: false, astray: false }
  const front = await startFront(p, times)
  const link = await startLink(front.url)
  const agents: Agent[] = []

  const place = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true })
    chmodSync(join(folder, name), 0o777)
    return join(folder, name)
  }
  /** A program of the agent's file, as a script. */
  const script = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, `#!/bin/sh\n${text}\n`)
    chmodSync(path, 0o755)
    return path
  }
  const startAgent = (file: object, { as = runner, args = [] as string[], clone = false } = {}): Agent => {
    const path = join(folder, `agent-${agents.length}.json`)
    writeFileSync(path, JSON.stringify({ format: 'signalbox/agent@1', state_dir: join(folder, 'state'), ...file }))
    const child = spawn(process.execPath, [...(clone ? CLONE : CLI), 'agent', '--file', path, ...args], {
      detached: clone,
      env: {
        ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCacheDir(), HOME: folder, TMPDIR: place('tmp') },
        ...{ SIGNALBOX_URL: new URL(link.url).origin, SIGNALBOX_TOKEN: p.tokenOf(as) },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += chunk))
    const agent = { child, said: () => text, ended: once(child, 'exit').then(([code]) => code as number | null) }
    agents.push(agent)
    return agent
  }
  const start = async (...nodes: Record<string, unknown>[]) => startGraph({ nodes })
  const startGraph = async (graph: object, how: Parameters<typeof p.startOperation>[1] = {}) => {
    const { operation_id } = await p.startOperation(graph, how)
    return `/v1/operations/${operation_id}`
  }
  const waiting = (path: string, gate_id = 'go') =>
    until(
      async () => {
        const { body } = must(await p.as('eva').get(`${path}/gates/${gate_id}`), 200)
        return body.status === 'waiting' ? body : undefined
      },
      { timeout_ms: 110_000, what: `${gate_id} waiting` },
    )
  const nodeOf = async (path: string, node_id = 'job') => (await p.as('vic').get(`${path}/nodes/${node_id}`)).body
  return {
    ...{ p, folder, script, times, start, startGraph, startAgent, runner, stranger, nodeOf, asked: () => front.asked },
    traced: () => front.traced,
    /** Between the agents and the control plane. */
    link,
    front_url: front.url,
    write: (name: string, text: string) => writeFileSync(join(folder, name), text),
    linesOf: (name: string) => {
      try {
        return readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean)
      } catch {
        return []
      }
    },
    place,
    /** Waits for a state of a node; fails with the reason as soon as the node has settled in another one. */
    reaches: async (path: string, state: string, node_id = 'job') => {
      let since = 0
      const node = await until(
        async () => {
          const now = await nodeOf(path, node_id)
          if (now.state === state) return now
          if (!SETTLED.has(now.state)) since = 0
          else if (since === 0) since = performance.now()
          else if (performance.now() - since > SETTLED_MS) return now
          throw new Error(`${now.state}: ${now.error_message}`)
        },
        { timeout_ms: 110_000, what: `${node_id} ${state}` },
      )
      if (node.state === state) return node
      throw new Error(`${node_id} is ${node.state}, not ${state}: ${node.error_class}: ${node.error_message}`)
    },
    /** Cancels, then forces the cancellation at once, unless the first has ended the operation. */
    force: async (path: string) => {
      must(await p.as('both').post(`${path}/cancel`, { reason: 'a test' }), 200, 202)
      await p.query(
        `update operations.operation_control set cancelled_at = cancelled_at - interval '1 h' where operation_id = $1`,
        [path.split('/').at(-1)],
      )
      must(await p.as('both').post(`${path}/cancel`, { reason: 'a test', mode: 'force' }), 200, 202, 409)
    },
    /** Ends the worker (by SIGKILL if it is a separate process) and starts another one. */
    replaceWorker: async () => {
      await worker.stop()
      worker = await bringWorker(p, policy_file)
    },
    waiting,
    approve: async (path: string, gate_id = 'go') => {
      const gate = await waiting(path, gate_id)
      const vote = { reviewed_digest: gate.digest, round: gate.round }
      must(await p.as('eva').post(`${path}/gates/${gate_id}/approve`, vote), 200, 202)
      return gate
    },
    stop: async () => {
      for (const { child } of agents) child.kill('SIGKILL')
      await Promise.all(agents.map(({ ended }) => ended))
      await worker.stop()
      await p.stop()
      link.cut()
      link.stop()
      front.server.closeAllConnections()
      front.server.close()
      rmSync(folder, { recursive: true, force: true })
      await worker.end()
    },
  }
}
export type Lab = Awaited<ReturnType<typeof startLab>>
