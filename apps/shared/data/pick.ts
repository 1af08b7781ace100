/** Returns the named members of an object, or columns of a table, in the order of the names. */
export const pick = <T extends object, const K extends keyof T>(from: T, ...names: K[]): Pick<T, K> =>
  Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>

export const pluck = <T, K extends keyof T>(rows: readonly T[], name: K): T[K][] => rows.map((row) => row[name])
