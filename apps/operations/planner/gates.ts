import { setImmediate } from 'node:timers/promises'
import { isWithin } from '../../shared/auth/scope.ts'
import type { GatePolicy, Join, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import type { Violation } from '../../shared/errors.ts'
import { CEL_LIMITS, CelError } from '../../shared/expressions/cel.ts'
import { byText } from '../graph/graph.ts'
import type { Covers, Freeze, GraphGate, Library, Place, Policy, Procedure, Target, Warning } from '../graph/types.ts'
import { policyOf, rejectingInTime } from '../packs/defaults.ts'
import type { JudgedPlan } from '../policies/plans.ts'
import type { RiskLevel } from './risk.ts'

/** The places for gates that a lane, a graph or a patch offers. A place with no guards does not exist. */
export type Places = {
  /** Gates that its procedure names. */
  gates: Procedure['gates']
  entry: string[]
  /** First nodes of the batch after the first canary. */
  after_canary: string[]
  /** First nodes of each batch but the first. */
  between_batches: string[][]
  before_step: (step: string) => string[]
}

export type Wanted = Omit<PlanGate, 'gate_id'>

/** Returns the gates that packs name. */
export const namedGates = (places: Places[], { policies }: Library, warnings: Warning[]): Wanted[] => {
  const wanted: Wanted[] = []
  for (const place of places)
    for (const gate of place.gates) {
      const policy = policies.get(gate.policy)
      if (!policy) continue
      const sets = guardsAt(place, gate.at, gate.step)
      if (sets.length === 0)
        warnings.push({
          code: 'gate_without_nodes',
          message: `The gate "${gate.policy}" guards no node here.`,
          values: { gate: gate.policy },
        })
      for (const guards of sets) wanted.push(gateOf(policy, guards))
    }
  return wanted
}

/** Returns the gates of every policy that applies: an author cannot drop one of these. */
export const policyGates = (
  places: Places[],
  { policies }: Library,
  facts: Record<string, unknown>,
  violations: Violation[],
): Wanted[] => {
  const wanted: Wanted[] = []
  for (const policy of [...policies.values()].sort((a, b) => byText(a.policy.key, b.policy.key))) {
    if (!policy.applies || !applies(policy, facts, violations)) continue
    for (const place of places) {
      const sets = guardsAt(place, policy.place.at, policy.place.step)
      // If its own place is missing (a canary of one is the whole change), the policy asks at the entry.
      for (const guards of sets.length > 0 ? sets : guardsAt(place, 'entry')) wanted.push(gateOf(policy, guards))
    }
  }
  return wanted
}

/** For a graph that an author wrote by hand: every place is its beginning. */
export const entryPlace = (entry: string[]): Places => ({
  gates: [],
  entry,
  after_canary: [],
  between_batches: [],
  before_step: () => [],
})

const guardsAt = (place: Places, at: Place, step?: string): string[][] => {
  const sets = at === 'between_batches' ? place[at] : [at === 'before_step' ? place[at](step ?? '') : place[at]]
  return sets.filter((guards) => guards.length > 0).map((guards) => guards.toSorted(byText))
}

const kindOf = ({ check }: GatePolicy) => (check ? ('external_check' as const) : ('approval' as const))

const gateOf = ({ policy, question }: Policy, guards: string[]): Wanted => ({
  kind: kindOf(policy),
  question,
  policy,
  guards,
})

/** A policy whose condition cannot be evaluated applies: an error must not open a gate. */
const applies = ({ applies: condition, policy }: Policy, facts: Record<string, unknown>, violations: Violation[]) => {
  try {
    return condition?.test({ plan: facts }) ?? false
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    violations.push({ pointer: `/policies/${policy.key}/applies`, code: 'expression_error', message: error.message })
    return true
  }
}

/** A freeze that covers a target while the plan is expected to run asks its own approvers at the entry. */
export const freezeGates = (
  freezes: Freeze[],
  targets: Target[],
  entry: string[],
  from: string,
  until: string,
  covers: Covers,
): Wanted[] =>
  freezes
    .filter((freeze) => Date.parse(freeze.from) < Date.parse(until) && Date.parse(freeze.to) > Date.parse(from))
    .filter((freeze) => targets.some((target) => covers(freeze, target)))
    .map((freeze) => ({ ...freezeGate(freeze), guards: entry.toSorted(byText) }))

/** The gate for a freeze: who may pass it, and for how long. */
export const freezeGate = ({ freeze_id, title, to, approvers }: Freeze): Omit<Wanted, 'guards'> => ({
  kind: 'freeze',
  question: `${title}: continue despite this freeze until ${to}?`,
  policy: policyOf(freeze_id, { approvals: { quorum: 1, groups: approvers.map((group) => ({ group, min: 0 })) } }),
})

/** A soft policy that forbids the plan can be overridden at the entry, by the groups that it names. */
export const overrideGates = (judged: readonly JudgedPlan[], entry: string[]): Wanted[] =>
  judged
    .filter(({ level, result }) => level === 'soft' && result === 'forbids' && entry.length > 0)
    .map(({ policy_id, detail, approvers, quorum }) => ({
      kind: 'policy_override',
      question: `${detail} Continue despite this policy?`,
      policy: policyOf(policy_id, { approvals: { quorum, groups: approvers.map((group) => ({ group, min: 0 })) } }),
      guards: entry.toSorted(byText),
    }))

/**
 * A barrier that lets failures pass is guarded together with its batch: a rejection is not counted as a failure, and
 * the nodes after the barrier must not begin.
 */
export const withBarriers = (gate: Wanted, nodes: readonly PlanNode[]): Wanted => {
  const guarded = new Set(gate.guards)
  const groups = new Set(nodes.flatMap(({ node_id, group }) => (guarded.has(node_id) && group ? [group] : [])))
  const barriers = nodes.filter(({ max_failures = 0, group = '' }) => max_failures > 0 && groups.has(group))
  return { ...gate, guards: [...gate.guards, ...barriers.map(({ node_id }) => node_id)].sort(byText) }
}

type Ends = { good: boolean; bad: boolean }
const ANY: Ends = { good: true, bad: true }

/**
 * Returns the guards of a gate, and all that could start although it has not passed (operations.md 3.2): a guarded node
 * can end before, because `on_failure` passes over the rejection, a node before it failed, or, if `demanded`, its
 * condition is false. The nodes, in rank order, decide. The cone of the gate, and so its subject, stays the same.
 */
export const completeGuards = (
  { guards: named, policy }: Pick<Wanted, 'guards' | 'policy'>,
  nodes: readonly PlanNode[],
  demanded: boolean,
): string[] => {
  const guards = new Set(named)
  // How the nodes behind the gate can end before it passes; other nodes can end in any way.
  const ends = new Map<string, Ends>()
  for (const { node_id, depends_on, join, when, on_failure } of nodes) {
    if (!guards.has(node_id) && !depends_on.some((id) => ends.has(id))) continue
    const { starts, never } = JOINED[join](depends_on.map((id) => ends.get(id) ?? ANY))
    if (starts) guards.add(node_id)
    const skips = demanded && starts && when !== undefined
    const fails = guards.has(node_id) && (skips || policy.on_reject === 'fail_nodes')
    ends.set(node_id, {
      good: skips || (fails && on_failure === 'tolerate'),
      bad: never || (fails && on_failure === 'skip_dependents'),
    })
  }
  return [...guards].sort(byText)
}

/** Whether such ends of its dependencies can release a node or rule it out; the reducer's `joinOf` decides alike. */
const JOINED: Record<Join, (before: Ends[]) => { starts: boolean; never: boolean }> = {
  all: (before) => ({ starts: before.every(({ good }) => good), never: before.some(({ bad }) => bad) }),
  any: (before) => ({
    starts: before.every(isOver) && before.some(({ good }) => good),
    never: before.every(({ bad }) => bad),
  }),
  settled: (before) => ({ starts: before.every(isOver), never: false }),
}
const isOver = ({ good, bad }: Ends): boolean => good || bad

/** How long all conditions on all targets may take together: one of them alone may take as long. */
const COVERS_MS = CEL_LIMITS.ms

/**
 * Whether freezes and windows cover targets. A condition that cannot be evaluated covers, and so do those for which no
 * time is left.
 */
export const createCovers = (): Covers => {
  let left_ms: number = COVERS_MS
  return ({ applies: condition, within }, target) => {
    if (!isIn(within, target)) return false
    if (left_ms <= 0) return true
    const started = performance.now()
    try {
      return condition.test({ target })
    } catch (error) {
      if (error instanceof CelError) return true
      throw error
    } finally {
      left_ms -= performance.now() - started
    }
  }
}

const isIn = (within: Freeze['within'], { scope, type_key }: Target): boolean =>
  isWithin(within, { ...scope, type_key })

const TURN_MS = 10

/** Asks each condition about all targets once, with turns for others in between, and answers from then on. */
export const askCovers = async (
  entries: readonly Pick<Freeze, 'applies' | 'within'>[],
  targets: readonly Target[],
): Promise<Covers> => {
  const covers = createCovers()
  const known = new Map<Freeze['applies'], Map<Target, boolean>>()
  let turn = performance.now()
  for (const entry of entries) {
    const own = known.get(entry.applies) ?? new Map<Target, boolean>()
    known.set(entry.applies, own)
    for (const target of targets) {
      if (own.has(target) || !isIn(entry.within, target)) continue
      own.set(target, covers(entry, target))
      if (performance.now() - turn < TURN_MS) continue
      await setImmediate()
      turn = performance.now()
    }
  }
  return (entry, target) =>
    isIn(entry.within, target) && (known.get(entry.applies)?.get(target) ?? covers(entry, target))
}

/** Returns the gates that the author of a graph wrote; an unknown policy is a violation. */
export const graphGates = (given: GraphGate[], { policies }: Library, violations: Violation[]): PlanGate[] =>
  given.map((gate, i) => {
    const known = typeof gate.policy === 'string' ? policies.get(gate.policy) : undefined
    if (typeof gate.policy === 'string' && !known)
      violations.push({
        pointer: `/graph/gates/${i}/policy`,
        code: 'unknown_reference',
        message: `There is no gate policy "${gate.policy}".`,
      })
    if (typeof gate.policy === 'object' && gate.policy.check && gate.policy.approvals)
      violations.push({
        pointer: `/graph/gates/${i}/policy/check`,
        code: 'inputs_invalid',
        message: 'A gate is answered by a service or by people, not by both.',
      })
    const policy: GatePolicy =
      known?.policy ?? policyOf(gate.gate_id, typeof gate.policy === 'string' ? {} : gate.policy)
    return {
      gate_id: gate.gate_id,
      kind: kindOf(policy),
      question: gate.question ?? known?.question ?? 'Continue?',
      policy,
      guards: [...new Set(gate.guards)].sort(byText),
    }
  })

/** Silence approves only at low risk, never for a signature (operations.md 2.5). Others reject, as the plan says. */
export const refuseSilence = (gates: PlanGate[], risk: RiskLevel, warnings: Warning[]): PlanGate[] =>
  gates.map((gate) => {
    const { on_timeout, signature } = gate.policy
    if (on_timeout !== 'approve' || (risk === 'low' && signature !== 'required')) return gate
    const why = signature === 'required' ? 'without a signature' : `at risk ${risk}`
    warnings.push({
      code: 'silence_rejects',
      message: `The gate "${gate.gate_id}" would approve by itself in time; ${why} it rejects.`,
      values: { gate: gate.gate_id },
    })
    return { ...gate, policy: rejectingInTime(gate.policy) }
  })

/**
 * Gives each gate its id: the policy's key, numbered if there are several. Gates with equal policy and guards are one.
 * `rankOf` returns how early a node comes.
 */
export const nameGates = (
  wanted: Wanted[],
  taken: PlanGate[],
  rankOf: (node_id: string) => number,
  spent: ReadonlySet<string> = new Set(),
): PlanGate[] => {
  const unique = new Map<string, Wanted>()
  for (const gate of wanted) {
    const same = digest([gate.kind, gate.policy.key, gate.policy.digest, gate.guards])
    if (!unique.has(same)) unique.set(same, gate)
  }
  const first = (gate: Wanted) => Math.min(...gate.guards.map(rankOf))
  const sorted = [...unique.values()].sort(
    (a, b) => first(a) - first(b) || byText(a.policy.key, b.policy.key) || byText(a.guards.join(), b.guards.join()),
  )
  const used = new Set([...spent, ...taken.map((gate) => gate.gate_id)])
  const named = sorted.map((gate) => {
    let gate_id = gate.policy.key
    for (let n = 2; used.has(gate_id); n++) gate_id = `${gate.policy.key}-${n}`
    used.add(gate_id)
    return { gate_id, ...gate }
  })
  return [...taken, ...named]
}
