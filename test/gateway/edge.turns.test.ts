import { expect, it } from 'vitest'
import { createTurns } from '../../apps/gateway/edge/turns.ts'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

it('parallel reads start a few in each turn of the event loop, in their order', async () => {
  const turns = createTurns(3)
  const begun: number[] = []
  const ends = Array.from({ length: 8 }, async (_, i) => {
    const wait = turns()
    if (wait) await wait
    begun.push(i)
  })
  expect(begun).toEqual([0, 1, 2])
  const seen: number[] = []
  while (begun.length < 8) {
    await nextTurn()
    seen.push(begun.length)
  }
  await Promise.all(ends)
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(seen.every((count, i) => count - (seen[i - 1] ?? 3) <= 3)).toBe(true)
})

it('a single read starts at once, and a later one does not overtake it', async () => {
  const turns = createTurns(1)
  expect(turns()).toBeUndefined()
  const second = turns()
  const third = turns()
  expect(second && third).toBeInstanceOf(Promise)
  await third
  await nextTurn()
  await nextTurn()
  expect(turns()).toBeUndefined()
})
