import type { CatalogWrite, Compensation, PlanNode, TargetRead } from '../../shared/contracts/operations/graph.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import type { Violation } from '../../shared/errors.ts'
import { CelError, compileCel } from '../../shared/expressions/cel.ts'
import {
  expandValue,
  inverseOf,
  type MemberCount,
  PLAN_ROOTS,
  type PlanScope,
  ValueError,
} from '../../shared/expressions/values.ts'
import { foldCondition } from '../graph/conditions.ts'
import { EXECUTORS } from '../graph/executors.ts'
import type { Procedure, ResourceType, Step, Target } from '../graph/types.ts'
import { laneName } from './match.ts'

const NODE_ID_LENGTH = 96

/** Returns `<step>.<resource_id>`; if that is too long for a node id, a digest replaces the end. */
export const nodeIdOf = (step: string, suffix: string): string => {
  const id = `${step}.${suffix}`
  return id.length <= NODE_ID_LENGTH ? id : `${id.slice(0, NODE_ID_LENGTH - 17)}-${sha256Hex(id).slice(0, 16)}`
}

/** One run of a procedure's steps: for one target, or once for the whole plan. */
export type Unit = {
  procedure: Procedure
  target: Target | undefined
  type?: ResourceType | undefined
  roots: Record<string, unknown>
  /** All targets of the plan. */
  targets: readonly Target[]
  count: MemberCount
  /** The nodes that the first steps wait for. */
  entry: string[]
  group: string | undefined
  /** A failure skips the steps after it, and its batch counts it. */
  tolerant: boolean
}
export type Expanded = {
  nodes: PlanNode[]
  /** The first and the last nodes of the unit. */
  roots: string[]
  lasts: string[]
  by_step: Map<string, string>
}

/** Turns the steps of a unit into nodes with everything known now; faults are added to `violations`. */
export const expandUnit = (unit: Unit, violations: Violation[]): Expanded => {
  const { procedure, target, roots } = unit
  const suffix = target?.resource_id ?? procedure.key
  const kept = procedure.steps.filter((step) => isIncluded(step, roots, nodeIdOf(step.id, suffix), violations))
  const by_step = new Map(kept.map((step) => [step.id, nodeIdOf(step.id, suffix)]))
  const needs = contractNeeds(procedure.steps, by_step)
  const needed = new Set([...by_step.keys()].flatMap((id) => needs.get(id) ?? []))
  const nodes = kept.map((step) => {
    const before = (needs.get(step.id) ?? []).map((id) => by_step.get(id) ?? id)
    return expandStep(unit, step, before, by_step, violations)
  })
  const idsOf = (steps: Step[]) => steps.map((step) => by_step.get(step.id) ?? step.id)
  return {
    nodes,
    roots: idsOf(kept.filter((step) => needs.get(step.id)?.length === 0)),
    lasts: idsOf(kept.filter((step) => !needed.has(step.id))),
    by_step,
  }
}

const isIncluded = (step: Step, roots: Record<string, unknown>, node_id: string, violations: Violation[]): boolean => {
  if (step.include_if === undefined) return true
  try {
    return compileCel(step.include_if, PLAN_ROOTS).test(roots)
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    violations.push({ pointer: `/nodes/${node_id}/include_if`, code: 'expression_error', message: error.message })
    return true
  }
}

/** Returns the needs of each kept step; a dropped step is replaced by its own needs. */
const contractNeeds = (steps: Step[], kept: ReadonlyMap<string, string>): Map<string, string[]> => {
  const byId = new Map(steps.map((step) => [step.id, step]))
  const resolve = (id: string): string[] => {
    const found = new Set<string>()
    for (const need of byId.get(id)?.needs ?? [])
      for (const real of kept.has(need) ? [need] : resolve(need)) found.add(real)
    return [...found]
  }
  return new Map(steps.map((step) => [step.id, resolve(step.id)]))
}

const expandStep = (
  unit: Unit,
  step: Step,
  before: readonly string[],
  by_step: ReadonlyMap<string, string>,
  violations: Violation[],
): PlanNode => {
  const { procedure, target, roots, targets, count, group } = unit
  const node_id = by_step.get(step.id) ?? step.id
  const { id, name, needs, include_if, when, with: values, compensate, catalog, secrets, ...rest } = step
  // The first steps of a target look at it before they act.
  const read = before.length === 0 ? procedure.read : undefined
  const scope = { roots, targets, count, nodeOf: (other: string) => by_step.get(other) }
  const { of, condition } = expander(scope, node_id, violations)
  const tolerant = unit.tolerant && step.on_failure === 'hold'
  const write = catalog && (of(catalog, '/catalog') as CatalogWrite)
  const restored = write && target ? restoreOf(write, target, unit.type) : {}
  const undo =
    compensate ?? (Object.keys(restored).length > 0 && afterUndoable(step, procedure) ? NO_EFFECT : undefined)
  return {
    ...rest,
    node_id,
    name: target ? `${name} ${target.name}` : name,
    kind: 'task',
    with: of(values, '/with'),
    ...(target && { target_id: target.resource_id }),
    depends_on: before.length > 0 ? [...before] : unit.entry,
    on_failure: tolerant ? 'skip_dependents' : step.on_failure,
    ...(when !== undefined && { when: condition(when, '/when') }),
    ...(undo && { compensate: expandCompensation(undo, of, condition, restored) }),
    ...(read && { read: expandRead(read, of) }),
    ...(write && { catalog: write }),
    ...(secrets && { secrets: of(secrets, '/secrets') as Record<string, unknown> }),
    ...(group !== undefined && { group }),
    step: `${laneName(procedure)}.${id}`,
  }
}

const NO_EFFECT: Compensation = { executor: 'noop', with: {} }

/** Whether a read-only step records undoable work in the catalog: it is undone with the work, though without effect. */
const afterUndoable = (step: Step, { steps }: Procedure): boolean => {
  if (EXECUTORS.get(step.executor)?.reads(step.with) !== true) return false
  const byId = new Map(steps.map((other) => [other.id, other]))
  const queue = [...step.needs]
  for (const id of queue) {
    const before = byId.get(id)
    if (before?.compensate) return true
    queue.push(...(before?.needs ?? []).filter((need) => !queue.includes(need)))
  }
  return false
}

type Expander = ReturnType<typeof expander>

/** Expands values and conditions of one node; a fault becomes a violation with its place. */
export const expander = (scope: Required<PlanScope>, node_id: string, violations: Violation[]) => {
  const guarded = <T>(at: string, run: () => T, otherwise: T): T => {
    try {
      return run()
    } catch (error) {
      if (error instanceof ValueError)
        violations.push({
          pointer: `/nodes/${node_id}${error.pointer || at}`,
          code: error.code === 'malformed' ? 'inputs_invalid' : error.code,
          message: error.message,
        })
      else if (error instanceof CelError)
        violations.push({ pointer: `/nodes/${node_id}${at}`, code: 'expression_error', message: error.message })
      else throw error
      return otherwise
    }
  }
  return {
    of: (value: unknown, at: string): unknown => guarded(at, () => expandValue(value, scope, at), value),
    condition: (source: string, at: string): string =>
      guarded(at, () => foldCondition(source, scope.roots, scope.nodeOf), source),
  }
}

const expandRead = ({ executor, with: values, expect }: TargetRead, of: Expander['of']): TargetRead => ({
  executor,
  with: of(values, '/read/with'),
  expect: of(expect, '/read/expect') as TargetRead['expect'],
})

/**
 * Returns what the undo of a catalog write restores unless its author says otherwise: the fields of the states and the
 * lifecycle status get the values that the plan found. Health is observed again; relationships and capabilities are
 * left to the author.
 */
export const restoreOf = (
  { lifecycle_status: to, desired_state_patch, observed_state_patch }: CatalogWrite,
  { lifecycle_status: from, desired_state, observed_state }: Target,
  type: ResourceType | undefined,
): CatalogWrite => {
  const ways = type?.lifecycle.transitions ?? []
  const back = ways.some((way) => way.from === to && way.to === from && way.by.includes('operation'))
  const desired = inverseOf(desired_state_patch, desired_state) ?? {}
  const observed = inverseOf(observed_state_patch, observed_state) ?? {}
  return {
    ...(back && { lifecycle_status: from }),
    ...(Object.keys(desired).length > 0 && { desired_state_patch: desired }),
    ...(Object.keys(observed).length > 0 && { observed_state_patch: observed }),
  }
}

/** Returns a compensation as its author wrote it, without the values that a plan made it restore. */
export const ownUndo = (
  { catalog, ...rest }: Compensation,
  { catalog: write }: PlanNode,
  target: Target,
): Compensation => {
  const restored = Object.entries(write ? restoreOf(write, target, undefined) : {})
  const own = Object.entries(catalog ?? {}).filter(
    ([key, value]) => !restored.some(([known, same]) => known === key && equalJson(same, value)),
  )
  return { ...rest, ...(own.length > 0 && { catalog: Object.fromEntries(own) }) }
}

/** A member of the author's own `catalog` replaces the one that would be restored. */
export const expandCompensation = (
  compensate: Compensation,
  of: Expander['of'],
  condition: Expander['condition'],
  restored: CatalogWrite,
): Compensation => {
  const { when, catalog: own, ...rest } = compensate
  const catalog = { ...restored, ...(own && (of(own, '/compensate/catalog') as CatalogWrite)) }
  return {
    ...rest,
    with: of(rest.with, '/compensate/with'),
    ...(when !== undefined && { when: condition(when, '/compensate/when') }),
    ...(Object.keys(catalog).length > 0 && { catalog }),
  }
}
