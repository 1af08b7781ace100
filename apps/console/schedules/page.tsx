import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { ScheduleView } from '../api/types.ts'
import { ActionButton, actionOf, mayPress, WhyNot } from '../command/allowed.tsx'
import { CommandDialog } from '../command/dialog.tsx'
import { shown } from '../kit/format.ts'
import { useWishes } from '../kit/wish.ts'
import { scheduleQuery } from '../queries/changes.ts'
import { Card } from '../ui/card.tsx'
import { readOf, UnreadPage } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { OperationLink } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tCommand } from '../words/operations/command.ts'
import { tPlan } from '../words/plan.ts'
import { type Act, actsOf } from './acts.ts'
import { HookCard } from './hook.tsx'
import { When } from './list.tsx'

/** One schedule: its intent, its next time, and its last runs. */
export const SchedulePage = () => {
  const { schedule_id } = useParams({ from: '/shell/schedules/$schedule_id' })
  const query = useQuery(scheduleQuery(schedule_id))
  const [act, setAct] = useState<Act>()
  const schedule = readOf(query)
  useWishes(schedule_id, (what) => {
    const wished = schedule && actsOf(schedule).find((one) => one === what && mayPress(actionOf(schedule, one)))
    if (wished) setAct(wished)
    return wished !== undefined
  })
  if (schedule === undefined) return <UnreadPage title={tPlan.schedule.title} query={query} noun="schedule" />
  const offered = actsOf(schedule)
  return (
    <Page>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div>
          <Heading title={schedule.title}>{schedule.title}</Heading>
          <p className="flex flex-wrap items-center gap-2 text-muted">
            <Status state={schedule.status} /> <When when={schedule.when} /> · <Person who={schedule.owner} />
          </p>
          <p className="text-muted">{tPlan.schedule[schedule.proceed]}</p>
          {schedule.status_reason ? <p lang="en">{schedule.status_reason}</p> : null}
        </div>
        {offered.length === 0 ? null : (
          <div className="flex flex-wrap gap-2">
            {offered.map((one) => (
              <ActionButton key={one} action={actionOf(schedule, one)} press={() => setAct(one)} danger={one === 'end'}>
                {tPlan.schedule.action[one]}
              </ActionButton>
            ))}
            <WhyNot actions={offered.map((one) => actionOf(schedule, one))} />
          </div>
        )}
      </div>
      <Parts schedule={schedule} />
      {act ? <ActDialog schedule={schedule} act={act} close={() => setAct(undefined)} /> : null}
    </Page>
  )
}

const Parts = ({ schedule }: { schedule: ScheduleView }) => (
  <>
    {schedule.hook ? (
      <HookCard schedule={schedule} hook={schedule.hook} />
    ) : (
      <Card title={tPlan.schedule.upcoming}>
        <ul className="flex flex-wrap gap-x-6 gap-y-1 p-4">
          {schedule.upcoming.length === 0 ? <li className="text-muted">{tPlan.schedule.none}</li> : null}
          {schedule.upcoming.map((at) => (
            <li key={at}>
              <TimeText at={at} />
            </li>
          ))}
        </ul>
      </Card>
    )}
    <Card title={tPlan.schedule.runs}>
      {schedule.runs.length === 0 ? (
        <p className="p-4 text-muted">{tPlan.schedule.no_runs}</p>
      ) : (
        <DataTable caption={tPlan.schedule.runs} columns={COLUMNS} rows={schedule.runs} keyOf="due_at" />
      )}
    </Card>
    <Card title={tPlan.schedule.asks} note={shown(schedule.intent.reason)}>
      <pre className="mono overflow-x-auto p-4 text-table">{shown(JSON.stringify(schedule.intent, null, 2))}</pre>
    </Card>
  </>
)

const ActDialog = ({ schedule, act, close }: { schedule: ScheduleView; act: Act; close: () => void }) => {
  const client = useQueryClient()
  const { schedule_id, title } = schedule
  return (
    <CommandDialog<Record<string, unknown>, ScheduleView>
      title={`${tPlan.schedule.action[act]}: ${title}`}
      button={tPlan.schedule.action[act] ?? act}
      danger={act === 'end'}
      command={{ path: `/v1/schedules/${encodeURIComponent(schedule_id)}/${act}`, body: {} }}
      text={{ name: 'reason', label: tCommand.reason, needed: false, missing: tCommand.reason_needed }}
      consequences={() => <p>{tPlan.schedule.effect[act]}</p>}
      done={(reply) => {
        client.setQueryData(scheduleQuery(schedule_id).queryKey, reply)
        void client.invalidateQueries({ queryKey: ['schedules'] })
        close()
      }}
      close={close}
    />
  )
}

type Run = ScheduleView['runs'][number]
const COLUMNS: Column<Run>[] = [
  {
    name: tPlan.schedule.run_columns.at,
    kind: 'lead',
    className: 'whitespace-nowrap',
    cell: ({ due_at }) => <TimeText at={due_at} />,
  },
  { name: tPlan.schedule.run_columns.outcome, cell: ({ state }) => <Status state={state} /> },
  {
    name: tPlan.schedule.run_columns.leads,
    cell: ({ operation_id, plan_id }) =>
      operation_id ? (
        <OperationLink id={operation_id}>{tPlan.intent.to_operation}</OperationLink>
      ) : plan_id ? (
        <Link to="/plans/$plan_id" params={{ plan_id }} search={{ tab: 'changes' }}>
          {tPlan.intent.to_plan}
        </Link>
      ) : null,
  },
  { name: tPlan.schedule.run_columns.why, cell: ({ detail }) => (detail ? <span lang="en">{detail}</span> : null) },
]
