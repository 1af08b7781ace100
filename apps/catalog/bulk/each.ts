import { Unheld } from '../../../db/catalog/held/journal.ts'
import type { Held } from '../../../db/catalog/held/rows.ts'
import { writeHeld } from '../../../db/catalog/many/write.ts'
import type { Tx } from '../../../db/client.ts'
import { AppError } from '../../shared/errors.ts'
import { clashOf } from '../command/run.ts'
import type { Types } from '../packs/registry.ts'
import { holdFor, type Wish } from './hold.ts'

/** So many changes of one request may go to the database by themselves before the rest goes there at once. */
const MAX_BY_THEMSELVES = 8

export type Change<T> = { wish: Wish; run: (tx: Tx) => Promise<T> }
export type Way = {
  /** Called before each change; what it throws ends all. */
  check: () => void
  /** Called when changes that were made in memory are made once more, each by itself. */
  again?: () => void
}

/**
 * Makes many changes in one transaction, in their order, each refused or made by itself (catalog.md 8, "Bulk"): over
 * rows that are held in memory, with the same rules as a single command. A change that asks for more than was read is
 * made in the database under a savepoint, after all before it were written.
 */
export const makeEach = async <T>(
  tx: Tx,
  types: Types,
  changes: readonly Change<T>[],
  { check, again = () => {} }: Way,
): Promise<(T | AppError)[]> => {
  const outcomes: (T | AppError)[] = []
  let by_themselves = 0
  while (outcomes.length < changes.length) {
    const rest = changes.slice(outcomes.length)
    const made = by_themselves < MAX_BY_THEMSELVES ? await makeHeld(tx, types, rest, check) : []
    if (made === undefined) {
      again()
      by_themselves = MAX_BY_THEMSELVES
      continue
    }
    outcomes.push(...made)
    const next = changes[outcomes.length]
    if (!next) break
    check()
    by_themselves += 1
    outcomes.push(await refusable(tx.transaction((inner) => next.run(inner))))
  }
  return outcomes
}

/**
 * Makes changes in memory up to the first that asks for more than is held, and writes them. undefined: the database saw
 * a clash that could not be seen before, with what someone else wrote in between; nothing was written.
 */
const makeHeld = async <T>(
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
const inMemory = async <T>(
  { held, tx }: { held: Held; tx: Tx },
  { run }: Change<T>,
): Promise<{ outcome: T | AppError } | undefined> => {
  const before = held.journal.length
  try {
    const outcome = await refusable(run(tx))
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
