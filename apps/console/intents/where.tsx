import { Choices } from '../forms/choices.tsx'
import { TextField } from '../forms/field.tsx'
import { Conditions } from '../values/conditions.tsx'
import { tPlan } from '../words/plan.ts'
import type { Typed } from './draft.ts'

const words = tPlan.intent.where

/** Selects resources by name or by conditions, which write an expression that can be edited. */
export const Where = ({ typed, change }: { typed: Typed; change: (part: Partial<Typed>) => void }) => {
  return (
    <>
      <Choices
        label={words.title}
        choices={{ conditions: words.conditions, names: words.names }}
        chosen={typed.picked ? 'names' : 'conditions'}
        choose={(choice) => change({ picked: choice === 'names' })}
      />
      {typed.picked ? (
        <TextField
          label={tPlan.intent.targets}
          note={tPlan.intent.targets_note}
          className="input mono"
          value={typed.ids}
          change={(ids) => change({ ids })}
        />
      ) : (
        <Conditions chips={typed.chips} when={typed.when} change={change} />
      )}
    </>
  )
}
