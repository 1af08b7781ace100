import { useMemo } from 'react'
import { tOperation } from '../words/operation.ts'
import { type Edge, edgeMoved, type Span } from './zoom.ts'

const PARTS = 120
const STEPS = 200
const t = tOperation.timeline

type StripProps = {
  whole: Span
  span: Span
  /** When the events happened. */
  times: readonly number[]
  clock: (time: number) => string
  change: (span: Span) => void
}

/** The whole time with the density of its events; two handles choose the part that is shown below. */
export const Strip = ({ whole, span, times, clock, change }: StripProps) => {
  const { from, to } = whole
  const path = useMemo(() => pathOf(densityOf(times, { from, to }, PARTS)), [times, from, to])
  const shareOf = (time: number) => (time - from) / (to - from)
  const edge = (name: Edge) => (
    <input
      type="range"
      // Where both meet at the end, the first one is the one that can move.
      className={name === 'from' && shareOf(span.from) > 0.5 ? 'above' : undefined}
      max={STEPS}
      step="any"
      value={shareOf(span[name]) * STEPS}
      aria-label={t.edges[name]}
      aria-valuetext={clock(span[name])}
      onChange={({ target }) =>
        change(edgeMoved(span, whole, name, from + (target.valueAsNumber / STEPS) * (to - from)))
      }
    />
  )
  return (
    <div className="gantt-strip">
      <svg viewBox={`0 0 ${PARTS} 1`} preserveAspectRatio="none" aria-hidden="true">
        <path d={path} />
      </svg>
      <span style={{ left: `${shareOf(span.from) * 100}%`, right: `${(1 - shareOf(span.to)) * 100}%` }} />
      {edge('from')}
      {edge('to')}
    </div>
  )
}

/** How many of the times lie in each part of the span, as shares of the fullest part. Pure. */
export const densityOf = (times: readonly number[], { from, to }: Span, parts: number): number[] => {
  const counts = new Array<number>(parts).fill(0)
  for (const time of times) {
    const at = Math.min(parts - 1, Math.floor(((time - from) / (to - from)) * parts))
    if (time >= from && time <= to) counts[at] = (counts[at] ?? 0) + 1
  }
  const most = Math.max(1, ...counts)
  return counts.map((count) => count / most)
}

const pathOf = (shares: readonly number[]): string =>
  shares.map((share, at) => (share === 0 ? '' : `M${at} 1V${1 - share}h1V1z`)).join('')
