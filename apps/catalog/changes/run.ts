import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { type Answer, answerOf as bytesOf } from '../../../db/command/run.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError, problemOf } from '../../shared/errors.ts'
import { refuseLate } from '../command/deadline.ts'
import type { Command } from '../command/keys.ts'
import { answerOf, type CommandDeps, type CommandWork, type MakeAll, runCommands, stampOf } from '../command/run.ts'
import type { Uses } from '../deps.ts'
import { makeEach, makeOne } from './each.ts'
import { isAlone, type Wish } from './hold.ts'

/** A command on a resource: the data it will need, and its work. */
export type Asked = { command: Command; wish: Wish; work: CommandWork }
export type ChangeDeps = CommandDeps & Uses<'registry'>

/** Runs one command on a resource (catalog.md 8): a set of one. */
export const runChange = async (deps: ChangeDeps, asked: Asked): Promise<Answer> =>
  answerOf(deps, await runSet(deps, [asked], {}))

type How = { refused?: (error: AppError, at: number) => void; check?: () => void; whole?: Command | undefined }

/**
 * Runs commands in one transaction. A single one is rolled back when refused; several are refused one by one. `whole`:
 * the request that they are parts of, which is claimed with them and kept if one is, or was, made. If its key is
 * refused, so are all.
 */
const runSet = async (deps: ChangeDeps, set: readonly Asked[], { refused, check = () => {}, whole }: How) => {
  const { types } = deps.registry
  // Last writes of a command made alone go out with its own answer, so a request has none.
  const [only] = set.length === 1 && !whole ? set : []
  const of = new Map(set.map((asked) => [asked.command, asked]))
  const makeAll: MakeAll = async (tx, fresh, held, last) => {
    if (fresh[0] === whole && whole) {
      const items = fresh.slice(1)
      const made = items.length === 0 ? [] : await makeAll(tx, items, held, last)
      return [made.length < set.length || made.some(isMade) ? KEPT : UNUSED, ...made]
    }
    const stamp = stampOf(deps)
    const changes = fresh.flatMap((command) => {
      const { wish, work } = of.get(command) as Asked
      return { wish, run: (inner: typeof tx) => work(inner, stamp) }
    })
    const [first] = changes
    if (only && first) {
      check()
      return [await makeOne(tx, types, first, { held, last })]
    }
    const made = await makeEach(tx, types, changes, { check })
    check()
    return made
  }
  const alone = only && isAlone(only.wish) ? only.wish.resource_id : undefined
  const before = whole ? [whole] : []
  const outcomes = await runCommands(deps, [...before, ...pluck(set, 'command')], makeAll, {
    alone,
    uncounted: whole,
    ...(refused && { refused: (error, at) => refused(error, at - before.length) }),
  })
  return outcomes.slice(before.length)
}

/** The answer that a request is kept with; its own answer is made of those of its items. */
const KEPT = { status: 200, body: {} }
/** Releases the key of a request of which no item was made; never sent. */
const UNUSED = new AppError('validation_error', 'malformed', 'No item was made. Send corrected items.')

const isMade = (outcome: object): boolean => !(outcome instanceof AppError)

/** How many items one transaction makes, so that its locks are not held for long. */
const CHUNK = 200

export type Item = Asked & { index: number }
export type Outcome = Pick<Answer, 'status' | 'body' | 'replayed'> | AppError
type Batch = { atomic: boolean; ends_at: number; atItem: AtItem; whole?: Command }
type AtItem = (error: AppError, index: number) => AppError

/**
 * Makes the items of a request, each refused or made as if it had come alone. `atomic`: all in one transaction, or none
 * and the first refusal. Outcomes keep the index of their item. `whole`: the request itself, kept with the first item
 * that is made; if its key is refused, so is everything.
 */
export const runItems = async (
  deps: ChangeDeps,
  items: readonly Item[],
  outcomes: Outcome[],
  { atomic, ends_at, atItem, whole }: Batch,
): Promise<void> => {
  const check = () => refuseLate(ends_at)
  let reused: AppError | undefined
  let kept = false
  const size = atomic ? Math.max(1, items.length) : CHUNK
  // Even without items, the key of the request is checked.
  for (let from = 0; from < Math.max(items.length, whole ? 1 : 0); from += size) {
    const part = items.slice(from, from + size)
    const indexOf = (at: number) => part[at]?.index ?? at
    const refused = (error: AppError, at: number) => {
      if (error === UNUSED) return
      if (at < 0) reused = error
      if (reused) throw reused
      if (atomic) throw atItem(error, indexOf(at))
    }
    const how: How = { refused, check, whole: kept ? undefined : whole }
    const made = await runSet(deps, part, how).catch((error): AppError[] => {
      const own = part.length === 1 && error !== reused && error instanceof AppError
      if (!own || error.status >= 500 || error.options.retryable) throw error
      refused(error, 0)
      return [error]
    })
    kept ||= made.some(isMade)
    for (const [at, outcome] of made.entries()) outcomes[indexOf(at)] = outcome
  }
}

/** Like `runItems`, but rolled back: items are refused or answered, and nothing is kept. */
export const tryItems = async (
  deps: ChangeDeps,
  items: readonly Item[],
  outcomes: Outcome[],
  { atomic, ends_at, atItem }: Batch,
): Promise<void> => {
  const stamp = stampOf(deps)
  const changes = items.map(({ wish, work }) => ({ wish, run: (tx: Tx) => work(tx, stamp) }))
  const check = () => refuseLate(ends_at)
  const made = await attempt(deps.db, (tx) => makeEach(tx, deps.registry.types, changes, { check }))
  for (const [at, outcome] of made.entries()) {
    const { index } = items[at] as Item
    if (outcome instanceof AppError && atomic) throw atItem(outcome, index)
    outcomes[index] = outcome instanceof AppError ? outcome : { ...bytesOf(outcome), replayed: false }
  }
}

/** Turns the refusal of one item into the answer to the whole: names the item, with pointers from the body's root. */
export const refusedAt =
  (member: string): AtItem =>
  (error, index) => {
    const { violations, extra } = error.options
    if (extra?.index !== undefined) return error
    const at = `/items/${index}/${member}`
    return new AppError(error.category, error.code, error.message, {
      ...error.options,
      status: error.status,
      extra: { ...extra, index },
      ...(violations && { violations: violations.map((one) => ({ ...one, pointer: `${at}${one.pointer}` })) }),
    })
  }

/** The refusals by policy, each with the index of its item. */
export const deniedOf = (outcomes: readonly Outcome[], atItem: AtItem): AppError[] =>
  outcomes.flatMap((one, index) => (one instanceof AppError && one.status === 403 ? [atItem(one, index)] : []))

/** The reply as text; it contains stored answers byte for byte. */
export const replyOf = (outcomes: readonly Outcome[], request_id: string, path: string): string => {
  const results = outcomes.map((outcome, index) => {
    if (outcome instanceof AppError) {
      const problem = problemOf(outcome, request_id, path)
      return `{"index":${index},"status":${outcome.status},"body":${JSON.stringify(problem)}}`
    }
    const replayed = outcome.replayed ? ',"replayed":true' : ''
    return `{"index":${index},"status":${outcome.status}${replayed},"body":${outcome.body.toString('utf8')}}`
  })
  return `{"results":[${results.join(',')}]}`
}
