import { Field } from './field.tsx'

/** A typed code without the spaces that apps show in it. */
export const digitsOf = (typed: string): string => typed.replaceAll(/\s/g, '')
export const isCode = (typed: string): boolean => /^[0-9]{6}$/.test(digitsOf(typed))

/** A code of an authenticator app; phones show their digit keyboard and offer a code that they know. */
export const CodeField = ({
  id,
  label,
  note,
  value,
  change,
  error,
  ref,
}: {
  id: string
  label: string
  note?: string
  value: string
  change: (value: string) => void
  error: string | null
  ref?: React.Ref<HTMLInputElement>
}) => (
  <Field id={id} label={label} note={note} error={error}>
    <input
      ref={ref}
      id={id}
      className="input mono"
      inputMode="numeric"
      autoComplete="one-time-code"
      maxLength={7}
      value={value}
      onChange={(event) => change(event.target.value)}
      aria-invalid={error !== null}
      aria-describedby={note ? `${id}-note ${id}-error` : `${id}-error`}
    />
  </Field>
)
