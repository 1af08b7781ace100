import type { Problem } from '../../shared/contracts/client/problem.ts'
import { TextField } from '../forms/field.tsx'
import { JsonField } from '../forms/json.tsx'
import { SelectField } from '../forms/select.tsx'
import { HERE } from '../kit/format.ts'
import { ProblemText } from '../ui/failure.tsx'
import { t } from '../words/index.ts'
import { tCommand } from '../words/operations/command.ts'
import { tPlan } from '../words/plan.ts'
import type { Typed } from './draft.ts'

export const Part = ({ title, children }: { title: string; children: React.ReactNode }) => (
  <fieldset className="card flex min-w-0 flex-col gap-4 p-4">
    <legend className="sr-only">{title}</legend>
    <h2 className="card-title">{title}</h2>
    {children}
  </fieldset>
)

/** When the intent may run, and how far it may go. */
export const Limits = ({ limits, change }: { limits: Typed['limits']; change: (limits: Typed['limits']) => void }) => {
  const words = tPlan.intent.limits
  const set = (name: string) => (value: string) => change({ ...limits, [name]: value })
  return (
    <details>
      <summary>{words.title}</summary>
      <div className="grid gap-4 pt-2 sm:grid-cols-2">
        <Text label={words.window} value={limits.window_id ?? ''} change={set('window_id')} />
        <Text
          label={words.not_before(HERE)}
          value={limits.not_before ?? ''}
          change={set('not_before')}
          type="datetime-local"
        />
        <Text label={words.deadline} value={limits.deadline ?? ''} change={set('deadline')} type="number" />
        <Text label={words.parallel} value={limits.max_parallel ?? ''} change={set('max_parallel')} type="number" />
        {(['wave', 'canary', 'failure_budget'] as const).map((name) => (
          <Text key={name} label={words[name]} value={limits[name] ?? ''} change={set(name)} type="number" />
        ))}
        <SelectField
          label={words.risk}
          choices={[['', words.any], ...['low', 'medium', 'high'].map((one) => [one, t.risk[one] ?? one] as const)]}
          value={limits.risk_ceiling ?? ''}
          change={set('risk_ceiling')}
        />
      </div>
    </details>
  )
}

/** Why the intent cannot be sent, or why the server refused it. */
type SummaryProps = { faults: string[]; made: boolean; problem: Problem | null; frozen: boolean }
export const Summary = ({ faults, made, problem, frozen }: SummaryProps) =>
  faults.length === 0 && problem === null ? null : (
    <div className="card flex flex-col gap-1 p-4">
      <p className="font-medium">
        {frozen ? tCommand.unknown : faults.length === 0 && made ? tPlan.intent.made : tPlan.intent.summary}
      </p>
      {faults.length > 0 ? (
        <ul className="text-bad">
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      ) : problem ? (
        <ProblemText problem={problem} />
      ) : null}
    </div>
  )

type TextProps = { label: string; value: string; change: (text: string) => void; type?: string; placeholder?: string }
export const Text = (props: TextProps) => <TextField type="text" maxLength={2000} {...props} />

export const Json = (props: Pick<TextProps, 'label' | 'value' | 'change'>) => (
  <div className="mt-2">
    <JsonField {...props} />
  </div>
)
