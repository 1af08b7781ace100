import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import type { Resource } from '../api/types.ts'
import { Leaving } from '../command/leaving.tsx'
import { Button } from '../forms/button.tsx'
import { Field } from '../forms/field.tsx'
import { SchemaForm } from '../forms/schema.tsx'
import { Check } from '../forms/select.tsx'
import { TicketField } from '../forms/ticket.tsx'
import { shortId } from '../kit/format.ts'
import { proceduresQuery } from '../queries/changes.ts'
import { meQuery } from '../queries/me.ts'
import { resourceQuery } from '../queries/resources.ts'
import { useTyped } from '../session/typed.ts'
import { Unread, UnreadPage } from '../ui/failure.tsx'
import { Empty, Heading, Page } from '../ui/page.tsx'
import { OperationLink } from '../values/links.tsx'
import { tCommand } from '../words/operations/command.ts'
import { tPlan } from '../words/plan.ts'
import { type Again, useAgain } from './again.ts'
import { Ahead, useAhead } from './ahead.tsx'
import { intentOf, KINDS, type Procedure, type Typed, type What } from './draft.ts'
import { Json, Limits, Part, Summary, Text } from './parts.tsx'
import { useFields, useIntent } from './send.ts'
import { NOW, scheduleOf, WhenPart } from './timing.tsx'
import { Where } from './where.tsx'

/** A new change, action or runbook: what, where, values and why, with its preview beside it. */
export const NewPage = () => {
  const search = useSearch({ from: '/shell/new' })
  const { kind, type: wanted, procedure: name, resource: resource_id, from = '', back } = search
  const me = useQuery(meQuery()).data
  const procedures = useQuery(proceduresQuery())
  const resource = useQuery({ ...resourceQuery(resource_id), enabled: resource_id !== '' })
  const { again, unread } = useAgain(from, back)
  if (me?.permissions.includes('intent:create') === false)
    return (
      <Page>
        <Heading title={tPlan.intent.new_title}>{tPlan.intent.new_title}</Heading>
        <div className="card">
          <Empty
            next={
              <Link to="/intents" search={{ whose: 'all' }} className="button">
                {tPlan.intent.see_all}
              </Link>
            }
          >
            {tPlan.intent.not_you}
          </Empty>
        </div>
      </Page>
    )
  if (procedures.data === undefined || (resource_id !== '' && resource.data === undefined))
    return (
      <UnreadPage title={tPlan.intent.new_title} query={procedures.isError ? procedures : resource} noun="resource" />
    )
  if (unread) return <UnreadPage title={tPlan.intent.new_title} query={unread} noun="operation" />
  const type = wanted || resource.data?.type_key
  const asked = again?.what ?? { kind, type, procedure: procedures.data.items.find((one) => nameOf(one) === name) }
  const choices = [
    ...(again?.what.fixed ? [{ value: 'again', word: tPlan.intent.again.fixed, what: again.what }] : []),
    ...choicesOf(procedures.data.items, again ? again.what.type : type),
  ]
  const picked = choices.find(({ what }) =>
    asked.kind === 'change'
      ? what.kind === 'change' && what.type === asked.type
      : what.kind === asked.kind && nameOf(what.procedure) === nameOf(asked.procedure),
  )
  return (
    <Form key={back} {...{ choices, again, of: wanted }} what={(picked ?? choices[0])?.what} resource={resource.data} />
  )
}

type Choice = { value: string; word: string; what: What }
const nameOf = (procedure: Procedure | undefined): string => (procedure ? `${procedure.pack}/${procedure.key}` : '')
const typeOf = ({ match }: Procedure): string => String(match.resource_type ?? '')

/** Changes by type; actions and runbooks by procedure. */
const choicesOf = (procedures: Procedure[], wanted: string | undefined): Choice[] => {
  const types = new Set([
    ...(wanted ? [wanted] : []),
    ...procedures.filter(({ kind }) => kind === 'change').map(typeOf),
  ])
  return [
    ...[...types]
      .sort()
      .map((type) => ({ value: `change ${type}`, word: type, what: { kind: 'change' as const, type } })),
    ...procedures.flatMap((procedure) => {
      const kind = KINDS.find((one) => one === procedure.kind)
      if (kind === undefined || kind === 'change') return []
      const what = { kind, type: typeOf(procedure), procedure }
      return [{ value: `${kind} ${nameOf(procedure)}`, word: procedure.title, what }]
    }),
  ]
}

const firstOf = (of: string, resource: Resource | undefined, again: Again | undefined): Typed => ({
  title: resource ? tPlan.intent.name_of(resource.display_name || resource.name) : '',
  picked: resource !== undefined,
  ids: resource?.resource_id ?? '',
  of: resource?.type_key ?? of,
  chips: [],
  when: '',
  values: {},
  more: '',
  parameters: '',
  reason: '',
  ticket: '',
  limits: {},
  take_over: false,
  ...again?.typed,
})

/** The typed text, also after the end of a session, and whether it differs from the text that the form begins with. */
const useFilled = (first: Typed) => {
  // The address that leads back here, also after another choice; while the page is left, it is no longer that of the browser.
  const place = JSON.stringify(useSearch({ from: '/shell/new' }))
  const [typed, setTyped] = useTyped(place, first)
  const [timing, setTiming] = useTyped(`${place} timing`, NOW)
  const [untouched] = useState(() => JSON.stringify([first, NOW]))
  const change = (part: Partial<Typed>) => setTyped((before) => ({ ...before, ...part }))
  return { typed, change, timing, setTiming, isTouched: () => JSON.stringify([typed, timing]) !== untouched }
}

type FormProps = {
  choices: Choice[]
  what: What | undefined
  /** The type of the address, for a runbook. */
  of: string
  resource: Resource | undefined
  again: Again | undefined
}
const Form = ({ choices, what, of, resource, again }: FormProps) => {
  const navigate = useNavigate()
  const { typed, change, timing, setTiming, isTouched } = useFilled(firstOf(of, resource, again))
  const [tries, setTries] = useState(0)
  const [targets, setTargets] = useState<readonly string[]>(resource ? [resource.resource_id] : (again?.before ?? []))
  const summary = useRef<HTMLDivElement>(null)
  const { made, busy, problem, frozen, send } = useIntent()
  const known = useFields(what, targets)
  const wanted = what ?? { kind: 'change', type: '' }
  const { unready, faults: missing, body, managers } = intentOf(typed, wanted, known, again?.rest)
  const type = wanted.type || typed.of
  const { when, fault } = scheduleOf(timing, typed, type)
  const faults = fault ? [...missing, fault] : missing
  const ahead = useAhead(body, unready.length === 0)
  const resolved = ahead.data?.targets_resolved.map(({ resource_id }) => resource_id) ?? []
  if (resolved.length > 0 && resolved.join() !== targets.join()) setTargets(resolved)
  // A summary that is not drawn yet cannot take the focus.
  useEffect(() => {
    if (tries > 0 || problem) summary.current?.focus()
  }, [tries, problem])
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    setTries(tries + 1)
    if (busy || (faults.length > 0 && !frozen)) return
    await send({ body, schedule: when && { when, proceed: timing.start ? 'start' : 'plan' } })
  }
  const choose = (value: string) => {
    const chosen = choices.find((one) => one.value === value)?.what
    if (chosen === undefined || chosen.kind === 'graph') return
    change({ values: {}, more: '', parameters: '', take_over: false })
    const { kind, type, procedure } = chosen
    const search = {
      kind,
      type: procedure ? '' : type,
      procedure: nameOf(procedure),
      resource: resource?.resource_id ?? '',
    }
    void navigate({ to: '/new', search, replace: true })
  }
  return (
    <Page>
      <Heading title={tPlan.intent.new_title}>{tPlan.intent.new_title}</Heading>
      {again ? <AgainNote again={again} /> : null}
      <div ref={summary} tabIndex={-1} role="alert" className="empty:hidden">
        <Summary faults={tries > 0 && !frozen ? faults : []} {...{ made, problem, frozen }} />
      </div>
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_360px]">
        <form noValidate onSubmit={(event) => void submit(event)} className="flex min-w-0 flex-col gap-4">
          <fieldset disabled={busy || frozen} className="contents">
            <Part title={tPlan.intent.what_title}>
              <ChoiceField choices={choices} what={what} choose={choose} />
            </Part>
            {what?.procedure?.scope === 'plan' || (what?.fixed && again?.before.length === 0) ? null : (
              <Part title={tPlan.intent.where.title}>
                <Where what={wanted} typed={typed} change={change} />
              </Part>
            )}
            {what?.fixed ? null : <Values {...{ what, typed, change, managers, ...known }} />}
            <Part title={tPlan.intent.timing.title}>
              <WhenPart timing={timing} change={setTiming} />
            </Part>
            <Part title={tPlan.intent.why}>
              <Text label={tPlan.intent.name} value={typed.title} change={(title) => change({ title })} />
              <Text label={tPlan.intent.reason} value={typed.reason} change={(reason) => change({ reason })} />
              <TicketField value={typed.ticket} change={(ticket) => change({ ticket })} />
              <Limits limits={typed.limits} change={(limits) => change({ limits })} />
            </Part>
          </fieldset>
          <p>
            <Button type="submit" look="main" aria-disabled={busy}>
              {busy
                ? tPlan.intent.sending
                : frozen
                  ? tCommand.ask_again
                  : timing.kind !== 'now'
                    ? tPlan.intent.timing.submit
                    : tPlan.intent.submit}
            </Button>
          </p>
        </form>
        <Ahead ahead={ahead} unready={unready} type={type} picked={typed.picked} before={again?.before} />
      </div>
      <Leaving isLost={() => !busy && isTouched()} within="/new" />
    </Page>
  )
}

/** Which operation is repeated or rolled back, and what is not. */
const AgainNote = ({ again: { rest, as_then, back } }: { again: Again }) => (
  <p className="max-w-text text-muted">
    {back ? tPlan.intent.again.back : tPlan.intent.again.of}{' '}
    <OperationLink id={rest.retry_of ?? ''}>{shortId(rest.retry_of ?? '')}</OperationLink>.{' '}
    {back ? null : tPlan.intent.again.anew} {as_then ? tPlan.intent.again.as_then : null}
    {back && back.of > 1 ? (
      <>
        {tPlan.intent.again.part(back.at + 1, back.of)}{' '}
        <Link
          to="/new"
          search={{ kind: 'change', type: '', procedure: '', resource: '', from: rest.retry_of ?? '', back: back.next }}
        >
          {tPlan.intent.again.next}
        </Link>
      </>
    ) : null}
  </p>
)

type ChoiceProps = { choices: Choice[]; what: What | undefined; choose: (value: string) => void }
const ChoiceField = ({ choices, what, choose }: ChoiceProps) => {
  const id = useId()
  return (
    <Field id={id} label={tPlan.intent.start_what}>
      <select
        id={id}
        className="input"
        value={choices.find((one) => one.what === what)?.value}
        onChange={(event) => choose(event.target.value)}
      >
        {choices.map(
          ({ value, word, what: { fixed } }) =>
            fixed && (
              <option key={value} value={value}>
                {word}
              </option>
            ),
        )}
        {KINDS.map((kind) => (
          <Group
            key={kind}
            label={tPlan.intent.groups[kind]}
            choices={choices.filter(({ what }) => what.kind === kind && !what.fixed)}
          />
        ))}
      </select>
    </Field>
  )
}

const Group = ({ label, choices }: { label: string; choices: Choice[] }) =>
  choices.length === 0 ? null : (
    <optgroup label={label}>
      {choices.map(({ value, word }) => (
        <option key={value} value={value}>
          {word}
        </option>
      ))}
    </optgroup>
  )

type ValuesProps = {
  what: What | undefined
  typed: Typed
  change: (part: Partial<Typed>) => void
  managers: string[]
} & ReturnType<typeof useFields>
const Values = ({ what, typed, change, fields, now, mixed, managers, unread }: ValuesProps) => (
  <Part title={tPlan.intent.should}>
    {unread ? <Unread query={unread} rows={2} /> : null}
    {fields.length === 0 && !unread ? <p className="text-muted">{tPlan.intent.no_values}</p> : null}
    <SchemaForm
      fields={fields.map((field) =>
        mixed[field.name] ? { ...field, note: tPlan.intent.mixed(mixed[field.name] ?? 0) } : field,
      )}
      values={typed.values}
      now={now}
      change={(field, text) => change({ values: { ...typed.values, [field]: text } })}
    />
    {managers.length > 0 ? (
      <Check on={typed.take_over} change={(take_over) => change({ take_over })} className="items-start">
        {tPlan.intent.take_over(managers)}
      </Check>
    ) : null}
    <details>
      <summary>{tPlan.intent.more}</summary>
      <Json label={tPlan.intent.more} value={typed.more} change={(more) => change({ more })} />
      {what?.kind === 'change' ? (
        <Json
          label={tPlan.intent.parameters}
          value={typed.parameters}
          change={(parameters) => change({ parameters })}
        />
      ) : null}
    </details>
  </Part>
)
