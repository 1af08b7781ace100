import { Worker } from 'node:worker_threads'
import { Pool } from 'undici'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import type { Person } from '../../apps/platform/demo/client.ts'
import { waitForGate } from '../../apps/platform/demo/operations.ts'
import { uuidv7 } from '../../apps/shared/ids.ts'
import { quantile } from '../bench/lib/graph.ts'
import { send } from '../bench/lib/load.ts'
import { platformCpuSince } from '../bench/lib/processes.ts'
import type { Stack } from '../support/stack.ts'
import type { Listed, Listing } from './lister.ts'

export type Crowd = { seconds: number; connections: number; operations: number; gates: number }
/** How one role fared: the number of answers by status, and how long they took. `refused`: 429, 502, 503 and 504. */
export type Role = {
  name: string
  statuses: Record<string, number>
  refused: number
  /** Refusals by category and code. */
  codes: Record<string, number>
  p50: number
  p99: number
}
export type Met = { roles: Role[]; refusal_p99: number; cpu: Record<string, number> }

const REFUSED = new Set([429, 502, 503, 504])
const DECIDERS = 10
const STOPPERS = 5
/** Reads of one person at a time. A slow machine refuses more of them: it serves few, and each person a fair share. */
const READERS = 2

type Call = { method: string; path: string; body?: unknown }

/**
 * One person lists over many connections, again as soon as each is answered, next to people who decide, stop, read and
 * sign in. Returns how each of them fared.
 */
export const meetCrowd = async (stack: Stack, { seconds, connections, operations, gates }: Crowd): Promise<Met> => {
  const people = await stack.people()
  const started: string[] = []
  while (started.length < operations) started.push(await startGates(people.olga, people.eva, gates))
  const held: string[] = []
  while (held.length < STOPPERS) held.push(await startGates(people.olga, people.eva, 1))

  const url = stack.gateway_url.replace('localhost', '127.0.0.1')
  const open = (count: number) => new Pool(url, { connections: count, pipelining: 1, headersTimeout: 30_000 })
  const users = readDemo(stack.dir)?.users ?? []
  const passwordOf = (name: string) => users.find(({ username }) => username === name)?.password
  const others = open(64)
  const tokens: Record<string, string> = {}
  for (const name of ['ada', 'olga', 'eva']) {
    const body = JSON.stringify({ username: name, password: passwordOf(name) })
    const headers = { 'content-type': 'application/json' }
    const { text } = await send(others, { method: 'POST', path: '/auth/login', headers, body })
    tokens[name] = (JSON.parse(text) as { access_token: string }).access_token
  }

  const end = performance.now() + seconds * 1000
  const platform = platformCpuSince()
  const own = process.cpuUsage()
  const met = new Map<string, { status: number; ms: number; code?: string }[]>()
  const call = async (role: string, who: string, { method, path, body }: Call) => {
    const begun = performance.now()
    const answer = await send(others, {
      method,
      path,
      headers: {
        authorization: `Bearer ${tokens[who]}`,
        'idempotency-key': uuidv7(),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch((error: Error) => ({ status: 0, text: error.message }))
    const times = met.get(role) ?? []
    met.set(role, times)
    const code = /"category":"(\w+)","code":"(\w+)"/.exec(answer.text)
    times.push({ status: answer.status, ms: performance.now() - begun, ...(code && { code: `${code[1]}/${code[2]}` }) })
    return answer
  }
  const repeat = (count: number, act: (worker: number) => Promise<unknown>) =>
    Promise.all(
      Array.from({ length: count }, async (_, worker) => {
        while (performance.now() < end) await act(worker)
      }),
    )

  const list = { method: 'GET', path: '/api/v1/operations?page_size=50' }
  const crowd = listing({ url, connections, seconds, path: list.path, token: tokens.ada ?? '' })
  const waiting = started.flatMap((operation_id) =>
    Array.from({ length: gates }, (_, i) => `/api/v1/operations/${operation_id}/gates/g${i}`),
  )
  const decide = async () => {
    const path = waiting.shift()
    if (path === undefined) return new Promise((resolve) => setTimeout(resolve, 100))
    const { status, text } = await call('look at a gate', 'eva', { method: 'GET', path })
    if (status !== 200) return void waiting.push(path)
    const { digest, round } = JSON.parse(text) as { digest: string; round: number }
    const body = { reviewed_digest: digest, round, comment: 'under load' }
    await call('decide', 'eva', { method: 'POST', path: `${path}/approve`, body })
  }
  const stop = async (worker: number) => {
    const path = `/api/v1/operations/${held[worker]}`
    await call('stop', 'olga', { method: 'POST', path: `${path}/pause`, body: { reason: 'under load' } })
    await call('resume', 'olga', { method: 'POST', path: `${path}/resume`, body: { reason: 'go on' } })
  }
  const signIn = async () => {
    const body = { username: 'olga', password: passwordOf('olga') }
    const { text } = await call('sign in', 'none', { method: 'POST', path: '/auth/login', body })
    // Sessions per person are limited: the oldest, with which others stop operations here, would end.
    const access_token = /"access_token":"([^"]+)"/.exec(text)?.[1]
    const headers = { authorization: `Bearer ${access_token}`, 'idempotency-key': uuidv7() }
    if (access_token) await send(others, { method: 'POST', path: '/auth/logout', headers }).catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  await Promise.all([
    crowd,
    repeat(DECIDERS, decide),
    repeat(STOPPERS, stop),
    repeat(READERS, () => call('list by others', 'eva', list)),
    repeat(1, signIn),
  ])
  met.set('list by the crowd', await crowd)
  const { user, system } = process.cpuUsage(own)
  const cpu = { ...platform(), 'the crowd itself': (user + system) / 1000 }
  await others.close()
  const all = [...met.values()].flat()
  const refusals = all.filter(({ status }) => REFUSED.has(status)).map(({ ms }) => ms)
  const roles = [...met].map(([name, answers]) => roleOf(name, answers))
  return { roles, refusal_p99: quantile(refusals, 0.99) ?? 0, cpu }
}

export const listing = (workerData: Listing): Promise<Listed> =>
  new Promise((resolve, reject) => {
    new Worker(new URL('./lister.ts', import.meta.url), { workerData }).once('message', resolve).once('error', reject)
  })

const roleOf = (name: string, answers: { status: number; ms: number; code?: string }[]): Role => {
  const statuses: Record<string, number> = {}
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  const codes: Record<string, number> = {}
  for (const { code } of answers) if (code !== undefined) codes[code] = (codes[code] ?? 0) + 1
  const times = answers.map(({ ms }) => ms)
  const refused = answers.filter(({ status }) => REFUSED.has(status) || status === 0).length
  return { name, statuses, refused, codes, p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
}

/** An operation whose nodes each wait at a gate. */
const startGates = async (operator: Person, approver: Person, count: number): Promise<string> => {
  const nodes = Array.from({ length: count }, (_, i) => ({
    node_id: `n${i}`,
    depends_on: [],
    kind: 'task',
    executor: 'noop',
    with: { delay_ms: 0 },
    idempotent: true,
  }))
  const gates = nodes.map(({ node_id }, i) => ({
    gate_id: `g${i}`,
    question: `Go on with ${i}?`,
    policy: { approvals: { quorum: 1, groups: [], four_eyes: true } },
    guards: [node_id],
  }))
  const intent = { kind: 'graph', title: 'gates', reason: 'overload', targets: [], graph: { nodes, gates } }
  const { body: created } = await operator.post<{ intent_id: string }>('/v1/intents', intent)
  const preview = `/v1/intents/${created.intent_id}/plan-preview`
  const { body: plan } = await operator.post<{ plan_id: string; plan_hash: string }>(preview, {})
  const start = { reviewed_plan_hash: plan.plan_hash }
  const { body } = await operator.post<{ operation_id: string }>(`/v1/plans/${plan.plan_id}/start`, start)
  await waitForGate(approver, body.operation_id)
  return body.operation_id
}
