import { lookOf } from '../../shared/contracts/client/status.ts'
import type { NodeRow } from '../api/types.ts'
import { clockTime, duration } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { statusWord } from '../values/status.tsx'
import { useNow } from '../values/time.tsx'
import { tOperation } from '../words/operation.ts'
import { segmentsOf } from './segments.ts'

const TICKS = 5

/** The times of each node: waiting for a gate, queued, running. Rows in the order of their start. */
export const Gantt = ({ rows, ended_at }: { rows: NodeRow[]; ended_at: string | null }) => {
  const now = useNow()
  const { zone } = useDisplay()
  const end = ended_at === null ? now : Date.parse(ended_at)
  const shown = rows
    .map((row) => ({ row, segments: segmentsOf(row, end) }))
    .filter(({ segments }) => segments.length > 0)
    .sort((a, b) => (a.segments[0]?.from ?? 0) - (b.segments[0]?.from ?? 0))
  if (shown.length === 0) return <p className="p-4 text-muted">{tOperation.timeline.nothing_ran}</p>
  const from = Math.min(...shown.map(({ segments }) => segments[0]?.from ?? end))
  // The axis ends with the last bar: time without a running or waiting node does not compress the past.
  const to = Math.max(...shown.flatMap(({ segments }) => segments.map((segment) => segment.to)))
  const span = Math.max(1000, to - from)
  const at = (time: number) => ((time - from) / span) * 100
  return (
    <div className="gantt">
      <div className="gantt-corner" />
      <div className="gantt-axis" aria-hidden="true">
        {Array.from({ length: TICKS }, (_, tick) => {
          const share = (tick / TICKS) * 100
          return (
            <span key={share} style={{ left: `${share}%` }}>
              {clockTime(from + (span * tick) / TICKS, zone, span < 600_000)}
            </span>
          )
        })}
      </div>
      {shown.map(({ row, segments }) => (
        <div key={row.node_id} className="gantt-row">
          <div className="gantt-name" title={row.name}>
            {row.name}
          </div>
          <div className="gantt-track">
            {segments.map((segment) => {
              const word =
                segment.kind === 'running' ? statusWord(row.state) : tOperation.timeline.segment[segment.kind]
              const label = tOperation.timeline.bar(row.name, word, duration(segment.to - segment.from))
              return (
                <div
                  key={segment.kind}
                  role="img"
                  aria-label={label}
                  title={label}
                  className={`segment ${segment.kind} tone-${lookOf(row.state).tone}`}
                  style={{ left: `${at(segment.from)}%`, width: `${at(segment.to) - at(segment.from)}%` }}
                />
              )
            })}
            {ended_at === null && now <= to ? <div className="gantt-now" style={{ left: `${at(now)}%` }} /> : null}
          </div>
        </div>
      ))}
    </div>
  )
}
