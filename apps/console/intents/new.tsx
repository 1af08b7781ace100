import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId, useRef, useState } from 'react'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { type Command, sendCommand } from '../api/commands.ts'
import type { Resource, ResourceType } from '../api/types.ts'
import { Field } from '../forms/field.tsx'
import { objectIn } from '../forms/object-in.ts'
import { fieldsOf, type SchemaField, SchemaForm, typedValue } from '../forms/schema.tsx'
import { TicketField, ticketOf } from '../forms/ticket.tsx'
import { resourceQuery, resourceTypeQuery } from '../queries/resources.ts'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { Empty, Heading, Loading, Page } from '../ui/page.tsx'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { tPlan } from '../words/plan.ts'

/** A change of one resource, or of more of its type: the desired state, the reason, then the plan. */
export const IntentNewPage = () => {
  const { resource: resource_id } = useSearch({ from: '/shell/intents/new' })
  const resource = useQuery({ ...resourceQuery(resource_id), enabled: resource_id !== '' })
  const type_key = resource.data?.type_key ?? ''
  const type = useQuery({ ...resourceTypeQuery(type_key), enabled: type_key !== '' })
  if (resource.data === undefined || type.data === undefined) {
    const failed = [resource, type].find(({ isError }) => isError)
    return (
      <Page>
        <Heading title={tPlan.intent.new_title}>{tPlan.intent.new_title}</Heading>
        {resource_id === '' ? (
          <Empty
            next={
              <Link to="/resources" search={{ type: '', region: '', health: '', q: '' }} className="button">
                {tPlan.intent.see_resources}
              </Link>
            }
          >
            {tPlan.intent.how}
          </Empty>
        ) : failed ? (
          <Failure error={failed.error} retry={() => void failed.refetch()} noun={t.noun.resource} />
        ) : (
          <Loading />
        )}
      </Page>
    )
  }
  return <Form key={resource_id} resource={resource.data} type={type.data} />
}

/** Names of members that the type does not let anyone change. */
const lockedOf = ({ field_classes: { immutable, read_only, sensitive } }: ResourceType): Set<string> =>
  new Set([...immutable, ...read_only, ...sensitive].map((pointer) => pointer.replace(/^\//, '').split('/')[0] ?? ''))

type Typed = {
  title: string
  targets: string
  values: Record<string, string>
  more: string
  parameters: string
  reason: string
  ticket: string
}

/** The body of the intent as far as it is typed, and its faults. */
const intentOf = (typed: Typed, fields: readonly SchemaField[], now: Readonly<Record<string, unknown>>) => {
  const { title, targets, values, more, parameters, reason, ticket } = typed
  const ids = targets.split(/[\s,]+/).filter(Boolean)
  const given = objectIn(parameters) ?? {}
  const patch = { ...changedOf(fields, values, now), ...(objectIn(more) ?? {}) }
  const faults = [
    ...(title.trim() === '' ? [tPlan.intent.missing.title] : []),
    ...(ids.length === 0 ? [tPlan.intent.missing.targets] : []),
    ...(objectIn(more) === undefined ? [`${tPlan.intent.more}: ${tChange.intervene.an_object}`] : []),
    ...(objectIn(parameters) === undefined ? [`${tPlan.intent.parameters}: ${tChange.intervene.an_object}`] : []),
    ...(Object.keys(patch).length === 0 ? [tPlan.intent.missing.change] : []),
    ...(reason.trim() === '' ? [tPlan.intent.missing.reason] : []),
  ]
  const body = {
    kind: 'change',
    title: title.trim(),
    reason: reason.trim(),
    targets: ids.map((resource_id) => ({ resource_id })),
    change: {
      op: 'update',
      desired_state_patch: patch,
      ...(Object.keys(given).length === 0 ? {} : { parameters: given }),
    },
    ...ticketOf(ticket),
  }
  return { patch, faults, body }
}

/** Creates an intent and its plan, then opens the plan. A repeated body is the same command. */
const useIntent = () => {
  const navigate = useNavigate()
  const [made, setMade] = useState(false)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const keys = useRef(new Map<string, string>())
  const sendOnce = async <Reply,>(command: Command) => {
    const text = JSON.stringify(command)
    const key = keys.current.get(text) ?? crypto.randomUUID()
    keys.current.set(text, key)
    const outcome = await sendCommand<Reply>(command, key)
    if ('reply' in outcome) return outcome.reply
    if (outcome.kind === 'refused') keys.current.delete(text)
    setProblem(outcome.problem ?? problemFrom(0, null))
    return undefined
  }
  const planOf = async (body: Command['body']) => {
    const intent = await sendOnce<{ intent_id: string }>({ path: '/v1/intents', body })
    if (intent === undefined) return undefined
    setMade(true)
    const path = `/v1/intents/${encodeURIComponent(intent.intent_id)}/plan-preview`
    return sendOnce<{ plan_id: string }>({ path, body: {} })
  }
  const send = async (body: Command['body']): Promise<void> => {
    setBusy(true)
    setProblem(null)
    setMade(false)
    const plan = await planOf(body)
    if (plan !== undefined)
      return navigate({ to: '/plans/$plan_id', params: { plan_id: plan.plan_id }, search: { tab: 'changes' } })
    setBusy(false)
  }
  return { made, busy, problem, send }
}

const Form = ({ resource, type }: { resource: Resource; type: ResourceType }) => {
  const id = useId()
  const now = resource.desired_state as Record<string, unknown>
  const fields = fieldsOf(type.desired_state_schema, lockedOf(type))
  const [typed, setTyped] = useState<Typed>({
    title: tPlan.intent.name_of(resource.display_name || resource.name),
    targets: resource.resource_id,
    values: {},
    more: '',
    parameters: '',
    reason: '',
    ticket: '',
  })
  const set = (name: Exclude<keyof Typed, 'values'>) => (text: string) =>
    setTyped((before) => ({ ...before, [name]: text }))
  const [checked, setChecked] = useState(false)
  const summary = useRef<HTMLDivElement>(null)
  const { made, busy, problem, send } = useIntent()
  const { patch, faults, body } = intentOf(typed, fields, now)
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    setChecked(true)
    if (busy) return
    if (faults.length === 0) await send(body)
    summary.current?.focus()
  }
  return (
    <Page>
      <div>
        <Heading title={tPlan.intent.new_title}>{tPlan.intent.new_title}</Heading>
        <p className="text-muted">{tPlan.intent.new_note}</p>
      </div>
      <div ref={summary} tabIndex={-1} role="alert" className="empty:hidden">
        <Summary faults={checked ? faults : []} made={made} problem={problem} />
      </div>
      <form noValidate onSubmit={(event) => void submit(event)} className="flex max-w-text flex-col gap-4">
        <Text id={`${id}-title`} label={tPlan.intent.name} value={typed.title} change={set('title')} />
        <Text
          id={`${id}-targets`}
          label={tPlan.intent.targets}
          value={typed.targets}
          change={set('targets')}
          note={tPlan.intent.targets_note}
          mono
        />
        <fieldset className="card flex flex-col gap-4 p-4">
          <legend className="sr-only">{tPlan.intent.should}</legend>
          <div>
            <h2 className="card-title">{tPlan.intent.should}</h2>
            <p className="text-table text-muted">{tPlan.intent.should_note(type.title)}</p>
          </div>
          <SchemaForm
            fields={fields}
            values={typed.values}
            now={now}
            change={(field, text) => setTyped((before) => ({ ...before, values: { ...before.values, [field]: text } }))}
          />
          <Others typed={typed} set={set} />
          <p className="text-table text-muted" role="status">
            {Object.keys(patch).length === 0 ? tPlan.intent.unchanged : <code>{JSON.stringify(patch)}</code>}
          </p>
        </fieldset>
        <Text id={`${id}-reason`} label={tPlan.intent.reason} value={typed.reason} change={set('reason')} />
        <TicketField value={typed.ticket} change={set('ticket')} />
        <p>
          <button type="submit" className="button main" aria-disabled={busy}>
            {busy ? tPlan.intent.sending : tPlan.intent.submit}
          </button>
        </p>
      </form>
    </Page>
  )
}

/** Why the intent cannot be sent, or why the server refused it. */
const Summary = ({ faults, made, problem }: { faults: string[]; made: boolean; problem: Problem | null }) =>
  faults.length === 0 && problem === null ? null : (
    <div className="card flex flex-col gap-1 p-4">
      <p className="font-medium">{faults.length === 0 && made ? tPlan.intent.made : tPlan.intent.summary}</p>
      {faults.length > 0 ? (
        <ul className="text-bad">
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      ) : problem ? (
        <ProblemText problem={problem} />
      ) : null}
    </div>
  )

/** Fields without a control of their own, and parameters, as JSON. */
const Others = ({ typed, set }: { typed: Typed; set: (name: 'more' | 'parameters') => (text: string) => void }) => {
  const id = useId()
  return (
    <details>
      <summary>{tPlan.intent.more}</summary>
      <Json
        id={`${id}-more`}
        label={tPlan.intent.more}
        value={typed.more}
        change={set('more')}
        note={tPlan.intent.more_note}
      />
      <Json
        id={`${id}-parameters`}
        label={tPlan.intent.parameters}
        value={typed.parameters}
        change={set('parameters')}
        note={tPlan.intent.parameters_note}
      />
    </details>
  )
}

type TextProps = {
  id: string
  label: string
  value: string
  change: (text: string) => void
  note?: string
  mono?: boolean
}

const Text = ({ id, label, value, change, note, mono = false }: TextProps) => (
  <Field id={id} label={label} note={note}>
    <input
      id={id}
      className={`input ${mono ? 'mono' : ''}`}
      maxLength={2000}
      value={value}
      onChange={(event) => change(event.target.value)}
      aria-describedby={note ? `${id}-note` : undefined}
    />
  </Field>
)

const Json = ({ id, label, value, change, note }: TextProps) => (
  <div className="mt-2">
    <Field id={id} label={label} note={note}>
      <textarea
        id={id}
        className="input mono"
        rows={3}
        spellCheck={false}
        value={value}
        onChange={(event) => change(event.target.value)}
        aria-invalid={objectIn(value) === undefined}
        aria-describedby={`${id}-note`}
      />
    </Field>
  </div>
)

/** Fields whose typed value differs from the current one. */
const changedOf = (
  fields: readonly SchemaField[],
  values: Readonly<Record<string, string>>,
  now: Readonly<Record<string, unknown>>,
): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      const text = values[field.name]
      if (text === undefined) return []
      const value = typedValue(field, text)
      return JSON.stringify(value) === JSON.stringify(now[field.name] ?? (field.kind === 'text' ? '' : null))
        ? []
        : [[field.name, value]]
    }),
  )
