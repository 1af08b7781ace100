import { setTimeout as delay } from 'node:timers/promises'
import { crashPoint } from '../../apps/shared/crash.ts'
import { AppError } from '../../apps/shared/errors.ts'
import { type Db, type Last, type Tx, transact } from '../client.ts'
import type { Statement } from '../rows.ts'
import { attempt } from './attempt.ts'
import {
  claimKey,
  type IdempotencyTable,
  type IdempotentRequest,
  type StoredAnswer,
  stillRunning,
  storeAnswer,
  type Used,
} from './keys.ts'

/** A command as identified by its key. With a `command_id` its answer may come after the commit. */
export type Command = { request: IdempotentRequest; command_id?: string; dry_run?: boolean }
type Known = Pick<Command, 'command_id' | 'dry_run'>

export type Given = {
  status: number
  headers?: Record<string, string>
  body: unknown
  /** The resource that it concerns. */
  about?: string | null
  /** The command's last writes, not sent yet: they go out with the answer. */
  writes?: Statement[]
}
export type Answer = StoredAnswer & { replayed: boolean }

export type Decision<E> = {
  /** The result of a dry run, visible only to its caller. */
  effect: E
  /**
   * Writes rows, facts, audit and outbox, and returns the answer; `later`: the caller stores the answer after the
   * commit. A dry run does not call it. Writes passed to `last` go out with the commit.
   */
  keep: (last: Last) => Promise<Given | 'later'>
}

export type Steps<S, E> = {
  /** Locks and reads the subject, in one round trip with the claim; the result is unused if the key is known. */
  lock?: (tx: Tx) => Promise<S>
  /** Checks policy, state and version, then swaps; throws the refusal. */
  decide: (tx: Tx, subject: S) => Promise<Decision<E>>
}

export type Answered<C> = { command: C; answer: StoredAnswer; writes: Statement[] }

/** Where a schema stores the keys of its commands and their first answers. */
export type Keys<C> = {
  /**
   * Takes the keys of these commands; returns the earlier use of each key that was taken, or why it is refused. The
   * call itself sends the statement: the caller's next statement comes after it.
   */
  claim: (tx: Tx, commands: readonly C[]) => Promise<readonly (Used | AppError | undefined)[]>
  /** Stores first answers, and returns the stored ones. */
  store: (tx: Tx, answered: readonly Answered<C>[], last: Last) => Promise<readonly StoredAnswer[]>
  /** Releases the keys of refused commands while others of their transaction stay. */
  drop?: (tx: Tx, commands: readonly C[]) => Promise<void>
  /** The names that no two commands of one claim may share. */
  names?: (command: C) => readonly string[]
}

/** The key storage of a schema whose commands have no log of their own. */
export const keysIn = (table: IdempotencyTable): Keys<Command> => ({
  claim: (tx, commands) =>
    Promise.all(commands.map(({ request, command_id }) => claimKey(tx, table, request, command_id))),
  store: (tx, answered) =>
    Promise.all(answered.map(({ command, answer }) => storeAnswer(tx, table, command.request, answer))),
})

/** The dependencies for running one schema's commands. */
export type Kernel<C = Command> = {
  db: Db
  keys: Keys<C>
  /** Writes the audit row of a 403 or a refused address, whose own transaction was rolled back. */
  denied?: (error: AppError) => Promise<void>
  /** The refusal behind an error of the database, such as a name that another transaction took first. */
  clash?: (error: unknown) => AppError | undefined
  /** Whether another transaction wrote the same row first, so that a repeat sees it. */
  raced?: (error: unknown) => boolean
  /** Called after each commit. */
  wake?: () => void
}

export type Outcome<E> =
  | { answer: Answer }
  /** A dry run: rolled back. */
  | { tried: E }
  /** Committed without an answer, now or by an earlier request with this key. */
  | { later: { command_id: string; repeated: boolean } }

/**
 * Runs a command once per key in one transaction: claim, lock, decide, keep (reliability.md 3). A repeat gets the
 * stored bytes. A refusal (a throw) rolls the key back with everything else, so a corrected request may reuse it.
 */
export const run = async <S, E, C extends Known = Command>(
  kernel: Kernel<C>,
  command: C,
  { lock, decide }: Steps<S, E>,
): Promise<Outcome<E>> => {
  const refused = (error: AppError) => {
    throw error
  }
  const many = { ...(lock && { lock }), decide: async (tx: Tx, subject: S) => [await decide(tx, subject)], refused }
  const [outcome] = await runEach(kernel, [command], many)
  return outcome as Outcome<E>
}

export type ManySteps<S, E, C> = {
  lock?: (tx: Tx) => Promise<S>
  /** A decision or a refusal for each command with a fresh key, in order. Refused commands have left no changes. */
  decide: (tx: Tx, subject: S, fresh: readonly C[], last: Last) => Promise<(Decision<E> | AppError)[]>
  /** Receives each refusal, with the index of its command; an error that it throws ends the whole run. */
  refused?: (error: AppError, at: number) => void
}

/** Runs commands in one transaction, in order, each once per key and each refused on its own. */
export const runEach = async <S, E, C extends Known>(
  kernel: Kernel<C>,
  commands: readonly C[],
  steps: ManySteps<S, E, C>,
): Promise<(Outcome<E> | AppError)[]> => {
  const work = async (tx: Tx, last: Last) => {
    const outcomes: (Outcome<E> | AppError)[] = []
    for (const part of partsOf(commands, kernel.keys.names)) {
      const from = outcomes.length
      const refused = (error: AppError, at: number) => steps.refused?.(error, from + at)
      outcomes.push(...(await perform(tx, kernel.keys, part, { ...steps, refused }, last)))
    }
    return outcomes
  }
  try {
    if (commands.some(({ dry_run }) => dry_run)) return await attempt(kernel.db, (tx) => work(tx, () => {}))
    return await commit(kernel, work)
  } catch (error) {
    if (error instanceof AppError && isAttempt(error)) await kernel.denied?.(error)
    throw error
  }
}

/** Whether the audit log records the refusal: whoever tries addresses may be looking for hosts inside the network. */
const isAttempt = ({ category, code }: AppError) => category === 'policy_denied' || code === 'address_refused'

/** Splits commands into parts in which no name occurs twice. */
const partsOf = <C>(commands: readonly C[], names: (command: C) => readonly string[] = () => []): C[][] => {
  const parts: C[][] = [[]]
  let seen = new Set<string>()
  for (const command of commands) {
    const own = names(command)
    if (own.some((name) => seen.has(name))) {
      parts.push([])
      seen = new Set()
    }
    for (const name of own) seen.add(name)
    parts.at(-1)?.push(command)
  }
  return parts
}

const TRIES = 3
const codeOf = (error: unknown) => (error as { cause?: { code?: string } }).cause?.code

/** Commits the work of one transaction; retries after a deadlock or a race, up to three attempts in all. */
const commit = async <T>(
  { db, clash, raced, wake }: Pick<Kernel, 'db' | 'clash' | 'raced' | 'wake'>,
  work: (tx: Tx, last: Last) => Promise<T>,
): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      const done = await transact(db, async (tx, last) => {
        const result = await work(tx, last)
        crashPoint('api.before_commit')
        return result
      })
      crashPoint('api.after_commit')
      wake?.()
      return done
    } catch (error) {
      const refusal = clash?.(error)
      if (refusal) throw refusal
      if (tries >= TRIES || (codeOf(error) !== '40P01' && !raced?.(error))) throw error
      await delay(Math.random() * 20 * tries)
    }
  }
}

/** Like `run`, for a command that answers in its transaction; `tried` makes the body of a dry run's answer. */
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

export const answerOf = ({ status, headers = {}, body }: Given): StoredAnswer => ({
  status,
  headers,
  body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
})

const perform = async <S, E, C extends Known>(
  tx: Tx,
  keys: Keys<C>,
  commands: readonly C[],
  { lock, decide, refused }: ManySteps<S, E, C>,
  last: Last,
): Promise<(Outcome<E> | AppError)[]> => {
  // The server executes them in this order.
  const [claiming, locking] = await Promise.allSettled([keys.claim(tx, commands), lock?.(tx)])
  const used = unwrap(claiming)
  const fresh = commands.filter((_, at) => used[at] === undefined)
  const decided = fresh.length === 0 ? [] : await decide(tx, unwrap(locking) as S, fresh, last)
  const dropped: C[] = []
  const answered: Answered<C>[] = []
  const outcomes: (Outcome<E> | AppError | undefined)[] = []
  for (const [at, command] of commands.entries()) {
    const known = used[at]
    const decision = known === undefined ? (decided.shift() as Decision<E> | AppError) : undefined
    const outcome =
      decision && !(decision instanceof AppError) ? await kept(command, decision, answered, last) : decision
    if (outcome instanceof AppError) dropped.push(command)
    outcomes[at] = known === undefined ? outcome : earlier(command, known)
    if (outcomes[at] instanceof AppError) refused?.(outcomes[at], at)
  }
  if (dropped.length > 0) await keys.drop?.(tx, dropped)
  const stored = answered.length > 0 ? await keys.store(tx, answered, last) : []
  const answers = stored.values()
  return outcomes.map((one) => one ?? { answer: { ...(answers.next().value as StoredAnswer), replayed: false } })
}

/** `undefined`: it has an answer, which must be stored. */
const kept = async <C extends Known, E>(
  command: C,
  { effect, keep }: Decision<E>,
  answered: Answered<C>[],
  last: Last,
): Promise<Outcome<E> | undefined> => {
  if (command.dry_run) return { tried: effect }
  const given = await keep(last)
  if (given !== 'later') {
    const about = given.about === undefined ? {} : { about: given.about }
    answered.push({ command, answer: { ...answerOf(given), ...about }, writes: given.writes ?? [] })
    return undefined
  }
  if (command.command_id === undefined) throw new Error('a command without an id was not answered')
  return { later: { command_id: command.command_id, repeated: false } }
}

const earlier = ({ command_id }: Known, used: Used | AppError): Outcome<never> | AppError => {
  if (used instanceof AppError) return used
  if (used.answer) return { answer: { ...used.answer, replayed: true } }
  return command_id === undefined
    ? stillRunning()
    : { later: { command_id: used.command_id ?? command_id, repeated: true } }
}

const unwrap = <T>(settled: PromiseSettledResult<T>): T => {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}
