import type { Lane, Relationship, RelationshipType, Warning } from './types.ts'

/** How far an order may be found through resources that the plan does not touch. */
const THROUGH = 4

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export type Order = {
  /** Targets that come right before each target. */
  before: Map<string, string[]>
  /** Longest chain of targets before each target. */
  level: Map<string, number>
  warnings: Warning[]
}

/**
 * Orders the targets of all lanes by the relationships their procedures name; an inverse key (has_member) is followed
 * against its direction, and resources outside the plan are passed through. Cycles are cut at the smallest id.
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
  const steps: Steps = new Map()
  const add = (from: string, way: string, to: string) => {
    const list = steps.get(from)
    if (list) list.push({ way, to })
    else steps.set(from, [{ way, to }])
  }
  for (const { type_key, from_id, to_id } of relationships) {
    add(from_id, `>${type_key}`, to_id)
    add(to_id, `<${type_key}`, from_id)
  }
  return steps
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
      message: `The dependencies form a cycle through "${id}", which comes first in it.`,
    })
  }
}

/** What a topological sort cannot reach: cycles and all that waits for them. */
const stuckOf = (ids: string[], before: Map<string, Set<string>>): Set<string> => {
  const level = levelsOf(ids, before)
  return new Set(ids.filter((id) => !level.has(id)))
}

const comesBeforeItself = (id: string, before: Map<string, Set<string>>) => comesBefore(id, id, before)

/** Whether `first` comes somewhere before `later`. */
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

const levelsOf = (ids: string[], before: Map<string, Set<string>>): Map<string, number> => {
  const level = new Map<string, number>()
  const open = new Map(ids.map((id) => [id, before.get(id)?.size ?? 0]))
  const after = new Map<string, string[]>()
  for (const id of ids)
    for (const other of before.get(id) ?? []) {
      const list = after.get(other)
      if (list) list.push(id)
      else after.set(other, [id])
    }
  const queue = ids.filter((id) => open.get(id) === 0)
  for (const id of queue) level.set(id, 0)
  for (const id of queue)
    for (const next of after.get(id) ?? []) {
      level.set(next, Math.max(level.get(next) ?? 0, (level.get(id) ?? 0) + 1))
      const left = (open.get(next) ?? 0) - 1
      open.set(next, left)
      if (left === 0) queue.push(next)
    }
  for (const [id, left] of open) if (left > 0) level.delete(id)
  return level
}

const sorted = (before: Map<string, Set<string>>): Map<string, string[]> =>
  new Map([...before].map(([id, others]) => [id, [...others].sort(byText)]))
