import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { coneOf } from '../graph/graph.ts'
import type { Warning } from '../graph/types.ts'
import { withBinds } from './defaults.ts'

/** An output named preview, and whatever is given as the input of that name. */
const PREVIEW = /"\$from":"(nodes\/[^/"]+\/outputs\/preview)"|"preview":\{"\$from":"(nodes\/[^/"]+\/outputs[^"]*)"/g

/** Returns the previews that a node or its compensation carries out, as references of `binds`. */
const previewsOf = ({ executor, with: values, compensate }: PlanNode): string[] => {
  const acts = [{ executor, with: values }, ...(compensate ? [compensate] : [])]
  const found = acts.flatMap((act) =>
    act.executor === 'external' ? [...JSON.stringify(act.with ?? {}).matchAll(PREVIEW)] : [],
  )
  return [...new Set(found.map(([, output = '', input = output]) => input))]
}
const nodeIn = (reference: string): string => reference.split('/')[1] ?? ''

/**
 * A gate between a preview and the node that carries it out binds the preview, whatever its policy says: the approval
 * covers the tool's planned changes (operations.md 7.5). A preview that nobody approves causes a warning.
 */
export const bindPreviews = (gates: PlanGate[], nodes: readonly PlanNode[], warnings: Warning[]): PlanGate[] => {
  const acting = nodes.flatMap((node) => previewsOf(node).map((preview) => ({ preview, node_id: node.node_id })))
  if (acting.length === 0) return gates
  const guarded = new Set<string>()
  const bound = gates.map((gate) => {
    const cone = coneOf(nodes, gate.guards)
    const own = acting.filter(({ preview, node_id }) => cone.has(node_id) && !cone.has(nodeIn(preview)))
    for (const { node_id } of own) guarded.add(node_id)
    return own.length === 0
      ? gate
      : {
          ...gate,
          policy: withBinds(
            gate.policy,
            own.map(({ preview }) => preview),
          ),
        }
  })
  for (const { node_id } of acting)
    if (!guarded.has(node_id))
      warnings.push({
        code: 'preview_unguarded',
        message: `No gate is between the preview and "${node_id}": it carries out what nobody has read.`,
        values: { node: node_id },
      })
  return bound
}

/**
 * Returns the previews that a patch has nodes carry out, although gates are between and none of them shows it. A gate
 * keeps the policy with which it was planned, so only a new one can show another preview.
 */
export const unshownPreviews = (
  gates: readonly PlanGate[],
  nodes: readonly PlanNode[],
  changed: readonly PlanNode[],
  before: readonly PlanNode[],
) => {
  const old = new Map(before.map((node) => [node.node_id, node]))
  const acting = changed.flatMap((node) => {
    const earlier = old.get(node.node_id)
    const known = earlier ? previewsOf(earlier) : []
    return previewsOf(node).flatMap((preview) => (known.includes(preview) ? [] : [{ preview, node_id: node.node_id }]))
  })
  if (acting.length === 0) return []
  const cones = gates.map(({ guards, policy }) => ({ cone: coneOf(nodes, guards), binds: policy.binds }))
  return acting.filter(({ preview, node_id }) => {
    const between = cones.filter(({ cone }) => cone.has(node_id) && !cone.has(nodeIn(preview)))
    return between.length > 0 && !between.some(({ binds }) => binds.includes(preview))
  })
}

const MOST_WATCHES = 20

/** A gate behind watches binds their findings, nearest first, for the person who decides (operations.md 7.2). */
export const bindWatches = (gates: PlanGate[], nodes: readonly PlanNode[]): PlanGate[] => {
  if (!nodes.some(({ executor }) => executor === 'watch')) return gates
  const byId = new Map(nodes.map((node) => [node.node_id, node]))
  return gates.map((gate) => {
    const before = new Set(gate.guards)
    for (const id of before) for (const dep of byId.get(id)?.depends_on ?? []) before.add(dep)
    const cone = coneOf(nodes, gate.guards)
    const watches = [...before].filter((id) => !cone.has(id) && byId.get(id)?.executor === 'watch')
    const binds = watches.slice(0, MOST_WATCHES).map((id) => `nodes/${id}/outputs`)
    return binds.length === 0 ? gate : { ...gate, policy: withBinds(gate.policy, binds) }
  })
}
