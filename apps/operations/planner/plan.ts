import type { PlanDocument } from '../../../db/operations/tables/index.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { PlanGraph, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Violation } from '../../shared/errors.ts'
import { byText, drawingOf, inRankOrder, scheduleOf, timingOf } from '../graph/graph.ts'
import { planHash, semanticDigest } from '../graph/hashes.ts'
import { PlanRefusal } from '../graph/refusal.ts'
import { checkSoundness } from '../graph/soundness.ts'
import type { PlannerInput, TargetDiff, Warning } from '../graph/types.ts'
import type { PlanFacts, PolicyResult } from '../policies/plans.ts'
import { gatesFor, refuseCeiling, weigh } from './bind.ts'
import { changesDraft, graphDraft } from './draft.ts'
import { createCovers } from './gates.ts'
import { leasesOf } from './leases.ts'
import { isCompensable, type Risk } from './risk.ts'

export type PlanCounts = Record<'create' | 'update' | 'replace' | 'delete' | 'no_change' | 'nodes' | 'gates', number>
export type Made = {
  document: PlanDocument
  graph: PlanGraph
  diff: TargetDiff[]
  counts: PlanCounts
  impact: { dependents: string[]; dependents_count: number; compensable: boolean; affected: Affected | null }
  risk: Risk
  /** The highest risk that the procedures declare for themselves; the nodes do not show it. */
  procedure_risk: number
  policy_facts: PlanFacts
  policy_results: PolicyResult[]
  warnings: Warning[]
  estimates: { p50_s: number; p90_s: number; critical_path: string[] }
  plan_hash: string
  semantic_digest: string
}

const SHOWN_DEPENDENTS = 50

/** Makes a plan. Pure: equal input gives equal bytes (operations.md 3.2). Throws a PlanRefusal if no node would run. */
export const makePlan = (input: PlannerInput): Made => {
  const { intent, limits } = input
  const violations: Violation[] = []
  const draft = intent.kind === 'graph' ? graphDraft(input, violations) : changesDraft(input, violations)
  const { lanes, diff, warnings } = draft
  const nodes = inRankOrder(draft.nodes)
  const timing = timingOf(input)
  const target_ids = input.targets.map((target) => target.resource_id)
  const procedure_risk = Math.max(0, ...lanes.map((lane) => lane.procedure.risk_base))
  const weight = weigh(input, { nodes, diff, procedure_risk })
  const { risk, dependents } = weight
  const ceiling = refuseCeiling(intent.constraints, risk)
  if (ceiling) throw new PlanRefusal('risk_ceiling', ceiling.detail, [], 'policy_denied')
  const estimates = scheduleOf(nodes, timing)
  if (nodes.length === 0)
    warnings.push({
      code: 'nothing_to_do',
      message: 'Every target is already in its desired state, so the plan has no steps.',
    })
  const bound = { ...draft, nodes, until_s: estimates.p90_s }
  const gates = gatesFor(input, bound, weight, warnings, violations)
  const existing = new Set(target_ids)
  violations.push(
    ...checkSoundness(nodes, gates, { ...limits, programs: input.programs, hasPool: input.hasPool }, (id) =>
      existing.has(id),
    ),
  )
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
      affected: input.affected ?? null,
    },
    risk,
    procedure_risk,
    policy_facts: weight.policy_facts,
    policy_results: weight.judged.map(({ approvers: _, quorum: __, ...result }) => result),
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
  const { covers = createCovers() } = input
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

const DEFAULT_POOL = 'default'

/** Checks references that are known now; references in a target's field are checked when they are resolved. */
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

/** Codes that an answer of this API may carry for an unsound graph; other codes appear only in the violations. */
const CODES = ['cycle', 'unknown_reference', 'unknown_executor', 'expression_error', 'too_large'] as const
export const SHOWN_VIOLATIONS = 100

const refuseUnsound = (found: Violation[]): void => {
  // The same fault can be found twice: while values are filled in, and in the whole graph.
  const violations = [...new Map(found.map((entry) => [`${entry.code} ${entry.pointer}`, entry])).values()]
  const [first] = violations
  if (!first) return
  throw new PlanRefusal(
    CODES.find((code) => code === first.code) ?? 'schema_violation',
    `The graph is not valid: ${first.pointer} ${first.message}${violations.length > 1 ? `, and ${violations.length - 1} more` : ''}.`,
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
