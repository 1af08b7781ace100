import { describe, expect, it } from 'vitest'
import { type Asking, createSlots, type Lane, type SlotSettings } from '../../apps/credential/hashing/slots.ts'

const settings = { concurrency: 2, urgent: 0, queue_max: 3, wait_ms: 10_000, per_key: 100, answer_ms: 60_000 }

/** Slots whose tasks are started in time and answered in time. */
const slotsOf = (of: SlotSettings) => {
  const { begin, answer, waiting } = createSlots(of)
  return { waiting, run: <T>(asking: Asking, task: (lane: Lane) => Promise<T>) => answer(begin(asking, task)) }
}

/** Tasks that end when the test says so. */
const manual = () => {
  const started: number[] = []
  const ends: (() => void)[] = []
  const task = (n: number) => () => {
    started.push(n)
    return new Promise<number>((resolve) => {
      ends[n] = () => resolve(n)
    })
  }
  return { started, task, end: (n: number) => ends[n]?.() }
}
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve))
const outcomeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  )

describe('the bound on hashes', () => {
  it('runs a fixed number at once, queues a fixed number in order, and refuses the rest at once', async () => {
    const slots = slotsOf(settings)
    const { started, task, end } = manual()
    const runs = Array.from({ length: 8 }, (_, n) => outcomeOf(slots.run({ key: `k${n}` }, task(n))))
    expect(await Promise.all(runs.slice(5))).toEqual(['login_busy', 'login_busy', 'login_busy'])
    expect([started, slots.waiting()]).toEqual([[0, 1], 3])
    end(1)
    await runs[1]
    await Promise.resolve()
    expect([started, slots.waiting()]).toEqual([[0, 1, 2], 2])
    for (const n of [0, 2]) end(n)
    await Promise.all([runs[0], runs[2]])
    for (const n of [3, 4]) end(n)
    expect(await Promise.all(runs.slice(0, 5))).toEqual(Array(5).fill('done'))
    expect([started, slots.waiting()]).toEqual([[0, 1, 2, 3, 4], 0])
  })
  it('gives one key a fixed share, running and waiting together, and leaves the rest to others', async () => {
    const slots = slotsOf({ ...settings, queue_max: 100, per_key: 3 })
    const { started, task, end } = manual()
    const flood = Array.from({ length: 10 }, (_, n) => outcomeOf(slots.run({ key: 'flood' }, task(n))))
    const other = outcomeOf(slots.run({ key: 'other' }, task(10)))
    expect((await Promise.all(flood.slice(3))).every((outcome) => outcome === 'login_busy')).toBe(true)
    for (const n of [0, 1]) end(n)
    await Promise.all([flood[0], flood[1]])
    for (const n of [2, 10]) end(n)
    expect(await other).toBe('done')
    expect(started).toEqual([0, 1, 2, 10])
    expect(await outcomeOf(slots.run({ key: 'flood' }, async () => 1))).toBe('done')
  })
  it('lets no caller wait longer than the limit, and drops those who left', async () => {
    const slots = slotsOf({ ...settings, concurrency: 1, wait_ms: 20 })
    const { task, end } = manual()
    const running = outcomeOf(slots.run({ key: 'a' }, task(0)))
    expect(await outcomeOf(slots.run({ key: 'b' }, task(1)))).toBe('login_busy')
    const caller = new AbortController()
    const gone = outcomeOf(slots.run({ key: 'c', signal: caller.signal }, task(2)))
    caller.abort()
    expect(await gone).toBe('login_busy')
    expect(await outcomeOf(slots.run({ key: 'd', signal: AbortSignal.abort() }, task(3)))).toBe('login_busy')
    expect(slots.waiting()).toBe(0)
    end(0)
    expect(await running).toBe('done')
  })
  it('refuses at once if the turn would come too late, by the current duration of hashes', async () => {
    let now = 0
    const slots = slotsOf({ ...settings, concurrency: 1, wait_ms: 2000, monotonic: () => now })
    const { started, task, end } = manual()
    const first = outcomeOf(slots.run({ key: 'a' }, task(0)))
    await turnOfTheLoop()
    now += 1500
    end(0)
    expect(await first).toBe('done')
    const running = outcomeOf(slots.run({ key: 'b' }, task(1)))
    const next = outcomeOf(slots.run({ key: 'c' }, task(2)))
    // Two tasks of 1.5 s each are ahead of it.
    expect(await outcomeOf(slots.run({ key: 'd' }, task(3)))).toBe('login_busy')
    expect([started, slots.waiting()]).toEqual([[0, 1], 1])
    now += 100
    end(1)
    await running
    await turnOfTheLoop()
    end(2)
    expect(await next).toBe('done')
  })
  it('answers busy before its caller gives up on a slow hash, and keeps the slot until that hash ends', async () => {
    const slots = slotsOf({ ...settings, concurrency: 1, answer_ms: 20 })
    const { task, end } = manual()
    expect(await outcomeOf(slots.run({ key: 'a' }, task(0)))).toBe('login_busy')
    const next = outcomeOf(slots.run({ key: 'b' }, async () => 1))
    expect(slots.waiting()).toBe(1)
    end(0)
    expect(await next).toBe('done')
  })
  it('frees the slot of a task that fails', async () => {
    const slots = slotsOf({ ...settings, concurrency: 1 })
    await expect(slots.run({ key: 'a' }, () => Promise.reject(new Error('x')))).rejects.toThrow('x')
    expect(await outcomeOf(slots.run({ key: 'a' }, async () => 1))).toBe('done')
  })
  it('reserves a slot for urgent tasks, which also go first', async () => {
    const slots = slotsOf({ ...settings, concurrency: 1, urgent: 1 })
    const { started, task, end } = manual()
    const lanes: string[] = []
    const run = (n: number, urgent: boolean) =>
      outcomeOf(
        slots.run({ key: `k${n}`, urgent }, (lane) => {
          lanes[n] = lane
          return task(n)()
        }),
      )
    const runs = [run(0, false), run(1, false), run(2, true), run(3, true)]
    await turnOfTheLoop()
    expect([started, slots.waiting()]).toEqual([[0, 2], 2])
    end(0)
    await runs[0]
    await turnOfTheLoop()
    end(2)
    await runs[2]
    await turnOfTheLoop()
    expect(started).toEqual([0, 2, 3])
    end(3)
    await runs[3]
    await turnOfTheLoop()
    end(1)
    expect(await Promise.all(runs)).toEqual(Array(4).fill('done'))
    expect(lanes).toEqual(['general', 'general', 'urgent', 'general'])
  })
  it('gives the wait time, by the current duration of hashes', async () => {
    let now = 0
    const slots = slotsOf({ ...settings, concurrency: 1, queue_max: 0, monotonic: () => now })
    const { task, end } = manual()
    const first = slots.run({ key: 'a' }, task(0))
    await turnOfTheLoop()
    now += 6000
    end(0)
    await first
    const running = slots.run({ key: 'b' }, task(1))
    await expect(slots.run({ key: 'c' }, task(2))).rejects.toMatchObject({ options: { retry_after_ms: 6000 } })
    end(1)
    await running
  })
})
