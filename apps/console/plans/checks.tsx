import type { Plan } from '../api/types.ts'
import { Conflicts } from '../values/conflicts.tsx'
import { ShapeIcon } from '../values/status.tsx'
import { AffectedTable } from '../votes/affected.tsx'
import { t } from '../words/index.ts'
import { tPlan } from '../words/plan.ts'

/** The case for and against a plan: risk and its factors, impact, policies, conflicts. */
export const PlanChecks = ({ plan }: { plan: Plan }) => (
  <div className="flex flex-col gap-6">
    <Risk plan={plan} />
    <Impact plan={plan} />
    <Policies plan={plan} />
    <Obstacles plan={plan} />
    {plan.warnings.length > 0 ? (
      <Part title={tPlan.plan.warnings}>
        <ul className="flex flex-col gap-1">
          {plan.warnings.map(({ code, message, values }) => (
            <li key={code + message}>
              <InOwnWords code={code} english={message} values={values} />
            </li>
          ))}
        </ul>
      </Part>
    ) : null}
  </div>
)

const Risk = ({ plan }: { plan: Plan }) => (
  <Part title={tPlan.plan.risk(t.risk[plan.risk.level] ?? plan.risk.level, plan.risk.score)}>
    {plan.risk.factors.length === 0 ? (
      <p className="text-muted">{tPlan.plan.no_factors}</p>
    ) : (
      <ul className="flex flex-col gap-1">
        {plan.risk.factors.map(({ factor, points, detail, values }) => (
          <li key={factor} className="flex gap-3">
            <span className="w-8 shrink-0 text-right tabular-nums">{tPlan.plan.points(points)}</span>
            <span className="min-w-0 wrap-anywhere">
              <InOwnWords code={factor} english={detail} values={values} />
            </span>
          </li>
        ))}
      </ul>
    )}
  </Part>
)

type InOwnWordsProps = { code: string; english: string; values: Record<string, string | number> | undefined }

/** A text of the server in the language of the console, or as it is if the language has none for its code. */
const InOwnWords = ({ code, english, values = {} }: InOwnWordsProps) => {
  const said = tPlan.plan.said(code, values)
  return said === undefined ? <span lang="en">{english}</span> : said
}

const Impact = ({ plan }: { plan: Plan }) => (
  <Part title={tPlan.plan.impact}>
    {plan.impact.affected ? (
      <AffectedTable affected={plan.impact.affected} />
    ) : (
      <p>{tPlan.plan.dependents(plan.impact.dependents_count)}</p>
    )}
    <p className="text-muted">{plan.impact.compensable ? tPlan.plan.compensable : tPlan.plan.not_compensable}</p>
  </Part>
)

const Policies = ({ plan }: { plan: Plan }) => (
  <Part title={tPlan.plan.policies}>
    {plan.policy_results.length === 0 ? (
      <p className="text-muted">{tPlan.plan.no_policies}</p>
    ) : (
      <ul className="flex flex-col gap-2">
        {plan.policy_results.map(({ policy_id, level, result, detail }) => (
          <li key={policy_id} className="flex gap-2">
            <ShapeIcon
              shape={result === 'passed' ? 'check' : level === 'hard' ? 'octagon' : 'diamond'}
              tone={result === 'passed' ? 'ok' : level === 'hard' ? 'bad' : 'wait'}
              beside
            />
            <div className="min-w-0">
              <p>
                <code>{policy_id}</code> {tPlan.plan.results[result] ?? result}{' '}
                <span className="text-muted">({tPlan.plan.levels[level] ?? level})</span>
              </p>
              {result === 'passed' ? null : (
                <p lang="en" className="text-table wrap-anywhere">
                  {detail}
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
    )}
  </Part>
)

const Obstacles = ({ plan }: { plan: Plan }) => (
  <Part title={tPlan.plan.conflicts}>
    {plan.conflicts.length === 0 ? <p className="text-muted">{tPlan.plan.no_conflicts}</p> : null}
    <Conflicts conflicts={plan.conflicts} />
    {plan.windows.length > 0 ? <p>{tPlan.plan.windows(plan.windows)}</p> : null}
  </Part>
)

const Part = ({ title, children }: { title: string; children: React.ReactNode }) => (
  <section className="flex flex-col gap-2">
    <h2 className="font-semibold">{title}</h2>
    {children}
  </section>
)
