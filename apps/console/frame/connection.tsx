import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useConnection } from '../api/hooks.ts'
import { retryNow, serverNow } from '../api/live.ts'
import { Button } from '../forms/button.tsx'
import { clockTime } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { meQuery } from '../queries/me.ts'
import { ShapeIcon } from '../values/status.tsx'
import { t } from '../words/index.ts'

/** The state of the connection as a word and a shape. */
export const ConnectionWord = () => {
  const { mode } = useConnection()
  const [shape, tone] =
    mode === 'live'
      ? (['check', 'ok'] as const)
      : mode === 'offline'
        ? (['slash', 'bad'] as const)
        : mode === 'polling'
          ? (['retry', 'wait'] as const)
          : (['dot', 'idle'] as const)
  return (
    <span className="inline-flex items-center gap-1.5 text-table text-muted">
      <ShapeIcon shape={shape} tone={tone} size={14} />
      <span className="max-sm:sr-only">{t.connection[mode]}</span>
    </span>
  )
}

const PATIENCE_MS = 3000

/** Why the shown data may be out of date, below the top bar; null if it is live. */
export const ConnectionBanner = () => {
  const { mode, since, whole_at } = useConnection()
  const { zone } = useDisplay()
  const me = useQuery(meQuery())
  const degraded = me.data?.degraded ?? []
  const [patient, setPatient] = useState(true)
  useEffect(() => {
    const left = PATIENCE_MS - (serverNow() - since)
    setPatient(left > 0)
    const timer = setTimeout(() => setPatient(false), Math.max(0, left))
    return () => clearTimeout(timer)
  }, [since])
  const whole = clockTime(whole_at, zone, true)
  const words =
    mode === 'offline'
      ? t.connection.no_network(whole)
      : mode === 'polling'
        ? t.connection.polls
        : mode === 'reconnecting' && !patient
          ? t.connection.lost(whole)
          : me.isError
            ? t.connection.me_unread
            : degraded.length > 0
              ? t.connection.degraded(degraded)
              : null
  return (
    <div role="status">
      {words === null ? null : (
        <div className="banner">
          <span>{words}</span>
          {mode === 'reconnecting' || mode === 'polling' || (mode !== 'offline' && me.isError) ? (
            <Button onClick={() => (me.isError ? void me.refetch() : retryNow())} word={t.connection.retry} />
          ) : null}
        </div>
      )}
    </div>
  )
}
