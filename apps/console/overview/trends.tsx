import type { Overview, OverviewPeriod, Spread } from '../../shared/contracts/overview/overview.ts'
import { dayName, duration, figure } from '../kit/format.ts'
import { Card } from '../ui/card.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { tOverview } from '../words/overview.ts'
import { Bars } from './bars.tsx'
import { InList } from './where.tsx'

const DAY_MS = 86_400_000
const ENDS = ['succeeded', 'failed', 'cancelled'] as const
type End = (typeof ENDS)[number]
type Span = { from: string; to: string }

/** How operations ended, and how long they and people took, compared with the period before. */
export const Trends = ({ overview: { days, period, before } }: { overview: Overview }) => (
  <Card title={tOverview.trends}>
    <div className="flex flex-col gap-4 p-4">
      {ENDS.every((end) => period[end] === 0) ? <p className="text-muted">{tOverview.none}</p> : <Bars days={days} />}
      <DataTable caption={tOverview.trends} columns={columnsOf(period, before)} rows={MEASURES} keyOf="name" />
      <details>
        <summary>{tOverview.as_table}</summary>
        <DataTable caption={tOverview.ended} columns={DAYS} rows={days.toReversed()} keyOf="day" />
      </details>
    </div>
  </Card>
)

type Measure = { name: string; cell: (period: OverviewPeriod) => React.ReactNode }
const MEASURES: Measure[] = [
  ...ENDS.map((end) => ({
    name: tOverview.outcomes[end],
    cell: (period: OverviewPeriod) => count(end, period[end], period),
  })),
  { name: tOverview.duration, cell: ({ duration }) => spread(duration) },
  { name: tOverview.approval, cell: ({ approval }) => spread(approval) },
]

const columnsOf = (period: OverviewPeriod, before: OverviewPeriod): Column<Measure>[] => [
  { name: tOverview.measure, kind: 'lead', cell: ({ name }) => name },
  { name: tOverview.this, cell: ({ cell }) => cell(period) },
  { name: tOverview.before, cell: ({ cell }) => cell(before) },
]

/** A number that links to the list behind it. */
const count = (end: End, n: number, { from, to }: Span) =>
  n === 0 ? 0 : <InList find={{ tab: end, q: '', from, to }}>{figure(n)}</InList>
const spread = (times: Spread) =>
  times === null ? '–' : tOverview.spread(duration(times.p50_s * 1000), duration(times.p90_s * 1000))

type Day = Overview['days'][number]
const spanOf = ({ day }: Day): Span => {
  const from = Date.parse(`${day}T00:00:00Z`)
  return { from: new Date(from).toISOString(), to: new Date(from + DAY_MS).toISOString() }
}
const DAYS: Column<Day>[] = [
  { name: tOverview.day, kind: 'lead', cell: ({ day }) => dayName(Date.parse(`${day}T00:00:00Z`), 'utc') },
  ...ENDS.map(
    (end): Column<Day> => ({
      name: tOverview.outcomes[end],
      kind: 'number',
      cell: (day) => count(end, day[end], spanOf(day)),
    }),
  ),
]
