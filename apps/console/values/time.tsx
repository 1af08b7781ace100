import { useSyncExternalStore } from 'react'
import { onConnection, serverNow } from '../api/live.ts'
import { clockTime, coarse, duration, exactTime, fullTime, isSameDay, shortTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { t } from '../words/index.ts'

const DAY_MS = 86_400_000

/**
 * One clock for every relative time on the page: that of the server. It ticks every ten seconds and when the connection
 * changes, which tells the server's time, and only while the page is visible.
 */
const ticker = (() => {
  const listeners = new Set<() => void>()
  let now = serverNow()
  let timer: ReturnType<typeof setInterval> | undefined
  let leave: (() => void) | undefined
  const tick = () => {
    if (document.visibilityState === 'hidden') return
    now = serverNow()
    for (const listener of listeners) listener()
  }
  const subscribe = (listener: () => void) => {
    if (listeners.size === 0) {
      now = serverNow()
      timer = setInterval(tick, 10_000)
      document.addEventListener('visibilitychange', tick)
      leave = onConnection(tick)
    }
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0) return
      clearInterval(timer)
      document.removeEventListener('visibilitychange', tick)
      leave?.()
    }
  }
  return { subscribe, now: () => now }
})()

/** The time of the page's clock, which moves every ten seconds. */
export const useNow = (): number => useSyncExternalStore(ticker.subscribe, ticker.now)

/**
 * A moment: relative within a day, otherwise absolute; in full in the tooltip. The text of an exact time says as much as
 * the tooltip, which keyboards and touch cannot reach. A clock time of another day is in full; `full` suits paper.
 */
export const TimeText = ({ at, form = 'auto' }: { at: string; form?: 'auto' | 'clock' | 'both' | 'full' }) => {
  const now = useNow()
  const { zone, times } = useDisplay()
  const ms = Date.parse(at)
  // The page's clock moves every ten seconds, so an event between two ticks is past, not future.
  const away = ms > now && ms <= serverNow() ? 0 : now - ms
  const relative = Math.abs(away) < 5000 ? t.time.now : away > 0 ? t.time.ago(coarse(away)) : t.time.in(coarse(away))
  const full = fullTime(ms, zone)
  const clock = isSameDay(ms, now, zone) ? clockTime(ms, zone, true) : full
  const absolute = form === 'full' ? full : form === 'clock' ? clock : shortTime(ms, now, zone)
  const near = Math.abs(away) < DAY_MS && form !== 'clock' && form !== 'full'
  const short = !near ? absolute : form === 'both' ? `${absolute} (${relative})` : relative
  return (
    <time dateTime={at} title={full}>
      {times === 'exact' && form !== 'full' ? exactTime(ms, now, zone) : short}
    </time>
  )
}

/** How long something took, or has taken until now. */
export const DurationText = ({ from, to }: { from: string | null; to: string | null }) => {
  const now = useNow()
  if (from === null) return null
  return <>{duration((to === null ? Math.max(now, Date.parse(from)) : Date.parse(to)) - Date.parse(from))}</>
}

/** An absolute time as plain text, for sentences. */
export const useTimeWords = (): ((at: string) => string) => {
  const now = useNow()
  const { zone, times } = useDisplay()
  const words = times === 'exact' ? exactTime : shortTime
  return (at) => words(Date.parse(at), now, zone)
}
