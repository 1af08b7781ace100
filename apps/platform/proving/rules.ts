import { readFileSync } from 'node:fs'
import { Value } from 'typebox/value'
import { ExecutionResult, type Work } from '../../shared/contracts/engine/executions.ts'
import { digest } from '../../shared/data/digest.ts'

/** How one message is answered: by the rules, or in a way that agents must tolerate. */
export type Answer = 'as usual' | 'lost' | 'away' | 'closed' | 'cancel'
export type Heard = { at: number; message: ExecutionResult; repeat: boolean }

/** One attempt as it was handed to the agent under test, and all of the agent's messages about it. */
export type Attempt = {
  work: Work
  /** Its job adds a line to this file for each effect. */
  file: string
  answer: (heard: Heard) => Answer | Promise<Answer>
  heard: Heard[]
  /** The rules it broke, as sentences without a subject. */
  faults: Set<string>
  lines: Map<number, string>
  /** Closed for a reason of ours: later messages of the agent are refused, which is no fault. */
  closed: boolean
}
export type Reply = { status: number; body: Record<string, unknown> }

export const TERMINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'unknown'])
const MAX_BODY = 1_048_576

export const effectsOf = ({ file }: Attempt): string[] => {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
export const startedOf = ({ heard }: Attempt): Heard | undefined =>
  heard.find(({ message }) => message.phase === 'started')
export const endOf = ({ heard }: Attempt): ExecutionResult | undefined =>
  heard.find(({ message }) => TERMINAL.has(message.phase))?.message

const refusal = (code: string, detail: string, status = 409): Reply => ({
  status,
  body: { category: 'execution_result_rejected', code, detail, status },
})

/** Takes a message as operations does (operations.md 9.1), and records violations by the agent. */
export const takeMessage = (attempt: Attempt, body: unknown, size: number, cancel: boolean): Reply => {
  const { work, heard, faults, lines } = attempt
  if (size > MAX_BODY) {
    faults.add(`sent a message of ${size} bytes; at most ${MAX_BODY} are accepted`)
    return refusal('too_large', 'The message is too large.', 413)
  }
  if (!Value.Check(ExecutionResult, body)) {
    const [first] = Value.Errors(ExecutionResult, body)
    faults.add(`sent a message that is not valid: ${first?.instancePath || '/'} ${first?.message}`)
    return refusal('invalid', 'The message does not fit.', 400)
  }
  const message = body
  const known = heard.find((one) => one.message.result_id === message.result_id)
  if (known && digest(known.message) !== digest(message)) {
    faults.add('used one result_id for two messages')
    return refusal('result_conflict', 'This result_id was sent before with different content.')
  }
  heard.push({ at: Date.now(), message, repeat: known !== undefined })
  if (known) return accepted(cancel, true)
  for (const name of ['operation_id', 'node_id', 'attempt', 'generation', 'fence'] as const)
    if (message[name] !== work[name]) {
      faults.add(`sent ${name} ${message[name]}; its work has ${work[name]}`)
      return refusal('stale_attempt', 'It is not of this work.')
    }
  for (const { seq, text } of message.lines ?? []) {
    if ((lines.get(seq) ?? text) !== text) faults.add(`sent log line ${seq} twice with different text`)
    lines.set(seq, text)
  }
  const earlier = heard.slice(0, -1).map((one) => one.message)
  if (attempt.closed) return refusal('attempt_closed', 'The attempt is closed.')
  if (earlier.some(({ phase }) => TERMINAL.has(phase))) {
    // Work that is given again may be asked for after its end, and is refused.
    if (message.phase !== 'started') faults.add(`reported "${message.phase}" after the end`)
    return refusal('attempt_closed', 'The attempt has ended.')
  }
  const begun = earlier.some(({ phase }) => phase === 'started')
  if (message.phase === 'started' && begun) return refusal('not_dispatched', 'Another agent has begun it.')
  if (message.phase !== 'started' && !begun) {
    faults.add(`reported "${message.phase}" before "started"`)
    return refusal('not_dispatched', 'Report "started" first, and continue once it is accepted.')
  }
  if (earlier.some(({ sequence }) => sequence === message.sequence))
    faults.add(`used the sequence ${message.sequence} for two messages`)
  return accepted(cancel, false, TERMINAL.has(message.phase) ? undefined : work.heartbeat_s)
}

const accepted = (cancel_requested: boolean, duplicate: boolean, heartbeat_s?: number): Reply => ({
  status: 200,
  body: {
    ...{ accepted: true, duplicate, node_state: 'running', cancel_requested },
    next_before: heartbeat_s ? new Date(Date.now() + 3000 * heartbeat_s).toISOString() : null,
  },
})
