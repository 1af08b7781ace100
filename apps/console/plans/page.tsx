import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import { usePreview } from '../api/preview.ts'
import type { Plan } from '../api/types.ts'
import { ActionButton, actionOf, mayPress, WhyNot } from '../command/allowed.tsx'
import { duration } from '../kit/format.ts'
import { useWishes } from '../kit/wish.ts'
import { planQuery } from '../queries/changes.ts'
import { CopyButton } from '../ui/copy.tsx'
import { isGone, Refused, readOf, UnreadPage } from '../ui/failure.tsx'
import { lazyPart } from '../ui/lazy.ts'
import { Heading, Page } from '../ui/page.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { ChangeList } from '../values/diff.tsx'
import { OperationLink, ResourceLink } from '../values/links.tsx'
import { ShapeIcon, Status } from '../values/status.tsx'
import { ruleWords } from '../votes/votes.tsx'
import { tDecide } from '../words/decide.ts'
import { t } from '../words/index.ts'
import { tOperation } from '../words/operation.ts'
import { tPlan } from '../words/plan.ts'
import { PlanChecks } from './checks.tsx'
import { PlanGraph } from './graph.tsx'
import { PlanRehearsal } from './rehearsal.tsx'

const StartDialog = lazyPart(() => import('./start.tsx').then((part) => ({ default: part.StartDialog })))
const TABS = ['changes', 'graph', 'gates', 'checks', 'rehearsal'] as const

const PLAN_AGES_MS = 5000
/** Statuses of plans that change no more. */
const ENDED: ReadonlySet<string> = new Set(['expired', 'superseded'])

/** One plan: its changes, its graph, its gates, its checks, its rehearsal. */
export const PlanPage = () => {
  const { plan_id } = useParams({ from: '/shell/plans/$plan_id' })
  const { tab } = useSearch({ from: '/shell/plans/$plan_id' })
  const query = useQuery({
    ...planQuery(plan_id),
    // No frame reports a plan.
    refetchInterval: ({ state: { data, error } }) =>
      data?.operation_id || ENDED.has(data?.status ?? '') || isGone(error) ? false : PLAN_AGES_MS,
  })
  const plan = readOf(query)
  const navigate = useNavigate()
  if (plan === undefined) return <UnreadPage title={tPlan.plan.title} query={query} noun="plan" />
  return (
    <Page>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div className="flex min-w-0 flex-col gap-1">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Heading title={plan.title}>{plan.title}</Heading>
            <Status state={plan.status} badge />
          </div>
          <p>
            {t.change_counts(plan.counts)}. {tPlan.plan.status[plan.status] ?? plan.status_reason}
          </p>
          <Moved plan={plan} />
        </div>
        <Next plan={plan} />
      </div>
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1 text-table text-muted">
        <span className="flex items-center gap-1">
          {tPlan.plan.digest} <code>{shortDigest(plan.plan_hash)} …</code> <CopyButton text={plan.plan_hash} />
        </span>
        <span>{tOperation.graph.nodes(plan.counts.nodes ?? 0)}</span>
        <span>
          {tDecide.inbox.risk}: {t.risk[plan.risk.level] ?? plan.risk.level}
        </span>
        <span>
          {tPlan.plan.time}: {expected(plan)}
        </span>
      </div>
      <Tabs label={tPlan.plan.tabs_label}>
        {TABS.map((choice) => (
          <Link
            key={choice}
            to="/plans/$plan_id"
            params={{ plan_id }}
            search={{ tab: choice }}
            aria-current={choice === tab ? 'page' : undefined}
          >
            {tPlan.plan.tabs[choice]}
          </Link>
        ))}
      </Tabs>
      <div className="card p-4">
        {tab === 'changes' ? <Changes plan={plan} /> : null}
        {tab === 'graph' ? <PlanGraph plan={plan} /> : null}
        {tab === 'gates' ? <Gates plan={plan} /> : null}
        {tab === 'checks' ? <PlanChecks plan={plan} /> : null}
        {tab === 'rehearsal' ? (
          <PlanRehearsal
            plan={plan}
            done={(next) =>
              void navigate({ to: '/plans/$plan_id', params: { plan_id: next }, search: { tab: 'rehearsal' } })
            }
          />
        ) : null}
      </div>
    </Page>
  )
}

const Changes = ({ plan }: { plan: Plan }) =>
  plan.diff.length === 0 ? (
    <p className="text-muted">{tDecide.gate.no_changes}</p>
  ) : (
    <>
      <ChangeList changes={plan.diff} names={new Map(plan.diff.map((change) => [change.resource_id, change.name]))} />
      {plan.diff_next === null ? null : <p className="text-muted">{tPlan.plan.more_changes(plan.diff.length)}</p>}
    </>
  )

/** Statuses of plans that cannot be started, only previewed again. */
const AGAIN: ReadonlySet<string> = new Set(['stale', 'expired', 'superseded'])

/** Resources that changed in the catalog after the plan was made, until its own operation changes them. */
const Moved = ({ plan }: { plan: Plan }) =>
  plan.pins_moved.length === 0 || plan.operation_id !== null ? null : (
    <details className="text-table">
      <summary>
        {tPlan.plan.moved_title} ({plan.pins_moved.length})
      </summary>
      <ul className="py-1">
        {plan.pins_moved.map(({ resource_id, planned, current }) => (
          <li key={resource_id}>
            <ResourceLink id={resource_id} data-row="">
              {tPlan.plan.moved(resource_id, planned, current)}
            </ResourceLink>
          </li>
        ))}
      </ul>
    </details>
  )

const expected = ({ estimates }: Plan): string => {
  const [low, high] = [duration(estimates.p50_s * 1000), duration(estimates.p90_s * 1000)]
  return low === high ? low : tPlan.plan.range(low, high)
}

const Next = ({ plan }: { plan: Plan }) => {
  const [open, setOpen] = useState(false)
  const navigate = useNavigate()
  const preview = usePreview(
    plan.intent_id,
    (plan_id) => void navigate({ to: '/plans/$plan_id', params: { plan_id }, search: { tab: 'changes' } }),
  )
  const action = actionOf(plan, 'preview')
  const again = preview.busy ? tPlan.plan.planning : tPlan.plan.again
  useWishes(plan.plan_id, (what) => {
    const may = mayPress(actionOf(plan, what))
    if (may && what === 'start') setOpen(true)
    if (may && what === 'preview') preview.send()
    return may
  })
  if (plan.operation_id !== null) {
    return (
      <OperationLink id={plan.operation_id} className="button main">
        {tPlan.plan.operation}
      </OperationLink>
    )
  }
  if (AGAIN.has(plan.status) || plan.superseded_by !== null) {
    return (
      <div className="flex max-w-96 flex-wrap gap-2 lg:justify-end">
        {plan.superseded_by === null ? (
          <>
            <ActionButton action={action} press={() => preview.send()} main>
              {again}
            </ActionButton>
            <WhyNot actions={[action]} />
          </>
        ) : (
          <Link
            to="/plans/$plan_id"
            params={{ plan_id: plan.superseded_by }}
            search={{ tab: 'changes' }}
            className="button main"
          >
            {tPlan.plan.newer}
          </Link>
        )}
        <Refused problem={preview.problem} />
      </div>
    )
  }
  // A policy may have changed since it forbade this plan.
  const blocked = plan.status === 'blocked_by_policy'
  return (
    <>
      <ActionButton action={actionOf(plan, 'start')} press={() => setOpen(true)} main>
        {tPlan.plan.start}
      </ActionButton>
      {blocked ? (
        <ActionButton action={action} press={() => preview.send()}>
          {again}
        </ActionButton>
      ) : null}
      <Refused problem={preview.problem} />
      <WhyNot actions={[actionOf(plan, 'start'), blocked ? action : undefined]} />
      {open ? (
        <Suspense fallback={null}>
          <StartDialog plan={plan} close={() => setOpen(false)} />
        </Suspense>
      ) : null}
    </>
  )
}

const Gates = ({ plan }: { plan: Plan }) =>
  plan.gates.length === 0 ? (
    <p className="text-muted">{tPlan.plan.no_gates}</p>
  ) : (
    <ul className="flex flex-col gap-3">
      {plan.gates.map((gate) => (
        <li key={gate.gate_id} className="flex gap-2">
          <ShapeIcon shape="diamond" tone="wait" beside />
          <div>
            <p className="font-medium">{gate.question}</p>
            <p className="text-muted">{tPlan.plan.rule(ruleWords(gate), tDecide.gate.releases(gate.guards.length))}</p>
            <p className="text-muted">
              {tPlan.plan.who(gate.who)} {gate.can_i ? tPlan.plan.can_i : tPlan.plan.cannot_i}
            </p>
          </div>
        </li>
      ))}
    </ul>
  )
