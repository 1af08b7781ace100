import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Pair, pairsOf } from '../../apps/console/logs/compare.ts'

const texts = (pairs: Pair[], side: 'before' | 'after') => pairs.flatMap((pair) => pair[side] ?? [])

it('finds two attempts equal that differ in times, durations, ids and colors', () => {
  const attempt = (time: string, ms: number, id: string, red = '\u001b[31m') => [
    `${time} begin ${id}`,
    `at ${time.slice(11, 19)} waited ${ms} ms, then ${ms / 1000}s`,
    `${red}fetch 9f86d081${id.slice(0, 8)} done`,
  ]
  const before = attempt('2026-01-31T12:00:00.120Z', 1200, '0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10')
  const after = attempt('2026-01-31 12:07:41,5', 7, '0195f0d9-1111-7e38-9d55-000000000000', '')
  expect(pairsOf(before, after).map(({ same }) => same)).toEqual([true, true, true])
  expect(pairsOf(before, [...after, 'disk is full']).at(-1)).toEqual({
    after: { seq: 4, text: 'disk is full' },
    same: false,
  })
})

it('has every line of both logs once and in order', () => {
  const log = fc.array(fc.constantFrom('drain', 'deploy', 'verify', 'undrain'), { maxLength: 40 })
  fc.assert(
    fc.property(log, log, (before, after) => {
      const pairs = pairsOf(before, after)
      const numbered = (lines: string[]) => lines.map((text, at) => ({ seq: at + 1, text }))
      expect(texts(pairs, 'before')).toEqual(numbered(before))
      expect(texts(pairs, 'after')).toEqual(numbered(after))
      for (const { before: b, after: a, same } of pairs) expect(same).toBe(b?.text === a?.text)
    }),
  )
})

it('pairs very long logs by number', () => {
  const before = Array.from({ length: 20_001 }, (_, n) => `line ${n}`)
  const pairs = pairsOf(before, ['other', ...before.slice(1)])
  expect(pairs.length).toBe(20_001)
  expect(pairs.filter(({ same }) => !same)).toEqual([
    { before: { seq: 1, text: 'line 0' }, after: { seq: 1, text: 'other' }, same: false },
  ])
})
