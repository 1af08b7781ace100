import fc from 'fast-check'
import { expect, it } from 'vitest'
import { joined, linesOf } from '../../apps/console/logs/lines.ts'
import type { LogLine } from '../../apps/shared/contracts/client/frames.ts'

/** The lines of a log in a range of numbers. */
const lines = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => ({ seq: from + at }) as LogLine)
const seqs = (held: readonly LogLine[]) => held.map(({ seq }) => seq)

it('holds lines in order and without a gap, wherever a jump went while a part was read', () => {
  const span = fc
    .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 30 }))
    .map(([a, n]) => lines(a, a + n))
  fc.assert(
    fc.property(span, span, fc.constantFrom('older' as const, 'newer' as const), (asked, jumped, where) => {
      const [first, last] = [asked[0]?.seq ?? 1, asked.at(-1)?.seq ?? 0]
      const read = where === 'older' ? lines(1, first - 1) : lines(last + 1, last + 40)
      for (const held of [asked, jumped]) {
        const now = seqs(joined(where, asked, held, read))
        expect(now).toEqual(seqs(lines(now[0] ?? 1, now.at(-1) ?? 0)))
        for (const seq of seqs(held)) expect(now).toContain(seq)
      }
    }),
  )
})

it('gives a range whole, whatever part of it a read brings', async () => {
  const log = lines(1, 4321)
  const page = async ({ after_seq = 0, limit = 0 }) => ({
    lines: log.slice(after_seq, after_seq + Math.min(limit, 777)),
  })
  expect(seqs(await linesOf(page, { from: 3, to: 2500 }))).toEqual(seqs(lines(3, 2500)))
  expect(seqs(await linesOf(page, { from: 4000, to: 9999 }))).toEqual(seqs(lines(4000, 4321)))
})

it('gives no line behind a range that ends where lines are missing', async () => {
  const log = [...lines(1, 10), ...lines(20, 30)]
  const page = async ({ after_seq = 0, limit = 0 }) => ({
    lines: log.filter(({ seq }) => seq > after_seq).slice(0, limit),
  })
  expect(seqs(await linesOf(page, { from: 8, to: 15 }))).toEqual([8, 9, 10])
})
