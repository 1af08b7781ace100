import { DAYS, type Quiet } from '../../../shared/contracts/notifications/notifications.ts'
import { nextTime } from '../../schedules/when.ts'

/** They last less than a day, which has 25 hours when clocks go back. */
const LONGEST_MS = 25 * 3_600_000

const next = (clock: string, { timezone, days }: Pick<Quiet, 'timezone' | 'days'>, after: number): number => {
  const [hour, minute] = clock.split(':').map(Number)
  const on = days ? days.map((day) => (DAYS.indexOf(day) + 1) % 7).join() : '*'
  return nextTime({ cron: `${minute} ${hour} * * ${on}`, timezone }, 0, after) ?? Number.POSITIVE_INFINITY
}

/** Returns when the quiet hours around `now` end, in ms; `undefined` outside of them. They may span midnight. */
export const quietUntil = (quiet: Quiet | null, now: number): number | undefined => {
  if (!quiet || quiet.from === quiet.to) return undefined
  const { from, to, timezone } = quiet
  for (let start = next(from, quiet, now - LONGEST_MS); start <= now; start = next(from, quiet, start)) {
    const end = next(to, { timezone }, start)
    if (end > now) return end
  }
  return undefined
}
