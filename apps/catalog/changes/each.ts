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

/** How often a change is retried after reading missing rows before it fails. */
const MAX_ASKED = 1000

export type Change<T> = { wish: Wish; run: (tx: Tx) => Promise<T> }
export type Way = {
  /** Called before each change; an error that it throws ends the whole run. */
  check: () => void
  /** Called before changes made in memory are made again one by one. */
  again?: () => void
}

/** Makes a transaction's only change. `held`: its row, locked and read along with the claim. */
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

/** Like `makeAlone`, for a command; its last writes are left for the commit. */
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

/** Makes a change over the held rows. If it needs others, reads them and makes the change again. */
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
 * Makes many changes in one transaction, in order, each refused or made on its own (catalog.md 8, "Bulk"). They work on
 * rows held in memory, which are written together. If the database detects a clash with someone else's write,
 * everything is rolled back and each change is made again under a savepoint.
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

/** Returns `undefined` if the database detected a clash that memory could not show; all writes are rolled back. */
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

/** Returns the refusal of a change. Throws transient errors, which end the whole run so that it can be retried. */
const refusable = async <T>(work: Promise<T>): Promise<T | AppError> => {
  try {
    return await work
  } catch (error) {
    const refused = error instanceof AppError ? error : clashOf(error)
    if (!refused || refused.options.retryable || refused.status >= 500) throw error
    return refused
  }
}
