import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Impact, NeedsGraph, ResourceRelation } from '../../apps/console/api/types.ts'
import { neighbour } from '../../apps/console/graph/walk.ts'
import { affected, needs, neighbors } from '../../apps/console/pictures/branches.ts'
import { pictureOf, type Relation } from '../../apps/console/pictures/tree.ts'

type Shape = { relations: Shape[][] }
const shape: fc.Memo<Shape> = fc.memo((depth) =>
  fc.record({
    relations:
      depth <= 1
        ? fc.constant<Shape[][]>([])
        : fc.array(fc.array(shape(depth - 1), { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
  }),
)
const beyond = ({ relations }: Shape, at: string): Relation[] =>
  relations.map((members, nr) => ({
    name: `r${nr}`,
    members: members.map((member, index) => {
      const id = `${at}.${nr}.${index}`
      return { id, beyond: beyond(member, id) }
    }),
  }))
const idsOf = (relations: readonly Relation[]): string[] =>
  relations.flatMap(({ members }) => members.flatMap(({ id, beyond }) => [id, ...idsOf(beyond)]))

describe('a picture', () => {
  it('gives every resource one box within its bounds, and no boxes or names of relations overlap', () => {
    fc.assert(
      fc.property(shape(4), shape(2), (after, before) => {
        const [right, left] = [beyond(after, 'right'), beyond(before, 'left')]
        const picture = pictureOf('root', right, left)
        expect(picture.boxes.map(({ id }) => id).sort()).toEqual(['root', ...idsOf(right), ...idsOf(left)].sort())
        const all = [...picture.boxes, ...picture.tags]
        const outside = all.filter(
          ({ x, y, width, height }) => x < 0 || y < 0 || x + width > picture.width || y + height > picture.height,
        )
        const touching = all.flatMap((a, at) =>
          all
            .slice(at + 1)
            .filter((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height),
        )
        expect([...outside, ...touching]).toEqual([])
      }),
    )
  })

  it('has a line from box edge to box edge, left to right, through the name of the relation', () => {
    fc.assert(
      fc.property(shape(3), shape(2), (after, before) => {
        const picture = pictureOf('root', beyond(after, 'right'), beyond(before, 'left'))
        const boxes = new Map(picture.boxes.map((box) => [box.id, box]))
        expect(picture.lines).toHaveLength(picture.boxes.length - 1)
        for (const { from, to, points } of picture.lines) {
          const [a, b] = [boxes.get(from), boxes.get(to)]
          expect(points[0]).toEqual({ x: (a?.x ?? 0) + (a?.width ?? 0), y: (a?.y ?? 0) + (a?.height ?? 0) / 2 })
          expect(points.at(-1)).toEqual({ x: b?.x, y: (b?.y ?? 0) + (b?.height ?? 0) / 2 })
          expect(points.map(({ x }) => x)).toEqual(points.map(({ x }) => x).toSorted((x, y) => x - y))
        }
      }),
    )
  })

  it('can be walked to every box with arrow keys', () => {
    fc.assert(
      fc.property(shape(4), shape(2), (after, before) => {
        const picture = pictureOf('root', beyond(after, 'right'), beyond(before, 'left'))
        const reached = new Set(['root'])
        for (const id of reached)
          for (const step of ['right', 'left', 'up', 'down'] as const) reached.add(neighbour(picture, id, step))
        expect(reached.size).toBe(picture.boxes.length)
      }),
    )
  })
})

const relation = (type_key: string, direction: 'in' | 'out', name: string, health_status = 'healthy') =>
  ({
    relationship: { relationship_id: `${type_key} ${name}`, type_key },
    direction,
    peer: { resource_id: name, name, type_key: 'infra.generic', health_status },
  }) as unknown as ResourceRelation

describe('the relations of a resource', () => {
  it('are on the side of their direction, grouped by relation, the worst health first', () => {
    const { left, right, faces } = neighbors([
      relation('hosted_on', 'in', 'vm-1'),
      relation('hosted_on', 'in', 'vm-2', 'unhealthy'),
      relation('depends_on', 'in', 'site'),
      relation('contained_in', 'out', 'rack'),
    ])
    const names = (relations: Relation[]) =>
      relations.map(({ name, members }) => [name, ...members.map(({ id }) => faces.get(id)?.name)])
    expect(names(left)).toEqual([
      ['hosted on', 'vm-2', 'vm-1'],
      ['depends on', 'site'],
    ])
    expect(names(right)).toEqual([['contained in', 'rack']])
  })

  it('fold the healthiest of many into one box that counts them', () => {
    const many = Array.from({ length: 30 }, (_, nr) => relation('hosted_on', 'in', `vm-${nr}`))
    const { left, faces } = neighbors([...many, relation('hosted_on', 'in', 'sick', 'unhealthy')])
    const shown = left[0]?.members.map(({ id }) => faces.get(id)) ?? []
    expect(shown[0]?.name).toBe('sick')
    expect(shown.map((face) => face?.rest ?? 1).reduce((a, b) => a + b)).toBe(31)
  })
})

describe('the needs for a capability', () => {
  it('are on its left, unmet ones first and with the reason; on its right are its providers by state', () => {
    const resource = (name: string) => ({
      ...{ id: `resource:${name}`, kind: 'resource', resource_id: name, name, health_status: 'healthy' },
    })
    const need = (name: string, state: string) => ({
      ...{ id: `requirement:${name}/disk`, kind: 'requirement', resource_id: name, state },
    })
    const provides = (name: string, status: string) => ({
      ...{ type: 'provides', from: `resource:${name}`, to: 'capability:disk', provider_id: `of ${name}`, status },
    })
    const graph = {
      nodes: [...['a', 'b', 'c', 'd'].map(resource), need('a', 'bound'), need('b', 'unsatisfied')],
      edges: [provides('c', 'available'), provides('d', 'stale'), provides('hidden', 'stale')],
    } as unknown as NeedsGraph
    const words = { needs: (state: string) => state, offers: (status: string) => status, why_not: () => 'too small' }
    const { left, right, faces } = needs(graph, words)
    const drawn = (relations: Relation[]) =>
      relations.map(({ name, members }) => [name, ...members.map(({ id }) => faces.get(id)?.resource_id)])
    expect(drawn(left)).toEqual([
      ['unsatisfied', 'b'],
      ['bound', 'a'],
    ])
    expect(drawn(right)).toEqual([
      ['available', 'c'],
      ['stale', 'd', null],
    ])
    expect(left.map(({ members }) => faces.get(members[0]?.id ?? '')?.note)).toEqual(['too small', undefined])
  })
})

type Way = (string | null)[]
const impact = (ways: Way[]) =>
  ({
    resource_id: 'db',
    items: ways.map((way) => ({
      ...{ resource_id: way.at(-1), name: way.at(-1), health_status: 'healthy', effect: 'unhealthy' },
      path: way.map((resource_id) => ({ relationship_type: 'depends_on', resource_id })),
    })),
  }) as unknown as Impact

describe('the affected resources', () => {
  it('are drawn once, at the end of their shortest path, with hidden resources between', () => {
    const { right, faces } = affected(impact([['a'], ['a', 'b'], [null, 'c'], [null, 'd'], ['unlisted', 'e']]))
    const hidden = 'db depends_on hidden'
    expect(idsOf(right)).toEqual(['a', 'b', hidden, 'c', 'd', 'unlisted', 'e'])
    expect(faces.get(hidden)).toMatchObject({ resource_id: null })
    expect(faces.get('unlisted')).toMatchObject({ resource_id: 'unlisted', health: null })
    expect(faces.get('b')).toMatchObject({ effect: 'unhealthy', health: 'healthy' })
  })

  it('include all that a cut leaves out, with everything beyond it', () => {
    const ways = Array.from({ length: 12 }, (_, nr) => [[`n${nr}`], [`n${nr}`, `beyond-${nr}`]]).flat()
    // The last one is left out, and there are so many beyond it that they are cut as well.
    const more = Array.from({ length: 10 }, (_, nr) => ['n11', `more-${nr}`])
    const { right, faces } = affected(impact([...ways, ...more]))
    const drawn = idsOf(right).map((id) => faces.get(id)?.rest ?? 1)
    expect(drawn.reduce((a, b) => a + b)).toBe(34)
    expect(right[0]?.members).toHaveLength(8)
  })
})
