import { randomBytes, randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Work, WorkRequest } from '../../shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { objectIn } from '../../shared/data/pointer.ts'
import { type Attempt, type Reply, takeMessage } from './rules.ts'

export type Job = { job: string; inputs: Record<string, unknown> }
type Times = { heartbeat_s?: number; run_s?: number }
const START_S = 60
const RUN_S = 600
const LONGEST_WAIT_S = 8

/** Work that no agent has yet, and agents that wait for some. */
const createQueue = () => {
  const queue: Work[] = []
  const waiting: ((work: Work | undefined) => void)[] = []
  return {
    next: (wait_s: number): Promise<Work | undefined> =>
      new Promise((resolve) => {
        const given = queue.shift()
        if (given) return resolve(given)
        const end = setTimeout(() => take(undefined), Math.min(wait_s, LONGEST_WAIT_S) * 1000)
        const take = (work: Work | undefined) => {
          clearTimeout(end)
          waiting.splice(waiting.indexOf(take), 1)
          resolve(work)
        }
        waiting.push(take)
      }),
    /** The agent that asked has gone: the next one gets it. */
    takeBack: (work: Work): void => void queue.unshift(work),
    /** Gives work to the next agent that asks. */
    offer: (work: Work): void => {
      const take = waiting[0]
      if (take) take(work)
      else queue.push(work)
    },
    /** Ends the waits of polling agents, without work. */
    hush: (): void => {
      for (const take of [...waiting]) take(undefined)
    },
  }
}

type Place = { folder: string; url: string; operation_id: string; fence: number }

/** An attempt that no agent has yet. `$FILE` in its inputs is the file of its effects. */
const makeAttempt = (
  { folder, url, operation_id, fence }: Place,
  name: string,
  { job, inputs }: Job,
  { heartbeat_s = 5, run_s = RUN_S }: Times = {},
): Attempt => {
  const file = join(folder, `${fence}-${name}`)
  writeFileSync(file, '')
  chmodSync(file, 0o666)
  const execution_token = `exe_${randomBytes(32).toString('base64url')}`
  const in_s = (s: number) => new Date(Date.now() + s * 1000).toISOString()
  const work: Work = {
    ...{ v: 1, operation_id, node_id: name, attempt: 1, generation: 1, fence, execution_token, heartbeat_s },
    ...{ key: `${operation_id}:${name}:1`, deadline_at: in_s(run_s), start_before: in_s(START_S) },
    ...{ results_url: `${url}/internal/v1/execution-results`, artifacts_url: `${url}/internal/v1/artifacts` },
    ...{ job, inputs: JSON.parse(JSON.stringify(inputs).replaceAll('$FILE', file)), secrets: {} },
  }
  return {
    ...{ work, file, answer: () => 'as usual' as const, heard: [], faults: new Set<string>() },
    ...{ lines: new Map<number, string>(), closed: false },
  }
}

/**
 * The control plane as agents see it, for one machine and the time of a test. It hands out work and takes reports and
 * artifacts by the rules of operations.md 7.4 and 9.1. It can also be unavailable, slow, or of another opinion.
 */
export const openGround = async (pool: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-proving-'))
  chmodSync(folder, 0o755)
  const token = `proving-${randomBytes(24).toString('hex')}`
  const attempts = new Map<string, Attempt>()
  const artifacts = new Map<string, Buffer>()
  const { next, takeBack, offer, hush } = createQueue()
  const state = { refuses: false, asked: 0, strangers: 0 }

  const giveWork = async (req: IncomingMessage, res: ServerResponse, body: unknown) => {
    state.asked += 1
    const asked = req.url?.split('/').at(-2)
    if (req.headers.authorization !== `Bearer ${token}`) return say(res, 401, { code: 'invalid_token' })
    if (state.refuses || asked !== pool) {
      const detail = `This machine is not an agent of the pool "${asked}".`
      return say(res, 403, { category: 'policy_denied', code: 'not_an_agent', status: 403, detail })
    }
    const { wait_s = 5, agent } = body as Partial<WorkRequest>
    const work = agent?.leaves ? undefined : await next(Number(wait_s))
    if (work && res.destroyed) takeBack(work)
    else if (work) say(res, 200, work)
    else res.writeHead(204).end()
  }

  const takeReport = async (res: ServerResponse, attempt: Attempt, text: string) => {
    const body = parsed(text)
    const phase = (body as { phase?: string }).phase
    const repeat = attempt.heard.some(({ message }) => message.result_id === (body as { result_id?: string }).result_id)
    const answer = phase ? await attempt.answer({ at: Date.now(), message: body as never, repeat }) : 'as usual'
    if (answer === 'away') return res.destroy()
    if (answer === 'closed') attempt.closed = true
    const reply = takeMessage(attempt, body, Buffer.byteLength(text), answer === 'cancel')
    if (answer === 'lost') res.destroy()
    else say(res, reply.status, reply.body)
  }

  const takeArtifact = (req: IncomingMessage, res: ServerResponse, bytes: Buffer) => {
    const sha256 = req.url?.split('/').at(-1) ?? ''
    const kept = artifacts.get(sha256)
    if (req.method === 'GET') return kept ? res.writeHead(200).end(kept) : say(res, 404, { code: 'not_found' })
    if (sha256Hex(bytes) !== sha256) return say(res, 422, { code: 'artifact_digest_mismatch' })
    artifacts.set(sha256, bytes)
    say(res, 200, { sha256, size: bytes.length, duplicate: kept !== undefined })
  }

  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    if (/^\/(api\/)?v1\/pools\/[^/]+\/work$/.test(req.url ?? ''))
      return giveWork(req, res, bytes.length > 0 ? parsed(bytes.toString()) : {})
    const attempt = attempts.get(req.headers.authorization?.replace(/^bearer /i, '') ?? '')
    if (!attempt) {
      state.strangers += 1
      return say(res, 401, { code: 'invalid_token', detail: 'No work has this execution token.' })
    }
    if (req.url?.includes('/artifacts/')) return takeArtifact(req, res, bytes)
    await takeReport(res, attempt, bytes.toString())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const operation_id = randomUUID()

  return {
    ...{ url, token, folder, pool, state, offer, hush },
    attempt: (name: string, job: Job, times?: Times): Attempt => {
      const made = makeAttempt({ folder, url, operation_id, fence: attempts.size + 1 }, name, job, times)
      attempts.set(made.work.execution_token, made)
      return made
    },
    close: () => {
      server.closeAllConnections()
      server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
export type Ground = Awaited<ReturnType<typeof openGround>>

const parsed = (text: string): unknown => objectIn(text) ?? {}
const say = (res: ServerResponse, status: number, body: Reply['body'] | Work) =>
  void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
