import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ScheduleRow } from '../api/types.ts'
import { schedulesQuery } from '../queries/changes.ts'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { NewLink, useEmptyWords } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tPlan } from '../words/plan.ts'

/** Schedules, with their next time and the outcome of the last run. */
export const SchedulesPage = () => {
  const list = useInfiniteQuery(schedulesQuery())
  const empty = useEmptyWords(tPlan.schedule.empty, tPlan.schedule.how)
  return (
    <Page>
      <div>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <Heading title={tPlan.schedule.title}>{tPlan.schedule.title}</Heading>
          <NewLink />
        </div>
        <p className="max-w-text text-muted">{tPlan.schedule.what}</p>
      </div>
      <ListTable list={list} empty={empty} caption={tPlan.schedule.caption} columns={COLUMNS} keyOf="schedule_id" />
    </Page>
  )
}

/** When a schedule runs, in one line. */
export const When = ({ when }: Pick<ScheduleRow, 'when'>) =>
  'on' in when ? (
    <>
      {tPlan.schedule.on(when.on.type_key)} <code>{when.on.when}</code>
    </>
  ) : 'at' in when ? (
    <>
      {tPlan.schedule.at} <TimeText at={when.at} />
    </>
  ) : 'cron' in when ? (
    tPlan.schedule.cron(when.cron, when.timezone)
  ) : 'webhook' in when ? (
    <>
      {tPlan.schedule.webhook[when.webhook.signature]} {when.webhook.if ? <code>{when.webhook.if}</code> : null}
    </>
  ) : (
    tPlan.schedule.every(when.every_s)
  )

const COLUMNS: Column<ScheduleRow>[] = [
  {
    name: tPlan.schedule.columns.schedule,
    kind: 'lead',
    className: 'font-medium wrap-anywhere',
    cell: ({ schedule_id, title }) => (
      <Link to="/schedules/$schedule_id" params={{ schedule_id }} data-row="">
        {title}
      </Link>
    ),
  },
  { name: tPlan.schedule.columns.status, cell: ({ status }) => <Status state={status} /> },
  { name: tPlan.schedule.columns.when, cell: When },
  {
    name: tPlan.schedule.columns.next,
    className: 'whitespace-nowrap',
    cell: ({ next_at }) => next_at && <TimeText at={next_at} />,
  },
  {
    name: tPlan.schedule.columns.last,
    cell: ({ last_run }) =>
      last_run && (
        <>
          <Status state={last_run.state} /> <TimeText at={last_run.due_at} />
        </>
      ),
  },
  { name: tPlan.schedule.columns.by, cell: ({ owner }) => <Person who={owner} /> },
]
