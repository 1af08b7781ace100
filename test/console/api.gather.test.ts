import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createGather } from '../../apps/console/api/gather.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('reads at once for the first reason, and once more for all others within 400 ms', () => {
  const gather = createGather<object>(Date.now)
  const gate = {}
  const read = vi.fn()
  const because = (times: number) => {
    for (let i = 0; i < times; i++) gather(gate, read)
  }
  because(3)
  vi.advanceTimersByTime(0)
  expect(read).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(100)
  because(20)
  vi.advanceTimersByTime(299)
  expect(read).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1)
  expect(read).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(1000)
  expect(read).toHaveBeenCalledTimes(2)
  because(1)
  vi.advanceTimersByTime(0)
  expect(read).toHaveBeenCalledTimes(3)
})

it('waits for a deferrable reason, and two objects do not wait for each other', () => {
  const gather = createGather<object>(Date.now)
  const read: string[] = []
  gather({ name: 'timeline' }, () => void read.push('timeline'), 1000)
  gather({ name: 'gate' }, () => void read.push('gate'))
  vi.advanceTimersByTime(0)
  expect(read).toEqual(['gate'])
  vi.advanceTimersByTime(1000)
  expect(read).toEqual(['gate', 'timeline'])
})

it('reads a list of several pages the more seldom, the longer it is: a minute of news stays below a person’s limit', () => {
  for (const after_ms of [undefined, 1000])
    for (const pages of [2, 20]) {
      const gather = createGather<object>(Date.now)
      const read = vi.fn()
      const list = {}
      for (let passed_ms = 0; passed_ms < 60_000; passed_ms += 100) {
        gather(list, read, after_ms, pages)
        vi.advanceTimersByTime(100)
      }
      expect(read.mock.calls.length).toBeGreaterThan(0)
      expect(read.mock.calls.length * pages).toBeLessThanOrEqual(60)
    }
})

it('does not read an object while it is busy: its next page comes first', () => {
  let busy = true
  const gather = createGather<object>(Date.now, () => busy)
  const read = vi.fn()
  const list = {}
  gather(list, read)
  vi.advanceTimersByTime(2000)
  expect(read).not.toHaveBeenCalled()
  busy = false
  vi.advanceTimersByTime(400)
  expect(read).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(2000)
  expect(read).toHaveBeenCalledTimes(1)
})
