import type { PlanDocument } from '../../../db/operations/tables/index.ts'
import type { PlanGraph, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Violation } from '../../shared/errors.ts'
import { drawingOf, inRankOrder, ranksOf, scheduleOf, type Timing } from '../graph/graph.ts'
import { planHash, semanticDigest } from '../graph/hashes.ts'
import { byText } from '../graph/order.ts'
import { checkSoundness } from '../graph/soundness.ts'
import { type PlannerInput, PlanRefusal, type TargetDiff, type Warning } from '../graph/types.ts'
import type { PlanFacts, PolicyResult } from '../policies/plans.ts'
import { changesDraft, graphDraft } from './draft.ts'
import { covers, freezeGates, nameGates, overrideGates, refuseSilence, wantedGates, withBarriers } from './gates.ts'
import { leasesOf } from './leases.ts'
import { dependentsOfTargets, exceeds, isCompensable, type Risk, riskOf } from './risk.ts'

export type PlanCounts = Record<'create' | 'update' | 'replace' | 'delete' | 'no_change' | 'nodes' | 'gates', number>
export type Made = {
  document: PlanDocument
  graph: PlanGraph
  diff: TargetDiff[]
  counts: PlanCounts
  impact: { dependents: string[]; dependents_count: number; compensable: boolean }
  risk: Risk
  policy_facts: PlanFacts
  policy_results: PolicyResult[]
  warnings: Warning[]
  estimates: { p50_s: number; p90_s: number; critical_path: string[] }
  plan_hash: string
  semantic_digest: string
}

const DEFAULT_ESTIMATE_S = 10
const SHOWN_DEPENDENTS = 50

/**
 * Makes the plan of an intent: pure and synchronous, the same input gives the same bytes (operations.md 3.2). Throws a
 * PlanRefusal when there is nothing that could be run.
 */
export const makePlan = (input: PlannerInput): Made => {
  const { intent, library, limits } = input
  const violations: Violation[] = []
  const draft = intent.kind === 'graph' ? graphDraft(input, violations) : changesDraft(input, violations)
  const { lanes, diff, warnings } = draft
  const nodes = inRankOrder(draft.nodes)
  const timing = timingOf(input)
  const ranks = ranksOf(nodes)
  const target_ids = input.targets.map((target) => target.resource_id)
  const dependents = dependentsOfTargets(target_ids, input.relationships)
  const risk = riskOf({ intent, diff, targets: touched(input, nodes), dependents: dependents.length, nodes, lanes })
  refuseRisk(intent.constraints, risk)
  const estimates = scheduleOf(nodes, timing)
  if (nodes.length === 0)
    warnings.push({ code: 'nothing_to_do', message: 'Every target is as wanted already: there is nothing to run.' })
  const seen = policyFacts(input, risk, diff)
  const facts = planFacts(input, seen)
  const judged = input.judge?.(facts) ?? []
  const wanted = [
    ...wantedGates(draft.places, library, seen, warnings, violations),
    ...overrideGates(judged, draft.entry),
    ...freezeGates(library.freezes, input.targets, draft.entry, input.at, later(input.at, estimates.p90_s)),
  ].map((gate) => withBarriers(gate, nodes))
  const named = nameGates(wanted, draft.gates, (id) => ranks.get(id) ?? 0)
  const gates = refuseSilence(named, risk.level, warnings)
  const existing = new Set(target_ids)
  violations.push(...checkSoundness(nodes, gates, { ...limits, programs: input.programs }, (id) => existing.has(id)))
  refuseUnsound(violations)
  refuseSecrets(nodes, input.mayResolve)
  const document = documentOf(input, lanes, nodes, gates)
  return {
    document,
    graph: drawingOf(nodes, gates, draft.groups, estimates.critical_path, timing),
    diff,
    counts: countsOf(diff, nodes.length, gates.length),
    impact: {
      dependents: dependents.slice(0, SHOWN_DEPENDENTS),
      dependents_count: dependents.length,
      compensable: isCompensable(nodes),
    },
    risk,
    policy_facts: facts,
    policy_results: judged.map(({ approvers: _, ...result }) => result),
    warnings,
    estimates,
    plan_hash: planHash(document),
    semantic_digest: semanticDigest(document, diff),
  }
}

type Lanes = ReturnType<typeof changesDraft>['lanes']

const documentOf = (
  input: PlannerInput,
  lanes: Lanes,
  nodes: PlanNode[],
  gates: PlanDocument['gates'],
): PlanDocument => {
  const used = new Set(lanes.map((lane) => `${lane.procedure.pack}@${lane.procedure.version}`))
  const windows = input.library.windows.filter((window) => input.targets.some((target) => covers(window, target)))
  const asked = input.intent.constraints.window_id
  return {
    intent_id: input.intent.intent_id,
    kind: input.intent.kind,
    packs: input.library.packs
      .filter(({ pack, version }) => used.has(`${pack}@${version}`))
      .map(({ pack, version, digest }) => ({ pack, version, digest })),
    catalog_pins: input.targets
      .map(({ resource_id, version }) => ({ resource_id, version }))
      .sort((a, b) => byText(a.resource_id, b.resource_id)),
    policies: [
      ...new Map(gates.map(({ policy: { key, digest } }) => [`${key} ${digest}`, { key, digest }])).values(),
    ].sort((a, b) => byText(a.key, b.key) || byText(a.digest, b.digest)),
    nodes,
    gates,
    leases: leasesOf(input, lanes, nodes),
    windows: [
      ...new Set([...windows.map((window) => window.window_id), ...(typeof asked === 'string' ? [asked] : [])]),
    ].sort(byText),
    constraints: input.intent.constraints,
  }
}

/** Targets with at least one node: what is left alone carries no risk. */
const touched = (input: PlannerInput, nodes: PlanNode[]): number => {
  const ids = new Set(nodes.flatMap((node) => (node.target_id === undefined ? [] : [node.target_id])))
  return input.targets.filter((target) => ids.has(target.resource_id)).length
}

/** What the condition of a gate policy sees (operations.md 4.2). */
const policyFacts = ({ intent, targets }: PlannerInput, risk: Risk, diff: TargetDiff[]) => ({
  kind: intent.kind,
  labels: intent.labels,
  risk: { level: risk.level, score: risk.score },
  targets: targets.length,
  types: unique(targets.map((target) => target.type_key)),
  regions: unique(targets.flatMap((target) => (target.scope.region_id === null ? [] : [target.scope.region_id]))),
  changes: unique(diff.map(({ change }) => change)),
})
/** What the Cedar policies of planning see (operations.md 4.3). */
const planFacts = ({ intent }: PlannerInput, { risk, types, regions }: ReturnType<typeof policyFacts>): PlanFacts => ({
  intent_id: intent.intent_id,
  requester: intent.requester_id ?? '',
  risk: risk.level,
  types,
  regions,
  labels: intent.labels,
})

const unique = (texts: string[]): string[] => [...new Set(texts)].sort(byText)

/** How long a node takes: by its step's last successes, by its author, or by assumption. */
export const timingOf =
  ({ durations }: Pick<PlannerInput, 'durations'>) =>
  (node: PlanNode): Timing => {
    const known = node.step === undefined ? undefined : durations.get(node.step)
    if (known) return known
    const assumed = node.estimate_s ?? (node.kind === 'task' ? DEFAULT_ESTIMATE_S : waitOf(node))
    return { p50_s: assumed, p90_s: assumed }
  }
const waitOf = (node: PlanNode): number => {
  const { duration_s } = (node.with ?? {}) as { duration_s?: unknown }
  return node.kind === 'wait' && typeof duration_s === 'number' ? duration_s : 0
}

const later = (at: string, seconds: number): string => new Date(Date.parse(at) + seconds * 1000).toISOString()

const refuseRisk = (constraints: Record<string, unknown>, risk: Risk): void => {
  const ceiling = constraints.risk_ceiling as 'low' | 'medium' | 'high' | undefined
  if (ceiling !== undefined && exceeds(risk.level, ceiling))
    throw new PlanRefusal(
      'risk_ceiling',
      `The risk of this plan is ${risk.level} (${risk.score} points), above the ceiling ${ceiling}.`,
      [],
      'policy_denied',
    )
}

const DEFAULT_POOL = 'default'

/** References that are known now; those that a target's field holds are checked when they are resolved. */
export const secretViolations = (
  nodes: readonly PlanNode[],
  mayResolve: NonNullable<PlannerInput['mayResolve']>,
): Violation[] =>
  nodes.flatMap(({ node_id, pool = DEFAULT_POOL, secrets = {} }) =>
    Object.entries(secrets).flatMap(([name, reference]) =>
      typeof reference !== 'string' || !reference.startsWith('secret://') || mayResolve(pool, reference)
        ? []
        : [
            {
              pointer: `/nodes/${node_id}/secrets/${name}`,
              code: 'secret_not_allowed',
              message: `the pool "${pool}" may not resolve ${reference}`,
            },
          ],
    ),
  )

const refuseSecrets = (nodes: PlanNode[], mayResolve: PlannerInput['mayResolve']): void => {
  const refused = mayResolve ? secretViolations(nodes, mayResolve) : []
  const [first] = refused
  if (first)
    throw new PlanRefusal(
      'secret_not_allowed',
      `${first.pointer}: ${first.message}.`,
      refused.slice(0, SHOWN_VIOLATIONS),
      'policy_denied',
    )
}

/** Codes that an answer of this API may carry for an unsound graph; the rest is named in the violations. */
const CODES = ['cycle', 'unknown_reference', 'unknown_executor', 'expression_error', 'too_large'] as const
const SHOWN_VIOLATIONS = 100

const refuseUnsound = (found: Violation[]): void => {
  // One fault can be seen twice: while values are filled in, and in the whole graph.
  const violations = [...new Map(found.map((entry) => [`${entry.code} ${entry.pointer}`, entry])).values()]
  const [first] = violations
  if (!first) return
  throw new PlanRefusal(
    CODES.find((code) => code === first.code) ?? 'schema_violation',
    `The graph cannot be run: ${first.pointer} ${first.message}${violations.length > 1 ? `, and ${violations.length - 1} more` : ''}.`,
    violations.slice(0, SHOWN_VIOLATIONS),
  )
}

const countsOf = (diff: TargetDiff[], nodes: number, gates: number): PlanCounts => {
  const of = (change: TargetDiff['change']) => diff.filter((entry) => entry.change === change).length
  return {
    create: of('create'),
    update: of('update'),
    replace: of('replace'),
    delete: of('delete'),
    no_change: of('no_change'),
    nodes,
    gates,
  }
}
