import { once } from 'node:events'
import { createServer } from 'node:net'
import { cpus } from 'node:os'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { readDemo } from '../../apps/platform/demo/accounts.ts'
import { until } from '../support/until.ts'
import { addressesOf, burn, type Member, member, operationsOf } from './support/crowd.ts'
import { type Running, runNpm } from './support/verb.ts'

const PATIENCE_MS = 400_000
vi.setConfig({ testTimeout: PATIENCE_MS, hookTimeout: PATIENCE_MS })

/** Two `npm start` at the same moment on a busy machine, both at the ports of the table. */
const READY = /Signalbox is ready/
const [left, right] = [member(4), member(2)]
const both = [left, right]
const running = new Map<Member, Running>()
const startOf = (one: Member) => running.get(one) as Running
let calm: () => void

beforeAll(async () => {
  calm = burn(cpus().length)
  running.set(left, left.start())
  running.set(right, right.start(runNpm))
  await Promise.all(both.map((one) => startOf(one).says(READY, PATIENCE_MS)))
}, PATIENCE_MS)
afterAll(async () => {
  calm?.()
  for (const one of both) {
    startOf(one)?.signal('SIGTERM')
    await startOf(one)?.ended
    one.remove()
  }
}, PATIENCE_MS)

describe('two platforms that start at the same moment', () => {
  it('come up separately: no port and no installation is shared', () => {
    const ports = both.flatMap(addressesOf)
    expect(ports.filter((port, i) => ports.indexOf(port) !== i)).toEqual([])
    expect(new Set(both.map((one) => one.installation().id)).size).toBe(2)
  })

  it('let people sign in while the demo is seeded', async () => {
    for (const one of both) {
      const eva = await one.signIn('eva', PATIENCE_MS)
      expect((await eva.get<{ items: unknown[] }>('/v1/operations')).items.length).toBeLessThan(4)
    }
  })
})

describe('a platform whose supervisor was killed', () => {
  it('is ended by the next start on its folder, which continues with its data; the neighbor is not touched', async () => {
    const neighbour = right.processes()
    const orphans = left.processes()
    process.kill(left.supervisor(), 'SIGKILL')
    await startOf(left).ended
    expect(left.processes().length).toBeGreaterThan(10)
    running.set(left, left.start())
    await startOf(left).says(/ending processes that an earlier run left behind \(\d+\)/, PATIENCE_MS)
    await startOf(left).says(READY, PATIENCE_MS)
    expect(orphans.filter((pid) => left.processes().includes(pid))).toEqual([])
    expect(right.processes().sort()).toEqual(neighbour.sort())
    calm()
  })
})

describe('the demo', () => {
  it('is completed on each, interrupted or not, with its operations in its own engine', async () => {
    const seeded = () => both.every(({ dir }) => readDemo(dir)?.seeded)
    await until(seeded, { timeout_ms: PATIENCE_MS, every_ms: 500, what: 'both demos' })
    // The demo of the tools on PATH comes after the data, one operation a tool.
    const settled = (one: (typeof both)[number]) =>
      until(
        async () => {
          const { rows, engine } = await operationsOf(one)
          return rows.length >= 3 && rows.join() === engine.join() ? rows : undefined
        },
        { timeout_ms: PATIENCE_MS, every_ms: 500, what: 'an engine that runs the operations of its platform alone' },
      )
    const [a, b] = await Promise.all(both.map(settled))
    expect(a?.filter((id) => b?.includes(id))).toEqual([])
  })
})

describe('an app whose port is taken while it is down', () => {
  it('gets another one, its callers learn of it, and run.json names it', async () => {
    const before = left.run().apps.catalog as { pid: number; port: number; internal: number }
    // A thief takes the port in the moment between the end and the next bind.
    const thief = createServer()
    process.kill(before.pid, 'SIGSTOP')
    process.kill(before.pid, 'SIGKILL')
    await until(async () => {
      thief.listen(before.internal, '127.0.0.1')
      return Promise.race([once(thief, 'listening').then(() => true), once(thief, 'error').then(() => false)])
    })
    await startOf(left).says(new RegExp(`port ${before.internal} is taken, using`), 120_000)
    await startOf(left).says(/operations +starts again: a port has moved/, 120_000)
    const moved = await until(
      () => {
        const now = left.run().apps.catalog
        return now?.internal !== before.internal ? now : undefined
      },
      { timeout_ms: 120_000, every_ms: 250, what: 'the new port in run.json' },
    )
    await until(
      async () => {
        const ready = Object.values(left.run().apps).map(({ internal }) =>
          fetch(`http://127.0.0.1:${internal}/health/ready`).then((reply) => reply.ok),
        )
        return (await Promise.all(ready)).every(Boolean)
      },
      { timeout_ms: PATIENCE_MS, every_ms: 500, what: 'every app ready' },
    )
    expect(moved.port).toBe(before.port)
    thief.close()
    const eva = await left.signIn('eva', PATIENCE_MS)
    expect((await eva.get<{ items: unknown[] }>('/v1/resources?page_size=5')).items).toHaveLength(5)
  })
})

describe('SIGINT to the outermost process alone', () => {
  it('ends everything that it started', async () => {
    startOf(right).signal('SIGINT')
    expect(await startOf(right).ended).toBe(0)
    expect(startOf(right).text()).toContain('SIGINT: stopping in order')
    expect(right.processes()).toEqual([])
  })

  it('also ends a start that is half-way', async () => {
    running.set(right, right.start())
    await startOf(right).says(/postgres +up in/, PATIENCE_MS)
    startOf(right).signal('SIGTERM')
    const code = await startOf(right).ended
    expect(code, startOf(right).text()).toBe(0)
    expect(right.processes()).toEqual([])
  })

  it('as does killing that process', async () => {
    startOf(left).signal('SIGKILL')
    await until(() => left.processes().length === 0, { timeout_ms: 120_000, every_ms: 250, what: 'the end of all' })
  })
})
