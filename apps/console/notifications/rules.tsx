import { useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { type DestinationView, NOTIFY_EVENTS, RISKS } from '../../shared/contracts/notifications/notifications.ts'
import { DAYS, type NotifyRules } from '../../shared/contracts/notifications/rules.ts'
import { send, Told, useChanges } from '../account/changes.tsx'
import { Leaving } from '../command/leaving.tsx'
import { Button } from '../forms/button.tsx'
import { TextField } from '../forms/field.tsx'
import { Check, Checks, Select, SelectField } from '../forms/select.tsx'
import { coarse, format, HERE } from '../kit/format.ts'
import { display } from '../kit/prefs.ts'
import { useTyped } from '../session/typed.ts'
import { Card } from '../ui/card.tsx'
import { Unread } from '../ui/failure.tsx'
import { tAccount } from '../words/account.ts'
import { t } from '../words/index.ts'
import { pathFor, rulesQuery, type Whose } from './notifications.api.ts'
import { draftOf, faultOf, forThese, type RulesDraft, rulesOf } from './rules.ts'

const words = tAccount.notifications.rules
const AFTER_S = [0, 300, 900, 1800, 3600, 14_400, 86_400]
const GATHER_S = [0, 60, 300, 900, 3600, 86_400]
const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')]

const zone = () => ({ utc: 'UTC', local: HERE })[display().zone as string] ?? display().zone

type RulesProps = { whose: Whose; destinations: readonly DestinationView[]; labelOf: (one: DestinationView) => string }

/** Which decisions notify whom and when, and when not. */
export const Rules = (props: RulesProps) => {
  const query = useQuery(rulesQuery(props.whose))
  const rules = query.data
  // Kept here, because saving makes the form anew with the rules as they are now.
  const changes = useChanges('notifications')
  // Rules that changed elsewhere are shown; those that have not, or cannot be read again, leave the edited ones alone.
  const place = `rules ${JSON.stringify([props.whose, rules])}`
  return (
    <>
      {query.isError ? <Unread query={query} /> : null}
      {rules ? <RulesForm key={place} place={place} rules={rules} changes={changes} {...props} /> : null}
    </>
  )
}

type FormProps = RulesProps & { place: string; rules: NotifyRules; changes: ReturnType<typeof useChanges> }

const RulesForm = ({ place, rules, changes, whose, destinations, labelOf }: FormProps) => {
  const { busy, said, setSaid, act } = changes
  const [own] = useState(zone)
  const saved = draftOf(rules, destinations, own)
  const [edited, setDraft] = useTyped(place, saved)
  const draft = forThese(edited, saved)
  const set = (change: Partial<RulesDraft>) => setDraft({ ...draft, ...change })
  const path = pathFor(whose, 'rules')
  const save = (event: React.FormEvent) => {
    event.preventDefault()
    const fault = faultOf(draft)
    if (fault) setSaid(words[fault])
    else void act(() => send('PUT', path, rulesOf(draft)), words.saved)
  }
  return (
    <Card title={words.title} note={words.note}>
      <form noValidate onSubmit={save} className="flex flex-col gap-4 p-4">
        <Checks
          label={words.events}
          choices={NOTIFY_EVENTS.map((event) => [event, words.of[event]])}
          chosen={draft.events}
          change={(events) => set({ events })}
        />
        <div className="flex flex-wrap gap-4">
          <SelectField
            label={words.min_risk}
            choices={RISKS.map((risk) => [risk, t.risk[risk] ?? risk] as const)}
            value={draft.min_risk}
            change={(risk) => set({ min_risk: risk as RulesDraft['min_risk'] })}
          />
          <SelectField
            label={words.gather}
            choices={timesOf(GATHER_S, draft.digest_s, words.gather_none, words.every)}
            value={draft.digest_s}
            change={(seconds) => set({ digest_s: Number(seconds) })}
          />
        </div>
        <QuietHours draft={draft} set={set} />
        {destinations.map((one) => (
          <After key={one.destination_id} one={one} label={labelOf(one)} draft={draft} set={set} />
        ))}
        <Told said={said} />
        <div className="flex flex-wrap gap-2">
          <Button type="submit" look="main" aria-disabled={busy} word={words.save} />
          <Button
            aria-disabled={busy}
            onClick={() =>
              void act(() => send('DELETE', path), words.reset_done).then((done) => done && setDraft(saved))
            }
            word={words.reset}
          />
        </div>
      </form>
      <Leaving isLost={() => !busy && JSON.stringify(rulesOf(draft)) !== JSON.stringify(rulesOf(saved))} />
    </Card>
  )
}

type PartProps = { draft: RulesDraft; set: (change: Partial<RulesDraft>) => void }

/** The usual times, and the one that was set elsewhere. */
const timesOf = (usual: number[], own: number, none: string, word: (time: string) => string) =>
  [...new Set([...usual, own])]
    .sort((a, b) => a - b)
    .map((seconds) => [seconds, seconds === 0 ? none : word(coarse(seconds * 1000))] as const)

const QuietHours = ({ draft: { quiet }, set }: PartProps) => {
  const change = (part: Partial<RulesDraft['quiet']>) => set({ quiet: { ...quiet, ...part } })
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="label">{words.quiet}</legend>
      <Check on={quiet.on} change={(on) => change({ on })}>
        {words.quiet_on}
      </Check>
      {quiet.on ? (
        <div className="flex flex-wrap gap-4">
          <TextField type="time" label={words.from} value={quiet.from} change={(from) => change({ from })} />
          <TextField type="time" label={words.to} value={quiet.to} change={(to) => change({ to })} />
          <SelectField
            label={words.zone}
            choices={[...new Set([quiet.timezone, ...ZONES])].map((name) => [name, name] as const)}
            value={quiet.timezone}
            change={(timezone) => change({ timezone })}
          />
          <Checks
            className="basis-full"
            label={words.days}
            choices={DAYS.map((day, index) => [day, dayWord(index)])}
            chosen={quiet.days}
            change={(days) => change({ days })}
          />
        </div>
      ) : null}
    </fieldset>
  )
}

const MONDAY = Date.UTC(2024, 0, 1)
const dayWord = (index: number) => format('utc', { weekday: 'short' }).format(MONDAY + index * 86_400_000)

type AfterProps = PartProps & { one: DestinationView; label: string }
const After = ({ one: { destination_id, kind }, label, draft: { after }, set }: AfterProps) => {
  const id = useId()
  const own = after[destination_id] ?? 0
  const never = kind === 'push' ? [] : [['never', words.never] as const]
  return (
    <div className="flex flex-wrap items-center gap-2">
      <label htmlFor={id}>
        {words.tell} <bdi className="wrap-anywhere">{label}</bdi>
      </label>
      <Select
        id={id}
        choices={[...timesOf(AFTER_S, own === 'never' ? 0 : own, words.at_once, words.after), ...never]}
        value={own}
        change={(seconds) =>
          set({ after: { ...after, [destination_id]: seconds === 'never' ? seconds : Number(seconds) } })
        }
      />
    </div>
  )
}
