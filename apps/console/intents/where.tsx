import { useId, useState } from 'react'
import { Choices } from '../forms/choices.tsx'
import { Field } from '../forms/field.tsx'
import { Select } from '../forms/select.tsx'
import { tPlan } from '../words/plan.ts'
import { type Chip, celOf, type Typed } from './draft.ts'

const FIELDS = ['region', 'datacenter', 'health', 'label', 'name'] as const
const words = tPlan.intent.where

/** Which resources: by conditions, which write an expression that can be edited, or by name. */
export const Where = ({ typed, change }: { typed: Typed; change: (part: Partial<Typed>) => void }) => {
  const id = useId()
  const setChips = (chips: Chip[]) => change({ chips, when: celOf(chips) })
  return (
    <>
      <Choices
        label={words.title}
        choices={{ conditions: words.conditions, names: words.names }}
        chosen={typed.picked ? 'names' : 'conditions'}
        choose={(choice) => change({ picked: choice === 'names' })}
      />
      {typed.picked ? (
        <Field id={`${id}-ids`} label={tPlan.intent.targets} note={tPlan.intent.targets_note}>
          <input
            id={`${id}-ids`}
            className="input mono"
            value={typed.ids}
            onChange={(event) => change({ ids: event.target.value })}
            aria-describedby={`${id}-ids-note`}
          />
        </Field>
      ) : (
        <>
          <AddChip add={(chip) => setChips([...typed.chips, chip])} />
          {typed.chips.length > 0 ? (
            <ul className="flex flex-wrap gap-2" aria-label={words.conditions}>
              {typed.chips.map((chip, at) => (
                <li key={`${chip.field} ${chip.is}`}>
                  <button
                    type="button"
                    className="button"
                    aria-label={words.remove(`${words.fields[chip.field]} ${chip.is}`)}
                    onClick={() => setChips(typed.chips.filter((_, index) => index !== at))}
                  >
                    {words.fields[chip.field]} <bdi>{chip.is}</bdi> <span aria-hidden="true">×</span>
                  </button>
                </li>
              ))}
            </ul>
          ) : null}
          <Field id={`${id}-when`} label={words.expression} note={words.expression_note}>
            <textarea
              id={`${id}-when`}
              className="input mono"
              rows={2}
              spellCheck={false}
              maxLength={2048}
              value={typed.when}
              onChange={(event) => change({ when: event.target.value, chips: [] })}
              aria-describedby={`${id}-when-note`}
            />
          </Field>
        </>
      )}
    </>
  )
}

const AddChip = ({ add }: { add: (chip: Chip) => void }) => {
  const [field, setField] = useState<string>('region')
  const [is, setIs] = useState('')
  const press = () => {
    if (is.trim() === '') return
    add({ field, is: is.trim() })
    setIs('')
  }
  return (
    <div className="flex flex-wrap gap-2">
      <Select
        aria-label={words.field}
        className="w-auto!"
        choices={FIELDS.map((one) => [one, words.fields[one] ?? one] as const)}
        value={field}
        change={setField}
      />
      <input
        className="input min-w-0 flex-1"
        aria-label={words.value}
        placeholder={words.examples[field]}
        maxLength={200}
        value={is}
        onChange={(event) => setIs(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          event.preventDefault()
          press()
        }}
      />
      <button type="button" className="button" onClick={press}>
        {words.add}
      </button>
    </div>
  )
}
