import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useId, useRef, useState } from 'react'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { type Command, sendCommand } from '../api/commands.ts'
import type { Resource, ResourceType } from '../api/types.ts'
import { objectIn } from '../forms/object-in.ts'
import { type Field, fieldsOf, SchemaForm, typedValue } from '../forms/schema.tsx'
import { TicketField, ticketOf } from '../forms/ticket.tsx'
import { resourceQuery, resourceTypeQuery } from '../queries/resources.ts'
import { Failure, ProblemText } from '../ui/failure.tsx'
import { Empty, Heading, Loading, Page } from '../ui/page.tsx'
import { tChange } from '../words/change.ts'
import { t } from '../words/index.ts'
import { tPlan } from '../words/plan.ts'

/** A change of one resource, or of more of its type: what should be true, why, and then its plan. */
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

/** Names of members that nobody may change, by the type's own word. */
const lockedOf = ({ field_classes: { immutable, read_only, sensitive } }: ResourceType): Set<string> =>
  new Set([...immutable, ...read_only, ...sensitive].map((pointer) => pointer.replace(/^\//, '').split('/')[0] ?? ''))

const Form = ({ resource, type }: { resource: Resource; type: ResourceType }) => {
  const id = useId()
  const navigate = useNavigate()
  const name = resource.display_name || resource.name
  const now = resource.desired_state as Record<string, unknown>
  const fields = fieldsOf(type.desired_state_schema, lockedOf(type))
  const [title, setTitle] = useState(tPlan.intent.name_of(name))
  const [targets, setTargets] = useState(resource.resource_id)
  const [values, setValues] = useState<Record<string, string>>({})
  const [more, setMore] = useState('')
  const [parameters, setParameters] = useState('')
  const [reason, setReason] = useState('')
  const [ticket, setTicket] = useState('')
  const [checked, setChecked] = useState(false)
  const [made, setMade] = useState(false)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const keys = useRef(new Map<string, string>())
  const summary = useRef<HTMLDivElement>(null)

  const ids = targets.split(/[\s,]+/).filter(Boolean)
  const patch = { ...changedOf(fields, values, now), ...(objectIn(more) ?? {}) }
  const faults = [
    ...(title.trim() === '' ? [tPlan.intent.missing.title] : []),
    ...(ids.length === 0 ? [tPlan.intent.missing.targets] : []),
    ...(objectIn(more) === undefined ? [`${tPlan.intent.more}: ${tChange.intervene.an_object}`] : []),
    ...(objectIn(parameters) === undefined ? [`${tPlan.intent.parameters}: ${tChange.intervene.an_object}`] : []),
    ...(Object.keys(patch).length === 0 ? [tPlan.intent.missing.change] : []),
    ...(reason.trim() === '' ? [tPlan.intent.missing.reason] : []),
  ]
  /** One key per body: what is sent again after a lost answer is the same command. */
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
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    setChecked(true)
    if (busy) return
    if (faults.length > 0) return summary.current?.focus()
    setBusy(true)
    setProblem(null)
    setMade(false)
    const given = objectIn(parameters) ?? {}
    const intent = await sendOnce<{ intent_id: string }>({
      path: '/v1/intents',
      body: {
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
      },
    })
    if (intent !== undefined) {
      setMade(true)
      const path = `/v1/intents/${encodeURIComponent(intent.intent_id)}/plan-preview`
      const plan = await sendOnce<{ plan_id: string }>({ path, body: {} })
      if (plan !== undefined)
        return navigate({ to: '/plans/$plan_id', params: { plan_id: plan.plan_id }, search: { tab: 'changes' } })
    }
    setBusy(false)
    summary.current?.focus()
  }
  const wrong = checked && faults.length > 0
  return (
    <Page>
      <div>
        <Heading title={tPlan.intent.new_title}>{tPlan.intent.new_title}</Heading>
        <p className="text-muted">{tPlan.intent.new_note}</p>
      </div>
      <div ref={summary} tabIndex={-1} role="alert" className="empty:hidden">
        {wrong ? (
          <div className="card flex flex-col gap-1 p-4">
            <p className="font-medium">{tPlan.intent.summary}</p>
            <ul className="text-bad">
              {faults.map((fault) => (
                <li key={fault}>{fault}</li>
              ))}
            </ul>
          </div>
        ) : problem ? (
          <div className="card flex flex-col gap-1 p-4">
            <p className="font-medium">{made ? tPlan.intent.made : tPlan.intent.summary}</p>
            <ProblemText problem={problem} />
          </div>
        ) : null}
      </div>
      <form noValidate onSubmit={(event) => void submit(event)} className="flex max-w-text flex-col gap-4">
        <Text id={`${id}-title`} label={tPlan.intent.name} value={title} change={setTitle} />
        <Text
          id={`${id}-targets`}
          label={tPlan.intent.targets}
          value={targets}
          change={setTargets}
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
            values={values}
            now={now}
            change={(field, text) => setValues((before) => ({ ...before, [field]: text }))}
          />
          <details>
            <summary>{tPlan.intent.more}</summary>
            <Json
              id={`${id}-more`}
              label={tPlan.intent.more}
              value={more}
              change={setMore}
              note={tPlan.intent.more_note}
            />
            <Json
              id={`${id}-parameters`}
              label={tPlan.intent.parameters}
              value={parameters}
              change={setParameters}
              note={tPlan.intent.parameters_note}
            />
          </details>
          <p className="text-table text-muted" role="status">
            {Object.keys(patch).length === 0 ? tPlan.intent.unchanged : <code>{JSON.stringify(patch)}</code>}
          </p>
        </fieldset>
        <Text id={`${id}-reason`} label={tPlan.intent.reason} value={reason} change={setReason} />
        <TicketField value={ticket} change={setTicket} />
        <p>
          <button type="submit" className="button main" aria-disabled={busy}>
            {busy ? tPlan.intent.sending : tPlan.intent.submit}
          </button>
        </p>
      </form>
    </Page>
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
  <div>
    <label className="label" htmlFor={id}>
      {label}
    </label>
    <input
      id={id}
      className={`input ${mono ? 'mono' : ''}`}
      maxLength={2000}
      value={value}
      onChange={(event) => change(event.target.value)}
      aria-describedby={note ? `${id}-note` : undefined}
    />
    {note ? (
      <p id={`${id}-note`} className="text-meta text-muted">
        {note}
      </p>
    ) : null}
  </div>
)

const Json = ({ id, label, value, change, note }: TextProps) => (
  <div className="mt-2">
    <label className="label" htmlFor={id}>
      {label}
    </label>
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
    <p id={`${id}-note`} className="text-meta text-muted">
      {note}
    </p>
  </div>
)

/** Fields whose typed value is another than what holds now. */
const changedOf = (
  fields: readonly Field[],
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
