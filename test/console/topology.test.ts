import { expect, it } from 'vitest'
import { CELL, contentsOf, type Resource, squareAt, squaresOf, stepFrom } from '../../apps/console/topology/squares.ts'
import type { Graph } from '../../apps/shared/contracts/topology/graphs.ts'

const HEALTH = ['healthy', 'degraded', 'unhealthy', 'unknown', 'maintenance']
const resources = Array.from({ length: 10_000 }, (_, at) => ({
  health_status: (HEALTH[at % 7] ?? 'healthy') as Resource['health_status'],
}))
const count = (path = '') => path.match(/M[^M]*/g)?.length ?? 0

it('draws 10,000 resources as one path per health, and finds the resource at any point', () => {
  const { across, paths, width, height } = squaresOf(resources)
  const drawn = Object.fromEntries([...paths].map(([health, path]) => [health, count(path)]))
  const wanted = Object.groupBy(resources, ({ health_status }) => health_status)
  for (const [health, all = []] of Object.entries(wanted))
    expect([health, drawn[health]]).toEqual([health, all.length * (health === 'maintenance' ? 2 : 1)])
  for (let n = 0; n < 1000; n++) {
    const [x, y] = [Math.random() * width, Math.random() * height]
    const at = squareAt(x, y, across, resources.length)
    expect(at).toBe(Math.floor(y / CELL) * across + Math.floor(x / CELL))
  }
  for (const [x, y] of [
    [-1, 5],
    [width + 1, 5],
    [5, height + 1],
    [5, -1],
  ] as const)
    expect(squareAt(x, y, across, resources.length)).toBeUndefined()
})

it('changes one square for one change', () => {
  const parts = (all: typeof resources) =>
    new Set([...squaresOf(all).paths.values()].flatMap((path) => path.match(/M[^M]*/g)))
  const before = parts(resources)
  const after = parts(resources.with(5, { health_status: 'unhealthy' }))
  expect([...after].filter((part) => !before.has(part))).toHaveLength(1)
})

it('is walked by keys to its edges', () => {
  const step = (at: number, key: string) => stepFrom(at, key, 16, 40)
  expect([step(0, 'ArrowRight'), step(0, 'ArrowDown'), step(0, 'ArrowLeft'), step(30, 'ArrowDown')]).toEqual([
    1, 16, 0, 30,
  ])
  expect(step(7, 'a')).toBeUndefined()
})

it('puts each resource into its innermost place, by name, and nothing if a part is missing', () => {
  const node = (resource_id: string) => ({ resource_id, name: resource_id, health_status: 'healthy' })
  const graph = {
    nodes: ['dc', 'web', 'host-10', 'host-2', 'disk'].map(node),
    edges: [
      ['web', 'dc'],
      ['host-10', 'web'],
      ['host-2', 'web'],
      ['disk', 'host-2'],
    ].map(([from, to]) => ({ from, to })),
    truncated: { nodes: false, edges: false, fanout: false, depth: false },
  } as unknown as Graph
  const places = new Set(['dc', 'web'])
  const inside = contentsOf(graph, places)
  expect(inside?.get('web')?.map(({ name }) => name)).toEqual(['disk', 'host-2', 'host-10'])
  expect(contentsOf({ ...graph, truncated: { ...graph.truncated, nodes: true } }, places)).toBeUndefined()
})
