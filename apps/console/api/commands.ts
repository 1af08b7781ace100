import { answerOf, type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { sleep } from '../session/wait.ts'
import { problemOf, withSession } from './client.ts'
import { serverNow } from './live.ts'

/** One command below /api: a POST unless it names another method. PUT and DELETE send no body. */
export type Command = {
  method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  body: Record<string, unknown>
  /** Refused with 412 unless the object still has this version. */
  version?: number
}

/** The outcome of a command (console.md section 6). */
export type Outcome<Reply = unknown> =
  | { kind: 'applied'; reply: Reply }
  | { kind: 'accepted'; reply: Reply; at: string }
  /** It may have taken effect: only the same command follows, with the same key. */
  | { kind: 'unknown'; problem: Problem }
  /** Not judged: it had no effect yet, and keeps its key. */
  | { kind: 'held'; problem: Problem }
  | { kind: 'refused'; problem: Problem }

const WAITS = 3
const LONGEST_WAIT_MS = 10_000

/** A sender of commands. A command keeps its key until it is refused, so that its repeats take effect once. */
export const commandSender = () => {
  const keys = new Map<string, string>()
  const doubtful = new Set<string>()
  return async <Reply>(command: Command): Promise<Outcome<Reply>> => {
    const text = JSON.stringify(command)
    const key = keys.get(text) ?? crypto.randomUUID()
    keys.set(text, key)
    const outcome = await sendCommand<Reply>(command, key)
    if (outcome.kind === 'unknown') doubtful.add(key)
    if (outcome.kind === 'refused') keys.delete(text)
    // A wait does not tell what became of an earlier try.
    return outcome.kind === 'held' && doubtful.has(key) ? { ...outcome, kind: 'unknown' } : outcome
  }
}

/**
 * Sends a command and returns the server's answer. Only answers that promise no effect yet (in progress, too many
 * requests, overload) are repeated after their wait, with the same key. After a missing answer the person repeats it.
 */
const sendCommand = async <Reply>(command: Command, key: string): Promise<Outcome<Reply>> => {
  for (let waits = 0; ; waits += 1) {
    const { status, reply, problem } = await send<Reply>(command, key)
    const answer = answerOf(status, problem)
    if (answer === 'applied') return { kind: 'applied', reply: reply as Reply }
    if (answer === 'accepted')
      return { kind: 'accepted', reply: reply as Reply, at: new Date(serverNow()).toISOString() }
    if (problem === undefined || answer === 'unknown')
      return { kind: 'unknown', problem: problem ?? problemFrom(0, null) }
    if (answer === 'refused') return { kind: isUnjudged(problem) ? 'held' : 'refused', problem }
    // An earlier try that is still in progress may yet take effect.
    if (waits >= WAITS) return { kind: status === 409 ? 'unknown' : 'held', problem }
    await sleep(Math.min(problem.retry_after_ms ?? 1000, LONGEST_WAIT_MS))
  }
}

/** The session ended, or its sign-in is too old: the command itself was not looked at. */
const isUnjudged = ({ status, code }: Problem): boolean => status === 401 || code === 'reauth_required'

/** The effect of the command, from the server's dry run, which takes a separate key. */
export const dryRun = async <Effect>({ path, body }: Command): Promise<{ effect: Effect } | { problem: Problem }> => {
  const { reply, problem } = await send<{ effect: Effect }>(
    { path, body: { ...body, dry_run: true } },
    crypto.randomUUID(),
  )
  return reply === undefined ? { problem: problem ?? problemFrom(0, null) } : { effect: reply.effect }
}

async function send<Reply>(
  { method = 'POST', path, body, version }: Command,
  key: string,
): Promise<{ status: number | null; reply?: Reply; problem?: Problem }> {
  try {
    const bodied = method === 'POST' || method === 'PATCH'
    const request = new Request(`/api${path}`, {
      method,
      headers: {
        'idempotency-key': key,
        ...(bodied ? { 'content-type': 'application/json' } : {}),
        ...(version === undefined ? {} : { 'if-match': `"${version}"` }),
      },
      ...(bodied ? { body: JSON.stringify(body) } : {}),
    })
    const answer = await withSession(request)
    // An answer that breaks off does not say what was done: it is none.
    if (answer.ok) return { status: answer.status, reply: JSON.parse((await answer.text()) || 'null') as Reply }
    const content: unknown = await answer.json().catch(() => null)
    return { status: answer.status, problem: problemFrom(answer.status, content, answer.headers.get('retry-after')) }
  } catch (thrown) {
    return { status: null, problem: problemOf(thrown) }
  }
}
