import { isObject } from './pointer.ts'

export const MASK = '•••'

/** Logs are lines, so each line of a multi-line key is recognized separately, also of one inside JSON. */
const SHORT_LINE = 8
const linesOf = (value: string): string[] =>
  value.split(/\r?\n|\\n/).filter((line) => line !== value && line.length >= SHORT_LINE)

/** Shorter pieces of an encoding would garble words and digests that only resemble them. */
const SHORT_CODE = 8

/** The characters that these bytes alone determine, wherever they begin in a longer base64 text. */
const base64Of = (bytes: Buffer): string[] =>
  [0, 1, 2]
    .map((shift) => {
      const whole = Buffer.concat([Buffer.alloc(shift), bytes])
      return whole.toString('base64').slice(Math.ceil((shift * 8) / 6), Math.floor((whole.length * 8) / 6))
    })
    .filter(({ length }) => length >= SHORT_CODE)

/** The lines into which the usual tools wrap base64. */
const wrapped = (text = ''): string[] =>
  [64, 76].flatMap((width) =>
    text.length > width ? (text.match(new RegExp(`.{${SHORT_CODE},${width}}`, 'g')) ?? []) : [],
  )

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
const escapedChar = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
const lowerHex = (text: string): string => text.replace(/%../g, (code) => code.toLowerCase())

const spellingsOf = (value: string): string[] => {
  const bytes = Buffer.from(value)
  const hex = bytes.toString('hex')
  const [plain, ...shifted] = base64Of(bytes)
  const base64 = [bytes.toString('base64'), ...wrapped(plain), plain ?? '', ...shifted]
  const urls = [encodeURIComponent(value), new URLSearchParams([['', value]]).toString().slice(1)]
  return [
    value,
    ...base64.flatMap((text) => [text, text.replaceAll('+', '-').replaceAll('/', '_')]),
    ...urls.flatMap((text) => [text, lowerHex(text)]),
    ...[escaped(value), escaped(escaped(value))],
    // Go escapes these in JSON, and Python all but ASCII.
    escaped(value).replace(/[<>&]/g, escapedChar),
    escaped(value).replace(/[^ -~]/g, escapedChar),
    ...(hex.length >= 2 * SHORT_CODE ? [hex, hex.toUpperCase()] : []),
  ]
}

/** Spellings of values, the longest first, and those that begin with one or two characters. */
type Forms = { all: readonly string[]; begin: ReadonlyMap<string, readonly string[]> }

const formsOf = (secrets: readonly string[]): Forms => {
  const values = secrets.flatMap((value) => [value, value.replace(/^\S+\s+/, ''), ...linesOf(value)])
  const all = [...new Set(values.filter((value) => value.length > 0).flatMap(spellingsOf))]
    .filter(Boolean)
    .sort((a, b) => b.length - a.length)
  const begin = new Map<string, string[]>()
  for (const form of all)
    for (const start of new Set([form.slice(0, 1), form.slice(0, 2)]))
      begin.set(start, [...(begin.get(start) ?? []), form])
  return { all, begin }
}

/** Less of a value tells too little, and many words begin so. */
const SHORT_START = 4

/** Where the longest beginning of a value is, of this length at least, if the text ends with one. */
const beginningIn = (text: string, { all: [longest = ''], begin }: Forms, least: number): number => {
  for (let at = Math.max(text.length - longest.length + 1, 0); at <= text.length - least; at++) {
    const rest = text.length - at
    if (begin.get(text.slice(at, at + 2))?.some((form) => form.length > rest && form.startsWith(text.slice(at))))
      return at
  }
  return text.length
}

type Range = readonly [from: number, to: number]

/** Puts one mark in the place of ranges that overlap. */
const hide = (text: string, ranges: Range[]): string => {
  let shown = ''
  let end = 0
  for (const [from, to] of ranges.sort(([a], [b]) => a - b)) {
    if (from >= end) shown += `${text.slice(end, from)}${MASK}`
    end = Math.max(end, to)
  }
  return shown + text.slice(end)
}

export type Masker = ((text: string, about?: { cut?: boolean; hidden?: readonly Range[] }) => string) & { forms: Forms }

/**
 * Replaces these secret values wherever they appear: verbatim, without a scheme such as "Bearer", line by line, in hex,
 * in base64, and as URLs and JSON escape them. In base64 it finds them within a longer text too. Line ends may break them.
 * `cut`: the text may end within a value. `hidden`: parts of values that are known already. All are looked for in the
 * text as it was.
 */
export const maskerOf = (secrets: readonly string[]): Masker => {
  const forms = formsOf(secrets)
  const mask: (...given: Parameters<Masker>) => string = (text, { cut = false, hidden = [] } = {}) => {
    const ranges = [...hidden, ...brokenIn(text, forms)]
    for (const form of forms.all)
      for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1)) ranges.push([at, at + form.length])
    const at = cut ? beginningIn(text, forms, SHORT_START) : text.length
    if (at < text.length) ranges.push([at, text.length])
    return hide(text, ranges)
  }
  return Object.assign(mask, { forms })
}

type Line<T> = { text: string; about: T }
type Waiting<T> = Line<T> & { hidden: Range[] }

/** The line of a program that adds no other for this long may be a question, or tell why it waits. */
const SILENT_MS = 2000

/**
 * Masks the lines of a log in their order, also values that line ends break. A line that ends with the beginning of a
 * value waits for the next one of its stream, until its program is silent, or for `rest`.
 */
export const lineMaskerOf = <T extends { stream: string; cut?: boolean }>(
  mask: Masker,
  now = () => performance.now(),
) => {
  let heard = now()
  const waiting: Waiting<T>[] = []
  /** Where the beginning of a value is, at the end of the lines that wait. */
  let open = 0
  const release = (count: number): Line<T>[] => {
    const lines = waiting.splice(0, count)
    open -= textOf(lines).length
    return lines.map(({ text, about, hidden }) => ({ text: mask(text, { cut: about.cut === true, hidden }), about }))
  }
  const rest = () => {
    open = hideBroken(waiting, open, true, mask.forms)
    return release(waiting.length)
  }
  return {
    /** Returns the lines that need not wait, masked. */
    add: (text: string, about: T): Line<T>[] => {
      heard = now()
      const other = waiting[0]?.about.stream === about.stream ? [] : rest()
      waiting.push({ text, about, hidden: [] })
      open = hideBroken(waiting, open, about.cut === true || text === '', mask.forms)
      let end = 0
      const first = waiting.findIndex((line) => {
        end += line.text.length
        return end > open
      })
      return [...other, ...release(first < 0 ? waiting.length : first)]
    },
    /** Returns the lines of a silent program, masked. One that was `held` up is not silent. */
    due: (held: boolean): Line<T>[] => {
      if (held) heard = now()
      return now() - heard >= SILENT_MS ? rest() : []
    },
    rest,
  }
}

const textOf = (lines: readonly { text: string }[]): string => lines.map(({ text }) => text).join('')

/**
 * Finds the parts of each value that line ends break and that begins at or after `from`. Returns where another value may
 * begin that the next line continues, unless these lines have `ended`.
 */
const hideBroken = (lines: { text: string; hidden: Range[] }[], from: number, ended: boolean, forms: Forms): number => {
  const all = textOf(lines)
  const last = textOf(lines.slice(0, -1)).length
  const open = ended ? all.length : beginningIn(all, forms, 1)
  const until = Math.min(open, last)
  let [line, start] = [0, 0]
  for (let at = from; at < until; at++) {
    for (let { length } = lineAt(lines, line); start + length <= at; { length } = lineAt(lines, line)) {
      start += length
      line++
    }
    const form = forms.begin.get(all.slice(at, at + 2))?.find((one) => all.startsWith(one, at))
    // One within its line is found there.
    if (form !== undefined && at + form.length > start + lineAt(lines, line).length)
      hideParts(lines, line, at - start, at - start + form.length)
  }
  return open
}
const lineAt = (lines: readonly { text: string }[], at: number): string => lines[at]?.text ?? ''

/** The parts of values that the line ends of one text break. */
const brokenIn = (text: string, forms: Forms): Range[] => {
  if (!text.includes('\n')) return []
  const ends = text.split('\n')
  const lines = ends.map((line) => ({ text: line.replace(/\r$/, ''), hidden: [] as Range[] }))
  hideBroken(lines, 0, true, forms)
  let start = 0
  return lines.flatMap(({ hidden }, i) => {
    const at = start
    start += (ends[i]?.length ?? 0) + 1
    return hidden.map(([from, to]): Range => [at + from, at + to])
  })
}

/** Hides this part of the text that begins with the line `at`. */
const hideParts = (lines: { text: string; hidden: Range[] }[], at: number, from: number, to: number): void => {
  let start = 0
  for (let i = at; i < lines.length && start < to; i++) {
    const { text, hidden } = lines[i] as { text: string; hidden: Range[] }
    const [first, last] = [Math.max(from - start, 0), Math.min(to - start, text.length)]
    if (first < last) hidden.push([first, last])
    start += text.length
  }
}

/** Masks the texts and names of a JSON value, and numbers that are a secret. */
export const maskIn = <T>(value: T, mask: (text: string) => string): T => {
  const walk = (part: unknown): unknown => {
    if (typeof part === 'string') return mask(part)
    if (typeof part === 'number') return mask(String(part)) === MASK ? MASK : part
    if (Array.isArray(part)) return part.map(walk)
    return isObject(part) ? Object.fromEntries(Object.entries(part).map(([key, of]) => [mask(key), walk(of)])) : part
  }
  return walk(value) as T
}
