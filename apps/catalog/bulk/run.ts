import type { ErrorObject } from 'ajv'
import {
  claimCommands,
  dropClaims,
  getCommands,
  type StoredAnswerRow,
  storeAnswers,
} from '../../../db/catalog/resources/batch.ts'
import type { Tx } from '../../../db/client.ts'
import { attempt } from '../../../db/command/attempt.ts'
import { fingerprintOf } from '../../../db/command/keys.ts'
import type { BulkDone, BulkItem, BulkOp, BulkRequest } from '../../shared/contracts/imports/bulk.ts'
import { AppError, problemOf, unavailable } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { invalid } from '../../shared/http/problems.ts'
import { causing, commandOf, type Write } from '../command/request.ts'
import { type Command, claimOf, commit, publicCommandId, replayOf, stampOf } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { NO_COMMAND } from '../resources/create.ts'
import { makeEach } from './each.ts'
import { type Made, type Prepared, prepare } from './items.ts'

/** So many items are made in one transaction: the locks of the tree are not held for longer than it takes. */
const CHUNK = 200

/** What of a change does not fit the schema of its kind; undefined when it fits. */
export type CheckShape = (op: BulkOp, change: unknown) => ErrorObject[] | undefined

type Item = Prepared & { index: number; command: Command | undefined }
type Answered = { status: number; body: string; replayed: boolean }
type Outcome = Answered | AppError

/**
 * Many changes in one request (catalog.md 7.4, "Bulk"). Each is refused or made as if it had come alone, with a key of
 * its own that follows from that of the request: a repeat gives what was made its first answer and tries the rest again.
 * `atomic`: all, or none and the first refusal.
 */
export const bulkResources = async (
  deps: CatalogDeps,
  { atomic = false, items }: BulkRequest,
  write: Write,
  check: CheckShape,
): Promise<{ body: string; denied: AppError[] }> => {
  const outcomes: Outcome[] = new Array(items.length)
  const key = write.query.validate_only ? undefined : commandOf(deps, write).idempotency_key
  const ready: Item[] = []
  for (const [index, item] of items.entries()) {
    try {
      const errors = check(item.op, item.change)
      if (errors) throw invalid(errors, 'body', CATALOG_CODES)
      ready.push({
        ...prepare(deps, item, write),
        index,
        command: key === undefined ? undefined : commandAt(deps, write, key, index, item),
      })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (atomic) throw atItem(error, index)
      outcomes[index] = error
    }
  }
  const size = atomic || key === undefined ? ready.length : CHUNK
  for (let from = 0; from < ready.length; from += size) {
    const part = ready.slice(from, from + size)
    const made = key === undefined ? await rehearsed(deps, part, write, atomic) : await kept(deps, part, write, atomic)
    for (const [at, outcome] of made.entries()) outcomes[part[at]?.index ?? at] = outcome
  }
  const denied = outcomes.filter(
    (outcome): outcome is AppError => outcome instanceof AppError && outcome.status === 403,
  )
  return { body: bodyOf(outcomes, write), denied }
}

/** The command of one item: named by the key of the request and its place in it. */
const commandAt = (deps: CatalogDeps, write: Write, key: string, index: number, item: BulkItem): Command => {
  const scope = `user:${write.caller.user_id} ${write.route}`
  const { mode, reason } = write.query
  return {
    command_id: publicCommandId(scope, `${key} ${index}`),
    scope,
    idempotency_key: `${key} ${index}`,
    fingerprint: fingerprintOf(deps.keys.fingerprint, { mode: mode ?? null, reason: reason ?? null, item }),
    kind: 'public',
  }
}

/** One part in a transaction. */
const kept = (deps: CatalogDeps, items: readonly Item[], write: Write, atomic: boolean): Promise<Outcome[]> =>
  commit(deps, (tx) => claimAndMake(tx, deps, items, write, atomic))

const claimAndMake = async (
  tx: Tx,
  deps: CatalogDeps,
  items: readonly Item[],
  write: Write,
  atomic: boolean,
): Promise<Outcome[]> => {
  const now = deps.clock.now()
  const commands = items.flatMap(({ command }) => command ?? [])
  const fresh = await claimCommands(
    tx,
    commands.map((command) => claimOf(deps, command, now)),
  )
  const isFresh = ({ command }: Item) => command !== undefined && fresh.has(command.command_id)
  const used = commands.filter(({ command_id }) => !fresh.has(command_id))
  const known = used.length > 0 ? await getCommands(tx, used) : []
  const made = await make(tx, deps, items.filter(isFresh), write, atomic)
  const outcomes = items.map((item): Made | Answered | AppError => {
    if (isFresh(item)) return made.shift() as Made | AppError
    return replayed(item.command as Command, known)
  })
  const answers: StoredAnswerRow[] = []
  const refused: string[] = []
  const told = outcomes.map((outcome, at): Outcome => {
    const command = items[at]?.command
    if (outcome instanceof AppError) {
      if (command && fresh.has(command.command_id)) refused.push(command.command_id)
      if (atomic) throw atItem(outcome, items[at]?.index ?? at)
      return outcome
    }
    if (!('done' in outcome)) return outcome
    const answer = answerOf(outcome)
    const { resource_id } = outcome.done
    const { status, body } = answer
    if (command)
      answers.push({ command_id: command.command_id, resource_id, status, headers: {}, body: Buffer.from(body) })
    return answer
  })
  await Promise.all([dropClaims(tx, refused), storeAnswers(tx, answers)])
  return told
}

const make = async (
  tx: Tx,
  deps: CatalogDeps,
  items: readonly Item[],
  write: Write,
  atomic: boolean,
): Promise<(Made | AppError)[]> => {
  const stamp = stampOf(deps)
  const changes = items.map(({ wish, make: one, command, index }) => ({
    wish,
    run: async (inner: Tx) => {
      try {
        return await one(inner, causing(write, command?.command_id ?? NO_COMMAND, stamp))
      } catch (error) {
        throw atomic && error instanceof AppError ? atItem(error, index) : error
      }
    },
  }))
  const check = () => {
    if (performance.now() >= write.ends_at)
      throw unavailable('The time of this request is over. Repeat it with the same key: what was made stays made.')
  }
  return makeEach(tx, deps.registry.types, changes, { check })
}

const replayed = (command: Command, known: Awaited<ReturnType<typeof getCommands>>): Outcome => {
  try {
    const holder = known.find(({ command_id }) => command_id === command.command_id)
    const { status, body } = replayOf(command, holder)
    return { status, body: body.toString('utf8'), replayed: true }
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
}

const answerOf = ({ status, done }: { status: number; done: BulkDone }): Answered => ({
  status,
  body: JSON.stringify(done),
  replayed: false,
})

const rehearsed = async (
  deps: CatalogDeps,
  items: readonly Item[],
  write: Write,
  atomic: boolean,
): Promise<Outcome[]> => {
  const made = await attempt(deps.db, (tx) => make(tx, deps, items, write, atomic))
  return made.map((outcome, at) => {
    if (!(outcome instanceof AppError)) return answerOf(outcome)
    if (atomic) throw atItem(outcome, items[at]?.index ?? at)
    return outcome
  })
}

/** A refusal of one item as the answer to the whole: says which, and its pointers start at the body. */
const atItem = (error: AppError, index: number): AppError => {
  const { violations, extra } = error.options
  if (extra?.index !== undefined) return error
  const at = `/items/${index}/change`
  return new AppError(error.category, error.code, error.message, {
    ...error.options,
    status: error.status,
    extra: { ...extra, index },
    ...(violations && { violations: violations.map((one) => ({ ...one, pointer: `${at}${one.pointer}` })) }),
  })
}

/** The reply as text: stored answers stand in it byte for byte. */
const bodyOf = (outcomes: readonly Outcome[], { request_id }: Write): string => {
  const results = outcomes.map((outcome, index) => {
    if (outcome instanceof AppError) {
      const problem = problemOf(outcome, request_id, '/v1/resources:bulk')
      return `{"index":${index},"status":${outcome.status},"body":${JSON.stringify(problem)}}`
    }
    const replayed = outcome.replayed ? ',"replayed":true' : ''
    return `{"index":${index},"status":${outcome.status}${replayed},"body":${outcome.body}}`
  })
  return `{"results":[${results.join(',')}]}`
}
