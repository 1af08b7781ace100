import type { DestinationView } from '../../shared/contracts/notifications/notifications.ts'
import { DAYS, type NotifyRules, type Quiet } from '../../shared/contracts/notifications/rules.ts'

/** The rules as they are edited. `after`: seconds by destination; `never`: it is not told. */
export type RulesDraft = Omit<NotifyRules, 'steps' | 'quiet'> & {
  after: Record<string, number | 'never'>
  quiet: Required<Quiet> & { on: boolean }
}
type Told = Pick<DestinationView, 'destination_id' | 'kind'>

const NIGHT = { from: '22:00', to: '07:00' }

export const draftOf = (rules: NotifyRules, destinations: readonly Told[], timezone: string): RulesDraft => {
  const { steps, quiet, ...rest } = rules
  const after = ({ destination_id, kind }: Told) => {
    const own = steps.filter((step) => step.destination_id === destination_id).map(({ after_s }) => after_s)
    if (own.length > 0) return Math.min(...own)
    // The server tells a browser that no step names at once.
    return steps.length === 0 || kind === 'push' ? 0 : ('never' as const)
  }
  return {
    ...rest,
    after: Object.fromEntries(destinations.map((one) => [one.destination_id, after(one)])),
    quiet: { timezone, ...NIGHT, days: [...DAYS], ...quiet, on: quiet !== null },
  }
}

/** An edited draft for the destinations of the saved one: some may have come or been removed meanwhile. */
export const forThese = (edited: RulesDraft, saved: RulesDraft): RulesDraft => ({
  ...edited,
  after: Object.fromEntries(Object.entries(saved.after).map(([id, after_s]) => [id, edited.after[id] ?? after_s])),
})

/** The fault of a draft, as a key of its words; null if it can be saved. */
export const faultOf = ({ events, after, quiet }: RulesDraft): 'no_destination' | 'no_hours' | 'no_days' | null => {
  const told = Object.values(after)
  // No steps at all would mean every destination at once.
  if (events.length > 0 && told.length > 0 && told.every((one) => one === 'never')) return 'no_destination'
  if (!quiet.on) return null
  if (quiet.days.length === 0) return 'no_days'
  return quiet.from === quiet.to || quiet.from === '' || quiet.to === '' ? 'no_hours' : null
}

export const rulesOf = ({ after, quiet: { on, days, ...hours }, ...rest }: RulesDraft): NotifyRules => {
  const all = Object.entries(after)
  const told = all.flatMap(([destination_id, after_s]) => (after_s === 'never' ? [] : [{ destination_id, after_s }]))
  // Without steps, destinations that are added later are told as well.
  const plain = told.length === all.length && told.every(({ after_s }) => after_s === 0)
  const quiet = { ...hours, ...(days.length < DAYS.length && { days }) }
  return { ...rest, steps: plain ? [] : told, quiet: on ? quiet : null }
}
