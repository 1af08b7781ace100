import { expect, it } from 'vitest'
import { draftOf, faultOf, rulesOf } from '../../apps/console/notifications/rules.ts'
import { DEFAULT_RULES } from '../../apps/shared/contracts/notifications/rules.ts'

const mail = { destination_id: 'mail', kind: 'email' } as const
const phone = { destination_id: 'phone', kind: 'push' } as const
const quiet = { timezone: 'Europe/Berlin', from: '22:00', to: '07:00' }

it('are saved as they were read if nothing is changed', () => {
  const chat = { destination_id: 'chat', kind: 'slack' } as const
  const late = { ...DEFAULT_RULES, quiet, steps: [{ destination_id: 'mail', after_s: 900 }] }
  for (const rules of [DEFAULT_RULES, late, { ...DEFAULT_RULES, events: [] }])
    expect(rulesOf(draftOf(rules, [mail, chat], 'UTC'))).toEqual(rules)
})

it('keep the days on which quiet hours begin, and leave out all seven', () => {
  const days = ['sat', 'sun'] as const
  const rules = { ...DEFAULT_RULES, quiet: { ...quiet, days: [...days] } }
  const draft = draftOf(rules, [mail], 'UTC')
  expect(rulesOf(draft)).toEqual(rules)
  const all = draftOf({ ...DEFAULT_RULES, quiet }, [mail], 'UTC')
  expect(all.quiet.days).toHaveLength(7)
  expect(faultOf({ ...all, quiet: { ...all.quiet, days: [] } })).toBe('no_days')
})

it('tell every destination at once without naming them, so that later ones are told too', () => {
  const draft = draftOf(DEFAULT_RULES, [mail, phone], 'UTC')
  expect(draft.after).toEqual({ mail: 0, phone: 0 })
  expect(rulesOf({ ...draft, after: { mail: 600, phone: 0 } }).steps).toEqual([
    { destination_id: 'mail', after_s: 600 },
    { destination_id: 'phone', after_s: 0 },
  ])
})

it('show what the server does: the earliest step counts, a removed destination has none, a browser is told at once', () => {
  const steps = [
    { destination_id: 'mail', after_s: 900 },
    { destination_id: 'mail', after_s: 300 },
    { destination_id: 'gone', after_s: 0 },
  ]
  expect(draftOf({ ...DEFAULT_RULES, steps }, [mail, phone], 'UTC').after).toEqual({ mail: 300, phone: 0 })
  const others = [{ destination_id: 'gone', after_s: 0 }]
  expect(draftOf({ ...DEFAULT_RULES, steps: others }, [mail], 'UTC').after).toEqual({ mail: 'never' })
})

it('are faulty if they tell no one although events are chosen, or if the quiet hours have no length', () => {
  const draft = draftOf(DEFAULT_RULES, [mail], 'UTC')
  expect(faultOf(draft)).toBeNull()
  expect(faultOf({ ...draft, after: { mail: 'never' } })).toBe('no_destination')
  expect(faultOf({ ...draft, after: { mail: 'never' }, events: [] })).toBeNull()
  expect(faultOf({ ...draft, quiet: { ...draft.quiet, on: true, to: '22:00' } })).toBe('no_hours')
  expect(faultOf({ ...draft, quiet: { ...draft.quiet, to: '22:00' } })).toBeNull()
})
