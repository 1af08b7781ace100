import type { GateAsked, GateSubject, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick } from '../../shared/data/pick.ts'
import { byText, coneOf, ranksOf } from './graph.ts'
import { essenceOf, specDigest } from './hashes.ts'
import type { TargetDiff } from './types.ts'

/** How many releases are shown in full; a digest covers the rest. */
const SHOWN = 200

type Bound = {
  /** Undefined: the operation began before this was bound, and its gates stay as they are. */
  asked?: GateAsked | undefined
  bound_outputs?: GateSubject['bound_outputs']
}

/**
 * What an approval of a gate is bound to: who asks and why, and all that the cones of its guarded nodes will do. No
 * versions, so that one that moves without a value asks nobody (operations.md 3.3).
 */
export const gateSubject = (
  operation_id: string,
  gate: PlanGate,
  nodes: PlanNode[],
  diff: TargetDiff[],
  { asked, bound_outputs = [] }: Bound,
): { subject: GateSubject; digest: string } => {
  const released = releasedBy(gate, nodes, asked !== undefined)
  const releases = released.map((node) => ({
    ...pick(node, 'node_id', 'name', 'executor'),
    target_id: node.target_id ?? null,
    inputs: node.with,
    on_failure: node.on_failure,
    spec_digest: specDigest(node),
    ...(asked && { step: stepOf(node), batch: node.group ?? null }),
  }))
  const touched = new Set(released.flatMap((node) => (node.target_id === undefined ? [] : [node.target_id])))
  const subject: GateSubject = {
    v: asked ? 2 : 1,
    ...(asked && { asked }),
    operation_id,
    gate_id: gate.gate_id,
    kind: gate.kind,
    policy: { key: gate.policy.key, digest: gate.policy.digest },
    releases: releases.slice(0, SHOWN),
    ...(releases.length > SHOWN && { releases_count: releases.length, releases_digest: digest(releases) }),
    changes: diff
      .filter(({ resource_id, change }) => change !== 'no_change' && touched.has(resource_id))
      .sort((a, b) => byText(a.resource_id, b.resource_id))
      .map((entry) => ({ ...essenceOf(entry), ...(asked && placeOf(entry)) })),
    bound_outputs,
  }
  return { subject, digest: digest(subject) }
}

/** The cone of a gate in the order in which it may run, by its own edges: no change elsewhere moves it. */
const releasedBy = (gate: PlanGate, nodes: PlanNode[], in_order: boolean): PlanNode[] => {
  const cone = coneOf(nodes, gate.guards)
  const released = nodes.filter((node) => cone.has(node.node_id)).sort((a, b) => byText(a.node_id, b.node_id))
  if (!in_order) return released
  const within = ({ node_id, depends_on }: PlanNode) => ({
    node_id,
    depends_on: depends_on.filter((id) => cone.has(id)),
  })
  const rank = ranksOf(released.map(within))
  return released.sort((a, b) => (rank.get(a.node_id) ?? 0) - (rank.get(b.node_id) ?? 0))
}

/** The step of the procedure without the version of its pack; null of a node that no procedure made. */
const stepOf = ({ step }: PlanNode): string | null => step?.replace(/^.*\./, '') ?? null

const placeOf = ({ name, type_key, region_id }: TargetDiff) => ({
  name,
  type_key: type_key ?? null,
  region_id: region_id ?? null,
})
