import { useId } from 'react'
import { Field } from './field.tsx'

/** Parses a typed JSON object; empty text is an empty object. `undefined` for any other JSON. */
export const objectIn = (text: string): Record<string, unknown> | undefined => {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

type JsonFieldProps = { label: string; value: string; change: (text: string) => void }

/** A JSON object under its label. */
export const JsonField = ({ label, value, change }: JsonFieldProps) => {
  const id = useId()
  return (
    <Field id={id} label={label}>
      <textarea
        id={id}
        className="input mono"
        rows={3}
        spellCheck={false}
        value={value}
        onChange={(event) => change(event.target.value)}
        aria-invalid={objectIn(value) === undefined}
      />
    </Field>
  )
}
