import type { Quiet } from '../../../shared/contracts/notifications/notifications.ts'
import { nextTime } from '../../schedules/when.ts'

const at = (clock: string, timezone: string, now: number): number => {
  const [hour, minute] = clock.split(':').map(Number)
  return nextTime({ cron: `${minute} ${hour} * * *`, timezone }, 0, now) ?? now
}

/** Returns when the quiet hours around `now` end, in ms; `undefined` outside of them. They may span midnight. */
export const quietUntil = (quiet: Quiet | null, now: number): number | undefined => {
  if (!quiet || quiet.from === quiet.to) return undefined
  const end = at(quiet.to, quiet.timezone, now)
  return end < at(quiet.from, quiet.timezone, now) ? end : undefined
}
