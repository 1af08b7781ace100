import { isStricter } from '../../shared/contracts/client/votes.ts'
import type { GatePolicy, PlanGate, PlanNode, RefusalCode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { refusal, type Violation } from '../../shared/errors.ts'
import { rulesOf } from '../../shared/evidence/rules.ts'
import { byText, coneOf, inRankOrder, ranksOf } from '../graph/graph.ts'
import type { Library, PlannerInput, TargetDiff, Warning } from '../graph/types.ts'
import { rejectingInTime, withBinds } from '../packs/defaults.ts'
import { bindPreviews, bindWatches } from '../packs/previews.ts'
import type { JudgedPlan, PlanFacts } from '../policies/plans.ts'
import {
  completeGuards,
  createCovers,
  entryPlace,
  freezeGates,
  namedGates,
  nameGates,
  overrideGates,
  type Places,
  policyGates,
  refuseSilence,
  type Wanted,
  withBarriers,
} from './gates.ts'
import type { Running } from './patch.edit.ts'
import { dependentsOfTargets, exceeds, type Risk, riskOf } from './risk.ts'

/**
 * The limits on a graph, whoever made it. Previews, starts and patches all use this (operations.md 3.2), so a change
 * meets the same risk, ceiling, policies and gates by every route.
 */
export type Weight = {
  risk: Risk
  dependents: string[]
  /** The input of a gate policy's condition (operations.md 4.2). */
  seen: ReturnType<typeof gateFacts>
  /** The input of the Cedar policies of planning (operations.md 4.3). */
  policy_facts: PlanFacts
  judged: JudgedPlan[]
}
export type Weighed = {
  nodes: PlanNode[]
  diff: TargetDiff[]
  /** The highest risk that procedures declare for themselves. */
  procedure_risk: number
}
type WeighInput = Pick<PlannerInput, 'intent' | 'targets' | 'relationships' | 'judge' | 'affected'>

/** Returns the risk of a graph, and the results of the planning policies. */
export const weigh = (input: WeighInput, { nodes, diff, procedure_risk }: Weighed): Weight => {
  const { intent, targets } = input
  const ids = new Set(nodes.flatMap((node) => (node.target_id === undefined ? [] : [node.target_id])))
  // Untouched targets carry no risk.
  const touched = targets.filter((target) => ids.has(target.resource_id)).length
  const dependents = dependentsOfTargets(
    targets.map((target) => target.resource_id),
    input.relationships,
  )
  const needing = Math.max(dependents.length, input.affected?.total ?? 0)
  const risk = riskOf({ intent, diff, targets: touched, dependents: needing, nodes, procedure_risk })
  const seen = gateFacts(input, risk, diff)
  const policy_facts: PlanFacts = {
    intent_id: intent.intent_id,
    requester: intent.requester_id ?? '',
    risk: risk.level,
    types: seen.types,
    regions: seen.regions,
    labels: intent.labels,
  }
  return { risk, dependents, seen, policy_facts, judged: input.judge?.(policy_facts) ?? [] }
}

const gateFacts = ({ intent, targets }: WeighInput, risk: Risk, diff: TargetDiff[]) => ({
  kind: intent.kind,
  labels: intent.labels,
  risk: { level: risk.level, score: risk.score },
  targets: targets.length,
  types: unique(targets.map((target) => target.type_key)),
  regions: unique(targets.flatMap((target) => (target.scope.region_id === null ? [] : [target.scope.region_id]))),
  changes: unique(diff.map(({ change }) => change)),
})
const unique = (texts: string[]): string[] => [...new Set(texts)].sort(byText)

/** Returns why the intent's ceiling does not allow a graph of this risk. */
export const refuseCeiling = (constraints: Record<string, unknown>, risk: Risk): RefusalCode | undefined => {
  const ceiling = constraints.risk_ceiling as 'low' | 'medium' | 'high' | undefined
  if (ceiling === undefined || !exceeds(risk.level, ceiling)) return undefined
  const detail = `The risk of this plan is ${risk.level} (score ${risk.score}), above the ceiling of ${ceiling}.`
  return refusal('policy_denied', 'risk_ceiling', detail)
}

export type Guarded = {
  /** In rank order. */
  nodes: PlanNode[]
  /** Existing gates: an author's, or those of the running graph. */
  gates: PlanGate[]
  places: Places[]
  /** The first nodes of the graph: gates on the whole graph guard these. */
  entry: string[]
  /** How long the graph may take: freezes within that time get a gate. */
  until_s: number
  /** Ids used before, which are not assigned again. */
  spent?: ReadonlySet<string>
  /** The graph that a patch changes: what could start past its gates even then keeps the guards that were read. */
  running?: Pick<Running, 'nodes' | 'gates' | 'begun'>
}

/**
 * Returns the gates of a graph: the existing ones, and those of its procedures, gate policies, soft policies and
 * freezes. Nodes behind a gate of the same rule get no second one.
 */
export const gatesFor = (
  input: Pick<PlannerInput, 'library' | 'targets' | 'at' | 'covers'>,
  { nodes, gates, places, entry, until_s, spent, running }: Guarded,
  { seen, judged, risk }: Weight,
  warnings: Warning[],
  violations: Violation[],
): PlanGate[] => {
  const { library, targets, at, covers = createCovers() } = input
  const until = new Date(Date.parse(at) + until_s * 1000).toISOString()
  const demanded = [
    ...policyGates(places, library, seen, violations),
    ...overrideGates(judged, entry),
    ...freezeGates(library.freezes, targets, entry, at, until, covers),
  ]
  const named = namedGates(places, library, warnings).filter(
    (gate) => !demanded.some((other) => sameRule(gate, other) && gate.guards.join() === other.guards.join()),
  )
  const before = inRankOrder(running?.nodes ?? [])
  const standing = gates.map((gate) => {
    const rule = demanded.some((other) => sameRule(other, gate))
    const old = running?.gates.find(({ gate_id }) => gate_id === gate.gate_id)
    const known = new Set([...(running?.begun ?? []), ...(old ? completeGuards(old, before, rule) : [])])
    const guards = completeGuards(gate, nodes, rule).filter((id) => gate.guards.includes(id) || !known.has(id))
    return { ...gate, guards }
  })
  const wanted = [
    ...named.map((gate) => ({ gate, rule: false })),
    ...demanded.map((gate) => ({ gate, rule: true })),
  ].flatMap(({ gate, rule }) =>
    uncovered(gate, standing, nodes).map((left) => {
      const held = withBarriers(left, nodes)
      return { ...held, guards: completeGuards(held, nodes, rule) }
    }),
  )
  const ranks = ranksOf(nodes)
  const all = nameGates(wanted, standing, (id) => ranks.get(id) ?? 0, spent)
  return bindWatches(bindPreviews(refuseSilence(all, risk.level, warnings), nodes, warnings), nodes)
}

/** Returns a wanted gate without the nodes that a gate of the same rule already holds; no gate if none are left. */
const uncovered = (gate: Wanted, standing: readonly PlanGate[], nodes: readonly PlanNode[]): Wanted[] => {
  const held = coneOf(
    nodes,
    standing.filter((other) => sameRule(gate, other)).flatMap(({ guards }) => guards),
  )
  const guards = gate.guards.filter((id) => !held.has(id))
  return guards.length > 0 ? [{ ...gate, guards }] : []
}

/**
 * Whether a gate asks the wanted question, ignoring what happens on timeout, what else the gate shows, and what a
 * preview has raised since.
 */
const sameRule = ({ kind, policy }: Wanted, other: Wanted): boolean => {
  if (kind !== other.kind) return false
  const asked = withBinds(policy, other.policy.binds)
  const same = [policy, asked].flatMap((one) => [one.digest, rejectingInTime(one).digest])
  return same.includes(other.policy.digest) || isRaised(other, { kind, policy: asked })
}

const isRaised = ({ kind, policy }: Pick<Wanted, 'kind' | 'policy'>, from: Pick<Wanted, 'kind' | 'policy'>): boolean =>
  policy.raised_by !== undefined &&
  unraised(policy) === unraised(from.policy) &&
  isStricter(rulesOf({ gate_id: '', kind, policy }), rulesOf({ gate_id: '', ...from }))

const unraised = ({ digest: _, version: __, raised_by: ___, ...content }: GatePolicy): string =>
  digest({ ...content, quorum: 0, groups: [], on_timeout: '' })

/** Returns current policies that demand a gate on such a graph, but that none of its gates represents. */
export const unaskedPolicies = (
  library: Library,
  { nodes, gates }: Pick<Guarded, 'nodes' | 'gates'>,
  { seen, judged }: Weight,
): string[] => {
  const all = nodes.map(({ node_id }) => node_id)
  const wanted = [...policyGates([entryPlace(all)], library, seen, []), ...overrideGates(judged, all)]
  return wanted.filter((gate) => !gates.some((other) => sameRule(gate, other))).map(({ policy }) => policy.key)
}
