import { useQuery } from '@tanstack/react-query'
import { Choices } from '../forms/choices.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { typesQuery } from '../queries/resources.ts'
import { Conditions } from '../values/conditions.tsx'
import { tPlan } from '../words/plan.ts'
import type { Typed, What } from './draft.ts'

const words = tPlan.intent.where

type WhereProps = { what: What; typed: Typed; change: (part: Partial<Typed>) => void }
/** Selects resources by name or by conditions, which write an expression that can be edited. */
export const Where = ({ what, typed, change }: WhereProps) => {
  const asks = what.type === '' && !typed.picked
  const types = useQuery({ ...typesQuery(), enabled: asks }).data?.items.map(({ type_key }) => type_key) ?? []
  return (
    <>
      <Choices
        label={words.title}
        choices={{ conditions: words.conditions, names: words.names }}
        chosen={typed.picked ? 'names' : 'conditions'}
        choose={(choice) => change({ picked: choice === 'names' })}
      />
      {asks ? (
        <SelectField
          label={words.type}
          choices={['', ...new Set([typed.of, ...types.sort()].filter(Boolean))].map((type) => [type, type] as const)}
          value={typed.of}
          change={(of) => change({ of })}
        />
      ) : null}
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
