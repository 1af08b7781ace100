import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { againOf, partOf, whatOf } from '../../apps/console/intents/again.ts'
import { intentOf, type Procedure, sharedOf } from '../../apps/console/intents/draft.ts'
import { Limits } from '../../apps/console/intents/parts.tsx'
import { NOW as AT_ONCE, scheduleOf, WhenPart } from '../../apps/console/intents/timing.tsx'
import { withCondition } from '../../apps/console/values/conditions.tsx'

const procedures = [
  { kind: 'change', pack: 'fleet', key: 'release', match: { resource_type: 'fleet.host' }, scope: 'target' },
  { kind: 'action', pack: 'fleet', key: 'rotate', match: { resource_type: 'fleet.host', action: 'rotate' } },
  { kind: 'runbook', pack: 'fleet', key: 'drill', match: {}, scope: 'plan' },
  { kind: 'runbook', pack: 'fleet', key: 'look', match: {}, scope: 'target' },
] as unknown as Procedure[]
const field = (name: string, kind: 'text' | 'number' | 'boolean') => ({
  ...{ name, title: name, note: undefined, kind, integer: false, choices: [] },
})
const FIELDS = [field('release', 'text'), field('slots', 'number'), field('open', 'boolean')]
const NOW = Date.UTC(2026, 0, 1)
const DONE = ['web-01', 'web-02']

/** The request that the form sends if a person leaves it unchanged. */
const sentAgain = (request: { kind: string; targets?: object[] } & Record<string, unknown>) => {
  const targets_resolved = DONE.map((resource_id) => ({ resource_id, type_key: 'fleet.host', name: '', version: 1 }))
  const asked = { kind: request.kind, title: 'a title', reason: 'a reason', ticket: 'CHG-1', request, targets_resolved }
  const what = whatOf(asked, procedures)
  const again = againOf(asked, 'op-1', what, FIELDS, NOW)
  const typed = { chips: [], take_over: false, ...again.typed } as Parameters<typeof intentOf>[0]
  // The form's choice of a runbook has no type.
  const chosen = what.procedure?.kind === 'runbook' ? { ...what, type: '' } : what
  const { body, faults } = intentOf(typed, chosen, { fields: FIELDS, now: {}, owners: [] }, again.rest)
  expect(faults).toEqual([])
  return { body: JSON.parse(JSON.stringify(body)), as_then: again.as_then }
}
const common = { title: 'a title', reason: 'a reason', ticket: 'CHG-1' }
const repeated = { ...common, retry_of: 'op-1' }

it('a way back is sent as the server states it: values that were absent before are removed', () => {
  const request = {
    kind: 'change',
    targets: [{ resource_id: 'web-01' }],
    change: { op: 'update', desired_state_patch: { release: '1', slots: null } },
  }
  expect(sentAgain(request).body).toEqual({ ...repeated, ...request })
})

it('a part of the way back is found by its resource, also after earlier parts have run', () => {
  const part = (...ids: string[]) => ({
    targets_resolved: ids.map((resource_id) => ({ resource_id, type_key: 'fleet.host', name: '', version: 1 })),
  })
  const parts = [part('web-01', 'web-02'), part('web-03'), part('web-04')]
  expect(['', 'web-02', 'web-03'].map((id) => partOf(parts, id))).toEqual([0, 0, 1])
  expect(['web-01', 'web-03', 'web-04'].map((id) => partOf(parts.slice(1), id))).toEqual([0, 0, 1])
})

describe('an operation that is run again', () => {
  const byNames = [{ resource_id: 'web-01' }, { resource_id: 'web-02' }]
  const bySelector = [{ selector: { type_key: 'fleet.host', when: "target.name.contains('web')" } }]
  const change = { op: 'update', desired_state_patch: { release: '2', slots: 3, open: false, more: { deep: [1] } } }
  const constraints = {
    ...{ window_id: 'night', deadline_s: 5400, max_parallel: 4, risk_ceiling: 'medium', failure_budget: 1 },
    ...{ on_deadline: 'compensate', on_drift: 'ignore', pause_on_failure: false },
    batch: { size: 5, canary: 1, by: 'region_id' },
  }
  it.each<[what: string, request: { kind: string; targets?: object[] } & Record<string, unknown>]>([
    ['a change by conditions', { kind: 'change', targets: bySelector, change, constraints }],
    ['with labels', { kind: 'change', targets: byNames, change, labels: { environment: 'demo' } }],
    ['with parameters', { kind: 'change', targets: byNames, change: { ...change, parameters: { drain_s: 2 } } }],
    ['a deletion', { kind: 'change', targets: byNames, change: { op: 'delete' } }],
    ['an action', { kind: 'action', targets: bySelector, action: { action_key: 'rotate', parameters: { slots: 1 } } }],
    ['an unknown action', { kind: 'action', targets: byNames, action: { action_key: 'gone' } }],
    ['a runbook', { kind: 'runbook', runbook: { pack: 'fleet', procedure: 'drill' } }],
    [
      'a runbook by conditions',
      { kind: 'runbook', targets: bySelector, runbook: { pack: 'fleet', procedure: 'look' } },
    ],
    [
      'a version',
      { kind: 'runbook', targets: byNames, runbook: { pack: 'fleet', procedure: 'drill', version: '1.0.0' } },
    ],
    ['a graph', { kind: 'graph', graph: { nodes: [{ node_id: 'a', executor: 'noop', with: {} }] } }],
  ])('asks for the same: %s', (_, request) => {
    expect(sentAgain(request)).toEqual({ body: { ...request, ...repeated }, as_then: false })
  })

  it('keeps a start that is still to come, and drops a past one', () => {
    const starting = (ms: number) => ({
      ...{ kind: 'change', targets: byNames, change },
      constraints: { not_before: new Date(NOW + ms).toISOString() },
    })
    expect(sentAgain(starting(3_600_000)).body.constraints).toEqual(starting(3_600_000).constraints)
    expect(sentAgain(starting(-1)).body.constraints).toBeUndefined()
  })

  it('keeps the earlier expression when a condition is added, so that the condition only narrows it', () => {
    const in_eu1 = { field: 'region', is: 'eu1' }
    const in_eu2 = { field: 'region', is: 'eu2' }
    const test = 'target.scope.region_id == "eu1"'
    const typed = "target.name == 'a' || target.name == 'b'"
    expect(withCondition([], typed, in_eu1)).toEqual({ chips: [], when: `(${typed}) && ${test}` })
    expect(withCondition([], ' ', in_eu1)).toEqual({ chips: [in_eu1], when: test })
    expect(withCondition([in_eu1], test, in_eu2).when).toBe(`(${test} || target.scope.region_id == "eu2")`)
  })

  it('never selects more than last time: conditions that the form cannot show become the resources of then', () => {
    const limited = [{ selector: { type_key: 'fleet.host', limit: 2 } }]
    for (const targets of [limited, [...bySelector, ...bySelector], [...bySelector, ...byNames]])
      expect(sentAgain({ kind: 'change', targets, change })).toMatchObject({
        body: { targets: byNames },
        as_then: true,
      })
  })
})

it('names the zone in which the times of an intent are read', () => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const change = () => undefined
  const timing = { ...AT_ONCE, kind: 'at' as const, at: '2099-01-02T03:04' }
  expect(renderToStaticMarkup(createElement(WhenPart, { timing, change }))).toContain(`At (${timeZone})`)
  expect(renderToStaticMarkup(createElement(Limits, { limits: {}, change }))).toContain(`Not before (${timeZone})`)
  const { when } = scheduleOf(timing, { picked: false, when: '' }, '')
  expect(when).toEqual({ at: new Date(2099, 0, 2, 3, 4).toISOString() })
})

it('refuses a start whose year has too many digits, and keeps the rest of the form', () => {
  const typed = {
    picked: true,
    ids: 'web-01',
    of: '',
    chips: [],
    when: '',
    values: {},
    more: '{"release":"2"}',
    parameters: '',
  }
  const words = { title: 'a title', reason: 'a reason', ticket: '', take_over: false }
  const draft = (not_before: string) =>
    intentOf(
      { ...typed, ...words, limits: { not_before } },
      { kind: 'change', type: 'fleet.host' },
      { fields: FIELDS, now: {}, owners: [] },
    )
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const fault = `Not before (${timeZone}): Enter the time.`
  for (const year of ['12026', '202612']) {
    const { unready, faults } = draft(`${year}-01-02T03:04`)
    expect([unready, faults]).toEqual([[fault], [fault]])
  }
  expect(draft('2099-01-02T03:04').faults).toEqual([])
  const markup = renderToStaticMarkup(
    createElement(Limits, { limits: { not_before: '2099-01-02T03:04' }, change: () => undefined }),
  )
  expect(markup).toContain('max="9999-12-31T23:59"')
})

it('asks for the type that the conditions of a runbook select from', () => {
  const typed = {
    title: 'a title',
    reason: 'a reason',
    ticket: '',
    take_over: false,
    picked: false,
    ids: '',
    chips: [],
  }
  const rest = { when: 'true', values: {}, more: '', parameters: '', limits: {} }
  const procedure = procedures.find(({ key }) => key === 'look')
  const draft = (of: string) =>
    intentOf({ ...typed, ...rest, of }, { kind: 'runbook', type: '', procedure }, { fields: [], now: {}, owners: [] })
  expect(draft('').faults).toEqual(['Choose a type.'])
  expect(draft('fleet.host').body.targets).toEqual([{ selector: { type_key: 'fleet.host', when: 'true' } }])
  const onChange = { ...AT_ONCE, kind: 'on' as const }
  expect(scheduleOf(onChange, { picked: false, when: 'true' }, '')).toEqual({
    fault: 'Enter conditions for the resources.',
  })
})

it('takes equal lists of several targets for one value', () => {
  const states = [
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
  ].map((tags) => ({ tags, slots: tags.length }))
  const fields = [{ name: 'tags' }, { name: 'slots' }]
  expect(sharedOf(fields, states)).toEqual({ now: { tags: ['a', 'b'], slots: 2 }, mixed: {} })
  expect(sharedOf(fields, [...states, { tags: ['b', 'a'], slots: 2 }])).toEqual({
    now: { slots: 2 },
    mixed: { tags: 2 },
  })
})
