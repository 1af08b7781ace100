import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { CliError, EXIT, usageError } from '../errors.ts'
import { harmless } from './output.ts'

const asking = () => process.stdin.isTTY === true && process.stderr.isTTY === true

/** The typed answer. Throws with the exit code of Ctrl-C if the person ends the input instead (Ctrl-C, Ctrl-D). */
const answerTo = async (lines: Interface, question: string): Promise<string> => {
  // Older versions of Node leave the question pending when the input ends; newer ones reject it.
  const ended = once(lines, 'close').then(() => undefined)
  const answer = await Promise.race([lines.question(question).catch(() => undefined), ended])
  if (answer !== undefined) return answer
  throw new CliError(EXIT.interrupted, 'Canceled.')
}

/** Asks a person. Throws without a terminal; `instead` names the option to pass. */
export const ask = async (question: string, instead: string): Promise<string> => {
  if (!asking()) throw usageError(`${question} A terminal is needed to answer.`, instead)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await answerTo(lines, `${question} `)).trim()
  } finally {
    lines.close()
  }
}

const SKIP = 'Pass --yes to skip the question.'

export const confirm = async (question: string, otherwise = 'Nothing was sent.'): Promise<void> => {
  const answer = await ask(harmless(`${question} [y/N]`), SKIP)
  if (!/^y(es)?$/i.test(answer)) throw new CliError(EXIT.error, otherwise)
}

/** Refuses, before anything is sent, a command that will ask without a terminal. */
export const needsTerminal = (why: string): void => {
  if (!asking()) throw usageError(`${why} A terminal is needed to answer.`, SKIP)
}

/** Reads a password: from a prompt without echo, or the first line of stdin. */
export const readPassword = async (from_stdin: boolean): Promise<string> => {
  if (from_stdin) {
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
    const [password = ''] = Buffer.concat(chunks).toString('utf8').split(/\r?\n/)
    if (password === '') throw usageError('stdin has no password in its first line.')
    return password
  }
  if (!asking()) throw usageError('The password is missing.', 'Pipe it in with --password-stdin.')
  const lines = createInterface({
    input: process.stdin,
    output: new Writable({ write: (_, __, done) => done() }),
    terminal: true,
  })
  // Only now: before createInterface, the terminal itself echoes the input.
  process.stderr.write('password: ')
  try {
    return await answerTo(lines, '')
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

const BAR = 24
export const bar = (done: number, total: number): string => {
  const filled = total === 0 ? BAR : Math.round((done / total) * BAR)
  return `${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}`
}

/** A progress bar with the rate on a terminal's stderr, as wide as fits; silent elsewhere. */
export const progress = (total: number, done_word: string) => {
  const stream = process.stderr
  const shown = stream.isTTY === true
  const started = performance.now()
  const at = (done: number) => {
    if (!shown) return
    const rate = Math.round(done / Math.max(0.001, (performance.now() - started) / 1000))
    const count = `${done}/${total} ${done_word}`
    const line = `${bar(done, total)} ${count}, ${rate}/s`
    const room = (stream.columns ?? 80) - 1
    stream.write(`\r${(line.length <= room ? line : count).slice(0, room).padEnd(Math.min(room, 60))}`)
  }
  at(0)
  return { at, end: () => void (shown && stream.write('\n')) }
}

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
/** Otherwise a line that is wider than counted (an emoji, a wide letter) would take two rows. */
const NO_WRAP = '\u001b[?7l'
const WRAP = '\u001b[?7h'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'
const CLEAR_ALL = '\u001b[2J\u001b[H'

/** Lines on a terminal that the next ones overwrite; the last ones stay. */
export const liveLines = () => {
  const stream = process.stdout
  let drawn = 0
  let resized = false
  const onResize = () => {
    resized = true
  }
  stream.on('resize', onResize)
  stream.write(HIDE_CURSOR + NO_WRAP)
  return {
    rows: (): number => stream.rows ?? 24,
    draw: (lines: string[]): void => {
      // After a resize, the end of the old lines is unknown.
      const back = resized ? CLEAR_ALL : drawn > 0 ? `\u001b[${drawn}A` : ''
      const shown = lines.slice(0, Math.max(1, (stream.rows ?? 24) - 1))
      stream.write(
        `${back}\r${shown.map((line) => `${clip(line, stream.columns ?? 80)}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`,
      )
      drawn = shown.length
      resized = false
    },
    end: (): void => {
      stream.off('resize', onResize)
      stream.write(WRAP + SHOW_CURSOR)
    },
  }
}

/** Cuts the line to the width; color codes take no room. */
const clip = (line: string, width: number): string => {
  let room = width
  return (
    line
      .replaceAll(/[\n\t]/g, ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
      .split(/(\u001b\[[\d;]*m)/)
      .map((piece, at) => {
        if (at % 2 === 1) return piece
        const seen = piece.slice(0, room)
        room -= seen.length
        return seen
      })
      .join('')
  )
}
