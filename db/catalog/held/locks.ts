import type { LockMode } from '../rows.ts'
import { Unheld } from './journal.ts'

const STRENGTH: Record<LockMode, number> = { 'key share': 0, 'no key update': 1, update: 2 }

/** The locks that a transaction holds; new rows need none. */
export const createLocks = (fresh: ReadonlySet<string>) => {
  const locks = new Map<string, LockMode>()
  const type_locks = new Map<number, 'shared' | 'exclusive'>()
  const isLocked = (rid: string, mode: LockMode): boolean => {
    const known = locks.get(rid)
    return fresh.has(rid) || (known !== undefined && STRENGTH[known] >= STRENGTH[mode])
  }
  return {
    locks,
    type_locks,
    checkLocks: (wished: ReadonlyMap<string, LockMode>): void => {
      const lacking = [...wished].filter(([rid, mode]) => !isLocked(rid, mode))
      if (lacking.length > 0) throw new Unheld({ locks: new Map(lacking) })
    },
    checkTypeLocks: (wished: ReadonlyMap<number, 'shared' | 'exclusive'>): void => {
      const lacking = [...wished].filter(
        ([id, mode]) => type_locks.get(id) !== mode && type_locks.get(id) !== 'exclusive',
      )
      if (lacking.length > 0) throw new Unheld({ type_locks: new Map(lacking) })
    },
  }
}
