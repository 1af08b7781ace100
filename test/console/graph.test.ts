import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Graph, GraphNode } from '../../apps/console/api/types.ts'
import { waitingBehind } from '../../apps/console/graph/gates.ts'
import { columns, type Drawing, visibleGraph } from '../../apps/console/graph/layout.ts'
import { GraphStates } from '../../apps/console/graph/states.ts'
import { boxAfter } from '../../apps/console/graph/walk.ts'

const node = (node_id: string, depends_on: string[] = [], more: Partial<GraphNode> = {}): GraphNode => ({
  node_id,
  name: node_id,
  kind: 'task',
  executor: 'http',
  target_id: null,
  group: null,
  state: 'pending',
  attempt: 0,
  generation: 1,
  depends_on,
  join: 'all',
  gates: [],
  risk: 0,
  on_failure: 'hold',
  has_compensation: false,
  estimate_s: 1,
  held_by_patch: false,
  exception: null,
  ran_ms: null,
  ...more,
})
const graph = (nodes: GraphNode[], more: Partial<Graph> = {}): Graph => ({
  plan_revision: 1,
  plan_hash: '',
  nodes,
  groups: [],
  gates: [],
  critical_path: [],
  change_seq: 1,
  as_of: '',
  ...more,
})

describe('columns by longest path', () => {
  it('put every node to the right of its dependencies, for any plan', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.nat({ max: 30 }), { maxLength: 4 }), { minLength: 1, maxLength: 30 }),
        (edges) => {
          const nodes = edges.map((from, at) =>
            node(
              `n${at}`,
              [...new Set(from)].filter((id) => id < at).map((id) => `n${id}`),
            ),
          )
          const { boxes } = columns(graph(nodes), new Set())
          const x = new Map(boxes.map((box) => [box.id, box.x]))
          expect(boxes).toHaveLength(nodes.length)
          for (const one of nodes)
            for (const before of one.depends_on) expect(x.get(before)).toBeLessThan(x.get(one.node_id) ?? 0)
          expect(new Set(boxes.map((box) => `${box.x}/${box.y}`)).size).toBe(boxes.length)
        },
      ),
    )
  })

  it('draw a folded group as one box, with the edges of its nodes', () => {
    const plan = graph(
      [node('a'), node('b', ['a'], { group: 'g' }), node('c', ['b'], { group: 'g' }), node('d', ['c'])],
      { groups: [{ group_id: 'g', name: 'Batch 1', kind: 'batch', counts: {} }] },
    )
    expect([...visibleGraph(plan, new Set(['g'])).edges.keys()]).toEqual(['a>g', 'g>d'])
    expect(columns(plan, new Set(['g'])).boxes.map((box) => box.id)).toEqual(['a', 'g', 'd'])
  })
})

describe('gates in the drawing', () => {
  const gate = (gate_id: string, guards: string[]) => ({
    gate_id,
    question: `${gate_id}?`,
    guards,
    state: 'armed' as const,
  })
  const edgesOf = (plan: Graph, folded: string[] = []) => [...visibleGraph(plan, new Set(folded)).edges.keys()]

  it('stand between the nodes that they guard and their dependencies', () => {
    const plan = graph([node('a'), node('b', ['a']), node('c', ['a']), node('d', ['b', 'c'])], {
      gates: [gate('go', ['b', 'c'])],
    })
    expect(edgesOf(plan)).toEqual(['b>d', 'c>d', 'a>gate/go', 'gate/go>b', 'gate/go>c'])
    const { boxes } = columns(plan, new Set())
    expect(boxes.map(({ id, kind, x }) => [id, kind, x / 240])).toEqual([
      ['a', 'node', 0],
      ['gate/go', 'gate', 1],
      ['b', 'node', 2],
      ['c', 'node', 2],
      ['d', 'node', 3],
    ])
  })

  it('stand at the entry before first nodes, and before the first of several guarded nodes in a row', () => {
    const plan = graph([node('a'), node('b', ['a']), node('c', ['b'])], { gates: [gate('entry', ['a', 'b', 'c'])] })
    expect(edgesOf(plan)).toEqual(['a>b', 'b>c', 'gate/entry>a'])
  })

  it('show no wait that does not exist', () => {
    const plan = graph([node('a'), node('b'), node('c', ['a']), node('d', ['b'])], { gates: [gate('go', ['c', 'd'])] })
    expect(edgesOf(plan)).toEqual(['a>c', 'b>d', 'gate/go>c', 'gate/go>d'])
  })

  it('are not drawn into a folded group, and guard the whole group', () => {
    const plan = graph([node('a'), node('b', ['a'], { group: 'g' }), node('c', ['b'], { group: 'g' })], {
      groups: [{ group_id: 'g', name: 'Batch 1', kind: 'batch', counts: {} }],
      gates: [gate('before', ['b']), gate('within', ['c'])],
    })
    expect(edgesOf(plan, ['g'])).toEqual(['a>gate/before', 'gate/before>g', 'gate/within>g'])
  })

  it('never close a cycle, and keep the order of every plan', () => {
    const plans = fc.array(fc.array(fc.nat({ max: 20 }), { maxLength: 3 }), { minLength: 1, maxLength: 20 })
    const guards = fc.array(fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 6 }), { maxLength: 6 })
    fc.assert(
      fc.property(plans, guards, (edges, guarded) => {
        const nodes = edges.map((from, at) =>
          node(
            `n${at}`,
            [...new Set(from)].filter((id) => id < at).map((id) => `n${id}`),
          ),
        )
        const gates = guarded.map((ids, at) =>
          gate(
            `g${at}`,
            [...new Set(ids)].map((id) => `n${id}`),
          ),
        )
        const plan = graph(nodes, { gates })
        const { boxes } = columns(plan, new Set())
        const x = new Map(boxes.map((box) => [box.id, box.x]))
        for (const { from, to } of visibleGraph(plan, new Set()).edges.values())
          expect(x.get(from)).toBeLessThan(x.get(to) ?? 0)
        for (const one of nodes)
          for (const before of one.depends_on) expect(x.get(before)).toBeLessThan(x.get(one.node_id) ?? 0)
      }),
    )
  })
})

describe('walking the drawing by keys', () => {
  const drawing: Drawing = columns(
    graph([node('a'), node('b', ['a']), node('c', ['a']), node('d', ['b', 'c'])]),
    new Set(),
  )

  it('follows edges sideways and neighbors up and down, and stops at the ends', () => {
    expect(boxAfter(drawing, 'a', 'ArrowRight')).toBe('b')
    expect(boxAfter(drawing, 'b', 'ArrowDown')).toBe('c')
    expect(boxAfter(drawing, 'c', 'ArrowUp')).toBe('b')
    expect(boxAfter(drawing, 'c', 'ArrowRight')).toBe('d')
    expect(boxAfter(drawing, 'd', 'ArrowLeft')).toBe('b')
    expect(boxAfter(drawing, 'd', 'ArrowRight')).toBe('d')
    expect(boxAfter(drawing, 'd', 'x')).toBe(undefined)
  })

  it('goes ten boxes up or down by a page', () => {
    const names = Array.from({ length: 24 }, (_, n) => `n${n}`)
    const tall = columns(graph(names.map((name) => node(name))), new Set())
    const order = [...names].sort((a, b) => topOf(tall, a) - topOf(tall, b))
    expect(boxAfter(tall, order[3] ?? '', 'PageDown')).toBe(order[13])
    expect(boxAfter(tall, order[20] ?? '', 'PageDown')).toBe(order[23])
    expect(boxAfter(tall, order[13] ?? '', 'PageUp')).toBe(order[3])
  })
  const topOf = (tall: Drawing, id: string) => tall.boxes.find((box) => box.id === id)?.y ?? 0
})

describe('live states of a drawing', () => {
  it('update only the boxes whose node changed, and their group', () => {
    const states = new GraphStates()
    const before = graph([node('a', [], { group: 'g' }), node('b', ['a'])])
    states.update(before)
    const told: string[] = []
    for (const id of ['a', 'b', 'g']) states.subscribe(id, () => told.push(id))
    states.update({ ...before, nodes: [node('a', [], { group: 'g', state: 'running' }), node('b', ['a'])] })
    expect(told).toEqual(['a', 'g'])
  })

  it('update only the decided gate and the nodes behind it', () => {
    const states = new GraphStates()
    const gates = ['go', 'on'].map((gate_id) => ({ gate_id, question: '?', guards: [], state: 'waiting' as const }))
    const plan = graph([node('a', [], { gates: ['go'] }), node('b', [], { gates: ['on'] })], { gates })
    states.update(plan)
    const told: string[] = []
    for (const id of ['a', 'b', 'gate/go', 'gate/on']) states.subscribe(id, () => told.push(id))
    states.update({ ...plan, gates: gates.map((one) => (one.gate_id === 'go' ? { ...one, state: 'approved' } : one)) })
    expect(told).toEqual(['gate/go', 'a'])
    expect(states.gate('go')?.state).toBe('approved')
  })

  it('show a node behind an open gate as waiting for a person', () => {
    const states = new GraphStates()
    const gated = node('a', [], { state: 'gated', gates: ['go'] })
    states.update(graph([gated], { gates: [{ gate_id: 'go', question: '?', guards: ['a'], state: 'waiting' }] }))
    expect(states.look(gated).word).toBe('waiting_person')
    states.update(graph([gated], { gates: [{ gate_id: 'go', question: '?', guards: ['a'], state: 'approved' }] }))
    expect(states.look(gated).word).toBe('waiting')
  })
})

it('names the nodes behind another that have not begun, also after a patch has moved one', () => {
  const moved = [node('last', ['next']), node('failed', [], { state: 'failed' }), node('next', ['failed'])]
  const nodes = [...moved, node('done', ['failed'], { state: 'succeeded' }), node('beside')]
  expect(waitingBehind('failed', graph(nodes)).map(({ node_id }) => node_id)).toEqual(['last', 'next'])
})
