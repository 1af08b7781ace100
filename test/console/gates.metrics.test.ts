import { expect, it } from 'vitest'
import type { Gate } from '../../apps/console/api/types.ts'
import { canaryLine, type Line, nowLine } from '../../apps/console/votes/targets.ts'

type Metric = NonNullable<NonNullable<NonNullable<Gate['brief']>['canary']>['metrics']>[number]
const median = (value: number | null, samples: number) => ({ median: value, samples })
const metric = (own: [number | null, number], rest: number | null, before: number | null, more = {}): Metric => ({
  key: 'p95_ms',
  title: 'p95',
  unit: 'ms',
  better: 'lower',
  own: median(...own),
  rest: median(rest, 3),
  before: median(before, 3),
  ...more,
})
const errors = (own: number, samples = 3) => metric([own, samples], 0.1, 0.1, { key: 'e', title: 'errors', unit: '%' })

const NOW = Date.parse('2026-01-31T12:04:00Z')
const healthy = { count: 1, health: [{ status: 'healthy', count: 1 }], worst: [] }
const gateWith = (metrics: Metric[] | null | undefined) => {
  const canary = {
    ...healthy,
    named: [{ resource_id: 'eu1-web-01', name: 'eu1-web-01', health: 'healthy' }],
    ended_at: '2026-01-31T12:00:00Z',
    retries: 0,
    ...(metrics !== undefined && { metrics }),
  }
  const now = { count: 11, health: [{ status: 'healthy', count: 11 }], worst: [], hidden: 0 }
  const brief = { canary, now }
  return { brief, context: { conflicts: [] } } as unknown as Gate
}
const UNBROKEN = '\u00a0'
/** Each colored part has an exclamation mark. */
const said = (line: Line | undefined) =>
  `${line?.label}: ${line?.parts.map(({ text, bad }) => (bad ? `! ${text}` : text)).join(' · ')}`.replaceAll(
    UNBROKEN,
    ' ',
  )
const lines = (metrics: Metric[] | null | undefined) => {
  const gate = gateWith(metrics)
  return [canaryLine(gate, NOW), nowLine(gate)].map(said)
}

const AS_USUAL = 'Now: 11 healthy'
it.each([
  ['a decided gate', undefined, ''],
  [
    'figures beside the rest and before',
    [errors(0), metric([41.3, 12], 43.4, 42)],
    ' · errors 0 % (rest 0.1, before 0.1) · p95 41 ms (rest 43, before 42)',
  ],
  ['no other figures', [metric([1204, 3], null, null)], ' · p95 1,204 ms'],
  ['no metrics', [], ' · this type declares no metrics'],
  ['two samples of all', [errors(0, 1), metric([41, 2], 43, 42)], ' · too early (2 samples)'],
  [
    'two samples of one',
    [errors(0), metric([410, 2], 43, 42)],
    ' · errors 0 % (rest 0.1, before 0.1) · p95 too early (2 samples)',
  ],
  ['as slow as before', [metric([250, 3], 43, 240)], ' · p95 250 ms (rest 43, before 240)'],
])('the line of a canary with %s', (_, metrics, words) => {
  expect(lines(metrics)).toEqual([`Canary: eu1-web-01, 4 min: healthy${words}`, AS_USUAL])
})

it.each([
  ['slower', metric([250, 3], 43, 42), 'p95 250 ms (rest 43, before 42)'],
  ['less used', metric([10, 3], 43, 42, { better: 'higher' }), 'p95 10 ms (rest 43, before 42)'],
])('a canary that is far %s than the rest and than before is bad news', (_, found, words) => {
  expect(lines([found])).toEqual([`Canary: eu1-web-01, 4 min: healthy · ! ${words}`, AS_USUAL])
})

it('a catalog that does not answer is bad news, with what is known of the targets', () => {
  expect(lines(null)).toEqual([
    'Canary: eu1-web-01, 4 min: healthy',
    'Now: ! unknown, the catalog did not answer · last known: 11 healthy',
  ])
})

it('the same bad news stays the same while time and figures move; a metric that joins it is news', () => {
  const slow = metric([250, 3], 43, 42)
  const newsAt = (now: number, ...metrics: Metric[]) => canaryLine(gateWith(metrics), now, true)
  expect(newsAt(NOW + 300_000, metric([260, 9], 43, 42), errors(0))?.news).toBe(newsAt(NOW, slow)?.news)
  expect(newsAt(NOW, slow, errors(4))?.news).not.toBe(newsAt(NOW, slow)?.news)
  // The dialog, which has few words, leaves out figures that are as usual.
  expect(said(newsAt(NOW, slow, errors(0)))).toBe(
    'Canary: eu1-web-01, 4 min: healthy · ! p95 250 ms (rest 43, before 42)',
  )
})

it('names each obstacle once by kind and title; ready plans of others alarm no voter, holders do', () => {
  const nowWith = (...conflicts: { kind: string; id: string; title: string | null }[]) =>
    nowLine({ ...gateWith(undefined), context: { conflicts } } as unknown as Gate)
  const plans = Array.from({ length: 9 }, (_, n) => ({ kind: 'plan', id: `p${n}`, title: 'kira bulk' }))
  const rivals = nowWith(...plans, { kind: 'plan', id: 'other', title: 'another' })
  expect(said(rivals)).toBe(
    'Now: 11 healthy · 9 ready plans “kira bulk” change some of these · the ready plan “another” changes some of these',
  )
  expect(rivals).toMatchObject({ bad: false, news: '' })
  const held = nowWith(
    { kind: 'lease', id: 'o', title: 'deploy' },
    { kind: 'lease', id: 'o', title: 'deploy' },
    { kind: 'dependent', id: 'o2', title: 'beside' },
    { kind: 'window', id: 'nights', title: null },
    { kind: 'freeze', id: 'f', title: 'Holidays' },
    { kind: 'waits', id: 'o3', title: 'in line' },
  )
  expect(said(held)).toBe(
    'Now: 11 healthy · ! “deploy” holds 2 of these · “beside” is changing 1 dependent' +
      ' · ! the window nights is closed · ! freeze “Holidays” · “in line” will hold some of these',
  )
  expect(held.parts.at(-1)).toMatchObject({ operation_id: 'o3' })
  expect(held.bad).toBe(true)
})

it('names where the same change failed and the innermost cause, with the operation', () => {
  const failed = { kind: 'failed', id: 'o3', resource_id: 'us1-web-03', title: 'web on us1', message: '' }
  const errors = [
    'GET /health answered 500: cannot open the session store',
    undefined,
    'The command ended: ',
    'exit 1: Error: creating host: no address, in resource "x":\n 12: resource "x"',
    'install failed: {"error": "no disk"}',
  ]
  const [, caused, bare, cut, first, json] = nowLine({
    ...gateWith(undefined),
    context: { conflicts: errors.map((error, n) => ({ ...failed, error, title: `web ${n}` })) },
  } as unknown as Gate).parts
  expect(caused).toMatchObject({
    ...{ bad: true, operation_id: 'o3' },
    text: 'failed elsewhere: us1-web-03, cannot open the session store',
  })
  expect(bare?.text).toBe('failed elsewhere: us1-web-03')
  // A scrap is no cause.
  expect(cut?.text).toBe('failed elsewhere: us1-web-03, The command ended')
  expect(first?.text).toBe('failed elsewhere: us1-web-03, no address, in resource "x"')
  expect(json?.text).toBe('failed elsewhere: us1-web-03, install failed')
})
