import type { Gate } from '../api/types.ts'
import { Conflicts } from '../values/conflicts.tsx'
import { AffectedTable } from '../votes/affected.tsx'
import { tDecide } from '../words/decide.ts'
import { Fold } from './subject.tsx'

const SHOWN = 20

/** The rest of the context of a gate, folded: dependents, policies, other operations, the evidence so far. */
export const GateContextView = ({ gate: { context } }: { gate: Gate }) => (
  <Fold title={tDecide.gate.context}>
    {context.affected ? (
      <Part title={tDecide.gate.dependents} show>
        <AffectedTable affected={context.affected} />
      </Part>
    ) : null}
    <Part title={tDecide.gate.policies} show={context.policy_results.length > 0}>
      <ul className="flex flex-col gap-1">
        {context.policy_results.map(({ policy_id, level, result }) => (
          <li key={policy_id}>
            <code>{policy_id}</code>{' '}
            <span lang="en">
              ({level}): {result}
            </span>
          </li>
        ))}
      </ul>
    </Part>
    <Part title={tDecide.gate.conflicts} show={context.conflicts.length > 0}>
      <Conflicts conflicts={context.conflicts} />
    </Part>
    <Part title={tDecide.gate.evidence} show={context.evidence.length > 0}>
      <ul className="flex flex-col gap-1">
        {context.evidence.slice(-SHOWN).map(({ seq, kind, statement }) => (
          <li key={seq} className="flex gap-2">
            <span className="w-8 shrink-0 text-right text-muted tabular-nums">{seq}</span>
            <span className="min-w-0 wrap-anywhere">
              <span className="text-muted">{tDecide.gate.evidence_kind(kind)}:</span> <span lang="en">{statement}</span>
            </span>
          </li>
        ))}
      </ul>
    </Part>
  </Fold>
)

const Part = ({ title, show, children }: { title: string; show: boolean; children: React.ReactNode }) =>
  show ? (
    <section className="flex flex-col gap-1">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  ) : null
