import { crashPoint } from '../../apps/shared/crash.ts'
import { AppError } from '../../apps/shared/errors.ts'
import type { Db, Tx } from '../client.ts'
import { attempt } from './attempt.ts'
import {
  claimKey,
  type IdempotencyTable,
  type IdempotentRequest,
  type StoredAnswer,
  stillRunning,
  storeAnswer,
} from './keys.ts'

/** A command as its key sees it. With a `command_id` its answer may come after the commit. */
export type Command = { request: IdempotentRequest; command_id?: string; dry_run?: boolean }

/** An answer before it is stored. */
export type Given = { status: number; headers?: Record<string, string>; body: unknown }
export type Answer = StoredAnswer & { replayed: boolean }

export type Decision<E> = {
  /** The result of a dry run; nobody else sees it. */
  effect: E
  /**
   * Writes rows, facts, audit and outbox, and answers; `later`: `settle` stores the answer after the commit. A dry run
   * does not call it.
   */
  keep: () => Promise<Given | 'later'>
}

export type Steps<S, E> = {
  /** Locks and reads the subject, in one round trip with the claim; unused if the key is known. */
  lock?: (tx: Tx) => Promise<S>
  /** Checks policy, state and version, then swaps; throws the refusal. */
  decide: (tx: Tx, subject: S) => Promise<Decision<E>>
}

/** Commands of one schema. */
export type Kernel = {
  db: Db
  keys: IdempotencyTable
  /** Writes the audit row of a 403, whose own transaction is gone. */
  denied?: (error: AppError) => Promise<void>
}

export type Outcome<E> =
  | { answer: Answer }
  /** A dry run: rolled back. */
  | { tried: E }
  /** Committed without an answer, now or by an earlier request with this key. */
  | { later: { command_id: string; repeated: boolean } }

/**
 * Runs a command once per key in one transaction: claim, lock, decide, keep (reliability.md 3). A repeat gets the stored
 * bytes. A refusal (a throw) rolls the key back with the rest, so a corrected request may use it again.
 */
export const run = async <S, E>(
  { db, keys, denied }: Kernel,
  command: Command,
  steps: Steps<S, E>,
): Promise<Outcome<E>> => {
  const work = (tx: Tx) => perform(tx, keys, command, steps)
  try {
    if (command.dry_run) return await attempt(db, work)
    const outcome = await db.transaction(work)
    crashPoint('api.after_commit')
    return outcome
  } catch (error) {
    if (error instanceof AppError && error.category === 'policy_denied') await denied?.(error)
    throw error
  }
}

/** The same for a command that answers in its transaction; `tried` makes the body of a dry run's answer. */
export const runAnswered = async <E>(
  kernel: Kernel,
  command: Command,
  decide: (tx: Tx) => Promise<Decision<E>>,
  tried: (effect: E) => unknown = (effect) => effect,
): Promise<Answer> => {
  const outcome = await run(kernel, command, { decide })
  if ('answer' in outcome) return outcome.answer
  if ('tried' in outcome) return { ...answerOf({ status: 200, body: tried(outcome.tried) }), replayed: false }
  throw new Error(`command ${outcome.later.command_id} has no answer`)
}

/** Stores the answer of a committed command by compare-and-set, and returns the one that is stored. */
export const settle = ({ db, keys }: Kernel, { request }: Command, given: StoredAnswer): Promise<StoredAnswer> =>
  storeAnswer(db, keys, request, given)

/** The bytes of an answer. */
export const answerOf = ({ status, headers = {}, body }: Given): StoredAnswer => ({
  status,
  headers,
  body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
})

const perform = async <S, E>(
  tx: Tx,
  keys: IdempotencyTable,
  { request, command_id, dry_run }: Command,
  { lock, decide }: Steps<S, E>,
): Promise<Outcome<E>> => {
  // The server takes them in this order.
  const [claiming, locking] = await Promise.allSettled([claimKey(tx, keys, request, command_id), lock?.(tx)])
  const used = unwrap(claiming)
  if (used?.answer) return { answer: { ...used.answer, replayed: true } }
  if (used) {
    if (command_id === undefined) throw stillRunning()
    return { later: { command_id: used.command_id ?? command_id, repeated: true } }
  }
  const { effect, keep } = await decide(tx, unwrap(locking) as S)
  if (dry_run) return { tried: effect }
  const given = await keep()
  const answer = given === 'later' ? undefined : await storeAnswer(tx, keys, request, answerOf(given))
  crashPoint('api.before_commit')
  if (answer) return { answer: { ...answer, replayed: false } }
  if (command_id === undefined) throw new Error('a command without an id was not answered')
  return { later: { command_id, repeated: false } }
}

const unwrap = <T>(settled: PromiseSettledResult<T>): T => {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}
