import { Cron } from 'croner'
import { isTriggered, type When } from '../../shared/contracts/operations/schedules.ts'
import { isTimezone } from '../../shared/data/calendar.ts'
import { wrongAt } from '../../shared/errors.ts'
import { CelError, compileCondition } from '../../shared/expressions/cel.ts'
import { faultInCron } from './cron.ts'

/** Returns the first time after `after`, for a schedule made at `made`; `undefined` if none comes. Both in ms. */
export const nextTime = (when: When, made: number, after: number): number | undefined => {
  if ('on' in when || 'webhook' in when) return undefined
  if ('at' in when) return Date.parse(when.at) > after ? Date.parse(when.at) : undefined
  if ('cron' in when) return nextByCron(when, after)
  const every = when.every_s * 1000
  return made + Math.max(1, Math.floor((after - made) / every) + 1) * every
}

const MINUTE_MS = 60_000
/** When clocks go back, croner takes the hour's second pass for the first and returns past times. Each comes once. */
const nextByCron = (when: Extract<When, { cron: string }>, after: number): number | undefined => {
  const cron = cronOf(when)
  for (let from = after; ; from += MINUTE_MS) {
    const next = runAfter(cron, from)
    if (next === undefined || next > after) return next
  }
}

/** croner calls itself again for each month that lacks the day, without end for the 31st of months of 30 days. */
const runAfter = (cron: Cron, from: number): number | undefined => {
  try {
    return cron.nextRun(new Date(from))?.getTime()
  } catch (error) {
    if (error instanceof RangeError && error.message.startsWith('Maximum call stack')) return undefined
    throw error
  }
}

/** Returns the next times after `after`, at most `count`. */
export const nextTimes = (when: When, made: number, after: number, count: number): number[] => {
  const times: number[] = []
  for (let at: number | undefined = after; times.length < count; ) {
    at = nextTime(when, made, at)
    if (at === undefined) break
    times.push(at)
  }
  return times
}

/** Refuses impossible times, and those that never come. */
export const refuseWhen = (when: When, now: number): void => {
  if ('webhook' in when && when.webhook.if !== undefined) refuseCondition(when.webhook.if)
  if (isTriggered(when)) return
  if ('timezone' in when) refuseZone(when.timezone, '/when/timezone')
  const fault = 'cron' in when ? faultInCron(when.cron) : undefined
  if (fault !== undefined) wrong('/when/cron', fault)
  const next = nextTime(when, now, now)
  if (next === undefined && 'at' in when) wrong('/when/at', 'must be in the future')
  if (next === undefined) wrong('/when/cron', 'names a date that no month has')
}

const refuseCondition = (source: string) => {
  try {
    compileCondition(source, ['body'])
  } catch (error) {
    if (error instanceof CelError) throw wrong('/when/webhook/if', `cannot be read: ${error.message}`)
    throw error
  }
}

const wrong = (pointer: string, message: string) => {
  throw wrongAt(pointer, message)
}

export const refuseZone = (timezone: string, pointer: string): void => {
  if (!isTimezone(timezone)) wrong(pointer, 'is not an IANA time zone')
}

/** croner takes `?` for a restriction, which would make the other day field one of two that suffice. */
const cronOf = ({ cron, timezone }: Extract<When, { cron: string }>) => {
  const fields = cron.trim().replaceAll('?', '*').split(/\s+/)
  const days = fields.pop() ?? ''
  return new Cron([...fields, withSundays(days)].join(' '), { timezone, mode: '5-part', paused: true })
}

const SUNDAY = /^(0{1,2}|0?7|SUN)$/i
/** croner takes a range that ends on a Sunday only if it is written 7. One from Sunday to Sunday is that day alone. */
const withSundays = (days: string): string =>
  days.replaceAll(/([0-9A-Z]+)-(0{1,2}|SUN)(?![0-9A-Z])/gi, (_, from: string) =>
    SUNDAY.test(from) ? '0-0' : `${from}-7`,
  )
