import { byText, ranksOf } from './graph.ts'
import type { Lane, Relationship, RelationshipType, Warning } from './types.ts'

/** How many steps an order may be traced through resources that the plan does not touch. */
const THROUGH = 4

export type Order = {
  /** Targets that come directly before each target. */
  before: Map<string, string[]>
  /** Longest chain of targets before each target. */
  level: Map<string, number>
  warnings: Warning[]
}

/**
 * Orders the targets of all lanes by the relationships that their procedures name. It follows an inverse key
 * (has_member) against its direction, and passes through resources outside the plan. It cuts cycles at the smallest id.
 */
export const orderTargets = (lanes: Lane[], relationships: Relationship[], types: RelationshipType[]): Order => {
  const ids = lanes.flatMap((lane) => lane.targets.map((target) => target.resource_id)).sort(byText)
  const before = new Map<string, Set<string>>(ids.map((id) => [id, new Set()]))
  const inverse = new Map(
    types.flatMap((type) => (type.inverse_key ? [[type.inverse_key, type.type_key] as const] : [])),
  )
  const steps = stepsBetween(relationships)
  for (const { procedure, targets } of lanes) {
    if (!procedure.order) continue
    const allowed = allowedSteps(procedure.order.relationship_types, inverse)
    for (const { resource_id } of targets)
      for (const other of reach(resource_id, steps, allowed, before)) {
        if (procedure.order.first === 'dependency') before.get(resource_id)?.add(other)
        else before.get(other)?.add(resource_id)
      }
  }
  const warnings = cutCycles(ids, before)
  return { before: sorted(before), level: levelsOf(ids, before), warnings }
}

type Steps = Map<string, { way: string; to: string }[]>

const stepsBetween = (relationships: Relationship[]): Steps => {
  const steps = relationships.flatMap(({ type_key, from_id, to_id }) => [
    { from: from_id, way: `>${type_key}`, to: to_id },
    { from: to_id, way: `<${type_key}`, to: from_id },
  ])
  return Map.groupBy(steps, ({ from }) => from)
}

const allowedSteps = (keys: string[], inverse: Map<string, string>): Set<string> =>
  new Set(keys.map((key) => (inverse.has(key) && inverse.get(key) !== key ? `<${inverse.get(key)}` : `>${key}`)))

const reach = (from: string, steps: Steps, allowed: Set<string>, targets: Map<string, unknown>): Set<string> => {
  const found = new Set<string>()
  const seen = new Set([from])
  let front = [from]
  for (let depth = 0; depth < THROUGH && front.length > 0; depth++) {
    const next: string[] = []
    for (const id of front)
      for (const { way, to } of steps.get(id) ?? []) {
        if (!allowed.has(way) || seen.has(to)) continue
        seen.add(to)
        if (targets.has(to)) found.add(to)
        else next.push(to)
      }
    front = next
  }
  return found
}

const cutCycles = (ids: string[], before: Map<string, Set<string>>): Warning[] => {
  const warnings: Warning[] = []
  for (;;) {
    const stuck = stuckOf(ids, before)
    const id = [...stuck].sort(byText).find((candidate) => comesBeforeItself(candidate, before))
    if (id === undefined) return warnings
    const own = before.get(id) ?? new Set()
    for (const other of [...own]) if (comesBefore(id, other, before)) own.delete(other)
    warnings.push({
      code: 'order_cycle',
      message: `The dependencies form a cycle through "${id}"; the cycle is broken there, so "${id}" comes first.`,
    })
  }
}

/** Targets that a topological sort cannot reach: cycles and all that wait for them. */
const stuckOf = (ids: string[], before: Map<string, Set<string>>): Set<string> => {
  const level = levelsOf(ids, before)
  return new Set(ids.filter((id) => !level.has(id)))
}

const comesBeforeItself = (id: string, before: Map<string, Set<string>>) => comesBefore(id, id, before)

/** Whether `first` comes anywhere before `later`. */
const comesBefore = (first: string, later: string, before: Map<string, Set<string>>): boolean => {
  const seen = new Set<string>()
  const queue = [...(before.get(later) ?? [])]
  for (const id of queue) {
    if (id === first) return true
    if (seen.has(id)) continue
    seen.add(id)
    queue.push(...(before.get(id) ?? []))
  }
  return false
}

const levelsOf = (ids: string[], before: Map<string, Set<string>>): Map<string, number> =>
  ranksOf(ids.map((node_id) => ({ node_id, depends_on: [...(before.get(node_id) ?? [])] })))

const sorted = (before: Map<string, Set<string>>): Map<string, string[]> =>
  new Map([...before].map(([id, others]) => [id, [...others].sort(byText)]))
