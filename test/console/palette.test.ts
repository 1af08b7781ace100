import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { askedFor, ranked, rankOf } from '../../apps/console/palette/rank.ts'

describe('the list of the palette', () => {
  it('ranks the end of an id first, then the start of a name, of a word, and a part of one', () => {
    const names = ['a longline', 'on the line', 'Timeline', 'Line 4', 'no match']
    expect(ranked('line', names, (name) => [name, undefined])).toEqual([
      'Line 4',
      'on the line',
      'a longline',
      'Timeline',
    ])
    expect(rankOf('9bd', 'Line', '01a2166c-9bd')).toBeUndefined()
    expect(rankOf('C-9BD', 'Line', '01a2166c-9bd')).toBe(0)
  })

  it('keeps the order of equally good answers, and neither loses nor adds any', () => {
    const texts = fc.array(fc.constantFrom('abc', 'xabc', 'x abc', 'b', 'cab'))
    fc.assert(
      fc.property(texts, (all) => {
        const rows = all.map((text, at) => ({ text, at }))
        const found = ranked('ab', rows, ({ text }) => [text, undefined])
        const order = found.map(({ text, at }) => [rankOf('ab', text) ?? 9, at] as const)
        expect(order).toEqual([...order].sort(([a, i], [b, j]) => a - b || i - j))
        expect(found.length).toBe(all.filter((text) => text.includes('ab')).length)
      }),
    )
  })

  it('shows only actions, nodes or a log line after their prefix', () => {
    expect(askedFor('>pause')).toEqual({ only: 'actions', q: 'pause' })
    expect(askedFor('# verify')).toEqual({ only: 'nodes', q: 'verify' })
    expect(askedFor(':12')).toEqual({ only: 'line', q: '12' })
    expect(askedFor('web 2.4')).toEqual({ q: 'web 2.4' })
  })
})
