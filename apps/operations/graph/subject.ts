import type { GateSubject, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { digest } from '../../shared/data/digest.ts'
import { pick } from '../../shared/data/pick.ts'
import { byText, coneOf } from './graph.ts'
import { essenceOf, specDigest } from './hashes.ts'
import type { TargetDiff } from './types.ts'

/** How many releases are shown in full; a digest covers the rest. */
const SHOWN = 200

/**
 * The subject that an approval is bound to: everything that the cones of the gate's guarded nodes will do. It has no
 * versions, so a version that moves without a changed value asks nobody (operations.md 3.3).
 */
export const gateSubject = (
  operation_id: string,
  gate: PlanGate,
  nodes: PlanNode[],
  diff: TargetDiff[],
  bound_outputs: GateSubject['bound_outputs'] = [],
): { subject: GateSubject; digest: string } => {
  const cone = coneOf(nodes, gate.guards)
  const released = nodes.filter((node) => cone.has(node.node_id)).sort((a, b) => byText(a.node_id, b.node_id))
  const releases = released.map((node) => ({
    ...pick(node, 'node_id', 'name', 'executor'),
    target_id: node.target_id ?? null,
    inputs: node.with,
    on_failure: node.on_failure,
    spec_digest: specDigest(node),
  }))
  const touched = new Set(released.flatMap((node) => (node.target_id === undefined ? [] : [node.target_id])))
  const subject: GateSubject = {
    v: 1,
    operation_id,
    gate_id: gate.gate_id,
    kind: gate.kind,
    policy: { key: gate.policy.key, digest: gate.policy.digest },
    releases: releases.slice(0, SHOWN),
    ...(releases.length > SHOWN && { releases_count: releases.length, releases_digest: digest(releases) }),
    changes: diff
      .filter(({ resource_id, change }) => change !== 'no_change' && touched.has(resource_id))
      .sort((a, b) => byText(a.resource_id, b.resource_id))
      .map(essenceOf),
    bound_outputs,
  }
  return { subject, digest: digest(subject) }
}
