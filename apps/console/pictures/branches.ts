import { HEALTH_LOOKS } from '../../shared/contracts/client/status.ts'
import type { Gap, Impact, NeedsGraph, ResourceRelation } from '../api/types.ts'
import type { Branch, Relation } from './tree.ts'

/** How many resources of one relation a picture shows; the table has all. */
const MOST = 8

/** The content of a box: a resource, one that the person must not see, or those that did not fit. */
export type Face = {
  resource_id: string | null
  name: string
  health: string | null
  /** The health that the resource would get. */
  effect?: 'unhealthy' | 'degraded'
  /** Replaces the health. */
  note?: string
  /** How many resources did not fit, including all beyond them. */
  rest?: number
}
export type Branches = { right: Relation[]; left: Relation[]; faces: Map<string, Face> }

const named = (type_key: string): string => type_key.replaceAll('_', ' ')
const rankOf = (health: string): number => HEALTH_LOOKS[health]?.rank ?? 0

/** The neighbors of a resource, worst first: on its left those that point to it, on its right those it points to. */
export const neighbors = (items: readonly ResourceRelation[]): Branches => {
  const faces: Branches['faces'] = new Map()
  const side = (direction: 'in' | 'out'): Relation[] => {
    const here = items.filter((item) => item.direction === direction)
    return [...Map.groupBy(here, ({ relationship }) => relationship.type_key)].map(([type_key, all]) => {
      const worst = all.toSorted(({ peer: a }, { peer: b }) => rankOf(a.health_status) - rankOf(b.health_status))
      const members = worst.map(({ peer, relationship }): Branch => {
        const id = `${direction} ${relationship.relationship_id}`
        faces.set(id, { resource_id: peer.resource_id, name: peer.name, health: peer.health_status })
        return { id, beyond: [] }
      })
      return { name: named(type_key), members: cut(members, faces, `${direction} ${type_key}`) }
    })
  }
  return { left: side('in'), right: side('out'), faces }
}

type NeedWords = {
  needs: (state: Gap['state']) => string
  offers: (status: string) => string
  why_not: (need: Gap) => string
}

/** A capability between the resources that need it, unmet needs first, and those that provide it. */
export const needs = ({ nodes, edges }: NeedsGraph, words: NeedWords): Branches => {
  const faces: Branches['faces'] = new Map()
  const resources = new Map(nodes.flatMap((node) => (node.kind === 'resource' ? [[node.id, node]] : [])))
  const branch = (id: string, resource: string, note?: string): Branch => {
    const { resource_id = null, name = '', health_status = null } = resources.get(resource) ?? {}
    faces.set(id, { resource_id, name, health: health_status, ...(note !== undefined && { note }) })
    return { id, beyond: [] }
  }
  const all = nodes.flatMap((node) => (node.kind === 'requirement' ? [node] : []))
  const left = (['unsatisfied', 'satisfiable', 'bound'] as const).flatMap((state): Relation[] => {
    const members = all
      .filter((need) => need.state === state)
      .map((need) =>
        branch(need.id, `resource:${need.resource_id}`, state === 'unsatisfied' ? words.why_not(need) : undefined),
      )
    return members.length === 0 ? [] : [{ name: words.needs(state), members: cut(members, faces, state) }]
  })
  const offers = edges.filter(({ type }) => type === 'provides')
  const right = [...Map.groupBy(offers, ({ status = '' }) => status)].map(([status, some]): Relation => {
    const members = some.map(({ from, provider_id = from }) => branch(provider_id, from))
    return { name: words.offers(status), members: cut(members, faces, status) }
  })
  return { left, right, faces }
}

/** The resources that would be affected, each at the end of its shortest path; branches begin with the worst effect. */
export const affected = ({ resource_id, items }: Impact): Branches => {
  const faces: Branches['faces'] = new Map()
  const grown = new Map<string, Map<string, string[]>>([[resource_id, new Map()]])
  for (const item of items) {
    let at = resource_id
    for (const step of item.path) {
      const id = step.resource_id ?? `${at} ${step.relationship_type} hidden`
      const beyond = grown.get(at)
      if (!grown.has(id)) {
        grown.set(id, new Map())
        faces.set(id, { resource_id: step.resource_id, name: step.resource_id ?? '', health: null })
        beyond?.set(step.relationship_type, [...(beyond.get(step.relationship_type) ?? []), id])
      }
      at = id
    }
    faces.set(item.resource_id, {
      ...{ resource_id: item.resource_id, name: item.name, health: item.health_status },
      effect: item.effect,
    })
  }
  const beyondOf = (id: string): Relation[] =>
    [...(grown.get(id) ?? [])].map(([type_key, ids]) => {
      const members = ids.map((member): Branch => ({ id: member, beyond: beyondOf(member) }))
      return { name: named(type_key), members: cut(members, faces, `${id} ${type_key}`) }
    })
  return { left: [], right: beyondOf(resource_id), faces }
}

const cut = (members: Branch[], faces: Branches['faces'], key: string): Branch[] => {
  if (members.length <= MOST) return members
  const id = `${key} rest`
  const rest = members.slice(MOST - 1).reduce((sum, member) => sum + sizeOf(member, faces), 0)
  faces.set(id, { resource_id: null, name: '', health: null, rest })
  return [...members.slice(0, MOST - 1), { id, beyond: [] }]
}

const sizeOf = ({ id, beyond }: Branch, faces: Branches['faces']): number =>
  (faces.get(id)?.rest ?? 1) +
  beyond.flatMap(({ members }) => members).reduce((sum, member) => sum + sizeOf(member, faces), 0)
