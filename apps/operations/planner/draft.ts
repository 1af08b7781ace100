import type { CatalogWrite, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Violation } from '../../shared/errors.ts'
import type { MemberCount } from '../../shared/expressions/values.ts'
import { byText } from '../graph/graph.ts'
import { type Order, orderTargets } from '../graph/order.ts'
import { PlanRefusal } from '../graph/refusal.ts'
import type {
  Batch,
  BatchRoot,
  Group,
  Lane,
  PlannerInput,
  ResourceType,
  Target,
  TargetDiff,
  Warning,
} from '../graph/types.ts'
import { nodeOf } from '../packs/defaults.ts'
import { absentBy, batchesOf, DONE } from './batch.ts'
import { type Expanded, expandCompensation, expander, expandUnit, nodeIdOf, restoreOf } from './expand.ts'
import { entryPlace, graphGates, type Places } from './gates.ts'
import { laneName, matchTargets } from './match.ts'

/** The rules build this up before it is measured, guarded and hashed. */
export type Draft = {
  nodes: PlanNode[]
  /** Gates that a graph's author wrote; those of packs and policies are added later, by `places`. */
  gates: PlanGate[]
  groups: Group[]
  places: Places[]
  /** First nodes of the whole plan. */
  entry: string[]
  lanes: Lane[]
  diff: TargetDiff[]
  warnings: Warning[]
}

/** Returns a graph as its author wrote it, with defaults and plan-time values filled in. */
export const graphDraft = (
  { intent, targets, types, library, limits }: PlannerInput,
  violations: Violation[],
): Draft => {
  const given = intent.graph?.nodes ?? []
  if (given.length > limits.graph_nodes)
    throw new PlanRefusal('too_large', `${given.length} nodes; at most ${limits.graph_nodes} are allowed in one graph.`)
  const ids = new Set(given.map((node) => node.node_id))
  const byId = new Map(targets.map((target) => [target.resource_id, target]))
  const shared = { plan: planRoot(intent, targets), targets, count: { members: 0 } }
  const nodes = given.map((entry) => {
    const node = nodeOf(entry)
    const target = node.target_id === undefined ? undefined : byId.get(node.target_id)
    const type = types.find(({ type_key }) => type_key === target?.type_key)
    return { ...node, ...expandParts(node, { ...(target && { target }), ...shared }, ids, violations, type) }
  })
  const entry = nodes.filter((node) => node.depends_on.length === 0).map((node) => node.node_id)
  const names = [...new Set(nodes.flatMap((node) => (node.group === undefined ? [] : [node.group])))]
  return {
    nodes,
    gates: graphGates(intent.graph?.gates ?? [], library, violations),
    groups: names.map((name) => ({ group_id: name, name, kind: 'batch' })),
    places: [entryPlace(entry)],
    entry,
    lanes: [],
    diff: [],
    warnings: [],
  }
}

type Parts = Partial<Pick<PlanNode, 'node_id' | 'with' | 'catalog' | 'when' | 'compensate'>>

/** Returns the values of a node that its author wrote, with everything known at plan time filled in. */
export const expandParts = (
  node: Parts & { node_id: string },
  { targets, count, ...roots }: { target?: Target; plan: unknown; targets: readonly Target[]; count: MemberCount },
  ids: ReadonlySet<string>,
  violations: Violation[],
  type?: ResourceType,
): Parts => {
  const { of, condition } = expander(
    { roots, targets, count, nodeOf: (id) => (ids.has(id) ? id : undefined) },
    node.node_id,
    violations,
  )
  const write = node.catalog && (of(node.catalog, '/catalog') as CatalogWrite)
  const restored = write && roots.target ? restoreOf(write, roots.target, type) : {}
  return {
    ...(node.with !== undefined && { with: of(node.with, '/with') }),
    ...(write && { catalog: write }),
    ...(node.when !== undefined && { when: condition(node.when, '/when') }),
    ...(node.compensate && { compensate: expandCompensation(node.compensate, of, condition, restored) }),
  }
}

/** Returns the nodes of all targets of a change, action or runbook: matched, ordered, cut into batches, expanded. */
export const changesDraft = (input: PlannerInput, violations: Violation[]): Draft => {
  const types = new Map(input.types.map((type) => [type.type_key, type]))
  const targets = input.targets.toSorted((a, b) => byText(a.resource_id, b.resource_id))
  const { lanes, changes } = matchTargets(input.intent, targets, types, input.library)
  const order = orderTargets(lanes, input.relationships, input.relationship_types)
  const draft: Draft = {
    nodes: [],
    gates: [],
    groups: [],
    places: [],
    entry: [],
    lanes,
    diff: targets.flatMap((target) => changes.get(target.resource_id)?.diff ?? []),
    warnings: order.warnings,
  }
  const laneOf = new Map(lanes.flatMap((lane) => lane.targets.map((target) => [target.resource_id, lane] as const)))
  const { among } = input
  const plan = planRoot(input.intent, among?.pins ?? targets)
  const budget = Number(input.intent.constraints.failure_budget ?? 0)
  const expanded = new Map<string, Expanded>()
  const count = { members: 0 }
  const expand: Expand = (lane, target, entry, root, batch) => {
    const after = changes.get(target.resource_id)?.after ?? {}
    const of_plan = among?.batches.get(target.resource_id)
    const roots = {
      target,
      ...(lane.procedure.kind === 'change' && { after }),
      params: lane.params,
      plan,
      batch: of_plan ?? root,
    }
    const tolerant = !batch?.canary && (budget > 0 || (lane.batch?.max_failures ?? 0) > 0)
    const done = expandUnit(
      {
        procedure: lane.procedure,
        target,
        type: types.get(target.type_key),
        roots,
        targets: among?.targets ?? targets,
        count,
        entry,
        group: batch?.group_id,
        tolerant,
      },
      violations,
    )
    draft.nodes.push(...done.nodes)
    expanded.set(target.resource_id, done)
    return done
  }
  for (const lane of lanes) {
    if (lane.procedure.scope === 'plan') {
      draft.places.push(expandOnce(lane, { plan, count }, draft, violations))
      continue
    }
    const prefix = lanes.length > 1 ? lane.procedure.key : ''
    const batches = batchesOf(lane, order, prefix)
    const by = absentBy(lane)
    if (by !== undefined)
      draft.warnings.push({
        code: 'batch_by_absent',
        message: `No target has "${by}", by which the batches are to be grouped.`,
        values: { by },
      })
    draft.places.push(
      batches.length > 0 ? expandBatches(lane, batches, budget, draft, expand) : expandFreely(lane, order, expand),
    )
  }
  linkOrder(order, laneOf, expanded, draft)
  draft.entry = draft.nodes.filter((node) => node.depends_on.length === 0).map((node) => node.node_id)
  return draft
}

type Expand = (lane: Lane, target: Target, entry: string[], root: object, batch?: Batch) => Expanded

export const planRoot = (
  { intent_id, kind, labels }: Pick<PlannerInput['intent'], 'intent_id' | 'labels'> & { kind: string },
  targets: readonly { resource_id: string }[],
) => ({ intent_id, kind, labels, targets: targets.length, target_ids: targets.map((target) => target.resource_id) })

/** Expands the steps of a procedure that runs once for the whole plan, whatever its targets. */
const expandOnce = (
  lane: Lane,
  { plan, count }: { plan: object; count: MemberCount },
  draft: Draft,
  violations: Violation[],
): Places => {
  const { procedure, params, targets } = lane
  const roots = { params, plan }
  const unit = { procedure, target: undefined, roots, targets, count, entry: [], group: undefined, tolerant: false }
  const done = expandUnit(unit, violations)
  draft.nodes.push(...done.nodes)
  return { ...entryPlace(done.roots), gates: procedure.gates, before_step: stepFinder([done]) }
}

const expandFreely = (lane: Lane, order: Order, expand: Expand): Places => {
  const all = lane.targets.map((target) => ({ target, ...expand(lane, target, [], {}) }))
  const own = new Set(lane.targets.map((target) => target.resource_id))
  const waits = (target: Target) => (order.before.get(target.resource_id) ?? []).some((id) => own.has(id))
  const entry = all.filter(({ target }) => !waits(target)).flatMap((one) => one.roots)
  return { ...entryPlace(entry), gates: lane.procedure.gates, before_step: stepFinder(all) }
}

/** Runs one batch after the other: targets wait for the barrier that closes the previous batch. */
const expandBatches = (lane: Lane, batches: Batch[], budget: number, draft: Draft, expand: Expand): Places => {
  const byId = new Map(lane.targets.map((target) => [target.resource_id, target]))
  const { max_failures = 0 } = lane.batch ?? {}
  const all: Expanded[] = []
  const starts: string[][] = []
  let entry: string[] = []
  for (const [index, batch] of batches.entries()) {
    const { group_id, name, canary, target_ids } = batch
    draft.groups.push({ group_id, name, kind: canary ? 'canary' : 'batch' })
    const root: BatchRoot = { group_id, name, index, size: target_ids.length }
    const members = target_ids
      .flatMap((id) => byId.get(id) ?? [])
      .map((target) => expand(lane, target, entry, root, batch))
    all.push(...members)
    starts.push(members.flatMap((one) => one.roots))
    // A failed canary holds everything after it; with a budget for the whole plan, the pause deals with the rest.
    const allowed = canary ? 0 : max_failures || (budget > 0 ? members.length : 0)
    const lasts = members.flatMap((one) => one.lasts)
    const barrier = barrierOf(lane, batch, lasts, allowed)
    draft.nodes.push(barrier)
    entry = [barrier.node_id]
  }
  const canary = batches.findIndex((batch) => batch.canary)
  return {
    gates: lane.procedure.gates,
    entry: starts[0] ?? [],
    after_canary: canary < 0 ? [] : (starts[canary + 1] ?? []),
    between_batches: starts.slice(1),
    before_step: stepFinder(all),
  }
}

const barrierOf = (lane: Lane, { group_id, name }: Batch, depends_on: string[], max_failures: number): PlanNode => {
  const barrier = nodeOf({
    node_id: nodeIdOf('barrier', group_id),
    name: name + DONE,
    kind: 'barrier',
    depends_on,
    group: group_id,
    join: max_failures > 0 ? 'settled' : 'all',
    step: `${laneName(lane.procedure)}.barrier`,
    skippable: false,
  })
  return max_failures > 0 ? { ...barrier, max_failures } : barrier
}

const stepFinder = (all: Expanded[]) => (step: string) => all.flatMap((one) => one.by_step.get(step) ?? [])

/** The first steps of a target wait for the last of the targets before it; inside a batched lane, barriers do this. */
const linkOrder = (order: Order, laneOf: Map<string, Lane>, expanded: Map<string, Expanded>, draft: Draft): void => {
  const byId = new Map(draft.nodes.map((node) => [node.node_id, node]))
  for (const [id, others] of order.before) {
    const lane = laneOf.get(id)
    const waits = others.filter((other) => !(lane?.batch && laneOf.get(other) === lane))
    const lasts = waits.flatMap((other) => expanded.get(other)?.lasts ?? [])
    if (lasts.length === 0) continue
    for (const root of expanded.get(id)?.roots ?? []) {
      const node = byId.get(root)
      if (node) node.depends_on = [...new Set([...node.depends_on, ...lasts])]
    }
  }
}
