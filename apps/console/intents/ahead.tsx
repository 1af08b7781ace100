import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { Problem } from '../../shared/contracts/client/problem.ts'
import { ProblemError, problemOf } from '../api/client.ts'
import { dryRun } from '../api/commands.ts'
import type { Plan } from '../api/types.ts'
import { duration } from '../kit/format.ts'
import { useRested } from '../kit/rested.ts'
import { rowsOf } from '../queries/pages.ts'
import { resourcesQuery } from '../queries/resources.ts'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { ChangeList } from '../values/diff.tsx'
import { Facts } from '../values/facts.tsx'
import { ruleWords } from '../votes/votes.tsx'
import { t } from '../words/index.ts'
import { tPlan } from '../words/plan.ts'

type Refused = { refused: Pick<Problem, 'detail' | 'code' | 'violations'> }
type Planned = Pick<Plan, 'counts' | 'risk' | 'estimates' | 'diff' | 'gates' | 'conflicts'>
type Effect = { targets_resolved: { resource_id: string; name: string }[]; plan: Refused | Planned }

/** The effect of the intent, from the server's dry run after each pause in typing; `updating`: it is of an earlier text. */
export const useAhead = (body: Record<string, unknown>, ready: boolean) => {
  const now = JSON.stringify(ready ? { ...body, title: '-', reason: '-' } : null)
  const text = useRested(now)
  const ahead = useQuery({
    queryKey: ['intent-ahead', text],
    enabled: text !== 'null',
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const outcome = await dryRun<Effect>({ path: '/v1/intents', body: { ...JSON.parse(text), preview: true } })
      if ('problem' in outcome) throw new ProblemError(outcome.problem)
      return outcome.effect
    },
  })
  return { ...ahead, updating: text !== now || ahead.isPlaceholderData }
}

type AheadProps = {
  ahead: ReturnType<typeof useAhead>
  unready: string[]
  type: string
  picked: boolean
  /** The targets of last time, if an operation is run again. */
  before: string[] | undefined
}

/** The preview beside the form: targets, changes, gates, risk and time. */
export const Ahead = ({ ahead, unready, type, picked, before }: AheadProps) => (
  <section className="card flex flex-col gap-3 p-4 lg:sticky lg:top-4" aria-labelledby="ahead">
    <h2 id="ahead" className="card-title">
      {tPlan.intent.ahead.title}
    </h2>
    <div aria-live="polite" className="flex flex-col gap-3">
      {unready.length === 0 && ahead.updating && !ahead.isPending ? (
        <p className="text-muted">{tPlan.intent.ahead.updating}</p>
      ) : null}
      {unready.length > 0 ? (
        <p className="text-muted">{unready[0]}</p>
      ) : ahead.isError ? (
        <Fault error={ahead.error} />
      ) : ahead.data === undefined ? (
        <p className="text-muted">{tPlan.intent.ahead.asking}</p>
      ) : (
        <>
          <Targets targets={ahead.data.targets_resolved} type={picked ? '' : type} />
          {before ? <Compared targets={ahead.data.targets_resolved} before={before} /> : null}
          {'refused' in ahead.data.plan ? <NoPlan {...ahead.data.plan} /> : <Planned plan={ahead.data.plan} />}
        </>
      )}
    </div>
  </section>
)

/** A refusal of the intent is about the form; any other fault is about the request. */
const Fault = ({ error }: { error: unknown }) => {
  const problem = problemOf(error)
  return [400, 409, 422].includes(problem.status) ? <Refusal refused={problem} /> : <Failure error={error} />
}

/** An intent with too many targets is refused earlier, so here only the preview is too large. */
const NoPlan = ({ refused }: Refused) =>
  refused.code === 'too_many_targets' ? (
    <p className="text-muted">{tPlan.intent.ahead.too_large}</p>
  ) : (
    <Refusal refused={refused} />
  )

const Refusal = ({ refused }: Refused) => (
  <div className="text-bad">
    <ProblemText problem={refused} />
  </div>
)

/** The targets, and the resources of the type that are not among them. */
const Targets = ({ targets, type }: { targets: Effect['targets_resolved']; type: string }) => {
  const all = useInfiniteQuery({ ...resourcesQuery({ type }), enabled: type !== '' })
  const chosen = new Set(targets.map(({ resource_id }) => resource_id))
  const rest = type === '' ? [] : rowsOf(all).filter(({ resource_id }) => !chosen.has(resource_id))
  return (
    <>
      <Names title={tPlan.intent.ahead.targets(targets.length)} names={targets.map(({ name }) => name)} />
      {rest.length > 0 ? (
        <Names title={tPlan.intent.ahead.left_out(rest.length, all.hasNextPage)} names={rest.map(({ name }) => name)} />
      ) : null}
    </>
  )
}

const Compared = ({ targets, before }: { targets: Effect['targets_resolved']; before: string[] }) => {
  const now = new Set(targets.map(({ resource_id }) => resource_id))
  const kept = before.filter((resource_id) => now.has(resource_id)).length
  return <p className="text-muted">{tPlan.intent.again.compared(now.size - kept, before.length - kept)}</p>
}

const Names = ({ title, names }: { title: string; names: string[] }) => (
  <details>
    <summary>{title}</summary>
    <ul className="max-h-60 overflow-auto py-1 text-table">
      {names.map((name) => (
        <li key={name}>
          <bdi>{name}</bdi>
        </li>
      ))}
    </ul>
  </details>
)

const Planned = ({ plan }: { plan: Planned }) => (
  <>
    {plan.diff.some(({ change }) => change !== 'unknown') ? (
      <details>
        <summary>{t.change_counts(plan.counts)}</summary>
        <ChangeList
          changes={plan.diff as Plan['diff']}
          names={new Map(plan.diff.map((one) => [one.resource_id, one.name]))}
        />
      </details>
    ) : null}
    <Facts
      facts={[
        [
          tPlan.plan.tabs.gates,
          plan.gates.length === 0
            ? tPlan.plan.no_gates
            : plan.gates.map((gate) => (
                <p key={gate.gate_id}>
                  {gate.question} <span className="text-muted">{ruleWords(gate)}</span>
                </p>
              )),
        ],
        [
          tPlan.plan.conflicts,
          plan.conflicts.length > 0 &&
            plan.conflicts.map(({ kind, id, resource_id, message }) => (
              <p key={`${kind} ${id} ${resource_id}`} lang="en" className="wrap-anywhere">
                {message}
              </p>
            )),
        ],
        [tPlan.intent.ahead.risk, t.risk[plan.risk.level] ?? plan.risk.level],
        [
          tPlan.plan.time,
          tPlan.plan.range(duration(plan.estimates.p50_s * 1000), duration(plan.estimates.p90_s * 1000)),
        ],
      ]}
    />
  </>
)
