import type { When } from '../../shared/contracts/operations/schedules.ts'
import { Choices } from '../forms/choices.tsx'
import { SelectField } from '../forms/select.tsx'
import { HERE, timeOf } from '../kit/format.ts'
import { tPlan } from '../words/plan.ts'
import type { Typed } from './draft.ts'
import { Text } from './parts.tsx'

const words = tPlan.intent.timing
export type Timing = {
  kind: keyof typeof words.kinds
  at: string
  every_h: string
  cron: string
  signature: string
  /** The condition that a webhook's body must meet. */
  test: string
  start: boolean
}
export const NOW: Timing = {
  kind: 'now',
  at: '',
  every_h: '24',
  cron: '0 22 * * 1-5',
  signature: 'standard',
  test: '',
  start: false,
}

const secondsIn = (hours: string): number => Math.round(Number(hours) * 3600)

/** The schedule of the intent, or why it is incomplete; neither if the intent is created now. */
export const scheduleOf = (
  { kind, at, every_h, cron, signature, test }: Timing,
  { picked, when }: Pick<Typed, 'picked' | 'when'>,
  type: string,
): { when?: When; fault?: string } => {
  if (kind === 'at') {
    const time = timeOf(at)
    return time === undefined ? { fault: words.missing.at } : { when: { at: time } }
  }
  if (kind === 'every')
    return secondsIn(every_h) >= 60 ? { when: { every_s: secondsIn(every_h) } } : { fault: words.missing.every }
  if (kind === 'cron')
    return cron.trim() === '' ? { fault: words.missing.cron } : { when: { cron: cron.trim(), timezone: HERE } }
  if (kind === 'on')
    return picked || type === '' || when.trim() === ''
      ? { fault: words.missing.on }
      : { when: { on: { type_key: type, when: when.trim() } } }
  if (kind === 'webhook') {
    const webhook = { signature: signature === 'forge' ? ('forge' as const) : ('standard' as const) }
    return { when: { webhook: { ...webhook, ...(test.trim() && { if: test.trim() }) } } }
  }
  return {}
}

/** Now, or by a schedule: at times, when resources begin to meet the conditions, or when a webhook arrives. */
export const WhenPart = ({ timing, change }: { timing: Timing; change: (timing: Timing) => void }) => {
  const set = (part: Partial<Timing>) => change({ ...timing, ...part })
  return (
    <>
      <Choices label={words.title} choices={words.kinds} chosen={timing.kind} choose={(kind) => set({ kind })} />
      {timing.kind === 'at' ? (
        <Text label={words.at(HERE)} type="datetime-local" value={timing.at} change={(at) => set({ at })} />
      ) : timing.kind === 'every' ? (
        <Text label={words.every} type="number" value={timing.every_h} change={(every_h) => set({ every_h })} />
      ) : timing.kind === 'cron' ? (
        <Text label={words.cron(HERE)} value={timing.cron} change={(cron) => set({ cron })} />
      ) : timing.kind === 'on' ? (
        <p className="text-muted">{words.on}</p>
      ) : timing.kind === 'webhook' ? (
        <HookFields timing={timing} set={set} />
      ) : null}
      {timing.kind === 'now' ? null : (
        <SelectField
          label={words.proceed}
          choices={[
            ['false', tPlan.schedule.plan],
            ['true', tPlan.schedule.start],
          ]}
          value={String(timing.start)}
          change={(start) => set({ start: start === 'true' })}
        />
      )}
    </>
  )
}

const HookFields = ({ timing, set }: { timing: Timing; set: (part: Partial<Timing>) => void }) => {
  return (
    <>
      <p className="text-muted">{words.webhook}</p>
      <SelectField
        label={words.signature}
        choices={words.signatures}
        value={timing.signature}
        change={(signature) => set({ signature })}
      />
      <Text label={words.if} value={timing.test} change={(test) => set({ test })} placeholder={words.if_example} />
    </>
  )
}
