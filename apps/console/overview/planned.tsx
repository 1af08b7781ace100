import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Overview, PlannedTick } from '../../shared/contracts/overview/overview.ts'
import { clockTime, dayName } from '../kit/format.ts'
import { useDisplay } from '../kit/prefs.ts'
import { calendarQuery } from '../queries/overview.ts'
import { Card } from '../ui/card.tsx'
import { Failure } from '../ui/failure.tsx'
import { GateLink, OperationLink } from '../values/links.tsx'
import { useNow } from '../values/time.tsx'
import { Said } from '../votes/brief.tsx'
import { tOverview } from '../words/overview.ts'
import { type Band, bandsIn, bandsOf, dayStarts, ticksOf } from './days.ts'

const DAYS = 14

/** Freezes, windows, scheduled runs and deadlines, day by day. */
export const Planned = ({ overview: { planned, planned_more } }: { overview: Overview }) => {
  const now = useNow()
  const { zone } = useDisplay()
  const calendar = useQuery(calendarQuery())
  const starts = dayStarts(now, zone, DAYS)
  const bands = calendar.data ? bandsOf(calendar.data) : []
  return (
    <Card title={tOverview.calendar}>
      {calendar.isError ? <Failure error={calendar.error} retry={() => void calendar.refetch()} /> : null}
      <ol className="day-grid">
        {starts.slice(0, DAYS).map((from, at) => (
          <DayCell
            key={from}
            name={dayName(from, zone)}
            bands={bandsIn(bands, Math.max(from, now), starts[at + 1] ?? 0)}
            ticks={ticksOf(planned, from, starts[at + 1] ?? 0)}
          />
        ))}
      </ol>
      {planned_more ? <p className="p-4 text-muted">{tOverview.more}</p> : null}
    </Card>
  )
}

const SHOWN = 6
const DayCell = ({ name, bands, ticks }: { name: string; bands: Band[]; ticks: PlannedTick[] }) => (
  <li className="day-cell">
    <h3 className="font-semibold">{name}</h3>
    {bands.length + ticks.length === 0 ? <p className="text-muted">{tOverview.free}</p> : null}
    <ul className="flex flex-col gap-1">
      {bands.map(({ id, kind, title }) => (
        <li key={id} className={`day-band ${kind}`}>
          {kind === 'freeze' ? tOverview.freeze : tOverview.window}: <Said>{title}</Said>
        </li>
      ))}
      {ticks.slice(0, SHOWN).map((tick) => (
        <Tick key={`${tick.kind} ${tick.schedule_id} ${tick.operation_id} ${tick.gate_id} ${tick.at}`} tick={tick} />
      ))}
    </ul>
    {ticks.length > SHOWN ? <p className="text-muted">{tOverview.others(ticks.length - SHOWN)}</p> : null}
  </li>
)

const Tick = ({ tick }: { tick: PlannedTick }) => {
  const { zone } = useDisplay()
  return (
    <li className="wrap-anywhere">
      <time dateTime={tick.at} className="tabular-nums">
        {clockTime(Date.parse(tick.at), zone)}
      </time>{' '}
      <TickLink tick={tick} /> <span className="text-muted">{tOverview.kinds[tick.kind]}</span>
    </li>
  )
}

const TickLink = ({ tick: { title, schedule_id, operation_id, gate_id } }: { tick: PlannedTick }) => {
  const words = <Said>{title}</Said>
  if (schedule_id !== null)
    return (
      <Link to="/schedules/$schedule_id" params={{ schedule_id }}>
        {words}
      </Link>
    )
  if (operation_id === null) return words
  if (gate_id === null) return <OperationLink id={operation_id}>{words}</OperationLink>
  return (
    <GateLink operation_id={operation_id} gate_id={gate_id}>
      {words}
    </GateLink>
  )
}
