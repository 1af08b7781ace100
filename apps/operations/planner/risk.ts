import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import { isObject } from '../../shared/data/pointer.ts'
import { EXECUTORS } from '../graph/executors.ts'
import type { PlannedIntent, Relationship, TargetDiff } from '../graph/types.ts'

export type RiskLevel = 'low' | 'medium' | 'high' | 'critical'
export type Risk = { level: RiskLevel; score: number; factors: { factor: string; points: number; detail: string }[] }

const LEVELS: RiskLevel[] = ['low', 'medium', 'high', 'critical']
export const exceeds = (level: RiskLevel, ceiling: RiskLevel): boolean =>
  LEVELS.indexOf(level) > LEVELS.indexOf(ceiling)

export type RiskFacts = {
  intent: PlannedIntent
  diff: TargetDiff[]
  targets: number
  dependents: number
  nodes: PlanNode[]
  procedure_risk: number
}

/** Computes points by operations.md 3.2: 0-19 low, 20-49 medium, 50-79 high, from 80 critical. */
export const riskOf = ({ intent, diff, targets, dependents, nodes, procedure_risk }: RiskFacts): Risk => {
  const factors: Risk['factors'] = []
  const add = (factor: string, points: number, detail: string) => points > 0 && factors.push({ factor, points, detail })
  const many = (count: number) => (count > 100 ? 20 : count > 10 ? 10 : 0)
  const gone = diff.filter(({ change }) => change === 'delete' || change === 'replace').length
  const fragile = nodes.filter((node) => node.kind === 'task' && !node.idempotent).length
  const lasting = uncompensated(nodes).length
  if (intent.labels.environment === 'prod') add('environment', 20, 'The label environment is prod.')
  if (gone > 0) add('delete_or_replace', 30, `Resources deleted or replaced: ${gone}.`)
  add('targets', many(targets), `Targets: ${targets}.`)
  add('dependents', many(dependents), `Resources that depend on them: ${dependents}.`)
  if (fragile > 0) add('not_idempotent', 5, `Nodes that are not idempotent: ${fragile}.`)
  if (lasting > 0) add('not_compensable', 10, `Nodes after the first change without a compensation: ${lasting}.`)
  const base = Math.max(procedure_risk, ...nodes.map((node) => node.risk ?? 0))
  add('procedure', base, "The procedure's own rating.")
  const score = factors.reduce((sum, factor) => sum + factor.points, 0)
  return { level: score >= 80 ? 'critical' : score >= 50 ? 'high' : score >= 20 ? 'medium' : 'low', score, factors }
}

/** Whether a node itself may change something. */
export const changes = (node: Pick<PlanNode, 'kind' | 'executor' | 'with'>): boolean =>
  node.kind === 'task' && !reads(node)
const reads = ({ executor, with: values }: { executor: string; with?: unknown }): boolean =>
  EXECUTORS.get(executor)?.reads(isObject(values) ? values : {}) ?? false

/** Whether a node may change something at all, including by its undo. */
export const acts = (node: PlanNode): boolean =>
  changes(node) || (node.compensate !== undefined && !reads(node.compensate))

/** Returns changing nodes without compensation that follow another change of the same target. */
const uncompensated = (nodes: PlanNode[]): PlanNode[] => {
  const begun = new Set<string>()
  return nodes.filter((node) => {
    if (!changes(node)) return false
    const target = node.target_id ?? ''
    const later = begun.has(target)
    begun.add(target)
    return later && !node.compensate
  })
}

/** Whether every change of the plan can be undone. */
export const isCompensable = (nodes: PlanNode[]): boolean =>
  nodes.every((node) => !changes(node) || node.compensate !== undefined)

/** Returns resources that depend on the targets, up to two steps away, nearest first. */
export const dependentsOfTargets = (target_ids: string[], relationships: Relationship[]): string[] => {
  const needing = new Map<string, string[]>()
  for (const { type_key, from_id, to_id } of relationships)
    if (type_key === 'depends_on') needing.set(to_id, [...(needing.get(to_id) ?? []), from_id])
  const seen = new Set(target_ids)
  const found: string[] = []
  let front = target_ids
  for (let depth = 0; depth < 2; depth++) {
    front = [...new Set(front.flatMap((id) => needing.get(id) ?? []))].filter((id) => !seen.has(id)).sort()
    for (const id of front) seen.add(id)
    found.push(...front)
  }
  return found
}
