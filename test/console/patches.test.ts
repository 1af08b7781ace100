import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it, vi } from 'vitest'
import type { Graph, PatchChange } from '../../apps/console/api/types.ts'
import { FirstError } from '../../apps/console/briefs/first-error.tsx'
import { foldedGroups, patchedGraph } from '../../apps/console/graph/patched.ts'
import { type Choice, draftOf, placeViolations, readDraft } from '../../apps/console/patches/drafts.ts'
import { changeWords } from '../../apps/console/votes/patch-words.ts'

// Modules of pages listen to the window when they are loaded.
vi.hoisted(() => vi.stubGlobal('window', { addEventListener: () => {} }))

const WORDS = { insert_name: (name: string) => `before ${name}`, question: (name: string) => `Go on with ${name}?` }
const node = (node_id: string, depends_on: string[] = []) => ({ node_id, name: `task ${node_id}`, depends_on })
/** a and b before c, c before d; d also waits for a. */
const graph = {
  nodes: [node('a'), node('b'), node('c', ['a', 'b']), node('d', ['c', 'a'])],
  gates: [{ gate_id: 'ask' }],
} as unknown as Graph
const drafted = (choice: Choice, given: Partial<{ node: string; other: string; gate: string; limit: number }>) =>
  draftOf(choice, { node: '', other: '', gate: '', limit: 1, ...given }, graph, { url: 'x' }, WORDS)

it('shows the lines of a failed undo without a link: the log of the node is that of its run', () => {
  const client = new QueryClient()
  const lines = [{ seq: 7, text: 'cannot undo' }]
  client.setQueryData(['log-around', 'o', 'n', 1, true], { attempt: 1, lines, at: 7 })
  const shown = createElement(FirstError, { operation_id: 'o', node_id: 'n', attempts: 1, undo: true })
  const html = renderToStaticMarkup(createElement(QueryClientProvider, { client }, shown))
  expect(html).toContain('cannot undo')
  expect(html).not.toContain('<a')
})

describe('the presets of the patch editor', () => {
  it('put a step between a node and all its dependencies', () => {
    const [added, waits] = drafted('insert_before', { node: 'c' })
    expect(added).toMatchObject({ op: 'add_node', node: { node_id: 'before.c', depends_on: ['a', 'b'] } })
    expect(waits).toEqual({ op: 'add_dependency', node_id: 'c', depends_on: 'before.c' })
  })

  it('close the gap of a removed step: its dependents depend on its dependencies, each once', () => {
    expect(drafted('remove_step', { node: 'c' })).toEqual([
      { op: 'remove_dependency', node_id: 'd', depends_on: 'c' },
      { op: 'add_dependency', node_id: 'd', depends_on: 'b' },
      { op: 'remove_node', node_id: 'c' },
    ])
  })

  it('give no used id, and start new inputs from the current ones', () => {
    expect(drafted('add_gate', { node: 'd' })).toMatchObject([{ gate: { gate_id: 'ask-2', guards: ['d'] } }])
    expect(drafted('change_inputs', { node: 'd' })).toEqual([
      { op: 'update_node', node_id: 'd', set: { with: { url: 'x' } } },
    ])
  })
})

describe('a fault of a patch', () => {
  it('is shown at the change that causes it, by pointer or by node or gate; the rest is separate', () => {
    const changes: PatchChange[] = [
      { op: 'remove_node', node_id: 'c' },
      { op: 'add_dependency', node_id: 'd', depends_on: 'x' },
      { op: 'remove_gate', gate_id: 'ask' },
    ]
    const wrong = (pointer: string) => ({ pointer, code: pointer, message: pointer })
    const { at, rest } = placeViolations(
      ['/changes/0/node_id', '/nodes/d/depends_on/1', '/gates/ask', '/nodes/elsewhere', '/changes/9'].map(wrong),
      changes,
    )
    expect([...at].map(([index, list]) => [index, list.map(({ pointer }) => pointer)])).toEqual([
      [0, ['/changes/0/node_id']],
      [1, ['/nodes/d/depends_on/1']],
      [2, ['/gates/ask']],
    ])
    expect(rest.map(({ pointer }) => pointer)).toEqual(['/nodes/elsewhere', '/changes/9'])
  })

  it('includes half-typed JSON, and no typing breaks the page', () => {
    expect(readDraft('{"op":')).toMatchObject({ fault: expect.stringMatching(/JSON/) })
    expect(readDraft('[]')).toEqual({ fault: '' })
    for (const text of ['{"op":"add_node"}', '{"op":"update_node"}', '{"op":"add_gate"}', '{"op":"new"}']) {
      const read = readDraft(text)
      expect(read).toHaveProperty('change')
      expect(changeWords((read as { change: unknown }).change)).toBe('A change that this console does not recognize')
    }
    expect(placeViolations([], [{ op: 'add_node' } as never])).toEqual({ at: new Map(), rest: [] })
  })
})

describe('the drawing of a patch', () => {
  const none = { added: [], removed: [], changed: [], added_gates: [], removed_gates: [], max_parallel: null }
  const compare = (changes: PatchChange[], diff: object) => patchedGraph(graph, changes, { ...none, ...diff })
  const waits = (drawn: ReturnType<typeof compare>) =>
    Object.fromEntries(drawn.graph.nodes.map(({ node_id, depends_on }) => [node_id, depends_on]))

  it('shows new nodes in place, with their dependencies', () => {
    const changes = drafted('insert_before', { node: 'c' })
    const drawn = compare(changes, { added: ['before.c'], changed: [{ node_id: 'c', fields: [] }] })
    expect([...drawn.marks]).toEqual([
      ['c', 'changed'],
      ['before.c', 'added'],
    ])
    expect(Object.keys(waits(drawn))).toEqual(['a', 'b', 'before.c', 'c', 'd'])
    expect(Object.fromEntries(drawn.lines)).toEqual({
      'a>before.c': 'added',
      'b>before.c': 'added',
      'before.c>c': 'added',
    })
  })

  it('keeps removed nodes with their edges, and marks the nodes behind a new gate', () => {
    const gone = compare(drafted('remove_step', { node: 'c' }), {
      removed: ['c'],
      changed: [{ node_id: 'd', fields: [] }],
    })
    expect(gone.marks.get('c')).toBe('removed')
    expect(waits(gone)).toEqual({ a: [], b: [], c: ['a', 'b'], d: ['c', 'a', 'b'] })
    expect(Object.fromEntries(gone.lines)).toEqual({
      'a>c': 'removed',
      'b>c': 'removed',
      'c>d': 'removed',
      'b>d': 'added',
    })
    const guarded = compare(drafted('add_gate', { node: 'd' }), { added_gates: ['ask-2'] })
    expect([...guarded.marks]).toEqual([
      ['d', 'changed'],
      ['gate/ask-2', 'added'],
    ])
    expect(guarded.graph.gates.at(-1)).toEqual({
      gate_id: 'ask-2',
      question: 'Go on with task d?',
      guards: ['d'],
      state: 'armed',
    })
    expect(guarded.lines.size).toBe(0)
  })

  it('folds unchanged groups if the whole graph is too large', () => {
    const many = Array.from({ length: 42 }, (_, at) => ({ ...node(`n${at}`), group: at < 21 ? 'one' : 'two' }))
    const groups = [{ group_id: 'one' }, { group_id: 'two' }]
    const large = { nodes: many, gates: [], groups } as unknown as Graph
    const drawn = patchedGraph(large, [], { ...none, changed: [{ node_id: 'n30', fields: [] }] })
    expect([...foldedGroups(drawn)]).toEqual(['one'])
    expect(foldedGroups(compare([], {}))).toEqual(new Set())
  })
})
