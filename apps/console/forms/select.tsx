import { useId } from 'react'
import { Field } from './field.tsx'

type SelectProps = {
  id?: string
  'aria-label'?: string
  choices: readonly (readonly [value: string | number, word: string])[]
  value: string | number | undefined
  change: (value: string) => void
  className?: string
}

/** A select whose choices are values with labels. */
export const Select = ({ choices, value, change, className = '', ...control }: SelectProps) => (
  <select {...control} className={`input ${className}`} value={value} onChange={(event) => change(event.target.value)}>
    {choices.map(([choice, word]) => (
      <option key={choice} value={choice}>
        {word}
      </option>
    ))}
  </select>
)

/** A select beside its label, as used to filter a list. */
export const Filter = ({ label, ...select }: { label: string } & Omit<Parameters<typeof Select>[0], 'id'>) => {
  const id = useId()
  return (
    <div className="flex flex-wrap items-center gap-2">
      <label htmlFor={id}>{label}</label>
      <Select id={id} {...select} className="max-w-full" />
    </div>
  )
}

/** A select under its label. */
export const SelectField = ({ label, ...select }: { label: string } & Omit<Parameters<typeof Select>[0], 'id'>) => {
  const id = useId()
  return (
    <Field id={id} label={label}>
      <Select id={id} {...select} />
    </Field>
  )
}
