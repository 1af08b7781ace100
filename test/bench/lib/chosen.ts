import { parseArgs } from 'node:util'

/**
 * Parses the arguments: figures by name (default: all), and the values of options `--name=value`. An argument that is
 * neither ends the run and lists both.
 */
export const chosen = <T>(figures: Record<string, T>, ...options: string[]) => {
  try {
    const known = Object.fromEntries(options.map((name) => [name, { type: 'string' } as const]))
    const { values, positionals } = parseArgs({ options: known, allowPositionals: true })
    const strange = positionals.filter((name) => !Object.hasOwn(figures, name))
    if (strange.length > 0) throw new Error(`There is no figure ${strange.join(', ')}.`)
    const wanted = Object.entries(figures).filter(([name]) => positionals.length === 0 || positionals.includes(name))
    return { wanted, values }
  } catch (error) {
    console.error((error as Error).message.split('. ')[0])
    console.error(`Figures: ${Object.keys(figures).join(' ')}`)
    if (options.length > 0) console.error(`Options: ${options.map((name) => `--${name}=…`).join(' ')}`)
    process.exit(2)
  }
}
