import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from '../command.ts'
import { CliError, EXIT, type ExitCode } from '../errors.ts'
import type { Output } from './output.ts'

const LOOK_MS = 2000
const AWAY_MS = 10_000

/** Commands that `--watch` repeats: they read and print many items. */
export const isList = ({ name }: Command): boolean =>
  /(^| )(list|inbox|nodes|graph|history|relations|changes|unlinked|refusals|log|search)$/.test(name)

/** Reprints a list whenever it changes, with `--jsonl` new lines only. Retries an absent server. Ends on Ctrl-C. */
export const repeatList = async (print: () => Promise<ExitCode>, out: Output): Promise<never> => {
  let shown: string | undefined
  let away = false
  const { note } = out
  let notes: string[] = []
  // Notes follow the list, and come again only with a changed one.
  Object.assign(out, { note: (text: string) => void notes.push(text) })
  process.once('SIGINT', () => process.exit(EXIT.interrupted))
  for (;;) {
    try {
      notes = []
      const now = await captured(print)
      if (away) note('It answers again.')
      away = false
      if (now !== shown) {
        process.stdout.write(out.jsonl ? newLines(now, shown ?? '') : screenOf(now))
        notes.forEach(note)
      }
      shown = now
    } catch (error) {
      // A list that was never shown may have a wrong address; a server that once answered will come back.
      if (shown === undefined || !(error instanceof CliError) || !error.passing) throw error
      if (!away) note(`${error.lines[0]} Trying again until it answers.`)
      away = true
    }
    await delay(away ? AWAY_MS : LOOK_MS)
  }
}

const screenOf = (text: string): string => (process.stdout.isTTY ? `\u001b[H\u001b[2J${text}` : text)

const newLines = (now: string, before: string): string => {
  const known = new Set(before.split('\n'))
  return now
    .split('\n')
    .filter((line) => !known.has(line))
    .map((line) => `${line}\n`)
    .join('')
}

/** Returns what `print` would have written to stdout. */
const captured = async (print: () => Promise<unknown>): Promise<string> => {
  const write = process.stdout.write
  let text = ''
  process.stdout.write = ((chunk: string | Uint8Array) => {
    text += String(chunk)
    return true
  }) as typeof write
  try {
    await print()
    return text
  } finally {
    process.stdout.write = write
  }
}
