import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TimelineEvent } from '../../apps/console/api/types.ts'
import { asksOf, type Bar, barsOf, type Fact, pausesOf } from '../../apps/console/history/bars.ts'
import { blameOf } from '../../apps/console/history/blame.ts'
import { foldedByNode, keyOfLine, triedOf } from '../../apps/console/history/words.ts'

const at = (ms: number) => new Date(ms).toISOString()
const fact = (type: string, ms: number, data: Record<string, unknown> = {}, of: Partial<Fact> = {}): Fact => ({
  type,
  at: at(ms),
  node_id: type.startsWith('node.') ? 'a' : null,
  gate_id: null,
  data,
  ...of,
})
const short = (bars: readonly Bar[] = []) =>
  bars.map(({ kind, from, to, open, attempt, state }) => [kind, from, to, open ? 'open' : state, attempt])
const error = { class: 'remote_error', message: 'answered 503', retryable: true }

/** The events of a node as a platform wrote them: failed, tried again, held, retried by a person. */
const RETRIED = [
  fact('node.running', 10, { attempt: 1, generation: 1 }),
  fact('node.backoff', 20, { error, due_at: at(30), attempt: 1, generation: 1, started_at: at(10) }),
  fact('node.running', 39, { attempt: 2, generation: 1 }),
  fact('node.failed', 50, { error, attempt: 2, generation: 1, started_at: at(39) }),
  fact('node.reset', 70, { scope: 'downstream', generation: 2 }),
  fact('node.dispatched', 71, { attempt: 3, generation: 2 }),
  fact('node.succeeded', 90, { attempt: 3, generation: 2, started_at: at(72) }),
]

describe('the bars of a node', () => {
  it('are its attempts with their outcome, the back-off, the queue after it, and the wait for a person', () => {
    const bars = barsOf(RETRIED, 1000).get('a')
    expect(short(bars)).toEqual([
      ['run', 10, 20, 'failed', 1],
      ['backoff', 20, 30, 'backoff', 1],
      ['queue', 30, 39, 'ready', undefined],
      ['run', 39, 50, 'failed', 2],
      ['hold', 50, 70, 'failed', 2],
      ['run', 72, 90, 'succeeded', 3],
    ])
    expect(bars?.[0]?.error).toBe('answered 503')
  })

  it('reach to the present while the node runs, waits for a retry, or waits for a person', () => {
    const until = (count: number) => short(barsOf(RETRIED.slice(0, count), 25).get('a')).at(-1)
    expect(until(1)).toEqual(['run', 10, 25, 'open', 1])
    expect(until(2)).toEqual(['backoff', 20, 25, 'open', 1])
    expect(short(barsOf(RETRIED.slice(0, 4), 60).get('a')).at(-1)).toEqual(['hold', 50, 60, 'open', 2])
    expect(short(barsOf(RETRIED.slice(0, 4), 60, () => false).get('a')).at(-1)).toEqual(['run', 39, 50, 'failed', 2])
    const drifted = fact('node.failed', 50, { error: { class: 'target_drifted' }, attempt: 1, started_at: at(39) })
    expect(short(barsOf([drifted], 60, () => false).get('a')).at(-1)).toEqual(['hold', 50, 60, 'open', 1])
  })

  it('skip an attempt that a pause sent back; a decision after the end is not another attempt', () => {
    const refused = [fact('node.dispatched', 5, { attempt: 1 }), fact('node.ready', 6), RETRIED[0] as Fact]
    expect(short(barsOf(refused, 12).get('a'))).toEqual([
      ['queue', 6, 10, 'ready', undefined],
      ['run', 10, 12, 'open', 1],
    ])
    const marked = [
      ...RETRIED.slice(0, 4),
      fact('node.succeeded', 60, { attempt: 2, exception: 'marked', started_at: at(39) }),
    ]
    expect(short(barsOf(marked, 99).get('a')).slice(-3)).toEqual([
      ['run', 39, 50, 'failed', 2],
      ['hold', 50, 60, 'failed', 2],
      ['end', 60, 60, 'succeeded', 2],
    ])
    expect(short(barsOf([fact('node.skipped', 7)], 99).get('a'))).toEqual([['end', 7, 7, 'skipped', undefined]])
  })
})

describe('the list of events', () => {
  const system = { kind: 'service', id: 'worker', name: 'worker' }
  const person = { kind: 'user', id: 'u1', name: 'olga' }
  const listed = (facts: Fact[], actor: object = system) =>
    facts.map((one, seq) => ({ ...one, seq, actor }) as unknown as TimelineEvent).toReversed()

  it('has one line per node for all that the system has recorded, with the attempts and their time', () => {
    const [line, ...others] = foldedByNode(listed(RETRIED))
    expect(others).toEqual([])
    expect([line?.type, line?.earlier?.map(({ seq }) => seq)]).toEqual(['node.succeeded', [5, 4, 3, 2, 1, 0]])
    expect(line && triedOf(line)).toEqual({ attempts: 3, ran_ms: 10 + 11 + 18 })
  })

  it('keeps the key of a line when a newer event joins it, so that its opened events stay open', () => {
    const keys = [2, 3, RETRIED.length].map((count) => foldedByNode(listed(RETRIED.slice(0, count))).map(keyOfLine))
    expect(keys).toEqual([[0], [0], [0]])
    expect(listed(RETRIED.slice(0, 2)).map(keyOfLine)).toEqual([1, 0])
  })

  it('hides no act of a person, and no event of a gate or of the operation', () => {
    const acts = listed([fact('node.reset', 1), fact('node.skipped', 2)], person)
    const rest = listed([fact('gate.waiting', 3, {}, { node_id: 'a' }), fact('operation.paused', 4)])
    const events = [...rest, ...acts].map((event, seq) => ({ ...event, seq }))
    expect(foldedByNode(events).map(({ seq, earlier }) => [seq, earlier])).toEqual(events.map(({ seq }) => [seq, []]))
  })
})

describe('waits of the operation', () => {
  it('are pauses from the command to the resume, and a gate from each question to its decision', () => {
    const events = [
      fact('operation.pausing', 10),
      fact('operation.paused', 15),
      fact('gate.waiting', 16, {}, { gate_id: 'go' }),
      fact('gate.waiting', 17, {}, { gate_id: 'other' }),
      fact('operation.resumed', 20),
      fact('gate.voted', 24, {}, { gate_id: 'go' }),
      fact('gate.approved', 25, {}, { gate_id: 'go' }),
      fact('gate.reopened', 30, {}, { gate_id: 'go' }),
      fact('operation.pausing', 40),
    ]
    expect(short(pausesOf(events, 50))).toEqual([
      ['pause', 10, 20, 'resumed', undefined],
      ['pause', 40, 50, 'open', undefined],
    ])
    expect(short(asksOf(events, 50, 'go'))).toEqual([
      ['gate', 16, 25, 'approved', undefined],
      ['gate', 30, 50, 'open', undefined],
    ])
  })
})

describe('the critical path', () => {
  it('names node, attempts, back-off, person, gate and pause, each with its duration', () => {
    const of = (node_id: string) => ({ node_id })
    const events = [
      ...RETRIED,
      fact('node.gated', 92, {}, of('b')),
      fact('operation.pausing', 95),
      fact('node.ready', 100, {}, of('b')),
      fact('operation.resumed', 130),
      fact('node.running', 133, { attempt: 1 }, of('b')),
      fact('node.succeeded', 140, { attempt: 1, started_at: at(133) }, of('b')),
      fact('node.running', 8, { attempt: 1 }, of('quick')),
      fact('node.succeeded', 9, { attempt: 1, started_at: at(8) }, of('quick')),
    ]
    const times = { from: 0, started: 6, now: 140, bars: barsOf(events, 140), pauses: pausesOf(events, 140) }
    const nodes = [
      { node_id: 'a', depends_on: [] },
      { node_id: 'quick', depends_on: [] },
      { node_id: 'b', depends_on: ['quick', 'a'] },
    ]
    const blame = blameOf(nodes, times)
    expect(blame?.links.map(({ node_id, from, to }) => [node_id, from, to])).toEqual([
      ['a', 0, 90],
      ['b', 90, 140],
    ])
    expect(Object.fromEntries(blame?.sums.map(({ cause, ms }) => [cause, ms]) ?? [])).toEqual({
      ...{ start: 6, run: 10 + 11 + 18 + 7, backoff: 10, hold: 20 },
      ...{ gate: 8, pause: 30, queue: 4 + 9 + 2 + 2 + 3 },
    })
    expect(blameOf(nodes, times, 'quick')?.links.map(({ node_id }) => node_id)).toEqual(['quick'])
  })

  it('of a node that has not started leads to the node that everything waits for', () => {
    const events = [fact('node.running', 10, { attempt: 1 }), ...RETRIED.slice(1, 4)]
    const times = { from: 0, started: 5, now: 80, bars: barsOf(events, 80), pauses: [] }
    const nodes = ['a', 'b', 'c'].map((node_id, n) => ({ node_id, depends_on: n === 0 ? [] : ['ab'[n - 1] ?? ''] }))
    const blame = blameOf(nodes, times, 'c')
    expect(blame?.links.map(({ from, to }) => [from, to])).toEqual([
      [0, 80],
      [80, 80],
      [80, 80],
    ])
    expect(blame?.links[0]?.pieces.at(-1)).toMatchObject({ cause: 'hold', from: 50, to: 80, open: true })
  })

  it('is the longest chain of any plan, and its parts add up to the millisecond', () => {
    const kinds = fc.constantFrom('run' as const, 'backoff' as const, 'gate' as const, 'hold' as const)
    const one = fc.record({
      before: fc.array(fc.nat(), { maxLength: 4 }),
      bars: fc.array(fc.tuple(fc.nat({ max: 9 }), kinds, fc.nat({ max: 50 })), { minLength: 1, maxLength: 5 }),
    })
    const pause = fc.tuple(fc.nat({ max: 300 }), fc.nat({ max: 80 }))
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 9 }), pause, (plan, [paused, length]) => {
        const bars = new Map<string, Bar[]>()
        const nodes = plan.map(({ before }, n) => ({
          node_id: `n${n}`,
          depends_on: n === 0 ? [] : [...new Set(before.map((b) => `n${b % n}`))],
        }))
        const ends = new Map<string, number>()
        const own = new Map<string, number>()
        plan.forEach(({ bars: parts }, n) => {
          const { node_id, depends_on } = nodes[n] as (typeof nodes)[number]
          const begin = Math.max(0, ...depends_on.map((id) => ends.get(id) ?? 0))
          const made: Bar[] = []
          for (const [gap, kind, ms] of parts) {
            const from = (made.at(-1)?.to ?? begin) + gap
            made.push({ kind, from, to: from + ms, open: false, state: 'x' })
          }
          bars.set(node_id, made)
          ends.set(node_id, made.at(-1)?.to ?? begin)
          own.set(node_id, (made.at(-1)?.to ?? begin) - begin)
        })
        // By brute force: the longest of all chains from a first node to a last one.
        const longest = (id: string): number =>
          (own.get(id) ?? 0) +
          Math.max(0, ...(nodes.find(({ node_id }) => node_id === id)?.depends_on ?? []).map(longest))
        const total = Math.max(...nodes.map(({ node_id }) => longest(node_id)))
        const pauses: Bar[] = [{ kind: 'pause', from: paused, to: paused + length, open: false, state: 'x' }]
        const blame = blameOf(nodes, { from: 0, started: 3, now: 9999, bars, pauses })
        const pieces = blame?.links.flatMap((link) => link.pieces) ?? []
        expect(blame?.to).toBe(total)
        expect(blame?.sums.reduce((sum, { ms }) => sum + ms, 0)).toBe(total)
        expect(pieces.map(({ from }) => from)).toEqual(pieces.map((_, n) => pieces[n - 1]?.to ?? 0))
        for (const [n, { node_id, from, to }] of blame?.links.entries() ?? []) {
          expect(to - from).toBe(own.get(node_id))
          const next = nodes.find((node) => node.node_id === blame?.links[n + 1]?.node_id)
          if (next) expect(next.depends_on).toContain(node_id)
        }
        // Time that no bar explains is before the start, paused, or queued.
        const explained = pieces.filter(({ cause }) => !['start', 'pause', 'queue'].includes(cause))
        const inBars = (blame?.links ?? []).flatMap(({ node_id }) => bars.get(node_id) ?? [])
        const lengthOf = (parts: { from: number; to: number }[]) => parts.reduce((sum, p) => sum + p.to - p.from, 0)
        expect(lengthOf(explained)).toBe(lengthOf(inBars))
      }),
    )
  })
})
