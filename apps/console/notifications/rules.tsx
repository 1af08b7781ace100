import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { DestinationView, NotifyEvent, NotifyRules } from '../../shared/contracts/notifications/notifications.ts'
import { send, Told, useChanges } from '../account/changes.tsx'
import { TextField } from '../forms/field.tsx'
import { SelectField } from '../forms/select.tsx'
import { notifyRulesQuery } from '../queries/me.ts'
import { Failure } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { t } from '../words/index.ts'

const PATH = '/api/v1/notifications/rules'
const words = tAccount.notifications.rules

/** The rules as typed: times in minutes. */
type Draft = Pick<NotifyRules, 'events' | 'min_risk' | 'quiet'> & {
  digest: string
  steps: { key: string; destination_id: string; minutes: string }[]
}
type Edit = (changed: Partial<Draft>) => void
type Labeled = { id: string; label: string }

/** When the person is notified: of which events, how soon and where, and when not. */
export const Rules = ({ destinations }: { destinations: readonly DestinationView[] }) => {
  const rules = useQuery(notifyRulesQuery())
  if (rules.isError) return <Failure error={rules.error} retry={() => void rules.refetch()} />
  const named = destinations.flatMap(({ destination_id: id, status, kind, name, address }) =>
    status === 'active' ? [{ id, label: kind === 'push' ? name : address }] : [],
  )
  const reload = async () => (await rules.refetch()).data ?? null
  return rules.data ? <RulesForm rules={rules.data} named={named} reload={reload} /> : null
}

const stepOf = (destination_id: string, minutes: string) => ({ key: crypto.randomUUID(), destination_id, minutes })

const draftOf = ({ events, min_risk, quiet, digest_s, steps }: NotifyRules): Draft => ({
  ...{ events, min_risk, quiet, digest: String(digest_s / 60) },
  steps: steps.map(({ destination_id, after_s }) => stepOf(destination_id, String(after_s / 60))),
})

/** As in the contract: a day between messages, a week until a step. */
const MOST = { digest: 1440, step: 10_080 }
const isMinutes = (text: string, most: number): boolean =>
  text.trim() !== '' && Number(text) >= 0 && Number(text) <= most
const secondsOf = (minutes: string): number => Math.round(Number(minutes) * 60)

const isComplete = ({ digest, steps, quiet }: Draft): boolean =>
  isMinutes(digest, MOST.digest) &&
  steps.every(({ minutes }) => isMinutes(minutes, MOST.step)) &&
  (quiet === null || (quiet.from !== '' && quiet.to !== ''))

type FormProps = { rules: NotifyRules; named: readonly Labeled[]; reload: () => Promise<NotifyRules | null> }
const RulesForm = ({ rules, named, reload }: FormProps) => {
  const [draft, setDraft] = useState(() => draftOf(rules))
  const [tried, setTried] = useState(false)
  const { busy, said, act } = useChanges('notifications')
  const edit: Edit = (changed) => setDraft((before) => ({ ...before, ...changed }))
  // A step of a destination that was removed meanwhile would be refused.
  const steps = draft.steps.filter(({ destination_id }) => named.some(({ id }) => id === destination_id))
  const save = (event: React.FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isComplete({ ...draft, steps })) return
    const { events, min_risk, quiet, digest } = draft
    const after = steps.map(({ destination_id, minutes }) => ({ destination_id, after_s: secondsOf(minutes) }))
    const body = { events, min_risk, quiet, digest_s: secondsOf(digest), steps: after }
    void act(() => send('PUT', PATH, body), words.saved)
  }
  const reset = async () => {
    if (!(await act(() => send('DELETE', PATH), words.restored))) return
    const defaults = await reload()
    if (defaults) setDraft(draftOf(defaults))
  }
  const wrong = (text: string, most: number) => (tried && !isMinutes(text, most) ? words.minutes_wrong(most) : null)
  return (
    <form noValidate onSubmit={save} aria-labelledby="notify-rules" className="flex max-w-96 flex-col gap-4">
      <h2 id="notify-rules" className="card-title">
        {words.title}
      </h2>
      <Told said={said} />
      <Events events={draft.events} edit={edit} />
      <SelectField
        label={words.min_risk}
        choices={Object.entries(t.risk)}
        value={draft.min_risk}
        change={(risk) => edit({ min_risk: risk as Draft['min_risk'] })}
      />
      <TextField
        label={words.digest}
        error={wrong(draft.digest, MOST.digest)}
        inputMode="decimal"
        value={draft.digest}
        change={(digest) => edit({ digest })}
      />
      <Steps steps={steps} named={named} edit={edit} wrong={wrong} />
      <QuietHours quiet={draft.quiet} edit={edit} tried={tried} />
      <div className="flex flex-wrap gap-3">
        <button type="submit" className="button main" aria-disabled={busy}>
          {words.save}
        </button>
        <button type="button" className="button" aria-disabled={busy} onClick={() => void reset()}>
          {words.reset}
        </button>
      </div>
    </form>
  )
}

const Events = ({ events, edit }: { events: Draft['events']; edit: Edit }) => (
  <fieldset className="flex flex-col gap-2">
    <legend className="label">{words.events}</legend>
    {(Object.keys(words.event) as NotifyEvent[]).map((event) => (
      <Check
        key={event}
        label={words.event[event]}
        checked={events.includes(event)}
        change={(on) => edit({ events: on ? [...events, event] : events.filter((one) => one !== event) })}
      />
    ))}
  </fieldset>
)

type CheckProps = { label: string; checked: boolean; change: (on: boolean) => void }
const Check = ({ label, checked, change }: CheckProps) => (
  <label className="flex min-h-6 items-center gap-2">
    <input type="checkbox" checked={checked} onChange={(event) => change(event.target.checked)} />
    {label}
  </label>
)

type StepsProps = Pick<Draft, 'steps'> & {
  named: readonly Labeled[]
  edit: Edit
  wrong: (text: string, most: number) => string | null
}
const Steps = ({ steps, named, edit, wrong }: StepsProps) => {
  const [first] = named
  const change = (key: string, changed: Partial<Draft['steps'][number]>) =>
    edit({ steps: steps.map((step) => (step.key === key ? { ...step, ...changed } : step)) })
  return (
    <fieldset className="flex flex-col items-start gap-3">
      <legend className="label">{words.steps}</legend>
      <p className="text-meta text-muted">{words.steps_note}</p>
      {steps.map(({ key, destination_id, minutes }, at) => (
        <div key={key} className="flex flex-wrap items-end gap-3">
          <SelectField
            label={words.destination(at + 1)}
            choices={named.map(({ id, label }) => [id, label] as const)}
            value={destination_id}
            change={(id) => change(key, { destination_id: id })}
          />
          <TextField
            label={words.after(at + 1)}
            error={wrong(minutes, MOST.step)}
            inputMode="decimal"
            value={minutes}
            change={(text) => change(key, { minutes: text })}
          />
          <button
            type="button"
            className="button"
            onClick={() => edit({ steps: steps.filter((step) => step.key !== key) })}
          >
            {words.remove_step(at + 1)}
          </button>
        </div>
      ))}
      {first && steps.length < 20 ? (
        <button type="button" className="button" onClick={() => edit({ steps: [...steps, stepOf(first.id, '0')] })}>
          {words.add_step}
        </button>
      ) : null}
    </fieldset>
  )
}

const ZONES = Intl.supportedValuesOf('timeZone')
const ownZone = () => new Intl.DateTimeFormat().resolvedOptions().timeZone

const QuietHours = ({ quiet, edit, tried }: Pick<Draft, 'quiet'> & { edit: Edit; tried: boolean }) => {
  const change = (changed: Partial<NonNullable<Draft['quiet']>>) => edit({ quiet: quiet && { ...quiet, ...changed } })
  return (
    <fieldset className="flex flex-col gap-3">
      <legend className="label">{words.quiet}</legend>
      <Check
        label={words.quiet_on}
        checked={quiet !== null}
        change={(on) => edit({ quiet: on ? { timezone: ownZone(), from: '22:00', to: '07:00' } : null })}
      />
      {quiet === null ? null : (
        <>
          {(['from', 'to'] as const).map((end) => (
            <TextField
              key={end}
              type="time"
              label={words[end]}
              error={tried && quiet[end] === '' ? words.time_missing : null}
              value={quiet[end]}
              change={(text) => change({ [end]: text })}
            />
          ))}
          <SelectField
            label={words.zone}
            choices={[...new Set([quiet.timezone, ...ZONES])].map((zone) => [zone, zone] as const)}
            value={quiet.timezone}
            change={(timezone) => change({ timezone })}
          />
        </>
      )}
    </fieldset>
  )
}
