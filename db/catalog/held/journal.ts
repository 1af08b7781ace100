import type { Missing } from './missing.ts'

/** A change needs data that is not held: the data is read, and the change runs again. */
export class Unheld extends Error {
  readonly missing: Missing

  constructor(missing: Missing) {
    super('not held')
    this.missing = missing
  }
}

/** Undoes changes in memory, last first. */
export const createJournal = () => {
  const undo: (() => void)[] = []
  return {
    put: <K, V>(map: Map<K, V>, key: K, value: V): void => {
      const [had, old] = [map.has(key), map.get(key) as V]
      undo.push(() => (had ? map.set(key, old) : map.delete(key)))
      map.set(key, value)
    },
    add: <V>(set: Set<V>, value: V): void => {
      if (set.has(value)) return
      undo.push(() => set.delete(value))
      set.add(value)
    },
    drop: <V>(set: Set<V>, value: V): void => {
      if (!set.delete(value)) return
      undo.push(() => set.add(value))
    },
    push: <V>(list: V[], value: V): void => {
      undo.push(() => list.pop())
      list.push(value)
    },
    /** Takes the last element of a list; a repeated change receives the same one. */
    draw: <V>(list: V[]): V | undefined => {
      const value = list.pop()
      if (value !== undefined) undo.push(() => list.push(value))
      return value
    },
    get length() {
      return undo.length
    },
    back: (to: number): void => {
      while (undo.length > to) undo.pop()?.()
    },
  }
}
export type Journal = ReturnType<typeof createJournal>
