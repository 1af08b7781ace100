import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { ShapeIcon, statusWord } from '../../apps/console/values/status.tsx'
import { HEALTH_LOOKS, lookOf, type Shape } from '../../apps/shared/contracts/client/status.ts'
import { GATE_STATUSES, NODE_STATES, OPERATION_STATUSES } from '../../apps/shared/contracts/operations/graph.ts'
import { RUN_STATES } from '../../apps/shared/contracts/operations/schedules.ts'

/** A shape as it is drawn, without its color. */
const drawn = (shape: Shape): string =>
  renderToStaticMarkup(createElement(ShapeIcon, { shape, tone: 'idle' })).replace(/class="[^"]*"/, '')

it('has a word for each state of a schedule’s run, and an intent under way is one that was started', () => {
  expect(new Set(RUN_STATES.map((state) => statusWord(state))).size).toBe(RUN_STATES.length)
  expect(statusWord('executing')).toBe('Started')
})

describe('a status without color', () => {
  it('has an outline of its own for every word; only a state on its way to another shares that one’s', () => {
    const states = [...GATE_STATUSES, ...NODE_STATES, ...OPERATION_STATUSES]
    const words = new Map(states.map(lookOf).map(({ word, shape }) => [word, shape]))
    expect(words.size).toBeGreaterThan(12)
    const families = Map.groupBy(words, ([, shape]) => drawn(shape))
    const shared = [...families.values()].map((all) => all.map(([word]) => word)).filter(({ length }) => length > 1)
    expect(shared.map((all) => all.toSorted().join()).toSorted()).toEqual(['cancelled,cancelling', 'paused,pausing'])
  })

  it.each<[Shape, filled: boolean, weight: string]>([
    ['octagon', true, '1.75'],
    ['question', true, '1.75'],
    ['diamond', true, '1.75'],
    ['play', false, '1.75'],
    ['retry', false, '1.75'],
    ['dashed', false, '1.25'],
    ['slash', false, '1.25'],
  ])('has the weight of its urgency: %s', (shape, filled, weight) => {
    const html = drawn(shape)
    expect(html).toContain(`stroke-width="${weight}"`)
    expect(html.includes('stroke="var(--surface)"')).toBe(filled)
  })

  it('has five outlines for five healths', () => {
    const shapes = Object.values(HEALTH_LOOKS).map(({ shape }) => drawn(shape))
    expect(new Set(shapes).size).toBe(shapes.length)
  })
})
