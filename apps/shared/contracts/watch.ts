type Figure = number | null
type Check = { samples: number; failed: number; last: Figure; min: Figure; max: Figure; baseline?: Figure }
/** The findings of a watch, as its outputs hold them (operations.md 7.2). */
export type Watch = { passed: boolean; samples: number; checks: Record<string, Check> }

export const isWatch = (value: unknown): value is Watch => {
  const { passed, checks } = (value ?? {}) as Partial<Watch>
  if (typeof passed !== 'boolean' || typeof checks !== 'object' || checks === null) return false
  return Object.values(checks).every((check) => typeof check?.samples === 'number' && typeof check.failed === 'number')
}

/** Returns one row per check: how many samples were bad, and the numbers. */
export const watchRows = ({ checks }: Watch) => Object.entries(checks).map(([name, check]) => ({ name, ...check }))
