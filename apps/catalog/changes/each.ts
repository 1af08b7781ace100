import { Unheld } from '../../../db/catalog/held/journal.ts'
import { loadMissing } from '../../../db/catalog/many/load.ts'
import { writeHeld, writesOf } from '../../../db/catalog/many/write.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Last, Tx } from '../../../db/client.ts'
import { Again, type Given } from '../../../db/command/run.ts'
import { AppError } from '../../shared/errors.ts'
import { clashOf } from '../command/run.ts'
import type { Types } from '../packs/registry.ts'
import { holdFor, holdRows, type View, type Wish } from './hold.ts'

/** So many changes that are made by themselves go alone before the rest does, too. */
const MAX_BY_THEMSELVES = 8
/** So often a change is made once more after a read of missing rows, before it is given up. */
const MAX_ASKED = 1000
const TRIES = 5

export type Change<T> = { wish: Wish; run: (tx: Tx) => Promise<T> }
export type Way = {
  /** Called before each change; what it throws ends all. */
  check: () => void
  /** Called when changes that were made in memory are made once more, each by itself. */
  again?: () => void
}

/** Makes the one change of a transaction. `held`: its row, locked and read along with the claim. */
const makeAlone = async <T>(
  tx: Tx,
  types: Types,
  change: Change<T>,
  held?: { row: ResourceRow | undefined },
): Promise<View & { made: T }> => {
  const { resource_id } = change.wish
  const view = held
    ? holdRows(tx, [resource_id], held.row ? [held.row] : [], true)
    : await holdFor(tx, types, [change.wish], true)
  if (held) for (const missing of change.wish.asked ?? []) await loadMissing(tx, view.held, missing)
  return { ...view, made: await within(view, change) }
}

/** The same for a command; its last writes are left for the commit. */
export const makeOne = async <T extends object>(
  tx: Tx,
  types: Types,
  change: Change<T>,
  { held: locked, last }: { held: { row: ResourceRow | undefined } | undefined; last: Last },
): Promise<T & Pick<Given, 'writes'>> => {
  const { held, made } = await makeAlone(tx, types, change, locked)
  const writes = writesOf(tx, held)
  if (!writes) last(writeHeld(tx, held))
  return { ...made, writes: writes ?? [] }
}

/** One change under a savepoint, with all its writes. */
export const makeHere = async <T>(tx: Tx, types: Types, change: Change<T>): Promise<T> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await tx.transaction(async (inner) => {
        const { held, made } = await makeAlone(inner, types, change)
        await writeHeld(inner, held)
        return made
      })
    } catch (error) {
      if (!(error instanceof Again) || tries >= TRIES) throw error
    }
  }
}

/** Makes a change over what is held; what it asks for beyond that is read, and the change made once more. */
const within = async <T>({ held, tx, db, sent }: View, { wish, run }: Change<T>): Promise<T> => {
  const before = held.journal.length
  for (let asked = 0; ; asked += 1) {
    try {
      return await run(tx)
    } catch (error) {
      const missing = error instanceof Unheld ? error.missing : undefined
      if (!missing || asked >= MAX_ASKED) throw error
      if (sent()) {
        // What was sent cannot be taken back here: it is read first the next time.
        wish.asked = [...(wish.asked ?? []), missing]
        throw new Again()
      }
      held.journal.back(before)
      await loadMissing(db, held, missing)
    }
  }
}

/**
 * Makes many changes in one transaction, in their order, each refused or made by itself (catalog.md 8, "Bulk"): over
 * rows that are held in memory. A change that asks the database itself is made under a savepoint, after all before it
 * were written.
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
    const set = by_themselves < MAX_BY_THEMSELVES ? changes.slice(outcomes.length) : []
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
    by_themselves += 1
    outcomes.push(await refusable(makeHere(tx, types, next)))
  }
  return outcomes
}

/**
 * Makes changes in memory up to the first that asks the database itself, and writes them. undefined: the database saw
 * a clash that could not be seen before, with a write of someone else in between; all of it was taken back.
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

/** undefined: the database itself was asked for. What was refused leaves nothing behind. */
const inMemory = async <T>(view: View, change: Change<T>): Promise<{ outcome: T | AppError } | undefined> => {
  const { journal } = view.held
  const before = journal.length
  try {
    const outcome = await refusable(within(view, change))
    if (outcome instanceof AppError) journal.back(before)
    return { outcome }
  } catch (error) {
    journal.back(before)
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
