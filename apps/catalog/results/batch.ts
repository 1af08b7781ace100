import type { ErrorObject } from 'ajv'
import type {
  CapabilitiesCommand,
  HealthObservation,
  ResourceUpdateCommand,
} from '../../shared/contracts/catalog/commands.ts'
import type { BatchApply, BatchItem } from '../../shared/contracts/imports/batch.ts'
import { AppError, problemOf } from '../../shared/errors.ts'
import { CATALOG_CODES } from '../../shared/http/edge-codes.ts'
import { invalid, toAppError } from '../../shared/http/problems.ts'
import { checkScope, type ServiceCaller } from '../../shared/service/tokens.ts'
import { refuseLate } from '../command/late.ts'
import { type Answer, claimAndWork, clashOf, commit, runCommand } from '../command/run.ts'
import type { CatalogDeps } from '../deps.ts'
import { applyPlain, isPlain, type Plain } from './plain.ts'
import { healthObservation, operationResult, type Prepared, providedCapabilities, type Sender } from './record.ts'

/** `ends_at`: when the caller is told that it took too long; no further command is begun then, and an atomic batch is none. */
export type BatchSender = { service: ServiceCaller; request_id: string; route: string; ends_at: number }
/** What of a command does not fit the schema of its kind; nothing when it fits. */
export type CheckShape = (kind: BatchItem['kind'], command: unknown) => ErrorObject[] | undefined

/** The route whose command an item is: its scope and its keys are those of that route, so that either may repeat it. */
const KINDS = {
  apply: { scope: 'results:apply', route: 'POST /internal/v1/resources/:resource_id/apply-operation-result' },
  capabilities: {
    scope: 'capabilities:report',
    route: 'POST /internal/v1/resources/:resource_id/provided-capabilities',
  },
  health: { scope: 'health:report', route: 'POST /internal/v1/resources/:resource_id/health-observations' },
} as const

type Item = Prepared & { index: number; resource_id: string; plain: Plain | undefined }
type Outcome = Answer | AppError

/** How many resources are worked on side by side where commands must be run one by one. */
const LANES = 4

/**
 * Many commands in one request (catalog.md 7.5, 8). Each has its own id and key and is answered as if it had come alone:
 * same checks in the same order, same bytes when it is repeated. `independent`: each stands for itself, those of one
 * resource apply in their order. `atomic`: all, or none and the first refusal with its index.
 */
export const applyBatch = async (
  deps: CatalogDeps,
  { mode, items }: BatchApply,
  sender: BatchSender,
  check: CheckShape,
): Promise<string> => {
  const atomic = mode === 'atomic'
  const outcomes: Outcome[] = new Array(items.length)
  const ready: Item[] = []
  for (const [index, item] of items.entries()) {
    try {
      ready.push(prepare(deps, item, index, sender, check))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (atomic) throw atItem(error, index)
      outcomes[index] = error
    }
  }
  const parts = divide(ready)
  if (atomic) {
    const all = await (parts.single.length === 0
      ? together(deps, ready, sender.ends_at)
      : inOrder(deps, ready, sender.ends_at))
    for (const [at, answer] of all.entries()) outcomes[ready[at]?.index ?? at] = answer
  } else {
    await sideBySide(deps, parts, outcomes, sender.ends_at)
  }
  return bodyOf(outcomes, sender)
}

const prepare = (deps: CatalogDeps, item: BatchItem, index: number, from: BatchSender, check: CheckShape): Item => {
  const { kind } = item
  const { scope, route } = KINDS[kind]
  checkScope(from.service, scope)
  const errors = check(kind, item.command)
  if (errors) throw invalid(errors, 'body', CATALOG_CODES)
  const { resource_id } = item.command as { resource_id: string }
  const sender: Sender = { service: from.service, route, request_id: from.request_id, path_id: resource_id }
  if (kind === 'capabilities')
    return {
      ...providedCapabilities(deps, item.command as CapabilitiesCommand, sender),
      index,
      resource_id,
      plain: undefined,
    }
  if (kind === 'health')
    return {
      ...healthObservation(deps, item.command as HealthObservation, sender),
      index,
      resource_id,
      plain: undefined,
    }
  const body = item.command as ResourceUpdateCommand
  const prepared = operationResult(deps, body, sender)
  const plain = isPlain(body) ? { command: prepared.command, body, sender } : undefined
  return { ...prepared, index, resource_id, plain }
}

type Parts = { plain: (Item & { plain: Plain })[]; single: Item[] }

/**
 * What can be written set by set, and what goes one by one: all commands of a resource that has one which touches other
 * rows, and those that name an id or key that another item names too.
 */
const divide = (items: readonly Item[]): Parts => {
  const names = ({ command }: Item) => [command.command_id, `${command.scope} ${command.idempotency_key}`]
  const times = new Map<string, number>()
  for (const name of items.flatMap(names)) times.set(name, (times.get(name) ?? 0) + 1)
  const alone = (item: Item) => item.plain !== undefined && names(item).every((name) => times.get(name) === 1)
  const busy = new Set(items.filter((item) => !alone(item)).map(({ resource_id }) => resource_id))
  const isSet = (item: Item): item is Item & { plain: Plain } => !busy.has(item.resource_id)
  return { plain: items.filter(isSet), single: items.filter((item) => !isSet(item)) }
}

const sideBySide = async (
  deps: CatalogDeps,
  { plain, single }: Parts,
  outcomes: Outcome[],
  ends_at: number,
): Promise<void> => {
  const left = [...single]
  try {
    const answers =
      plain.length === 0
        ? []
        : await commit(deps, (tx) =>
            applyPlain(
              tx,
              deps,
              plain.map((item) => item.plain),
            ),
          )
    for (const [at, answer] of answers.entries()) outcomes[plain[at]?.index ?? at] = answer
  } catch (error) {
    if (!isClash(error)) throw error
    left.push(...plain)
  }
  const lanes = Map.groupBy(
    left.sort((a, b) => a.index - b.index),
    ({ resource_id }) => resource_id,
  )
  const waiting = [...lanes.values()]
  const work = async () => {
    for (let lane = waiting.shift(); lane; lane = waiting.shift())
      for (const { index, command, work } of lane) {
        refuseLate(ends_at)
        outcomes[index] = await runCommand(deps, command, work).catch((error) => refusalOf(deps, error))
      }
  }
  await Promise.all(Array.from({ length: LANES }, work))
}

/** Something that only an index of the database sees, and not of which item: then each is tried by itself. */
const isClash = (error: unknown): boolean => error instanceof AppError && error.code === 'already_exists'

const refusalOf = (deps: CatalogDeps, error: unknown): AppError => {
  const refusal = toAppError(error, CATALOG_CODES)
  if (refusal.status >= 500) deps.telemetry.log.error({ err: error }, 'a command of a batch failed')
  return refusal
}

/** All of an atomic batch set by set; the first refusal ends it. */
const together = (deps: CatalogDeps, items: readonly Item[], ends_at: number): Promise<Answer[]> =>
  commit(deps, async (tx) => {
    const outcomes = await applyPlain(
      tx,
      deps,
      items.flatMap(({ plain }) => plain ?? []),
    )
    refuseLate(ends_at)
    return outcomes.map((outcome, at) => {
      if (outcome instanceof AppError) throw atItem(outcome, items[at]?.index ?? at)
      return outcome
    })
  }).catch((error) => {
    if (isClash(error) && error.options.extra.index === undefined) return inOrder(deps, items, ends_at)
    throw error
  })

/** All of an atomic batch one by one in one transaction. */
const inOrder = (deps: CatalogDeps, items: readonly Item[], ends_at: number): Promise<Answer[]> =>
  commit(deps, async (tx) => {
    const answers: Answer[] = []
    for (const { index, command, work } of items) {
      refuseLate(ends_at)
      try {
        answers.push(await claimAndWork(tx, deps, command, work))
      } catch (error) {
        const refusal = error instanceof AppError ? error : clashOf(error)
        throw refusal ? atItem(refusal, index) : error
      }
    }
    refuseLate(ends_at)
    return answers
  })

/** A refusal of one item as the answer to the whole: says which, and its pointers start at the body. */
const atItem = (error: AppError, index: number): AppError => {
  const { violations, extra } = error.options
  const at = `/items/${index}/command`
  return new AppError(error.category, error.code, error.message, {
    ...error.options,
    status: error.status,
    extra: { ...extra, index },
    ...(violations && { violations: violations.map((one) => ({ ...one, pointer: `${at}${one.pointer}` })) }),
  })
}

/** The reply as text: stored answers stand in it byte for byte. */
const bodyOf = (outcomes: readonly Outcome[], { request_id }: BatchSender): string => {
  const results = outcomes.map((outcome, index) => {
    if (outcome instanceof AppError) {
      const problem = problemOf(outcome, request_id, '/internal/v1/resources:batch-apply')
      return `{"index":${index},"status":${outcome.status},"body":${JSON.stringify(problem)}}`
    }
    const replayed = outcome.replayed ? ',"replayed":true' : ''
    return `{"index":${index},"status":${outcome.status}${replayed},"body":${outcome.body.toString('utf8')}}`
  })
  return `{"results":[${results.join(',')}]}`
}
