/** A name that is not a cast (`::text`) and not part of a string (`':c'`). */
const NAME = /(?<![:\w']):([a-z_]+)/g

/**
 * A statement from a file: strips comment lines, and numbers each parameter `:name` in the order in which the names
 * first appear. `values` puts the given values in that order; it throws if a name is missing or unknown.
 */
export const named = (file: string): { text: string; values: (given: Record<string, unknown>) => unknown[] } => {
  const names: string[] = []
  const text = file.replace(/^--.*\n/gm, '').replace(NAME, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return {
    text,
    values: (given) => {
      const wrong = [...names, ...Object.keys(given)].find((name) => !(name in given && names.includes(name)))
      if (wrong !== undefined) throw new Error(`The statement and its values do not agree on :${wrong}.`)
      return names.map((name) => given[name])
    },
  }
}
