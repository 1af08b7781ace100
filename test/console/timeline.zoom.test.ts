import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { densityOf } from '../../apps/console/history/strip.tsx'
import { edgeMoved, moved, partOf, type Span, wheeled, ZOOMS, zoomed } from '../../apps/console/history/zoom.ts'

const WHOLE = { from: 1000, to: 101_000 }
const stretch = fc
  .tuple(fc.double({ min: 0, max: 0.9, noNaN: true }), fc.double({ min: 0.01, max: 1, noNaN: true }))
  .map(([at, share]) => partOf(WHOLE, 1000 + at * 100_000, 1000 + Math.min(1, at + share) * 100_000))
const lies = ({ from, to }: Span) => {
  expect(from).toBeGreaterThanOrEqual(WHOLE.from - 1e-6)
  expect(to).toBeLessThanOrEqual(WHOLE.to + 1e-6)
  expect(to - from).toBeGreaterThanOrEqual(100 - 1e-6)
}

describe('the visible range of a timeline', () => {
  it('lies within the whole after every key, and one key shows the whole', () => {
    fc.assert(
      fc.property(stretch, fc.array(fc.constantFrom(...Object.values(ZOOMS))), (begin, ways) => {
        const end = ways.reduce((span: Span, { make }) => make(span, WHOLE), begin)
        lies(end)
        expect(ZOOMS.all.make(end, WHOLE)).toEqual(WHOLE)
      }),
    )
  })

  it('is moved at one edge by a handle, which stays within the whole and before the other', () => {
    const edge = fc.constantFrom('from' as const, 'to' as const)
    fc.assert(
      fc.property(stretch, edge, fc.integer({ min: -1e6, max: 1e6 }), (span, name, time) => {
        const next = edgeMoved(span, WHOLE, name, time)
        lies(next)
        expect(next[name === 'from' ? 'to' : 'from']).toBe(span[name === 'from' ? 'to' : 'from'])
      }),
    )
    expect(edgeMoved({ from: 2000, to: 9000 }, WHOLE, 'from', 5000)).toEqual({ from: 5000, to: 9000 })
  })

  it('keeps the moment below the pointer in place, except at an edge', () => {
    const span = { from: 40_000, to: 60_000 }
    for (const share of [0, 0.25, 1]) {
      const next = zoomed(span, WHOLE, 0.5, share)
      expect(next.to - next.from).toBeCloseTo(10_000)
      expect(next.from + share * 10_000).toBeCloseTo(span.from + share * 20_000)
    }
    expect(zoomed(span, WHOLE, 1000)).toEqual(WHOLE)
    expect(moved({ from: 1000, to: 2000 }, WHOLE, -1)).toEqual({ from: 1000, to: 2000 })
  })

  it('is zoomed by the wheel only with a key: without one the rows scroll', () => {
    const turn = { deltaX: 0, deltaY: -100, ctrlKey: false, metaKey: false, shiftKey: false }
    const span = { from: 40_000, to: 60_000 }
    expect(wheeled(turn, span, WHOLE, 0.5)).toBeUndefined()
    const closer = wheeled({ ...turn, ctrlKey: true }, span, WHOLE, 0.5) as Span
    expect(closer.to - closer.from).toBeLessThan(20_000)
    expect(wheeled({ ...turn, shiftKey: true }, span, WHOLE, 0.5)?.from).toBeLessThan(span.from)
  })

  it('is the whole for an address with a range outside it, or in no order', () => {
    expect(partOf(WHOLE, undefined, undefined)).toEqual(WHOLE)
    expect(partOf(WHOLE, 200_000, 300_000)).toEqual(WHOLE)
    expect(partOf(WHOLE, 60_000, 40_000)).toEqual(WHOLE)
    expect(partOf(WHOLE, 60_000, undefined)).toEqual({ from: 60_000, to: 101_000 })
  })
})

it('counts the events of each part of the time, both ends included', () => {
  expect(densityOf([0, 1, 10, 25, 99, 100, 200], { from: 0, to: 100 }, 4)).toEqual([1, 1 / 3, 0, 2 / 3])
  expect(densityOf([], { from: 0, to: 100 }, 2)).toEqual([0, 0])
})
