import { useId } from 'react'
import { t } from '../words/index.ts'
import { tPlan } from '../words/plan.ts'
import { Field } from './field.tsx'

/** A field of a form: a member of a JSON schema that a person can type. */
export type SchemaField = {
  name: string
  title: string
  note: string | undefined
  kind: 'text' | 'number' | 'boolean' | 'choice'
  integer: boolean
  choices: readonly string[]
}
type Schema = {
  properties?: Record<
    string,
    { type?: unknown; enum?: unknown[]; title?: unknown; description?: unknown; readOnly?: unknown } | undefined
  >
}

/** The scalar members of an object schema; the rest is typed as JSON. `left_out` are names that must not be typed. */
export const fieldsOf = (schema: unknown, left_out: ReadonlySet<string> = new Set()): SchemaField[] =>
  Object.entries((schema as Schema | undefined)?.properties ?? {}).flatMap(([name, member]) => {
    if (member === undefined || member.readOnly === true || left_out.has(name)) return []
    const choices = Array.isArray(member.enum) ? member.enum.filter((one) => typeof one === 'string') : []
    const kind =
      choices.length > 0 && choices.length === member.enum?.length
        ? 'choice'
        : member.type === 'string'
          ? 'text'
          : member.type === 'integer' || member.type === 'number'
            ? 'number'
            : member.type === 'boolean'
              ? 'boolean'
              : undefined
    if (kind === undefined) return []
    const words = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
    return [
      {
        name,
        title: words(member.title) ?? name,
        note: words(member.description),
        kind,
        integer: member.type === 'integer',
        choices,
      },
    ]
  })

/** Typed text as the value of its field; the empty text of a number is no value. */
export const typedValue = (field: SchemaField, text: string): unknown =>
  field.kind === 'number'
    ? text.trim() === ''
      ? null
      : Number(text)
    : field.kind === 'boolean'
      ? text === 'true'
      : text

type SchemaFormProps = {
  fields: readonly SchemaField[]
  values: Readonly<Record<string, string>>
  /** The current values. */
  now: Readonly<Record<string, unknown>>
  change: (name: string, text: string) => void
}

export const SchemaForm = ({ fields, values, now, change }: SchemaFormProps) => {
  const id = useId()
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      {fields.map((field) => {
        const at = `${id}-${field.name}`
        const is = now[field.name]
        const text = values[field.name] ?? (is === undefined || is === null ? '' : String(is))
        const moved = values[field.name] !== undefined && text !== String(is ?? '')
        const set = (next: string) => change(field.name, next)
        const note = [
          moved ? tPlan.intent.now(is === undefined || is === null ? t.absent : String(is)) : undefined,
          field.note,
        ]
          .filter(Boolean)
          .join('. ')
        const choices = field.kind === 'boolean' ? ['true', 'false'] : field.choices
        return (
          <Field key={field.name} id={at} label={field.title} note={note}>
            {choices.length > 0 ? (
              <select
                id={at}
                className="input"
                value={text}
                onChange={(event) => set(event.target.value)}
                aria-describedby={note ? `${at}-note` : undefined}
              >
                {choices.includes(text) ? null : <option value={text}>{text}</option>}
                {choices.map((one) => (
                  <option key={one} value={one}>
                    {field.kind === 'boolean' ? (one === 'true' ? tPlan.intent.yes : tPlan.intent.no) : one}
                  </option>
                ))}
              </select>
            ) : (
              <input
                id={at}
                className="input"
                type={field.kind === 'number' ? 'number' : 'text'}
                step={field.integer ? 1 : 'any'}
                value={text}
                onChange={(event) => set(event.target.value)}
                aria-describedby={note ? `${at}-note` : undefined}
              />
            )}
          </Field>
        )
      })}
    </div>
  )
}
