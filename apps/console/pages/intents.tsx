import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { usePreview } from '../api/preview.ts'
import { intentsQuery } from '../api/queries.ts'
import type { IntentRow } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { type Column, DataTable, Listing } from '../parts/data-table.tsx'
import { ProblemText } from '../parts/failure.tsx'
import { Empty, Heading, Page } from '../parts/page.tsx'
import { Person } from '../parts/person.tsx'
import { Status } from '../parts/status.tsx'
import { TimeText } from '../parts/time-text.tsx'

/** What people want to be true, with the plan or the operation that came of it. */
export const IntentsPage = () => {
  const { whose } = useSearch({ from: '/shell/intents' })
  const navigate = useNavigate({ from: '/intents' })
  const list = useInfiniteQuery(intentsQuery(whose))
  const rows = list.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <Page>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <div>
          <Heading title={t.intent.title}>{t.intent.title}</Heading>
          <p className="max-w-text text-muted">{t.intent.what}</p>
        </div>
        <fieldset className="choices" aria-label={t.intent.filter}>
          {(['mine', 'all'] as const).map((choice) => (
            <button
              key={choice}
              type="button"
              aria-pressed={whose === choice}
              onClick={() => void navigate({ search: { whose: choice }, replace: true })}
            >
              {t.intent[choice]}
            </button>
          ))}
        </fieldset>
      </div>
      <Listing
        list={list}
        empty={
          rows.length > 0 ? undefined : (
            <Empty
              next={
                <Link to="/resources" search={{ type: '', region: '', health: '', q: '' }} className="button">
                  {t.intent.see_resources}
                </Link>
              }
            >
              {whose === 'mine' ? t.intent.empty : t.intent.empty_all} {t.intent.how}
            </Empty>
          )
        }
      >
        <DataTable caption={t.intent.caption} columns={COLUMNS} rows={rows} keyOf={({ intent_id }) => intent_id} />
      </Listing>
    </Page>
  )
}

/** Where the intent leads next: its operation, its plan, or a plan that is made at a press. */
const Next = ({ row }: { row: IntentRow }) => {
  const navigate = useNavigate()
  const { busy, problem, send } = usePreview(
    row.intent_id,
    (plan_id) => void navigate({ to: '/plans/$plan_id', params: { plan_id }, search: { tab: 'changes' } }),
  )
  if (row.operation_id !== null)
    return (
      <Link to="/operations/$operation_id/graph" params={{ operation_id: row.operation_id }} data-row="">
        {t.intent.to_operation}
      </Link>
    )
  if (row.latest_plan_id !== null)
    return (
      <Link to="/plans/$plan_id" params={{ plan_id: row.latest_plan_id }} search={{ tab: 'changes' }} data-row="">
        {t.intent.to_plan}
      </Link>
    )
  return (
    <>
      <button type="button" className="button" aria-disabled={busy} onClick={() => send()}>
        {busy ? t.plan.planning : t.intent.make_plan}
      </button>
      {problem ? (
        <div role="alert">
          <ProblemText problem={problem} />
        </div>
      ) : null}
    </>
  )
}

const COLUMNS: Column<IntentRow>[] = [
  { name: t.intent.columns.intent, kind: 'lead', className: 'font-medium wrap-anywhere', cell: ({ title }) => title },
  { name: t.intent.columns.status, cell: ({ status }) => <Status state={status} /> },
  { name: t.intent.columns.kind, cell: ({ kind }) => t.intent.kinds[kind] ?? kind },
  { name: t.intent.columns.targets, kind: 'number', cell: ({ targets }) => targets },
  { name: t.intent.columns.by, cell: ({ requester }) => <Person who={requester} /> },
  {
    name: t.intent.columns.at,
    className: 'whitespace-nowrap',
    cell: ({ created_at }) => <TimeText at={created_at} />,
  },
  { name: t.intent.columns.next, cell: (row) => <Next row={row} /> },
]
