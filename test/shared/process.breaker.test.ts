import { describe, expect, it } from 'vitest'
import { createBreaker } from '../../apps/shared/process/breaker.ts'

const start = () => {
  let now = 0
  const changes: boolean[] = []
  const breaker = createBreaker({ monotonic: () => now, onChange: (open) => changes.push(open) })
  const report = (count: number, ok: boolean) => {
    for (let i = 0; i < count; i++) breaker.report(ok)
  }
  return { breaker, report, changes, wait: (ms: number) => (now += ms) }
}

describe('a breaker', () => {
  it('stays closed below 20 calls, and while fewer than half of them fail', () => {
    const few = start()
    few.report(19, false)
    expect(few.breaker.allows()).toBe(true)
    const mostly = start()
    mostly.report(21, true)
    mostly.report(20, false)
    expect(mostly.breaker.allows()).toBe(true)
  })

  it('opens at half of 20 calls in 10 s, and forgets what is older', () => {
    const slow = start()
    slow.report(19, false)
    slow.wait(10_001)
    slow.report(1, false)
    expect(slow.changes).toEqual([])
    const { report, wait, changes } = start()
    report(10, true)
    wait(9000)
    report(10, false)
    expect(changes).toEqual([true])
  })

  it('lets one probe through every 5 s while it is open, and urgent calls', () => {
    const { breaker, report, wait } = start()
    report(20, false)
    expect([breaker.allows(), breaker.allows(true)]).toEqual([false, true])
    wait(4999)
    expect(breaker.allows()).toBe(false)
    wait(1)
    expect([breaker.allows(), breaker.allows()]).toEqual([true, false])
    breaker.report(false)
    wait(5000)
    expect(breaker.allows()).toBe(true)
  })

  it('closes after one success, and then counts afresh', () => {
    const { breaker, report, changes } = start()
    report(20, false)
    breaker.report(true)
    expect(changes).toEqual([true, false])
    report(19, false)
    expect(breaker.allows()).toBe(true)
    report(1, false)
    expect(breaker.allows()).toBe(false)
  })
})
