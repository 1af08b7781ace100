import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createSeats, type Seated } from '../../apps/gateway/proxy/seats.ts'

const seatsOf = (seats: number, queue: number) => {
  const each = (count: number) => ({
    stop: count,
    enter: count,
    decide: count,
    write: count,
    read: count,
    batch: count,
  })
  const made = createSeats({ seats: each(seats), queues: each(queue) })
  const order: string[] = []
  const take = async (priority: Seated, flow = 'eva', res = new EventEmitter()) => {
    const seat = await made.take(priority, flow, res as unknown as ServerResponse)
    order.push(`${priority}:${flow}`)
    return seat
  }
  const leave = (priority: Seated, seat: number, flow = 'eva', held_ms = 1) => made.leave(priority, flow, seat, held_ms)
  return { ...made, made, take, leave, order }
}
const code = (error: unknown) => (error as { code?: string }).code
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the seats at an upstream', () => {
  it('are a reserve: a class borrows from those below it and never from those above', async () => {
    const { take } = seatsOf(1, 0)
    for (const seat of [4, 5]) expect(await take('read')).toBe(seat)
    await expect(take('read')).rejects.toSatisfy((error) => code(error) === 'overloaded')
    expect(await take('decide')).toBe(2)
    expect(await take('decide')).toBe(3)
    await expect(take('decide')).rejects.toSatisfy((error) => code(error) === 'overloaded')
    expect(await take('stop')).toBe(0)
    expect(await take('stop')).toBe(1)
    await expect(take('stop')).rejects.toSatisfy((error) => code(error) === 'overloaded')
  })

  it('go to the highest waiting class, and to its people in turn', async () => {
    const { take, leave, order } = seatsOf(1, 8)
    await Promise.all([0, 1].map(() => take('read')))
    const waiting = [
      ...['eva', 'eva', 'eva', 'olga'].map((flow) => take('read', flow)),
      ...[0, 1].map(() => take('decide', 'ada')),
      take('decide', 'ada'),
    ]
    await settled()
    expect(order.slice(2)).toEqual(['decide:ada', 'decide:ada'])
    for (const seat of [5, 4, 4, 4, 4]) {
      leave('read', seat)
      await settled()
    }
    expect(order.slice(4)).toEqual(['decide:ada', 'read:eva', 'read:olga', 'read:eva', 'read:eva'])
    await Promise.all(waiting)
  })

  it('are refused at once if the queue is full; a new caller takes a place from the one who holds the most', async () => {
    const { take, leave, waiting, order } = seatsOf(1, 4)
    await Promise.all([take('batch')])
    const crowd = [0, 1, 2, 3].map(() => take('batch', 'eva').catch(code))
    await settled()
    expect(waiting('batch')).toBe(4)
    expect(await take('batch', 'eva').catch(code)).toBe('overloaded')
    const olga = take('batch', 'olga')
    expect(await Promise.race(crowd)).toBe('overloaded')
    expect(waiting('batch')).toBe(4)
    leave('batch', 5)
    leave('batch', 5)
    await olga
    expect(order).toEqual(['batch:eva', 'batch:eva', 'batch:olga'])
    await Promise.all(crowd)
  })

  it('let few reads run beside a slow decision, one of each other reader, and the rest once it has ended', async () => {
    const { take, leave, waiting } = seatsOf(6, 8)
    for (let i = 0; i < 10; i++) leave('decide', await take('decide'), 'eva', 900)
    const decision = await take('decide')
    const crowd = Array.from({ length: 6 }, () => take('read'))
    await settled()
    expect(waiting('read')).toBe(3)
    const seat = await take('read', 'olga')
    const second = take('read', 'olga')
    await settled()
    expect(waiting('read')).toBe(4)
    leave('read', seat, 'olga')
    await second
    const stop = await take('stop')
    expect(stop).toBe(0)
    leave('stop', stop)
    expect(waiting('read')).toBe(3)
    leave('decide', decision, 'eva', 900)
    await Promise.all(crowd)
    expect(waiting('read')).toBe(0)
  })

  it('for reading never go to one person alone: half of them stay for others, however long the reads last', async () => {
    const { take, leave, used, waiting } = seatsOf(4, 8)
    const crowd = Array.from({ length: 6 }, () => take('read', 'eva'))
    crowd.push(...Array.from({ length: 4 }, () => take('batch', 'eva')))
    await settled()
    expect([used('read'), used('batch'), waiting('read'), waiting('batch')]).toEqual([4, 3, 2, 1])
    expect(await take('read', 'olga')).toBe(5)
    leave('read', 4)
    await settled()
    expect([used('read'), waiting('read')]).toEqual([4, 1])
    leave('read', 4)
    leave('batch', 5)
    await Promise.all(crowd)
  })

  it('are not kept for callers who left, and no caller waits longer than the class may', async () => {
    const { take, leave, used, waiting } = seatsOf(1, 4)
    await take('batch')
    const res = new EventEmitter()
    const gone = take('batch', 'eva', res).catch((error: Error) => error.message)
    const late = take('batch', 'olga').catch((error: Error) => error.message)
    res.emit('close')
    expect(await gone).toBe('the client went away')
    expect(await late).toMatch(/^Too many large requests are running right now\..* Try again in \d+ s\.$/)
    expect([waiting('batch'), used('batch')]).toEqual([0, 1])
    leave('batch', 5)
    expect(used('batch')).toBe(0)
  })
})
