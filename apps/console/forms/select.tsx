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

type CheckProps = { on: boolean; change: (on: boolean) => void; className?: string; children: React.ReactNode }

/** A checkbox before its words. */
export const Check = ({ on, change, className = 'items-center', children }: CheckProps) => (
  <label className={`flex gap-2 ${className}`}>
    <input type="checkbox" checked={on} onChange={({ target }) => change(target.checked)} />
    <span>{children}</span>
  </label>
)

type ListProps<T> = {
  label: string
  choices: readonly (readonly [value: T, word: React.ReactNode])[]
  className?: string
}

/** Any number of choices, kept in the order of the list. */
export const Checks = <T extends string>({
  label,
  choices,
  className = '',
  chosen,
  change,
}: ListProps<T> & { chosen: readonly string[]; change: (chosen: T[]) => void }) => (
  <fieldset className={className}>
    <legend className="label">{label}</legend>
    <div className="grid grid-cols-[repeat(auto-fill,minmax(min(14rem,100%),1fr))] gap-x-4">
      {choices.map(([value, word]) => (
        <Check
          key={value}
          className="min-h-8 items-center"
          on={chosen.includes(value)}
          change={(on) =>
            change(choices.flatMap(([one]) => ((one === value ? on : chosen.includes(one)) ? [one] : [])))
          }
        >
          {word}
        </Check>
      ))}
    </div>
  </fieldset>
)

type RadiosProps<T> = ListProps<T> & {
  value: T | null | undefined
  change: (value: T) => void
  isOff?: (value: T) => boolean
}

/** One of a few choices. */
export const Radios = <T extends string>({
  label,
  choices,
  className = 'flex-col',
  value,
  change,
  isOff,
}: RadiosProps<T>) => {
  const name = useId()
  return (
    <fieldset>
      <legend className="label">{label}</legend>
      <div className={`flex flex-wrap gap-x-6 gap-y-2 ${className}`}>
        {choices.map(([choice, word]) => (
          <label key={choice} className="flex min-h-6 items-baseline gap-2">
            <input
              type="radio"
              name={name}
              checked={choice === value}
              disabled={isOff?.(choice)}
              onChange={() => change(choice)}
            />
            <span>{word}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
