import '../styles/timeline.css'
import { useRef } from 'react'
import { Virtualizer } from 'virtua'
import { lookOf } from '../../shared/contracts/client/status.ts'
import { clockTime, duration, type Zone } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { statusWord } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import type { Bar } from './bars.ts'

const SHARES = [0, 0.2, 0.4, 0.6, 0.8]
const ROW_PX = 28
const SHORT_MS = 120_000
const t = tOperation.timeline

export type GanttRow = {
  key: string
  name: string
  bars: readonly Bar[]
  /** The stretch of the critical path that the row accounts for. */
  path?: { from: number; to: number } | undefined
  /** A row that explains itself: pressed while it does. */
  why?: { pressed: boolean; press: () => void }
}

type Scale = { from: number; span: number; place: (part: { from: number; to: number }) => React.CSSProperties }
type Props = { rows: GanttRow[]; pauses: readonly Bar[]; now: number | undefined }

/** Attempts and waits on one axis; pauses lie over all rows. Only rows in view are drawn. */
export const Gantt = ({ rows, pauses, now }: Props) => {
  const box = useRef<HTMLElement>(null)
  const { zone } = useDisplay()
  const scale = scaleOf(rows)
  if (scale === undefined) return <p className="p-4 text-muted">{t.nothing_ran}</p>
  const bands = [
    ...pauses.map((pause) => ({ className: 'gantt-pause', part: pause })),
    ...(now === undefined || now > scale.from + scale.span
      ? []
      : [{ className: 'gantt-now', part: { from: now, to: now } }]),
  ]
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section ref={box} className="gantt" tabIndex={0} aria-label={t.gantt}>
      <div className="gantt-row gantt-head">
        <div />
        <Axis {...scale} zone={zone} />
      </div>
      <Virtualizer data={rows} scrollRef={box} startMargin={ROW_PX} itemSize={ROW_PX}>
        {(row) => <Row key={row.key} row={row} bands={bands} scale={scale} zone={zone} />}
      </Virtualizer>
    </section>
  )
}

type Band = { className: string; part: { from: number; to: number } }
const Row = ({ row, bands, scale: { place }, zone }: { row: GanttRow; bands: Band[]; scale: Scale; zone: Zone }) => (
  <div className={`gantt-row ${row.path ? 'critical' : ''}`}>
    <Name row={row} />
    <div className="gantt-track">
      {bands.map(({ className, part }) => (
        <div key={`${className} ${part.from}`} className={className} style={place(part)} />
      ))}
      {row.path ? <div className="gantt-path" style={place(row.path)} /> : null}
      {row.bars.map((bar) => {
        const label = t.bar(row.name, wordsOf(bar, zone), duration(bar.to - bar.from))
        return (
          <div
            key={`${bar.kind} ${bar.from} ${bar.attempt}`}
            role="img"
            aria-label={label}
            title={label}
            className={`segment ${bar.kind} tone-${lookOf(bar.state).tone}`}
            style={place(bar)}
          />
        )
      })}
    </div>
  </div>
)

/** The axis ends with the last bar: time without a running or waiting node does not compress the past. */
const scaleOf = (rows: GanttRow[]): Scale | undefined => {
  const bars = rows.flatMap((row) => row.bars)
  if (bars.length === 0) return undefined
  const from = bars.reduce((least, bar) => Math.min(least, bar.from), Number.POSITIVE_INFINITY)
  const span = bars.reduce((most, bar) => Math.max(most, bar.to - from), 1000)
  const at = (time: number) => (Math.min(span, Math.max(0, time - from)) / span) * 100
  // A bar at the very end of the axis keeps its least width in view.
  const place: Scale['place'] = (part) => ({
    left: `min(${at(part.from)}%, 100% - 3px)`,
    width: `${at(part.to) - at(part.from)}%`,
  })
  return { from, span, place }
}

const Axis = ({ from, span, zone }: { from: number; span: number; zone: Zone }) => (
  <div className="gantt-axis" aria-hidden="true">
    {SHARES.map((share) => {
      const away = span * share
      const text = span < SHORT_MS ? `+${(away / 1000).toFixed(1)} s` : clockTime(from + away, zone, span < 600_000)
      return (
        <span key={share} style={{ left: `${share * 100}%` }}>
          {text}
        </span>
      )
    })}
  </div>
)

const Name = ({ row: { name, why } }: { row: GanttRow }) =>
  why === undefined ? (
    <div className="gantt-name" title={name}>
      {name}
    </div>
  ) : (
    <button type="button" className="gantt-name" title={name} aria-pressed={why.pressed} onClick={why.press}>
      {name}
    </button>
  )

/** An attempt by its number, outcome and error; a wait by its kind. */
const wordsOf = ({ kind, state, attempt, error, due }: Bar, zone: Zone): string => {
  if (kind === 'end') return statusWord(state)
  if (kind === 'run' || kind === 'undo') {
    const words = t.attempt(attempt, kind === 'undo', statusWord(state))
    return error === undefined ? words : `${words} (${error})`
  }
  return due === undefined ? t.segment[kind] : t.next_try(t.segment[kind], clockTime(due, zone, true))
}
