import { describe, expect, it } from 'vitest'
import type { Freeze, Target, Window } from '../../apps/operations/graph/types.ts'
import { askCovers } from '../../apps/operations/planner/gates.ts'
import { askCalendar, calendarFor } from '../../apps/operations/targets/windows.ts'
import {
  closureOf,
  nextOpening,
  type OperationCalendar,
  openingOf,
  openingsUntil,
  type WindowHours,
} from '../../apps/shared/data/calendar.ts'
import { compileCel } from '../../apps/shared/expressions/cel.ts'

const ALL = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const window = (more: Partial<WindowHours> = {}): WindowHours => ({
  timezone: 'Europe/Berlin',
  days: ALL,
  from: '02:30',
  to: '04:00',
  ...more,
})
const at = Date.parse
const opens = (given: WindowHours[], from: string) => new Date(nextOpening(given, at(from))).toISOString()
/** A target that is checked again at each given time can start in the end. */
const starts = (freezes: { from: string; to: string }[], from: string) => {
  const calendar: OperationCalendar = {
    windows: { night: window() },
    freezes: Object.fromEntries(freezes.map((freeze, i) => [`f${i}`, { ...freeze, approvers: [] }])),
    asked: null,
    targets: { host: { windows: ['night'], freezes: freezes.map((_, i) => `f${i}`) } },
  }
  let time = at(from)
  for (let closed = closureOf(calendar, 'host', [], time); closed; closed = closureOf(calendar, 'host', [], time))
    time = closed.until
  return new Date(time).toISOString()
}

describe('a window', () => {
  it('is open from its first minute to its last, by the clock of its place', () => {
    expect(opens([window()], '2026-06-01T00:29:59Z')).toBe('2026-06-01T00:30:00.000Z')
    expect(opens([window()], '2026-06-01T01:59:59Z')).toBe('2026-06-01T01:59:59.000Z')
    expect(opens([window()], '2026-06-01T02:00:00Z')).toBe('2026-06-02T00:30:00.000Z')
    expect(opens([window({ timezone: 'Asia/Kolkata' })], '2026-06-01T00:00:00Z')).toBe('2026-06-01T21:00:00.000Z')
  })

  it('continues past midnight on the day after it opened', () => {
    const night = [window({ days: ['mon'], from: '22:00', to: '02:00' })]
    expect(opens(night, '2026-11-24T00:30:00Z')).toBe('2026-11-24T00:30:00.000Z')
    expect(opens(night, '2026-11-24T01:30:00Z')).toBe('2026-11-30T21:00:00.000Z')
  })

  it('has every opening until a moment, also the one that has begun', () => {
    const spans = (given: WindowHours, from: string, to: string) =>
      openingsUntil(given, at(from), at(to)).map((span) => new Date(span.opens_at).toISOString().slice(5, 16))
    const night = window({ from: '22:00', to: '02:00' })
    expect(spans(night, '2026-06-01T23:00:00Z', '2026-06-04T20:00:00Z')).toEqual([
      '06-01T23:00',
      '06-02T20:00',
      '06-03T20:00',
    ])
    expect(spans(window({ days: ['mon'] }), '2026-06-02T12:00:00Z', '2026-06-17T12:00:00Z')).toHaveLength(2)
    expect(spans(window({ days: [] }), '2026-06-02T12:00:00Z', '2026-06-17T12:00:00Z')).toEqual([])
  })

  it('in a night whose clocks go forward opens at the end of the gap', () => {
    expect(opens([window()], '2026-03-29T00:00:00Z')).toBe('2026-03-29T01:00:00.000Z')
  })

  it('that lies in the gap never opens that night', () => {
    expect(opens([window({ from: '02:10', to: '02:50' })], '2026-03-28T12:00:00Z')).toBe('2026-03-30T00:10:00.000Z')
  })

  it('in a night whose clocks go back is never shorter than it says', () => {
    const { opens_at, closes_at } = openingOf(window({ to: '02:45' }), at('2026-10-25T00:00:00Z'))
    expect([opens_at, closes_at]).toEqual([at('2026-10-25T00:30:00Z'), at('2026-10-25T01:45:00Z')])
  })

  it('one open window of several is enough; no window means always open', () => {
    const two = [window({ days: ['sat'] }), window({ from: '12:00', to: '13:00' })]
    expect(opens(two, '2026-06-01T05:00:00Z')).toBe('2026-06-01T10:00:00.000Z')
    expect(opens([], '2026-06-01T05:00:00Z')).toBe('2026-06-01T05:00:00.000Z')
  })
})

it('a freeze closes every window: the next opening is the first after all overlapping ones', () => {
  const frozen = { from: '2026-11-24T00:00:00Z', to: '2026-11-25T02:00:00Z' }
  expect(starts([frozen], '2026-11-24T02:00:00Z')).toBe('2026-11-25T02:00:00.000Z')
  const longer = { from: '2026-11-25T01:00:00Z', to: '2026-11-25T05:00:00Z' }
  expect(starts([frozen, longer], '2026-11-24T02:00:00Z')).toBe('2026-11-26T01:30:00.000Z')
})

describe('the reason that keeps a node from starting', () => {
  const freeze = { from: '2026-06-01T00:00:00Z', to: '2026-06-03T00:00:00Z' }
  const calendar: OperationCalendar = {
    windows: {
      night: window(),
      noon: window({ from: '12:00', to: '13:00' }),
      asked: window({ from: '03:00', to: '12:30' }),
    },
    freezes: { launch: { ...freeze, approvers: [] }, long: { ...freeze, to: '2026-06-05T00:00:00Z', approvers: [] } },
    asked: null,
    targets: {
      both: { windows: ['night', 'noon'], freezes: [] },
      frozen: { windows: ['noon'], freezes: ['launch', 'long'] },
    },
  }
  const closure = (target_id: string | null, time: string, more: { passed?: string[]; asked?: string } = {}) => {
    const found = closureOf({ ...calendar, asked: more.asked ?? null }, target_id, more.passed ?? [], at(time))
    return found && `${found.kind} ${found.id} ${new Date(found.until).toISOString()}`
  }

  it('is none if no freeze covers its target, or one of the windows is open', () => {
    expect(closure('other', '2026-06-02T20:00:00Z')).toBeUndefined()
    expect(closure(null, '2026-06-02T20:00:00Z')).toBeUndefined()
    expect(closure('both', '2026-06-02T01:00:00Z')).toBeUndefined()
    expect(closure('both', '2026-06-02T10:30:00Z')).toBeUndefined()
  })

  it('is the window that opens first, and the requested one even if another is open', () => {
    expect(closure('both', '2026-06-02T08:00:00Z')).toBe('window noon 2026-06-02T10:00:00.000Z')
    expect(closure('both', '2026-06-02T00:45:00Z', { asked: 'asked' })).toBe('window asked 2026-06-02T01:00:00.000Z')
    expect(closure('both', '2026-06-02T10:15:00Z', { asked: 'asked' })).toBeUndefined()
    expect(closure(null, '2026-06-02T20:00:00Z', { asked: 'asked' })).toBe('window asked 2026-06-03T01:00:00.000Z')
  })

  it('is the longest freeze before any window, unless it was passed at its gate', () => {
    expect(closure('frozen', '2026-06-02T08:00:00Z')).toBe('freeze long 2026-06-05T00:00:00.000Z')
    expect(closure('frozen', '2026-06-02T08:00:00Z', { passed: ['long'] })).toBe(
      'freeze launch 2026-06-03T00:00:00.000Z',
    )
    expect(closure('frozen', '2026-06-02T08:00:00Z', { passed: ['long', 'launch'] })).toBe(
      'window noon 2026-06-02T10:00:00.000Z',
    )
  })

  it('is checked again within a week if a window never opens', () => {
    const never = {
      ...calendar,
      windows: { night: window({ days: [] }) },
      targets: { both: { windows: ['night'], freezes: [] } },
    }
    expect(closureOf(never, 'both', [], 0)).toEqual({ kind: 'window', id: 'night', until: 7 * 86_400_000 })
  })
})

describe('a calendar of many targets', () => {
  it('has one time for all its conditions: the targets for which none is left count as covered', () => {
    const names = Array.from({ length: 250 }, (_, i) => `name-${i}`)
    const targets = Array.from({ length: 500 }, (_, i) => ({ resource_id: `host-${i}`, names }) as never as Target)
    const slow = compileCel("target.names.exists(a, target.names.exists(b, a == b + '!'))", ['target'])
    const freeze = { freeze_id: 'slow', from: '2026-01-01T00:00:00Z', to: '2027-01-01T00:00:00Z', approvers: [] }
    const freezes = [{ ...freeze, title: 'slow', digest: '', applies: slow }] satisfies Freeze[]
    const calendar = calendarFor({ windows: [], freezes }, targets, undefined, at('2026-06-01T00:00:00Z'))
    expect(calendar?.targets).not.toHaveProperty('host-0')
    expect(calendar?.targets['host-499']).toEqual({ windows: [], freezes: ['slow'] })
  })

  it('is asked about each condition once: those of freezes that have not ended, then those of windows', async () => {
    const asked: string[] = []
    const applies = (name: string) => ({ test: () => asked.push(name) > 0 }) as never as Freeze['applies']
    const freeze = (name: string, to: string, condition = applies(name)) =>
      ({ freeze_id: name, to, applies: condition }) as never as Freeze
    const same = applies('same')
    const windows = [{ window_id: 'night', applies: applies('night') }] as never as Window[]
    const freezes = [
      freeze('ended', '2026-05-01T00:00:00Z'),
      freeze('one', '2026-07-01T00:00:00Z', same),
      freeze('two', '2026-08-01T00:00:00Z', same),
      freeze('last', '2026-09-01T00:00:00Z'),
    ]
    await askCalendar({ windows, freezes }, [{ name: 'host' } as never as Target], at('2026-06-01T00:00:00Z'))
    expect(asked).toEqual(['same', 'last', 'night'])
  })

  it('is asked with turns for others in between, and gives the same answers', async () => {
    const names = Array.from({ length: 250 }, (_, i) => `name-${i}`)
    const targets = Array.from({ length: 20 }, (_, i) => ({ even: i % 2 === 0, names }) as never as Target)
    const slow = "target.names.exists(a, target.names.exists(b, a == b + '!'))"
    const entry = { applies: compileCel(`${slow} || target.even`, ['target']) }
    let turns = 0
    let over = false
    const turn = () => {
      turns += 1
      if (!over) setImmediate(turn)
    }
    setImmediate(turn)
    const covers = await askCovers([entry], targets)
    over = true
    expect(turns).toBeGreaterThan(3)
    expect(targets.slice(0, 4).map((target) => covers(entry, target))).toEqual([true, false, true, false])
    // One that was not asked beforehand is asked now.
    const other = { applies: compileCel('!target.even', ['target']) }
    const fast = await askCovers([], targets)
    expect(targets.map((target) => fast(other, target))).toEqual(targets.map((_, i) => i % 2 === 1))
  })
})
