import { LANGUAGE } from '../words/frame/language.ts'

/** Uniform times, durations and numbers for lists, tooltips and axes (console.md section 9). Pure: takes the zone. */
export type Zone = 'utc' | 'local' | (string & {})
/** The zone of this browser: that of its date fields, whose labels name it. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone

/** A typed date and time as RFC 3339; none if it is no time, such as one whose year has five digits. */
export const timeOf = (typed: string): string | undefined =>
  Number.isNaN(Date.parse(typed)) ? undefined : new Date(typed).toISOString()

const formats = new Map<string, Intl.DateTimeFormat>()

/** If this browser does not know the zone, times are in UTC and say so. */
export const format = (zone: Zone, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => {
  const key = `${zone} ${JSON.stringify(options)}`
  let known = formats.get(key)
  if (known === undefined) {
    const make = (timeZone: string | undefined) =>
      new Intl.DateTimeFormat(LANGUAGE, { ...options, timeZone, hourCycle: 'h23' })
    try {
      known = make(zone === 'local' ? undefined : zone)
    } catch {
      known = make('utc')
    }
    formats.set(key, known)
  }
  return known
}

/** `12:04`, with seconds `12:04:31`. */
export const clockTime = (at: number, zone: Zone, seconds = false): string =>
  format(zone, { hour: '2-digit', minute: '2-digit', ...(seconds ? { second: '2-digit' } : {}) }).format(at)

/** `21 Nov 2026, 12:04:31 UTC`. */
export const fullTime = (at: number, zone: Zone): string => {
  const text = format(zone, {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).format(at)
  return `${text} ${zoneWord(at, zone)}`
}

/** `12:04` on the day of `now`, otherwise `20 Nov, 12:04`. */
export const shortTime = (at: number, now: number, zone: Zone): string => {
  const time = clockTime(at, zone)
  return isSameDay(at, now, zone) ? time : `${format(zone, { day: 'numeric', month: 'short' }).format(at)}, ${time}`
}

export const isSameDay = (at: number, now: number, zone: Zone): boolean => {
  const day = format(zone, { dateStyle: 'short' })
  return day.format(at) === day.format(now)
}

/** `12:04:31 UTC` on the day of `now`, otherwise in full. */
export const exactTime = (at: number, now: number, zone: Zone): string =>
  isSameDay(at, now, zone) ? `${clockTime(at, zone, true)} ${zoneWord(at, zone)}` : fullTime(at, zone)

/** `Tue 24 Nov`. */
export const dayName = (at: number, zone: Zone): string =>
  format(zone, { weekday: 'short', day: 'numeric', month: 'short' }).format(at).replace(',', '')

export const zoneWord = (at: number, zone: Zone): string =>
  zone === 'utc'
    ? 'UTC'
    : (format(zone, { timeZoneName: 'short' })
        .formatToParts(at)
        .find((part) => part.type === 'timeZoneName')?.value ?? '')

/** Words that stay in one line: a number and its unit. */
export const unbroken = (text: string): string => text.replaceAll(' ', '\u00a0')

/** `850 ms`, `4.2 s`, `42 s`, `3 min 05 s`, `1 h 04 min`, `2 d 03 h`. */
export const duration = (ms: number): string => {
  const s = ms / 1000
  if (s < 1) return unbroken(`${Math.max(0, Math.round(ms))} ms`)
  if (s < 10) return unbroken(`${(Math.floor(s * 10) / 10).toLocaleString(LANGUAGE)} s`)
  if (s < 60) return coarse(ms)
  if (s < 3600) return unbroken(`${Math.floor(s / 60)} min ${two(s % 60)} s`)
  if (s < 86_400) return unbroken(`${Math.floor(s / 3600)} h ${two((s % 3600) / 60)} min`)
  return unbroken(`${Math.floor(s / 86_400)} d ${two((s % 86_400) / 3600)} h`)
}

/** The same, rounded to one unit, for `… ago`: `12 s`, `3 min`, `5 h`, `2 d`. */
export const coarse = (ms: number): string => {
  const s = Math.abs(ms) / 1000
  if (s < 60) return unbroken(`${Math.floor(s)} s`)
  if (s < 3600) return unbroken(`${Math.floor(s / 60)} min`)
  return unbroken(s < 172_800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86_400)} d`)
}

/** `512 B`, `4.2 kB`, `1.3 MB`. */
export const fileSize = (bytes: number): string => {
  if (bytes < 1000) return unbroken(`${bytes} B`)
  const [least, unit] = bytes < 1_000_000 ? [1000, 'kB'] : [1_000_000, 'MB']
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 }
  return unbroken(`${(bytes / least).toLocaleString(LANGUAGE, digits)} ${unit}`)
}

/** A measured number, short: `0`, `0.1`, `4.3`, `41`, `1,204`. */
export const figure = (value: number): string =>
  value.toLocaleString(LANGUAGE, Math.abs(value) < 10 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 })

/** The last six characters of an id, the form that people use. */
export const shortId = (id: string): string => id.slice(-6)

/** Replaces characters that are invisible, or change the direction of others, with their number. */
export const shown = (text: string): string =>
  text.replace(
    /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  )

const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
