import { DAYS, type Quiet } from '../../../shared/contracts/notifications/rules.ts'
import { openingOf } from '../../../shared/data/calendar.ts'

/** Returns when the quiet hours around `now` end, in ms; `undefined` outside of them. They may span midnight. */
export const quietUntil = (quiet: Quiet | null, now: number): number | undefined => {
  if (!quiet || quiet.from === quiet.to) return undefined
  const { opens_at, closes_at } = openingOf({ ...quiet, days: quiet.days ?? DAYS }, now)
  return opens_at <= now ? closes_at : undefined
}
