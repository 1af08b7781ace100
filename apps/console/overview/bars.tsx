import type { Overview } from '../../shared/contracts/overview/overview.ts'
import { dayName } from '../kit/format.ts'
import { tOverview } from '../words/overview.ts'

type Day = Overview['days'][number]
const STACK = ['succeeded', 'cancelled', 'failed'] as const
/** The height of the drawing in its units; it is as wide as the page. */
const HEIGHT = 100
const SLOT = 10
const BAR = 8

/** A bar for each day: succeeded below, failed on top with a separate edge. The table beside it has the numbers. */
export const Bars = ({ days }: { days: readonly Day[] }) => {
  const most = Math.max(1, ...days.map(sumOf))
  const [first, last] = [days[0], days.at(-1)]
  return (
    <figure className="flex flex-col gap-2">
      <svg
        role="img"
        aria-label={`${tOverview.ended}. ${tOverview.most(most)}`}
        viewBox={`0 0 ${days.length * SLOT} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="trend"
      >
        {days.map((day, at) => (
          <g key={day.day}>
            {stackOf(day, most).map(({ end, y, height }) => (
              <rect key={end} className={`trend-${end}`} x={at * SLOT + 1} y={y} width={BAR} height={height} />
            ))}
          </g>
        ))}
      </svg>
      <figcaption className="flex flex-col gap-2 text-table text-muted">
        <span className="flex justify-between gap-4">
          <span>{first ? nameOf(first) : ''}</span>
          <span>{last ? nameOf(last) : ''}</span>
        </span>
        <span className="flex flex-wrap justify-center gap-x-4">
          {STACK.map((end) => (
            <span key={end} className="flex items-center gap-2">
              <svg viewBox="0 0 10 10" className="trend-key" aria-hidden="true">
                <rect className={`trend-${end}`} x="1" y="1" width="8" height="8" />
              </svg>
              {tOverview.outcomes[end]}
            </span>
          ))}
          <span>{tOverview.most(most)}</span>
        </span>
      </figcaption>
    </figure>
  )
}

const nameOf = ({ day }: Day): string => dayName(Date.parse(`${day}T00:00:00Z`), 'utc')
const sumOf = ({ succeeded, failed, cancelled }: Day): number => succeeded + failed + cancelled

/** The parts of a day's bar, from the bottom up. */
const stackOf = (day: Day, most: number) =>
  STACK.map((end, at) => {
    const below = STACK.slice(0, at).reduce((sum, other) => sum + day[other], 0)
    const height = (day[end] / most) * HEIGHT
    return { end, height, y: HEIGHT - (below / most) * HEIGHT - height }
  }).filter(({ height }) => height > 0)
