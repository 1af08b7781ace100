import { useId, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { Field } from '../forms/field.tsx'
import { Select } from '../forms/select.tsx'
import { tPlan } from '../words/plan.ts'

/** A condition that targets meet. */
export type Chip = { field: string; is: string }
const FIELDS = ['region', 'datacenter', 'health', 'label', 'name'] as const
const words = tPlan.intent.where

type ConditionsProps = {
  chips: Chip[]
  when: string
  note?: string
  change: (part: { chips: Chip[]; when: string }) => void
}

/** Conditions on resources, which write an expression (CEL) that can be edited. */
export const Conditions = ({ chips, when, note = words.expression_note, change }: ConditionsProps) => {
  const id = useId()
  const setChips = (chips: Chip[]) => change({ chips, when: celOf(chips) })
  return (
    <>
      <AddChip add={(chip) => change(withCondition(chips, when, chip))} />
      {chips.length > 0 ? (
        <ul className="flex flex-wrap gap-2" aria-label={words.conditions}>
          {chips.map((chip, at) => (
            <li key={`${chip.field} ${chip.is}`}>
              <Button
                aria-label={words.remove(`${words.fields[chip.field]} ${chip.is}`)}
                onClick={() => setChips(chips.filter((_, index) => index !== at))}
              >
                {words.fields[chip.field]} <bdi>{chip.is}</bdi> <span aria-hidden="true">×</span>
              </Button>
            </li>
          ))}
        </ul>
      ) : null}
      <Field id={`${id}-when`} label={words.expression} note={note}>
        <textarea
          id={`${id}-when`}
          className="input mono"
          rows={2}
          spellCheck={false}
          maxLength={2048}
          value={when}
          onChange={(event) => change({ when: event.target.value, chips: [] })}
          aria-describedby={`${id}-when-note`}
        />
      </Field>
    </>
  )
}

const SCOPES: Record<string, string> = {
  region: 'target.scope.region_id',
  datacenter: 'target.scope.datacenter_id',
  health: 'target.health_status',
}
/** Adds a condition. Typed text has no chips: it stays, and the condition narrows it. */
export const withCondition = (chips: readonly Chip[], when: string, chip: Chip): { chips: Chip[]; when: string } =>
  chips.length === 0 && when.trim() !== ''
    ? { chips: [], when: `(${when.trim()}) && ${celOf([chip])}` }
    : { chips: [...chips, chip], when: celOf([...chips, chip]) }

/** The expression for the chips. Chips of one field are alternatives; a label is KEY=VALUE. */
const celOf = (chips: readonly Chip[]): string =>
  [...Map.groupBy(chips, ({ field }) => field)]
    .map(([field, alike]) => {
      const tests = alike.map(({ is }) => testOf(field, is))
      return tests.length === 1 ? tests[0] : `(${tests.join(' || ')})`
    })
    .join(' && ')
const testOf = (field: string, is: string): string => {
  if (field === 'name') return `target.name.contains(${JSON.stringify(is)})`
  if (field !== 'label') return `${SCOPES[field]} == ${JSON.stringify(is)}`
  const [key = '', ...rest] = is.split('=')
  const [name, value] = [JSON.stringify(key), JSON.stringify(rest.join('='))]
  return `(${name} in target.labels && target.labels[${name}] == ${value})`
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
        className="input min-w-0 flex-1 basis-24"
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
      <Button onClick={press} word={words.add} />
    </div>
  )
}
