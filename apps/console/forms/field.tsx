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

/** A typed code without the spaces that apps show in it. */
export const digitsOf = (typed: string): string => typed.replaceAll(/\s/g, '')
export const isCode = (typed: string): boolean => /^[0-9]{6}$/.test(digitsOf(typed))

/** A code of an authenticator app; phones show their digit keyboard and offer a code that they know. */
export const CodeField = (props: CodeFieldProps) => (
  <TextField {...props} className="input mono" inputMode="numeric" autoComplete="one-time-code" maxLength={7} />
)
type CodeFieldProps = {
  id: string
  label: string
  note?: string
  value: string
  change: (value: string) => void
  error: string | null
  ref?: React.Ref<HTMLInputElement>
}
