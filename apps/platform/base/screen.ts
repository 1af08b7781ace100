import { type ParseArgsConfig, parseArgs, styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Styled on a terminal, plain elsewhere; respects NO_COLOR. */
export const paint = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr, validateStream: true })

/** `1.2 s` or `340 ms`. */
export const elapsed = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`)

/** Progress of one command: one short line per fact on standard error; standard output is for results. */
export type Screen = {
  line: (what: string, text: string, style?: Style) => void
  /** Prints what starts, then how it ended and how long it took. */
  step: <T>(what: string, text: string, run: () => Promise<T>) => Promise<T>
}

const COLUMN = 10
const ignore = () => {}

export const createScreen = (): Screen => {
  // A reader may end first: `tee` by the same Ctrl-C, or the terminal itself. The work must still stop in order.
  for (const stream of [process.stdout, process.stderr]) stream.off('error', ignore).on('error', ignore)
  const line: Screen['line'] = (what, text, style) => {
    const body = style ? paint(style, text) : text
    process.stderr.write(`${paint('dim', what.padEnd(COLUMN))} ${body}\n`)
  }
  return {
    line,
    step: async (what, text, run) => {
      const started = performance.now()
      line(what, `${text} …`)
      const value = await run()
      line(what, `${text}: done in ${elapsed(performance.now() - started)}`)
      return value
    },
  }
}

/** A silent screen, for callers with their own output. */
export const silentScreen: Screen = { line: () => {}, step: (_what, _text, run) => run() }

/** Prints how a verb is used and exits 2. */
export const misused = (usage: string) => (): never => {
  console.error(usage)
  process.exit(2)
}

/** The flags and arguments of a verb; `refuse` answers any others. */
export const readFlags = <T extends ParseArgsConfig>(config: T, refuse: (why: string) => never) => {
  try {
    return parseArgs(config)
  } catch (error) {
    return refuse((error as Error).message)
  }
}
