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

/** Less of a value tells too little, and many words begin so. */
const SHORT_START = 4

/** Where the longest beginning of one of these texts is, if the text ends with one. */
const beginningIn = (text: string, forms: readonly string[]): number => {
  let at = text.length
  for (const form of forms)
    for (let size = Math.min(form.length - 1, text.length); size >= Math.max(SHORT_START, text.length - at + 1); size--)
      if (text.endsWith(form.slice(0, size))) at = text.length - size
  return at
}

export type Masker = (text: string, about?: { cut?: boolean }) => string

/**
 * Replaces these secret values wherever they appear: verbatim, without a scheme such as "Bearer", line by line, in hex,
 * in base64, and as URLs and JSON escape them. In base64 it finds them within a longer text too. `cut`: the text may end
 * within a value.
 */
export const maskerOf = (secrets: readonly string[]): Masker => {
  const values = secrets.flatMap((value) => [value, value.replace(/^\S+\s+/, ''), ...linesOf(value)])
  const forms = [...new Set(values.filter((value) => value.length > 0).flatMap(spellingsOf))]
    .filter(Boolean)
    .sort((a, b) => b.length - a.length)
  return (text, { cut = false } = {}) => {
    const masked = forms.reduce((shown, form) => shown.replaceAll(form, MASK), text)
    const at = cut ? beginningIn(masked, forms) : masked.length
    return at < masked.length ? `${masked.slice(0, at)}${MASK}` : masked
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
