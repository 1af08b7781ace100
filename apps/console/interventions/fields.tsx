import { useId } from 'react'
import { Field as FormField } from '../forms/field.tsx'
import { tChange } from '../words/change.ts'
import type { Intervened } from './offered.ts'

/** The members of a payload, and `payload` for the whole payload of a type that this release does not know. */
export type Field = keyof typeof tChange.intervene.fields
export type Values = Partial<Record<Field, string>>
type Choice = { value: string; label: string }

/** The fields of each intervention besides its reason; types added later are typed as JSON. */
const FIELDS: Record<string, readonly Field[]> = {
  skip: [],
  mark_succeeded: ['outputs', 'note'],
  mark_failed: ['message'],
  mark_compensated: ['note'],
  set_output: ['outputs'],
  set_input: ['input_overrides'],
  trigger_compensation: [],
  set_limits: ['max_parallel'],
  extend_deadline: ['of', 'id', 'add_s'],
  release_leases: [],
  delegate_gate: ['gate_id', 'to_user', 'until'],
  override_freeze: ['freeze_id'],
}

const JSON_FIELDS: ReadonlySet<Field> = new Set(['outputs', 'input_overrides', 'payload'])
const isJson = (field: Field): boolean => JSON_FIELDS.has(field)
const LONG: ReadonlySet<Field> = new Set(['note', 'message'])
const HOURS = [1, 4, 8, 24, 72]
const MINUTE_S = 60

/** The choices that the subject offers for a field; `undefined` for free text. */
const choicesOf = (field: Field, { of }: Values, subject: Intervened): Choice[] | undefined => {
  if (field === 'gate_id' || (field === 'id' && of === 'gate')) return subject.gates
  if (field === 'freeze_id') return subject.freezes.length > 0 ? subject.freezes : undefined
  if (field === 'of')
    return Object.entries(tChange.intervene.of).flatMap(([value, label]) =>
      value === 'gate' && subject.gates.length === 0 ? [] : [{ value, label }],
    )
  if (field === 'until') return HOURS.map((hours) => ({ value: String(hours), label: tChange.intervene.hours(hours) }))
  return undefined
}

/** The fields of this type, each with its initial value. */
export const fieldsOf = (type: string, typed: Values, subject: Intervened): { fields: Field[]; values: Values } => {
  const values: Values = { max_parallel: String(subject.max_parallel ?? 1), ...typed }
  const fields = [...(FIELDS[type] ?? (['payload'] as const))].filter(
    (field) => field !== 'id' || (values.of ?? 'operation') !== 'operation',
  )
  for (const field of fields) {
    const choices = choicesOf(field, values, subject)
    // A value typed in an earlier dialog may be no choice of this one.
    if (choices && !choices.some(({ value }) => value === values[field])) values[field] = choices[0]?.value ?? ''
    values[field] ??= ''
  }
  return { fields, values }
}

const NUMBERS: Partial<Record<Field, (value: number, now: number) => unknown>> = {
  max_parallel: (value) => value,
  add_s: (minutes) => minutes * MINUTE_S,
  until: (hours, now) => new Date(now + hours * 3_600_000).toISOString(),
}

/** The payload as typed so far, and the faults of the rest. `now` is when the dialog was opened. */
export const payloadOf = (fields: readonly Field[], values: Values, now: number) => {
  const faults = new Map<Field, string>()
  let payload: Record<string, unknown> = {}
  for (const field of fields) {
    const text = (values[field] ?? '').trim()
    const number = NUMBERS[field]
    if (number) {
      if (/^[1-9]\d{0,5}$/.test(text)) payload[field] = number(Number(text), now)
      else faults.set(field, tChange.intervene.a_number)
    } else if (isJson(field)) {
      try {
        const value = objectOf(text)
        if (field === 'payload') payload = value
        else payload[field] = value
      } catch (error) {
        faults.set(field, tChange.patch.editor.not_json((error as Error).message))
      }
    } else if (text === '') faults.set(field, tChange.intervene.needed)
    else payload[field] = text
  }
  return { payload, faults }
}

const objectOf = (text: string): Record<string, unknown> => {
  const value: unknown = JSON.parse(text === '' ? '{}' : text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(tChange.intervene.an_object)
  return value as Record<string, unknown>
}

/** Free text does not delay the dry run; a missing number or id does, because it changes the question. */
export const placeholders = (fields: readonly Field[]): Record<string, unknown> =>
  Object.fromEntries(fields.flatMap((field) => (LONG.has(field) ? [[field, '-']] : [])))
export const isAsked = (faults: ReadonlyMap<Field, string>): boolean => [...faults.keys()].every((f) => LONG.has(f))

type InterveneFieldProps = {
  field: Field
  value: string
  /** The person has typed here; only then is an empty field an error. */
  typed: boolean
  fault: string | undefined
  values: Values
  subject: Intervened
  change: (value: string) => void
}

export const InterveneField = ({ field, value, typed, fault, values, subject, change }: InterveneFieldProps) => {
  const id = useId()
  const { label, note } = tChange.intervene.fields[field]
  const choices = choicesOf(field, values, subject)
  const wrong = typed && fault !== undefined
  const common = {
    id,
    value,
    onChange: (event: { target: { value: string } }) => change(event.target.value),
    'aria-required': true,
    'aria-invalid': wrong,
    'aria-describedby': `${id}-${wrong ? 'error' : 'note'}`,
  }
  return (
    <FormField id={id} label={label} note={wrong ? undefined : note} error={wrong ? fault : null}>
      {choices ? (
        <select {...common} className="input">
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      ) : isJson(field) || LONG.has(field) ? (
        <textarea
          {...common}
          className={`input ${isJson(field) ? 'mono' : ''}`}
          rows={isJson(field) ? 5 : 2}
          spellCheck={!isJson(field)}
        />
      ) : (
        <input {...common} className="input" inputMode={NUMBERS[field] ? 'numeric' : 'text'} spellCheck={false} />
      )}
    </FormField>
  )
}
