import { stripVTControlCharacters } from 'node:util'
import { stringify } from 'yaml'
import { dim, paint, stateColour, table } from '../../shared/data/print.ts'
import { usageError } from '../errors.ts'
import type { Selection } from './select.ts'

export type Format = 'table' | 'json' | 'yaml' | 'id'
/** The id of an item: the name of its property, or a function that returns it. */
export type IdOf<T> = keyof T | ((item: T) => string)
export type Column<T> = [title: string, cell: (item: T) => string | number | null | undefined]

/** stdout is for data: tables for people, otherwise the unchanged body of the API. stderr is for notes and progress. */
type Options = { format: Format; jsonl: boolean; select: Selection | undefined }
export const createOutput = ({ format, jsonl, select }: Options) => {
  const print = (text: string) => void process.stdout.write(`${text}\n`)
  const data = (body: unknown) => print(format === 'yaml' ? stringify(body).trimEnd() : JSON.stringify(body, null, 2))

  /** A selection is JSON, but without --jsonl a text has no quotes, so that scripts can assign it to variables. */
  let selected: Promise<void> = Promise.resolve()
  const selecting = (body: unknown): boolean => {
    if (!select) return false
    selected = selected
      .then(() => select(body))
      .then((found) => {
        if (found === undefined) return
        if (typeof found === 'string' && !jsonl) print(found)
        else if (format === 'yaml' && !jsonl) data(found)
        else if (jsonl && Array.isArray(found)) for (const item of found) print(JSON.stringify(item))
        else print(JSON.stringify(found, null, jsonl ? undefined : 2))
      })
    return true
  }

  /** Said once, even while the list is watched. */
  let empty = false
  const noItems = () => {
    if (!empty) note('No items.')
    empty = true
  }

  const tableOf = <T>(items: T[], columns: Column<T>[]): string[] =>
    table(
      columns.map(([title]) => title),
      items.map((item) => columns.map(([, cell]) => String(cell(item) ?? ''))),
    )

  return {
    jsonl,
    selects: select !== undefined,
    format: jsonl ? ('json' as const) : format,
    /** Prints items as a table, or unchanged; `id` prints the argument of the next command. */
    list: <T>(items: T[], id: IdOf<T>, columns: Column<T>[]): void => {
      if (selecting(items)) return
      if (jsonl) for (const item of items) print(JSON.stringify(item))
      else if (format === 'id') for (const item of items) print(idText(item, id))
      else if (format !== 'table') data(items)
      else if (items.length === 0) noItems()
      else for (const line of tableOf(harmless(items), columns)) print(line)
    },
    /** Prints one item: lines for people, or the unchanged body. */
    one: <T>(body: T, id: IdOf<T>, lines: (body: T) => string[]): void => {
      if (selecting(body)) return
      if (jsonl) print(JSON.stringify(body))
      else if (format === 'id') print(idText(body, id))
      else if (format !== 'table') data(body)
      else for (const line of lines(harmless(body))) print(line)
    },
    print,
    note,
    /** Shows a person what they are about to decide. */
    review: <T>(body: T, lines: (body: T) => readonly string[]): void => {
      for (const line of lines(harmless(body))) note(line)
    },
    /** Resolves when all selections are printed. Throws a usage error if the expression failed. */
    settled: (): Promise<void> =>
      selected.catch((error: Error) => {
        throw usageError(`--select failed: ${error.message}`)
      }),
  }
}
export type Output = ReturnType<typeof createOutput>

const idText = <T>(item: T, id: IdOf<T>): string => (typeof id === 'function' ? id(item) : String(item[id] ?? ''))

const note = (text: string): void => void process.stderr.write(`${text}\n`)

/** Characters that control a terminal or reorder letters; names and logs come from others. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are removed
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** The same data without control characters, safe to print on a terminal. */
export const harmless = <T>(data: T): T => {
  if (typeof data === 'string') return stripVTControlCharacters(data).replace(STEERING, '') as T
  if (Array.isArray(data)) return data.map(harmless) as T
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, harmless(value)])) as T
}

type Field = Partial<Record<'unknown' | 'sensitive' | 'noise', boolean>> & {
  path: string
  before?: unknown
  after?: unknown
}
const MAX_FIELDS = 30

/** One line for each field that changes. What is not listed is counted: no change looks smaller than it is. */
export const fieldLines = (head: string, fields: readonly Field[], count = fields.length): string[] => {
  const shown = fields.filter(({ noise }) => !noise)
  const folded = fields.length - shown.length
  const json = (value: unknown) => JSON.stringify(value ?? null)
  return [
    ...shown.map(({ path, before, after, unknown, sensitive }) =>
      sensitive
        ? `${head}${path}   (sensitive, changes)`
        : `${head}${path}   ${json(before)} -> ${unknown ? '(known after apply)' : json(after)}`,
    ),
    ...(folded > 0 ? [`${head}… ${folded} folded field${folded === 1 ? '' : 's'}: -o json shows all`] : []),
    ...(count > fields.length ? [`${head}… ${fields.length} of ${count} fields are listed`] : []),
    ...(count === 0 && head.trim() !== '' ? [head.trimEnd()] : []),
  ]
}

export const firstOf = (lines: readonly string[], max = MAX_FIELDS): string[] =>
  lines.length <= max ? [...lines] : [...lines.slice(0, max), dim(`  … ${lines.length - max} more: -o json shows all`)]

/** A status as a colored word. */
export const word = (state: string): string => paint(state.toUpperCase(), stateColour(state))

/** The end of an id that people type; `-o json` and `-o id` print the full id. */
export const short = (id: string): string => id.slice(-6)

let zone = 'UTC'
let clock = clockOf(zone)

/** Sets the zone of every displayed time (`--zone`, an IANA name); throws a RangeError for an unknown name. */
export const showTimesIn = (name: string): void => {
  clock = clockOf(name)
  zone = name
}

/** Times always show their zone: `created (UTC)` over a column, `until 2026-11-21 08:15 UTC` in a line. */
export const zoned = (title: string): string => `${title} (${zone})`
export const moment = (time: string): string => `${minute(time)} ${zone}`

/** `2026-11-21 08:15` of an RFC 3339 time. */
export const minute = (time: string | null | undefined): string => second(time).slice(0, 16)
/** `2026-11-21 08:15:30`; the last eight characters are the time of day. */
export const second = (time: string | null | undefined): string => (time ? clock.format(new Date(time)) : '')

export { dim }

/** The Swedish time format is that of ISO 8601. */
function clockOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
}
