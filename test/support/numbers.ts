import { parseArgs } from 'node:util'

/**
 * The options of a script that are all numbers, or its usage and exit code 2. `defaults` names them; each may be given as
 * `--name N` with N of at least 0.
 */
export const numbersGiven = <Name extends string>(
  script: string,
  defaults: Record<Name, number>,
): Record<Name, number> => {
  const named = Object.entries<number>(defaults)
  try {
    const options = Object.fromEntries(
      named.map(([name, n]) => [name, { type: 'string', default: String(n) } as const]),
    )
    const { values } = parseArgs({ options })
    const given = Object.fromEntries(named.map(([name]) => [name, Number(values[name])]))
    if (Object.values(given).every((value) => Number.isFinite(value) && value >= 0))
      return given as Record<Name, number>
  } catch {
    // Reported below.
  }
  console.error(`usage: npm run ${script} -- ${named.map(([name, n]) => `[--${name} ${n}]`).join(' ')}`)
  process.exit(2)
}
