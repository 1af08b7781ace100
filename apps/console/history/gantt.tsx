import { IconButton } from '../forms/choices.tsx'
import '../styles/timeline.css'
import { ChevronLeft, ChevronRight, type LucideIcon, Maximize, Minus, Plus } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Virtualizer } from 'virtua'
import { lookOf } from '../../shared/contracts/client/status.ts'
import { clockTime, duration, unbroken, type Zone } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { statusWord } from '../values/status.tsx'
import { tOperation } from '../words/operation.ts'
import type { Bar } from './bars.ts'
import { Strip } from './strip.tsx'
import { partOf, type Span, wheeled, ZOOMS, type Zoom } from './zoom.ts'

const SHARES = [0, 0.2, 0.4, 0.6, 0.8]
const ROW_PX = 28
const SHORT_MS = 120_000
const t = tOperation.timeline

export type GanttRow = {
  key: string
  name: string
  bars: readonly Bar[]
  /** The part of the critical path that the row accounts for. */
  path?: { from: number; to: number } | undefined
  /** A row that can explain its time; pressed while it does. */
  why?: { pressed: boolean; press: () => void }
}

/** The visible span of the axis, as kept in the address; `undefined` is all of it. */
type Viewed = { from?: string | undefined; to?: string | undefined }
type Scale = { whole: Span; span: Span; place: (part: Span) => React.CSSProperties }
type Props = {
  rows: GanttRow[]
  pauses: readonly Bar[]
  /** When the events of the history happened. */
  times: readonly number[]
  now: number | undefined
  viewed: Viewed
  view: (next: Viewed) => void
}

/** Attempts and waits on one axis; pauses overlay all rows. Only rows in view are drawn. */
export const Gantt = (props: Props) => {
  const whole = wholeOf(props.rows)
  return whole === undefined ? <p className="p-4 text-muted">{t.nothing_ran}</p> : <Drawn {...props} whole={whole} />
}

const Drawn = ({ rows, pauses, times, now, viewed, view, whole }: Props & { whole: Span }) => {
  const box = useRef<HTMLElement>(null)
  const { zone } = useDisplay()
  const [span, change] = useSpan(whole, viewed, view)
  useWheel(box, (event, share) => {
    const next = wheeled(event, span, whole, share)
    if (next === undefined) return
    event.preventDefault()
    change(next)
  })
  const zoom = (way: Zoom) => change(ZOOMS[way].make(span, whole))
  const key = (event: React.KeyboardEvent) => {
    const way = WAYS.find((candidate) => ZOOMS[candidate].key === event.key)
    if (way === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    zoom(way)
  }
  const scale: Scale = { whole, span, place: placeIn(span) }
  const inView = ({ from, to }: Span) => from <= span.to && to >= span.from
  const bands = [
    ...pauses.filter(inView).map((pause) => ({ className: 'gantt-pause', part: pause })),
    ...(now !== undefined && inView({ from: now, to: now })
      ? [{ className: 'gantt-now', part: { from: now, to: now } }]
      : []),
  ]
  return (
    <>
      <ZoomBar scale={scale} zone={zone} zoom={zoom} />
      <Strip {...{ whole, span, times, change }} clock={(time) => clockTime(time, zone, true)} />
      <section
        ref={box}
        className="gantt"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label={t.gantt}
        aria-keyshortcuts="+ - 0 ArrowLeft ArrowRight"
        onKeyDown={key}
      >
        <div className="gantt-row gantt-head">
          <div />
          <Axis {...scale} zone={zone} />
        </div>
        <Virtualizer data={rows} scrollRef={box} startMargin={ROW_PX} itemSize={ROW_PX}>
          {(row) => <Row key={row.key} row={row} bands={bands} scale={scale} inView={inView} zone={zone} />}
        </Virtualizer>
      </section>
    </>
  )
}

/** The visible span. The address takes it over once it has settled, because browsers limit how often it may change. */
const useSpan = (whole: Span, { from, to }: Viewed, view: (next: Viewed) => void) => {
  const [turned, turn] = useState<Span>()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address has changed, and counts
  useEffect(() => turn(undefined), [from, to])
  useEffect(() => {
    if (turned === undefined) return
    const timer = setTimeout(() => {
      if (turned.from > whole.from || turned.to < whole.to)
        view({ from: new Date(turned.from).toISOString(), to: new Date(turned.to).toISOString() })
      else if (from || to) view({})
      else turn(undefined)
    }, REST_MS)
    return () => clearTimeout(timer)
  }, [turned, whole, from, to, view])
  const asked = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))
  return [turned ?? partOf(whole, asked(from), asked(to)), turn] as const
}
const REST_MS = 150

/** React handles the wheel too late to stop the page from scrolling. */
const useWheel = (box: React.RefObject<HTMLElement | null>, hear: (event: WheelEvent, share: number) => void): void => {
  const newest = useRef(hear)
  newest.current = hear
  useEffect(() => {
    const element = box.current
    const turned = (event: WheelEvent) => {
      const axis = element?.querySelector('.gantt-axis')?.getBoundingClientRect()
      if (axis) newest.current(event, (event.clientX - axis.left) / axis.width)
    }
    element?.addEventListener('wheel', turned, { passive: false })
    return () => element?.removeEventListener('wheel', turned)
  }, [box])
}

const ICONS: Record<Zoom, LucideIcon> = {
  in: Plus,
  out: Minus,
  earlier: ChevronLeft,
  later: ChevronRight,
  all: Maximize,
}
const WAYS = Object.keys(ICONS) as Zoom[]

/** The visible time span, and the buttons that change it. */
const ZoomBar = ({ scale: { whole, span }, zone, zoom }: { scale: Scale; zone: Zone; zoom: (way: Zoom) => void }) => {
  const [from, to] = [span.from, span.to].map((time) => clockTime(time, zone, true))
  const all = span.from <= whole.from && span.to >= whole.to
  return (
    <div className="gantt-zoom">
      <p role="status">{all ? t.all_time(duration(whole.to - whole.from)) : t.part_of_time(from ?? '', to ?? '')}</p>
      {WAYS.map((way) => (
        <IconButton
          key={way}
          icon={ICONS[way]}
          word={t.zooms[way]}
          title={`${t.zooms[way]} (${ZOOMS[way].key.replace('ArrowLeft', '←').replace('ArrowRight', '→')})`}
          aria-disabled={all && way !== 'in'}
          onClick={() => zoom(way)}
        />
      ))}
    </div>
  )
}

type Band = { className: string; part: { from: number; to: number } }
type RowProps = { row: GanttRow; bands: Band[]; scale: Scale; inView: (part: Span) => boolean; zone: Zone }
const Row = ({ row, bands, scale: { place }, inView, zone }: RowProps) => (
  <div className={`gantt-row ${row.path ? 'critical' : ''}`}>
    <Name row={row} />
    <div className="gantt-track">
      {bands.map(({ className, part }) => (
        <div key={`${className} ${part.from}`} className={className} style={place(part)} />
      ))}
      {row.path && inView(row.path) ? <div className="gantt-path" style={place(row.path)} /> : null}
      {row.bars.filter(inView).map((bar) => {
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

/** The axis ends with the last bar, so time without a running or waiting node does not compress the past. */
const wholeOf = (rows: GanttRow[]): Span | undefined => {
  const bars = rows.flatMap((row) => row.bars)
  if (bars.length === 0) return undefined
  const from = bars.reduce((least, bar) => Math.min(least, bar.from), Number.POSITIVE_INFINITY)
  return { from, to: bars.reduce((most, bar) => Math.max(most, bar.to), from + 1000) }
}

const placeIn = ({ from, to }: Span): Scale['place'] => {
  const at = (time: number) => (Math.min(to - from, Math.max(0, time - from)) / (to - from)) * 100
  // Keeps a bar at the very end of the axis visible at its minimum width.
  return (part) => ({ left: `min(${at(part.from)}%, 100% - 3px)`, width: `${at(part.to) - at(part.from)}%` })
}

const Axis = ({ whole, span, zone }: Scale & { zone: Zone }) => {
  const length = span.to - span.from
  const away = (time: number) => ((time - whole.from) / 1000).toFixed(length < 2000 ? 2 : 1)
  return (
    <div className="gantt-axis" aria-hidden="true">
      {SHARES.map((share) => {
        const time = span.from + length * share
        return (
          <span key={share} style={{ left: `${share * 100}%` }}>
            {whole.to - whole.from < SHORT_MS ? unbroken(`+${away(time)} s`) : clockTime(time, zone, length < 600_000)}
          </span>
        )
      })}
    </div>
  )
}

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
