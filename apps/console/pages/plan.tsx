import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import { duration } from '../api/format.ts'
import { planQuery } from '../api/queries.ts'
import type { Plan } from '../api/types.ts'
import { t } from '../i18n/index.ts'
import { ActionButton, actionOf } from '../parts/allowed-action.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { ChangeList } from '../parts/diff-view.tsx'
import { Failure } from '../parts/failure.tsx'
import { Heading, Loading, Page } from '../parts/page.tsx'
import { ShapeIcon, Status } from '../parts/status.tsx'
import { ruleWords } from '../parts/votes.tsx'

const CommandDialog = lazy(() =>
  import('../parts/command-dialog.tsx').then((part) => ({ default: part.CommandDialog })),
)
const TABS = ['changes', 'gates', 'checks'] as const

/** One plan: what would change, who will be asked, what the policies say. */
export const PlanPage = () => {
  const { plan_id } = useParams({ from: '/shell/plans/$plan_id' })
  const { tab } = useSearch({ from: '/shell/plans/$plan_id' })
  const { data: plan, error, isPending, refetch } = useQuery(planQuery(plan_id))
  if (plan === undefined) {
    return (
      <Page>
        <Heading title={t.plan.title}>{t.plan.title}</Heading>
        {isPending ? <Loading /> : <Failure error={error} retry={() => void refetch()} noun={t.noun.plan} />}
      </Page>
    )
  }
  return (
    <Page>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="flex min-w-0 flex-col gap-1">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Heading title={plan.title}>{plan.title}</Heading>
            <Status state={plan.status} badge />
          </div>
          <p>
            {t.change_counts(plan.counts)}
            {plan.status_reason ? `. ${plan.status_reason}` : '.'}
          </p>
        </div>
        <Next plan={plan} />
      </div>
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1 text-table text-muted">
        <span className="flex items-center gap-1">
          {t.plan.digest} <code>{shortDigest(plan.plan_hash)} …</code> <CopyButton text={plan.plan_hash} />
        </span>
        <span>{t.graph.nodes(plan.counts.nodes ?? 0)}</span>
        <span>
          {t.inbox.risk}: {t.risk[plan.risk.level] ?? plan.risk.level}
        </span>
        <span>
          {t.plan.time}: {expected(plan)}
        </span>
      </div>
      <nav className="tabs" aria-label={t.plan.tabs_label}>
        {TABS.map((choice) => (
          <Link
            key={choice}
            to="/plans/$plan_id"
            params={{ plan_id }}
            search={{ tab: choice }}
            aria-current={choice === tab ? 'page' : undefined}
          >
            {t.plan.tabs[choice]}
          </Link>
        ))}
      </nav>
      <div className="card p-4">
        {tab === 'changes' ? (
          plan.diff.length === 0 ? (
            <p className="text-muted">{t.gate.no_changes}</p>
          ) : (
            <ChangeList
              changes={plan.diff}
              names={new Map(plan.diff.map((change) => [change.resource_id, change.name]))}
            />
          )
        ) : null}
        {tab === 'gates' ? <Gates plan={plan} /> : null}
        {tab === 'checks' ? <Checks plan={plan} /> : null}
      </div>
    </Page>
  )
}

const expected = ({ estimates }: Plan): string => {
  const [low, high] = [duration(estimates.p50_s * 1000), duration(estimates.p90_s * 1000)]
  return low === high ? low : t.plan.range(low, high)
}

const Next = ({ plan }: { plan: Plan }) => {
  const [open, setOpen] = useState(false)
  const client = useQueryClient()
  const navigate = useNavigate()
  if (plan.operation_id !== null) {
    return (
      <Link to="/operations/$operation_id/graph" params={{ operation_id: plan.operation_id }} className="button main">
        {t.plan.operation}
      </Link>
    )
  }
  return (
    <>
      <ActionButton action={actionOf(plan, 'start')} press={() => setOpen(true)} main>
        {t.plan.start}
      </ActionButton>
      {open ? (
        <Suspense fallback={null}>
          <CommandDialog
            title={t.command.start.title}
            button={t.command.start.button}
            command={{
              path: `/v1/plans/${encodeURIComponent(plan.plan_id)}/start`,
              body: { reviewed_plan_hash: plan.plan_hash },
            }}
            text={{ name: 'comment', label: t.gate.comment_optional, needed: false, missing: '' }}
            consequences={(effect) => <StartEffect effect={effect as StartPreview} />}
            done={(reply) => {
              void client.invalidateQueries({ queryKey: ['plan', plan.plan_id] })
              const { operation_id } = reply as { operation_id?: string }
              if (operation_id) void navigate({ to: '/operations/$operation_id/graph', params: { operation_id } })
            }}
            close={() => setOpen(false)}
          />
        </Suspense>
      ) : null}
    </>
  )
}

type StartPreview = {
  conflicts?: { message?: string }[]
  first_nodes?: unknown[]
  first_gate?: { question?: string } | null
}

const StartEffect = ({ effect }: { effect: StartPreview }) => (
  <>
    <p>
      {t.command.start.first(effect.first_nodes?.map((node) => String((node as { name?: string }).name ?? node)) ?? [])}
    </p>
    {effect.first_gate?.question ? <p>{t.command.start.gate(effect.first_gate.question)}</p> : null}
    {effect.conflicts?.map((conflict) => (
      <p key={conflict.message} className="text-wait">
        {conflict.message}
      </p>
    ))}
  </>
)

const Gates = ({ plan }: { plan: Plan }) =>
  plan.gates.length === 0 ? (
    <p className="text-muted">{t.plan.no_gates}</p>
  ) : (
    <ul className="flex flex-col gap-3">
      {plan.gates.map((gate) => (
        <li key={gate.gate_id} className="flex gap-2">
          <span className="mt-0.5">
            <ShapeIcon shape="diamond" tone="wait" />
          </span>
          <div>
            <p className="font-medium">{gate.question}</p>
            <p className="text-muted">
              {ruleWords(gate)}. {t.gate.releases(gate.guards.length)}.
            </p>
          </div>
        </li>
      ))}
    </ul>
  )

const Checks = ({ plan }: { plan: Plan }) => (
  <ul className="flex flex-col gap-2">
    {plan.policy_results.length + plan.warnings.length + plan.conflicts.length === 0 ? (
      <li className="text-muted">{t.plan.no_checks}</li>
    ) : null}
    {plan.policy_results.map(({ policy_id, level, result }) => (
      <li key={policy_id}>
        <code>{policy_id}</code> ({level}): {result}
      </li>
    ))}
    {plan.conflicts.map(({ kind, id, message }) => (
      <li key={`${kind} ${id}`}>
        {t.plan.conflicts}: {message}
      </li>
    ))}
    {plan.warnings.map(({ code, message }) => (
      <li key={code}>
        {t.plan.warnings}: {message}
      </li>
    ))}
  </ul>
)
