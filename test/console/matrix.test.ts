import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Graph, GraphNode } from '../../apps/console/api/types.ts'
import { GraphStates } from '../../apps/console/graph/states.ts'
import { isMatrixFirst, linesOf, matrixOf, placeAfter, placeOf } from '../../apps/console/matrix/cells.ts'
import { median, placeGates } from '../../apps/console/matrix/gates.ts'
import { pathsOf } from '../../apps/console/matrix/rail.tsx'
import { searchOf, whyOf } from '../../apps/console/matrix/why.ts'

const node = (name: string, target_id: string | null, more: Partial<GraphNode> = {}) =>
  ({ node_id: name, name, target_id, group: null, state: 'pending', depends_on: [], gates: [], ...more }) as GraphNode
const graph = (nodes: GraphNode[], gates: Partial<Graph['gates'][number]>[] = []) =>
  ({ nodes, gates, groups: [] }) as unknown as Graph
const statesOf = (drawn: Graph) => {
  const states = new GraphStates()
  states.update(drawn)
  return states
}

describe('targets by steps', () => {
  it('come first if at least six targets share two steps, few cells are empty, and no work or gate is left out', () => {
    const hosts = (count: number) => Array.from({ length: count }, (_, at) => `w${at}`)
    const first = (drawn: Graph) => {
      const matrix = matrixOf(drawn)
      return matrix !== null && isMatrixFirst(drawn, matrix)
    }
    const nodes = (step: string, names: string[]) => names.map((host) => node(`${step} ${host}`, host))
    const steps = (count: number, left_out = 0, ...more: GraphNode[]) =>
      graph([...nodes('drain', hosts(count)), ...nodes('move', hosts(count).slice(left_out)), ...more])
    expect([5, 6, 40].map((count) => first(steps(count)))).toEqual([false, true, true])
    expect([steps(10, 4), steps(10, 5)].map(first)).toEqual([true, false])
    expect(first(steps(6, 0, node('compare all', null)))).toBe(false)
    const barrier = node('all moved', null, { kind: 'barrier' })
    expect(first(steps(6, 0, barrier))).toBe(true)
    const guarding = (...guards: string[]) => graph(steps(6, 0, barrier).nodes, [{ gate_id: 'go', guards }])
    expect([guarding('all moved'), guarding('all moved', 'move w0')].map(first)).toEqual([false, true])
    // 0.8 * 30 is a little more than 24.
    const five = (left_out: number) =>
      graph(['a', 'b', 'c', 'd', 'e'].flatMap((step, at) => nodes(step, hosts(6).slice([0, 0, 0, 3, left_out][at]))))
    expect([five(3), five(4)].map(first)).toEqual([true, false])
  })

  it('hold every node with a target exactly once, in its row and step, for any plan', () => {
    const step = fc.constantFrom('drain', 'put back', 'check the health of')
    const plan = fc.array(fc.tuple(step, fc.nat({ max: 5 })), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(plan, (pairs) => {
        const nodes = pairs.map(([name, host], at) => node(`${name} Host ${host}`, `h${host}`, { node_id: `n${at}` }))
        const matrix = matrixOf(graph([...nodes, node('barrier', null)]))
        if (matrix === null) return
        const cells = matrix.rows.flatMap((row) =>
          row.cells.flatMap((cell, at) => (cell ? [{ cell, row, step: matrix.steps[at] }] : [])),
        )
        expect(cells.map(({ cell }) => cell.node_id).sort()).toEqual(nodes.map(({ node_id }) => node_id).sort())
        for (const { cell, row, step: title } of cells) {
          expect(cell.target_id).toBe(row.target_id)
          expect(cell.name.startsWith(title ?? '-')).toBe(true)
        }
      }),
    )
  })

  it('use the names of steps and targets, and leave a step out if a target has none', () => {
    const nodes = [
      node('drain Web 1', 'w1'),
      node('check Web 1', 'w1'),
      node('drain Web 2', 'w2'),
      node('check Web 2', 'w2'),
    ]
    const matrix = matrixOf(graph([...nodes, node('reinstall Web 2', 'w2')]))
    expect(matrix?.steps).toEqual(['drain', 'check', 'reinstall'])
    expect(matrix?.rows.map(({ name, cells }) => [name, cells.map((cell) => cell?.node_id)])).toEqual([
      ['Web 1', ['drain Web 1', 'check Web 1', undefined]],
      ['Web 2', ['drain Web 2', 'check Web 2', 'reinstall Web 2']],
    ])
    if (matrix === null) return
    expect(placeAfter({ key: 'ArrowDown' }, [0, 1], matrix)).toEqual([1, 1])
    expect(placeAfter({ key: 'ArrowDown' }, [1, 1], matrix)).toEqual([1, 1])
    expect(placeAfter({ key: 'End' }, [1, 0], matrix)).toEqual([1, 2])
    expect(placeAfter({ key: 'End', ctrlKey: true }, [0, 0], matrix)).toEqual([1, 2])
    expect(placeAfter({ key: 'Home', ctrlKey: true }, [1, 2], matrix)).toEqual([0, 0])
    expect(placeAfter({ key: 'x' }, [1, 0], matrix)).toBeUndefined()
    const broken = (by: 1 | -1, at: [number, number]) =>
      placeOf(by, at, matrix, ({ name }) => ['check Web 1', 'drain Web 2', 'reinstall Web 2'].includes(name))
    expect([broken(1, [0, 0]), broken(1, [0, 1]), broken(1, [1, 0]), broken(1, [1, 2])]).toEqual([
      ...[
        [0, 1],
        [1, 0],
        [1, 2],
      ],
      undefined,
    ])
    expect([broken(-1, [1, 2]), broken(-1, [1, 0]), broken(-1, [0, 1])]).toEqual([[1, 0], [0, 1], undefined])
  })

  it('are not offered if no two targets share a step', () => {
    expect(matrixOf(graph([node('a', null), node('b', null)]))).toBeNull()
    expect(matrixOf(graph([node('drain w1', 'w1'), node('check w2', 'w2')]))).toBeNull()
  })
})

describe('blocks of the matrix', () => {
  const hosts = Array.from({ length: 24 }, (_, at) => `w${at}`)
  const blocksOf = (groupOf: (at: number) => string) => {
    const matrix = matrixOf(graph(hosts.map((host, at) => node(`drain ${host}`, host, { group: groupOf(at) }))))
    if (matrix === null) throw new Error('no matrix')
    return matrix
  }
  const rowsBy = (keys: string[], matrix: ReturnType<typeof blocksOf>) => {
    const visited: [number, number][] = [[0, 0]]
    for (const key of keys) visited.push(placeAfter({ key }, visited.at(-1) ?? [0, 0], matrix) ?? [0, 0])
    return visited.slice(1).map(([row]) => row)
  }

  it('lie together, so that a key leads to the row below', () => {
    const { rows } = blocksOf((at) => (at % 2 === 0 ? 'even' : 'odd'))
    expect(rows.map(({ group }) => group)).toEqual([...Array(12).fill('even'), ...Array(12).fill('odd')])
  })

  it('are the pages of the page keys; without blocks a page has ten rows', () => {
    const three = blocksOf((at) => (at < 4 ? 'canary' : at < 14 ? 'first' : 'rest'))
    expect(rowsBy(['PageDown', 'PageDown', 'PageDown', 'PageUp', 'PageUp', 'PageUp'], three)).toEqual([
      4, 14, 23, 14, 4, 0,
    ])
    const one = blocksOf(() => 'all')
    expect(rowsBy(['PageDown', 'PageDown', 'PageDown', 'PageUp'], one)).toEqual([10, 20, 23, 13])
  })
})

describe('gates of the matrix', () => {
  const hosts = ['w1', 'w2', 'w3', 'w4']
  const nodes = hosts.flatMap((host, at) =>
    ['drain', 'move'].map((step) => node(`${step} ${host}`, host, { group: at < 2 ? 'canary' : 'rest' })),
  )
  const placed = (guards: string[]) => {
    const drawn = graph(nodes, [{ gate_id: 'go', guards }])
    const matrix = matrixOf(drawn)
    if (matrix === null) throw new Error('no matrix')
    const { columns, blocks, single, cells } = placeGates(drawn, matrix)
    return { columns: [...columns.keys()], blocks: [...blocks.keys()], single: single.length, cells: [...cells] }
  }
  const none = { columns: [], blocks: [], single: 0, cells: [] }

  it('stand before a column, above whole blocks, or as a number in the cells of the first guarded nodes', () => {
    expect(placed(hosts.map((host) => `move ${host}`))).toEqual({ ...none, columns: [1] })
    expect(placed(nodes.map(({ name }) => name))).toEqual({ ...none, columns: [0] })
    expect(placed(['drain w3', 'move w3', 'drain w4'])).toEqual({ ...none, blocks: ['rest'] })
    expect(placed(['move w3', 'drain w1', 'move w1'])).toEqual({
      ...none,
      single: 1,
      cells: [
        ['drain w1', [1]],
        ['move w3', [1]],
      ],
    })
    expect(placed(['elsewhere'])).toEqual(none)
  })

  it('show their median duration', () => {
    expect([median([]), median([5]), median([9, 1, 4]), median([4, 1, 2, 9])]).toEqual([undefined, 5, 4, 3])
  })
})

describe('the wait of a node', () => {
  it('is a chain to the failed node, whatever else it waits for', () => {
    const drawn = graph([
      node('bad', null, { state: 'failed' }),
      node('fine', null, { state: 'succeeded' }),
      node('runs', null, { state: 'running' }),
      node('middle', null, { depends_on: ['fine', 'runs', 'bad'] }),
      node('last', null, { depends_on: ['middle'] }),
    ])
    const names = (id: string) =>
      whyOf(drawn, statesOf(drawn), id).map((link) => ('node' in link ? link.node.node_id : ''))
    expect(names('last')).toEqual(['middle', 'bad'])
    // The plan passes over this failure: the wait is for the other.
    const passed = graph([
      node('bad', null, { state: 'failed', exception: 'tolerate' }),
      node('runs', null, { state: 'running' }),
      node('last', null, { depends_on: ['bad', 'runs'] }),
    ])
    expect(whyOf(passed, statesOf(passed), 'last')).toMatchObject([{ node: { node_id: 'runs' } }])
    expect(names('bad')).toEqual([])
    expect(names('fine')).toEqual([])
  })

  it('ends at the gate before the first otherwise free node; a gate that was approved or bypassed holds no node', () => {
    const nodes = [
      node('first', null, { gates: ['go'] }),
      node('second', null, { depends_on: ['first'], gates: ['go'] }),
    ]
    const at = (state: string) => {
      const drawn = graph(nodes, [{ gate_id: 'go', question: 'Go?', state: state as 'waiting' }])
      return whyOf(drawn, statesOf(drawn), 'second').map((link) =>
        'gate' in link ? link.gate.question : link.node.name,
      )
    }
    expect(at('waiting')).toEqual(['first', 'Go?'])
    for (const open of ['approved', 'bypassed']) expect(at(open)).toEqual(['first'])
  })
})

it('finds nodes by all words of name, target and newest status', () => {
  const nodes = [node('drain web', 'eu1-01'), node('check web', 'eu1-01'), node('done', null)]
  const states: Record<string, string> = { 'drain web': 'pending' }
  const search = searchOf(nodes, (node_id) => states[node_id] ?? '')
  const names = (text: string) => {
    const { matches, all } = search(text)
    if (text.trim() !== '') expect(nodes.filter(matches)).toEqual(all())
    return all().map(({ name }) => name)
  }
  expect(names('WEB eu1')).toEqual(['drain web', 'check web'])
  expect(names('failed')).toEqual([])
  states['drain web'] = 'Failed'
  expect(names('failed')).toEqual(['drain web'])
  expect(names('check failed')).toEqual([])
  expect(names(' ')).toEqual([])
})

it('makes the texts of a plan once, however many letters follow', () => {
  let reads = 0
  const counted = {
    get name() {
      reads += 1
      return 'drain web'
    },
  }
  const nodes = [Object.defineProperties(node('', null), Object.getOwnPropertyDescriptors(counted))]
  const search = searchOf(nodes, () => '')
  for (const text of ['d', 'dr', 'x', 'drain']) search(text).all()
  expect(reads).toBe(1)
})

it('draws a rail of one path per tone, with a bar for the lines of a step that share it', () => {
  const drawn = graph([
    node('drain w1', 'w1', { state: 'succeeded' }),
    node('check w1', 'w1', { state: 'failed' }),
    node('drain w2', 'w2', { state: 'succeeded' }),
  ])
  const matrix = matrixOf(drawn)
  if (matrix === null) throw new Error('no matrix')
  const paths = pathsOf(matrix, linesOf(matrix), statesOf(drawn))
  expect([...paths]).toEqual([
    ['ok', 'M0 0h.9v2h-.9z'],
    ['bad', 'M1 0h.9v1h-.9z'],
  ])
})
