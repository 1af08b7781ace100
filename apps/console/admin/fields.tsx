import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { JsonField, objectIn } from '../forms/json.tsx'
import { Checks, SelectField } from '../forms/select.tsx'
import { useRested } from '../kit/rested.ts'
import { peopleQuery, userQuery } from '../queries/admin.ts'
import { tAdmin } from '../words/admin.ts'

type Choice = readonly [value: string, word: string]
/**
 * A field of an administrative form. `many` is a list of checkboxes whose value is joined by spaces, `person` the id of an
 * active person, `except` those; `people` several, joined by spaces; `json` the text of an object.
 */
export type FormField = {
  name: string
  label: string
  kind: 'text' | 'number' | 'date' | 'datetime-local' | 'select' | 'many' | 'person' | 'people' | 'json'
  except?: readonly string[]
  choices?: readonly Choice[]
  value?: string
  optional?: boolean
}
export type Typed = Record<string, string>

export const initial = (fields: FormField[]): Typed =>
  Object.fromEntries(
    fields.map(({ name, kind, value, choices }) => [
      name,
      value ?? (kind === 'select' ? (choices?.[0]?.[0] ?? '') : ''),
    ]),
  )

export const isComplete = (fields: FormField[], typed: Typed): boolean =>
  fields.every(({ name, kind, optional }) => {
    const text = typedIn(typed, name)
    return text === '' ? optional : kind !== 'json' || objectIn(text) !== undefined
  })

export const typedIn = (typed: Typed, name: string): string => (typed[name] ?? '').trim()

/** The parts of a value that is joined by spaces. */
export const partsOf = (value: string): string[] => value.split(' ').filter(Boolean)

type FieldsProps = { fields: FormField[]; typed: Typed; change: (typed: Typed) => void }

export const Fields = ({ fields, typed, change }: FieldsProps) => (
  <div className="grid gap-4 sm:grid-cols-2">
    {fields.map((field) => {
      const one = {
        field,
        value: typed[field.name] ?? '',
        change: (value: string) => change({ ...typed, [field.name]: value }),
      }
      const Control = CONTROLS[field.kind] ?? One
      return <Control key={field.name} {...one} />
    })}
  </div>
)

type OneProps = { field: FormField; value: string; change: (value: string) => void }

const One = ({ field: { label, kind, choices = [], optional = false }, value, change }: OneProps) => {
  return kind === 'select' ? (
    <SelectField label={label} choices={choices} value={value} change={change} />
  ) : (
    <TextField type={kind} label={label} value={value} aria-required={!optional} change={change} />
  )
}

/** Where a list cannot hold all people, the others are found by a part of their name. */
const PersonChoice = ({ field: { label, except = [] }, value, change }: OneProps) => {
  const [q, setQ] = useState('')
  const { data } = useQuery(peopleQuery(useRested(q.trim())))
  const people = (data?.items ?? []).filter(({ id, kind }) => kind === 'person' && !except.includes(id))
  const find = (text: string) => {
    setQ(text)
    change('')
  }
  return (
    <>
      {q !== '' || data?.next_page_token ? (
        <TextField type="search" label={tAdmin.user.search} value={q} change={find} />
      ) : null}
      <SelectField
        label={label}
        choices={[['', '–'], ...people.map(({ id, username }) => [id, username] as const)]}
        value={value}
        change={change}
      />
    </>
  )
}

/** Several people: the button of each takes them out again. */
const PeopleChoice = ({ field, value, change }: OneProps) => {
  const chosen = partsOf(value)
  return (
    <div className="flex flex-col gap-2">
      {chosen.map((id) => (
        <Chosen key={id} id={id} remove={() => change(chosen.filter((one) => one !== id).join(' '))} />
      ))}
      <PersonChoice
        field={{ ...field, except: [...(field.except ?? []), ...chosen] }}
        value=""
        change={(id) => (id === '' ? undefined : change([...chosen, id].join(' ')))}
      />
    </div>
  )
}

const Chosen = ({ id, remove }: { id: string; remove: () => void }) => {
  const name = useQuery(userQuery(id)).data?.username ?? id
  return (
    <Button aria-label={tAdmin.remove_one(name)} onClick={remove}>
      {name} <span aria-hidden="true">×</span>
    </Button>
  )
}

const ObjectText = ({ field: { label }, value, change }: OneProps) => (
  <div className="sm:col-span-2">
    <JsonField label={label} value={value} change={change} />
  </div>
)

const Boxes = ({ field: { label, choices = [] }, value, change }: OneProps) => (
  <Checks
    className="sm:col-span-2"
    {...{ label, choices }}
    chosen={partsOf(value)}
    change={(chosen) => change(chosen.join(' '))}
  />
)

const CONTROLS: Partial<Record<FormField['kind'], typeof One>> = {
  many: Boxes,
  person: PersonChoice,
  people: PeopleChoice,
  json: ObjectText,
}

type Scope = Partial<Record<keyof typeof tAdmin.scope, string>>
const PLACES = Object.keys(tAdmin.scope) as (keyof typeof tAdmin.scope)[]

/** The fields that limit where a grant or a key applies; all may stay empty. */
export const SCOPE_FIELDS: FormField[] = PLACES.map((name) => ({
  name,
  label: tAdmin.scope[name],
  kind: 'text',
  optional: true,
}))

export const scopeOf = (typed: Typed): Scope =>
  Object.fromEntries(PLACES.flatMap((name) => (typedIn(typed, name) === '' ? [] : [[name, typedIn(typed, name)]])))

export const scopeWords = (scope: Scope): string =>
  PLACES.flatMap((name) => (scope[name] ? [`${tAdmin.scope[name]} ${scope[name]}`] : [])).join(', ') ||
  tAdmin.everywhere
