/** The search parameters that a view keeps: those with a value, as text. */
export const filtersOf = (search: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(search).flatMap(([name, value]) =>
      value === '' || value === undefined ? [] : [[name, `${value}`]],
    ),
  )

/** Whether two views show the same. */
export const isSame = (one: Record<string, string>, other: Record<string, string>): boolean => {
  const [a, b] = [filtersOf(one), filtersOf(other)]
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name])
}
