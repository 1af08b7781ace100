import { useId } from 'react'

type FieldProps = {
  id: string
  label: string
  note?: string | undefined
  /** Omitted for a control that cannot be wrong. */
  error?: React.ReactNode
  children: React.ReactNode
}

/** A control under its label. The control refers to note and error in aria-describedby: `<id>-note`, `<id>-error`. */
export const Field = ({ id, label, note, error, children }: FieldProps) => (
  <div className="min-w-0">
    <label className="label" htmlFor={id}>
      {label}
    </label>
    {children}
    {note ? (
      <p id={`${id}-note`} className="mt-1 text-meta text-muted">
        {note}
      </p>
    ) : null}
    {error === undefined ? null : (
      <p id={`${id}-error`} className="field-error">
        {error}
      </p>
    )}
  </div>
)

type TextFieldProps = Omit<React.ComponentProps<'input'>, 'onChange'> &
  Omit<FieldProps, 'id' | 'children'> & { change: (text: string) => void }

/** A text input under its label, described by its note and its error. */
export const TextField = ({ id: given, label, note, error, change, ...input }: TextFieldProps) => {
  const own = useId()
  const id = given ?? own
  const described = [...(note ? [`${id}-note`] : []), ...(error === undefined ? [] : [`${id}-error`])]
  return (
    <Field id={id} label={label} note={note} error={error}>
      <input
        className="input"
        // Without it, browsers take years of six digits.
        max={input.type === 'datetime-local' ? '9999-12-31T23:59' : undefined}
        {...input}
        id={id}
        onChange={(event) => change(event.target.value)}
        aria-invalid={error !== undefined && error !== null}
        aria-describedby={described.join(' ') || undefined}
      />
    </Field>
  )
}
