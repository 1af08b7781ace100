import { createHash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * A reference agent: takes work over HTTP (stream.ts: from NATS), reports that it begins, sends heartbeats while it
 * works, and reports how it ended. It acts only after its "started" is accepted, and stops when told to. It repeats a
 * message with the same result_id until the answer is more than "later", so a lost answer never becomes a second
 * effect.
 */
export type Work = {
  operation_id: string
  node_id: string
  attempt: number
  generation: number
  fence: number
  key: string
  execution_token: string
  job: string
  inputs: Record<string, unknown>
  heartbeat_s: number
  deadline_at: string
  start_before: string
  results_url: string
  artifacts_url: string
}
type Phase = 'started' | 'heartbeat' | 'progress' | 'succeeded' | 'failed' | 'unknown'
type Level = 'info' | 'error'
type About = { name: string; kind: string; media_type: string }
type More = {
  outputs?: Record<string, unknown>
  progress?: Record<string, unknown>
  error?: { class: string; message: string; retryable?: boolean }
  executed?: { tool: string; exit?: number }
  artifacts?: (About & { size: number; sha256: string })[]
  lines?: { seq: number; time: string; stream: 'log'; level: Level; text: string }[]
}
export type Answer = { status: number; cancel_requested?: boolean; left_s?: number; code?: string }

type Tools = {
  signal: AbortSignal
  log: (text: string, level?: Level) => void
  /** Says how far the work is. */
  tell: (message: string) => Promise<Answer>
  /** Announces what the job has produced, then sends its bytes. */
  keep: (about: About, bytes: Buffer) => Promise<void>
}
export type Job = (work: Work, tools: Tools) => Promise<More['outputs']>

/** A proxy in between may also ask to retry later. */
const LATER = new Set([429, 502, 503, 504])
/** One message carries this many lines, of at most this length each, far below the accepted limits. */
const LINES = 40
const TEXT = 16_000
/** Work is stopped this long before its time is over, to report how it ended. */
const LAST_WORD_MS = 2000

/**
 * Sends until it is answered, with a backoff or the delay that the answer requests. It sends only once if the work's
 * time is over, or if the message is only a heartbeat.
 */
const send = async (
  { execution_token, deadline_at, heartbeat_s }: Work,
  url: string,
  type: string,
  init: RequestInit,
  once = false,
) => {
  const headers = { 'content-type': type, authorization: `Bearer ${execution_token}` }
  for (let wait = 100; ; wait = Math.min(wait * 2, 5000)) {
    const signal = AbortSignal.timeout(heartbeat_s * 1000)
    const response = await fetch(url, { ...init, headers, signal }).catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response && text !== undefined && !LATER.has(response.status)) return { status: response.status, text }
    if (once || Date.now() >= Date.parse(deadline_at)) return { status: 0, text: '{}' }
    await delay(1000 * Number(response?.headers.get('retry-after')) || wait)
  }
}

/** The reports of one piece of work, numbered in order. */
export const createReporter = (work: Work, agent?: string) => {
  const { operation_id, node_id, attempt, generation, fence, results_url } = work
  let sequence = 0
  return async (phase: Phase, more: More = {}, once = false): Promise<Answer> => {
    sequence += 1
    const ids = { operation_id, node_id, attempt, generation, fence }
    const body = JSON.stringify({ result_id: randomUUID(), ...ids, sequence, phase, ...(agent && { agent }), ...more })
    const { status, text } = await send(work, results_url, 'application/json', { method: 'POST', body }, once)
    return { ...(JSON.parse(text) as object), status }
  }
}

/** The work that this agent is doing, by fence. */
const working = new Map<number, AbortController>()
export const stopWork = ({ fence }: Pick<Work, 'fence'>) => working.get(fence)?.abort()

/** Carries out one piece of work; a refusal anywhere means that it now belongs to another agent. */
export const carryOut = async (work: Work, job: Job | undefined, name?: string): Promise<void> => {
  const report = createReporter(work, name)
  const first = await report('started')
  if (first.status !== 200) return
  const stop = new AbortController()
  working.set(work.fence, stop)
  if (first.cancel_requested) stop.abort()
  const lines: NonNullable<More['lines']> = []
  let numbered = 0
  const log = (text: string, level: Level = 'info') => {
    numbered += 1
    const line = { seq: numbered, time: new Date().toISOString(), text: text.slice(0, TEXT) }
    lines.push({ ...line, stream: 'log', level })
  }
  const keep = async (about: About, bytes: Buffer) => {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await report('progress', { artifacts: [{ ...about, size: bytes.length, sha256 }] })
    const url = `${work.artifacts_url}/${sha256}`
    const { status } = await send(work, url, 'application/octet-stream', { method: 'PUT', body: new Uint8Array(bytes) })
    if (status !== 200) throw new Error(`${about.name} was not accepted: ${status}.`)
  }
  let heard = Date.now()
  let beating = Promise.resolve()
  const beat = async () => {
    const part = lines.slice(0, LINES)
    const { status, cancel_requested } = await report('heartbeat', { lines: part }, true)
    if (status === 200) {
      heard = Date.now()
      lines.splice(0, part.length)
    }
    // After three missed heartbeats another agent may do it.
    const lost = status >= 400 || Date.now() - heard > 2000 * work.heartbeat_s
    if (lost || cancel_requested) stop.abort()
  }
  const timer = setInterval(() => {
    beating = beating.then(beat)
  }, 500 * work.heartbeat_s)
  const over = setTimeout(() => stop.abort(), Math.max(Date.parse(work.deadline_at) - Date.now() - LAST_WORD_MS, 0))
  // The last word is the last message.
  const end = async (phase: Phase, more: More) => {
    clearInterval(timer)
    clearTimeout(over)
    await beating
    while (lines.length > LINES) await report('heartbeat', { lines: lines.splice(0, LINES) })
    return report(phase, { ...more, lines: lines.splice(0) })
  }
  try {
    if (!job) throw new Error(`This agent does not know the job "${work.job}".`)
    const outputs = await job(work, {
      ...{ signal: stop.signal, log, keep },
      tell: (message) => report('progress', { progress: { message } }),
    })
    await end('succeeded', outputs ? { outputs } : {})
  } catch (error) {
    const told = stop.signal.aborted
    const message = told ? 'It was told to stop.' : (error as Error).message
    await end('failed', { error: { class: told ? 'cancelled' : 'refused', message } })
  } finally {
    working.delete(work.fence)
  }
}

/** Listens for work, and at `/cancel` for work to stop; `take` handles each piece. */
export const listenForWork = async (take: (work: Work) => Promise<void>) => {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      res.writeHead(202).end()
      const work = JSON.parse(Buffer.concat(chunks).toString()) as Work
      if (req.url?.endsWith('/cancel')) stopWork(work)
      else void take(work)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
