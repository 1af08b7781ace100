import { Unheld } from '../../../db/catalog/held/journal.ts'
import { loadMissing } from '../../../db/catalog/many/load.ts'
import { writeHeld, writesOf } from '../../../db/catalog/many/write.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Last, Tx } from '../../../db/client.ts'
import type { Given } from '../../../db/command/run.ts'
import { AppError } from '../../shared/errors.ts'
import { clashOf } from '../command/run.ts'
import type { Types } from '../packs/registry.ts'
import { holdFor, holdRows, type View, type Wish } from './hold.ts'

/** So often a change is made once more after a read of missing rows, before it is given up. */
const MAX_ASKED = 1000

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
  const view = held ? holdRows(tx, [resource_id], held.row ? [held.row] : []) : await holdFor(tx, types, [change.wish])
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
export const makeHere = <T>(tx: Tx, types: Types, change: Change<T>): Promise<T> =>
  tx.transaction(async (inner) => {
    const { held, made } = await makeAlone(inner, types, change)
    await writeHeld(inner, held)
    return made
  })

/** Makes a change over what is held; what it asks for beyond that is read, and the change made once more. */
const within = async <T>({ held, tx, db }: View, { run }: Change<T>): Promise<T> => {
  const before = held.journal.length
  for (let asked = 0; ; asked += 1) {
    try {
      return await run(tx)
    } catch (error) {
      if (!(error instanceof Unheld) || asked >= MAX_ASKED) throw error
      held.journal.back(before)
      await loadMissing(db, held, error.missing)
    }
  }
}

/**
 * Makes many changes in one transaction, in their order, each refused or made by itself (catalog.md 8, "Bulk"): over
 * rows that are held in memory and written together. Where the database sees a clash with a write of someone else,
 * all is taken back, and each change is made once more under a savepoint.
 */
export const makeEach = async <T>(
  tx: Tx,
  types: Types,
  changes: readonly Change<T>[],
  { check, again = () => {} }: Way,
): Promise<(T | AppError)[]> => {
  const made = await makeHeld(tx, types, changes, check)
  if (made) return made
  again()
  const outcomes: (T | AppError)[] = []
  for (const change of changes) {
    check()
    outcomes.push(await refusable(makeHere(tx, types, change)))
  }
  return outcomes
}

/** undefined: the database saw a clash that could not be seen before; all was taken back. */
const makeHeld = async <T>(
  tx: Tx,
  types: Types,
  changes: readonly Change<T>[],
  check: () => void,
): Promise<(T | AppError)[] | undefined> => {
  const wishes = changes.map(({ wish }) => wish)
  const view = await holdFor(tx, types, wishes)
  const outcomes: (T | AppError)[] = []
  for (const change of changes) {
    check()
    const before = view.held.journal.length
    const outcome = await refusable(within(view, change))
    if (outcome instanceof AppError) view.held.journal.back(before)
    outcomes.push(outcome)
  }
  try {
    await tx.transaction((inner) => writeHeld(inner, view.held))
    return outcomes
  } catch (error) {
    if (clashOf(error)) return undefined
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
