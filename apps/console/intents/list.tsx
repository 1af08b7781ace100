import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { usePreview } from '../api/preview.ts'
import type { IntentRow } from '../api/types.ts'
import { Button } from '../forms/button.tsx'
import { Choices } from '../forms/choices.tsx'
import { intentsQuery } from '../queries/changes.ts'
import { Refused } from '../ui/failure.tsx'
import { Heading, Page } from '../ui/page.tsx'
import { type Column, ListTable } from '../ui/table.tsx'
import { NewLink, OperationLink, useEmptyWords, useMayCreate } from '../values/links.tsx'
import { Person } from '../values/person.tsx'
import { Status } from '../values/status.tsx'
import { TimeText } from '../values/time.tsx'
import { tPlan } from '../words/plan.ts'

/** Intents, with the plan or the operation of each. */
export const IntentsPage = () => {
  const { whose } = useSearch({ from: '/shell/intents' })
  const navigate = useNavigate({ from: '/intents' })
  const list = useInfiniteQuery(intentsQuery(whose))
  const empty = useEmptyWords(whose === 'mine' ? tPlan.intent.empty : tPlan.intent.empty_all, tPlan.intent.how)
  return (
    <Page>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <div>
          <Heading title={tPlan.intent.title}>{tPlan.intent.title}</Heading>
          <p className="max-w-text text-muted">{tPlan.intent.what}</p>
        </div>
        <div className="flex flex-wrap items-center gap-3">
          <Choices
            label={tPlan.intent.filter}
            choices={{ mine: tPlan.intent.mine, all: tPlan.intent.all }}
            chosen={whose}
            choose={(choice) => void navigate({ search: { whose: choice } })}
          />
          <NewLink />
        </div>
      </div>
      <ListTable
        list={list}
        empty={empty}
        next={<NewLink />}
        caption={tPlan.intent.caption}
        columns={COLUMNS}
        keyOf="intent_id"
      />
    </Page>
  )
}

/** The next step of an intent: its operation, its plan, or a button that plans it. */
const Next = ({ row }: { row: IntentRow }) => {
  const navigate = useNavigate()
  const may = useMayCreate()
  const { busy, problem, send } = usePreview(
    row.intent_id,
    (plan_id) => void navigate({ to: '/plans/$plan_id', params: { plan_id }, search: { tab: 'changes' } }),
  )
  if (row.operation_id !== null)
    return (
      <OperationLink id={row.operation_id} data-row="">
        {tPlan.intent.to_operation}
      </OperationLink>
    )
  if (row.latest_plan_id !== null)
    return (
      <Link to="/plans/$plan_id" params={{ plan_id: row.latest_plan_id }} search={{ tab: 'changes' }} data-row="">
        {tPlan.intent.to_plan}
      </Link>
    )
  if (!may) return null
  return (
    <>
      <Button aria-disabled={busy} onClick={() => send()} word={busy ? tPlan.plan.planning : tPlan.intent.make_plan} />
      <Refused problem={problem} />
    </>
  )
}

const COLUMNS: Column<IntentRow>[] = [
  {
    name: tPlan.intent.columns.intent,
    kind: 'lead',
    className: 'font-medium wrap-anywhere',
    cell: ({ title }) => title,
  },
  { name: tPlan.intent.columns.status, cell: ({ status }) => <Status state={status} /> },
  { name: tPlan.intent.columns.kind, cell: ({ kind }) => tPlan.intent.kinds[kind] ?? kind },
  { name: tPlan.intent.columns.targets, kind: 'number', cell: ({ targets }) => targets },
  { name: tPlan.intent.columns.by, cell: ({ requester }) => <Person who={requester} /> },
  {
    name: tPlan.intent.columns.at,
    className: 'whitespace-nowrap',
    cell: ({ created_at }) => <TimeText at={created_at} />,
  },
  { name: tPlan.intent.columns.next, cell: (row) => <Next row={row} /> },
]
