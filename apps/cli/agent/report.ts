import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { retryAfterMs } from '../../shared/contracts/client/problem.ts'
import type { ExecutionResult, Work } from '../../shared/contracts/engine/executions.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { objectIn } from '../../shared/data/pointer.ts'
import { storableJson } from '../../shared/run/storable.ts'

type Phase = ExecutionResult['phase']
type More = Partial<Pick<ExecutionResult, 'outputs' | 'resume' | 'error' | 'executed' | 'artifacts' | 'lines'>>
/** A moment, by the wall clock and by the one that nobody sets. */
export type Moment = { wall: number; steady: number }
export const momentNow = (): Moment => ({ wall: Date.now(), steady: performance.now() })
/** Whole milliseconds since then: the longer of the two, because only the wall clock counts a sleep of the machine. */
export const since = ({ wall, steady }: Moment): number =>
  Math.max(Date.now() - wall, Math.round(performance.now() - steady))

/** `at`: when the accepted message was sent. */
export type Answer = {
  status: number
  at?: Moment
  cancel_requested?: boolean
  category?: string
  left_s?: number
  code?: string
  detail?: string
}

/** Statuses after which the same request is sent again later; a proxy on the way may send them too. */
const LATER = new Set([429, 500, 502, 503, 504])
/** Every job fetches before it acts. */
const UNTOUCHED = 'No change was made.'
const ONE_MS = 10_000
/** For an artifact of up to 256 MiB over a slow link. */
const BYTES_MS = 300_000
const LONGEST_WAIT_MS = 5000
/** A longer silence would make the attempt count as lost. */
const LONGEST_ASKED_MS = 20_000

/** The numbered reports of one piece of work (operations.md 9.1); a repeat of a report is the same message. */
export const createReporter = (work: Work, traceparent?: string) => {
  const { operation_id, node_id, attempt, generation, fence, results_url, artifacts_url, execution_token } = work
  const untilTime = (time: number) => ({ from: momentNow(), ms: time - Date.now() })
  /** How much time is left, and when that was known; that of the work begins with its start. */
  let rest = untilTime(Math.max(Date.parse(work.deadline_at), Date.parse(work.start_before)))
  const left_ms = () => rest.ms - since(rest.from)
  let sequence = 0

  /** Sends until it gets a whole answer, at least once and until the work's time ends; `once` gives up after one try. */
  const send = async (url: string, init: RequestInit, { once = false, ms = ONE_MS } = {}) => {
    for (let wait = 200; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      const at = momentNow()
      const headers = {
        authorization: `Bearer ${execution_token}`,
        ...(traceparent && { traceparent }),
        ...init.headers,
      }
      const signal = AbortSignal.timeout(Math.min(ms, Math.max(left_ms(), ONE_MS)))
      const answer = await fetch(url, { ...init, headers, signal }).then(whole, () => undefined)
      if (answer && !LATER.has(answer.status)) return { ...answer, at }
      if (once || left_ms() <= 0) return undefined
      await delay(Math.min(retryAfterMs(answer?.headers.get('retry-after')) || wait, LONGEST_ASKED_MS))
    }
  }

  /** `once_ms`: it is tried once, for this long at most. */
  const report = async (phase: Phase, more: More = {}, once_ms?: number): Promise<Answer> => {
    sequence += 1
    const message = { result_id: randomUUID(), operation_id, node_id, attempt, generation, fence, sequence, phase }
    const body = storableJson({ ...message, ...more })
    const headers = { 'content-type': 'application/json' }
    const answer = await send(
      results_url,
      { method: 'POST', headers, body },
      { once: once_ms !== undefined, ms: Math.min(once_ms ?? ONE_MS, ONE_MS) },
    )
    if (!answer) return { status: 0 }
    const said: Answer = { ...objectIn(answer.bytes.toString()), status: answer.status, at: answer.at }
    if (typeof said.left_s === 'number') rest = { from: momentNow(), ms: 1000 * said.left_s }
    else if (phase === 'started') rest = untilTime(Date.parse(work.deadline_at))
    return said
  }

  return {
    report,
    /** Milliseconds until the end of the work's time, which a person may extend. */
    left_ms,
    /** Announces the job's artifact, then uploads its bytes. */
    keep: async (about: { name: string; kind: string; media_type: string }, bytes: Buffer) => {
      const sha256 = sha256Hex(bytes)
      const said = await report('progress', { artifacts: [{ ...about, size: bytes.length, sha256 }] })
      const headers = { 'content-type': 'application/octet-stream' }
      const init = { method: 'PUT', headers, body: new Uint8Array(bytes) }
      const taken = said.status === 200 ? await send(`${artifacts_url}/${sha256}`, init, { ms: BYTES_MS }) : undefined
      if (taken?.status !== 200) throw new Error(`${about.name} was not accepted: ${taken?.status ?? said.status}.`)
      return { sha256 }
    },
    /** Fetches exactly the bytes with this digest. */
    fetch: async (sha256: string): Promise<Buffer> => {
      const answer = await send(`${artifacts_url}/${sha256}`, { method: 'GET' }, { ms: BYTES_MS })
      if (answer?.status !== 200)
        throw new Error(`The artifact ${sha256} cannot be fetched: ${answer?.status ?? 'no answer'}. ${UNTOUCHED}`)
      if (sha256Hex(answer.bytes) !== sha256)
        throw new Error(`The artifact ${sha256} has different content. ${UNTOUCHED}`)
      return answer.bytes
    },
  }
}

/** An answer that breaks off is none. */
const whole = async (answer: Response) => {
  const bytes = await answer.arrayBuffer().catch(() => undefined)
  return bytes && { status: answer.status, headers: answer.headers, bytes: Buffer.from(bytes) }
}
