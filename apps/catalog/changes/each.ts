import { Unheld } from '../../../db/catalog/held/journal.ts'
import { lockedTx } from '../../../db/catalog/held/rows.ts'
import { writeHeld, writesOf } from '../../../db/catalog/many/write.ts'
import { lockAndGetAll } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Last, Tx } from '../../../db/client.ts'
import type { Given } from '../../../db/command/run.ts'
import { AppError } from '../../shared/errors.ts'
import { clashOf } from '../command/run.ts'
import type { Types } from '../packs/registry.ts'
import { canHold, holdFor, holdRows, type View, type Wish } from './hold.ts'

/** So many changes that ask for more than was foreseen go to the database by themselves before the rest goes there at once. */
const MAX_BY_THEMSELVES = 8

export type Change<T> = { wish: Wish; run: (tx: Tx) => Promise<T> }
type Writing = object & { writes?: Given['writes'] }
export type Way = {
  /** Called before each change; what it throws ends all. */
  check: () => void
  /** Called when changes that were made in memory are made once more, each by itself. */
  again?: () => void
}

/**
 * Makes the one change of a transaction, over rows that are held in memory or, where it asks for more, in the database;
 * its last writes are left for the commit. `held`: its row, locked and read along with the claim.
 */
export const makeOne = async <T extends Writing>(
  tx: Tx,
  types: Types,
  { wish, run }: Change<T>,
  { held, last }: { held: { row: ResourceRow | undefined } | undefined; last: Last },
): Promise<T> => {
  const { resource_id } = wish
  const itself = () => run(held ? lockedTx(tx, { resource_id, ...held }) : tx)
  if (!canHold(types, wish)) return itself()
  const view = held ? holdRows(tx, [resource_id], held.row ? [held.row] : []) : await holdFor(tx, types, [wish])
  try {
    const made = await run(view.tx)
    await sent(made)
    const writes = writesOf(tx, view.held)
    if (!writes) last(writeHeld(tx, view.held))
    return { ...made, writes: writes ?? [] }
  } catch (error) {
    if (error instanceof Unheld) return itself()
    throw error
  }
}

/** Sends the last writes of a change. */
const sent = async <T extends Writing>(made: T): Promise<T> => {
  for (const write of made.writes ?? []) await write
  return { ...made, writes: [] }
}

/**
 * Makes many changes in one transaction, in their order, each refused or made by itself (catalog.md 8, "Bulk"): over
 * rows that are held in memory, as `makeOne`. A change that asks for more is made in the database under a savepoint,
 * after all before it were written.
 */
export const makeEach = async <T extends Writing>(
  tx: Tx,
  types: Types,
  changes: readonly Change<T>[],
  { check, again = () => {} }: Way,
): Promise<(T | AppError)[]> => {
  const outcomes: (T | AppError)[] = []
  const asked = new Set(changes.filter(({ wish }) => !canHold(types, wish)))
  if (asked.size > 0) await lockAndGetAll(tx, [...new Set(changes.map(({ wish }) => wish.resource_id))])
  let by_themselves = 0
  while (outcomes.length < changes.length) {
    const rest = changes.slice(outcomes.length)
    const end = rest.findIndex((change) => asked.has(change))
    const set = by_themselves < MAX_BY_THEMSELVES ? rest.slice(0, end < 0 ? rest.length : end) : []
    const made = set.length > 0 ? await makeHeld(tx, types, set, check) : []
    if (made === undefined) {
      again()
      by_themselves = MAX_BY_THEMSELVES
      continue
    }
    outcomes.push(...made)
    const next = changes[outcomes.length]
    if (!next) break
    check()
    if (!asked.has(next)) by_themselves += 1
    outcomes.push(await refusable(tx.transaction(async (inner) => sent(await next.run(inner)))))
  }
  return outcomes
}

/**
 * Makes changes in memory up to the first that asks for more than is held, and writes them. undefined: the database saw
 * a clash that could not be seen before, with what someone else wrote in between; nothing was written.
 */
const makeHeld = async <T extends Writing>(
  tx: Tx,
  types: Types,
  changes: readonly Change<T>[],
  check: () => void,
): Promise<(T | AppError)[] | undefined> => {
  const view = await holdFor(
    tx,
    types,
    changes.map(({ wish }) => wish),
  )
  const outcomes: (T | AppError)[] = []
  for (const change of changes) {
    check()
    const made = await inMemory(view, change)
    if (!made) break
    outcomes.push(made.outcome)
  }
  try {
    await tx.transaction((inner) => writeHeld(inner, view.held))
    return outcomes
  } catch (error) {
    if (clashOf(error)) return undefined
    throw error
  }
}

/** undefined: more was asked for than is held. What was refused leaves nothing behind. */
const inMemory = async <T extends Writing>(
  { held, tx }: View,
  { run }: Change<T>,
): Promise<{ outcome: T | AppError } | undefined> => {
  const before = held.journal.length
  try {
    const outcome = await refusable(run(tx).then(sent))
    if (outcome instanceof AppError) held.journal.back(before)
    return { outcome }
  } catch (error) {
    held.journal.back(before)
    if (error instanceof Unheld) return undefined
    throw error
  }
}

/** What a change is refused for; what may go away by itself ends all, to be tried again. */
const refusable = async <T>(work: Promise<T>): Promise<T | AppError> => {
  try {
    return await work
  } catch (error) {
    const refused = error instanceof AppError ? error : clashOf(error)
    if (!refused || refused.options.retryable || refused.status >= 500) throw error
    return refused
  }
}
