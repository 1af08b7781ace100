/** Equal seeds give equal throws (mulberry32). */
export const createDice = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    /** A number from `from` up to `to`. */
    between: (from: number, to: number): number => from + next() * (to - from),
    pick: <T>(items: readonly T[]): T => {
      const picked = items[Math.floor(next() * items.length)]
      if (picked === undefined) throw new Error('there is nothing to pick from')
      return picked
    },
  }
}
export type Dice = ReturnType<typeof createDice>
