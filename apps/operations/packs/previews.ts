import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import { coneOf } from '../graph/graph.ts'
import type { Warning } from '../graph/types.ts'
import { withBinds } from './defaults.ts'

const PREVIEW = /"\$from":"nodes\/([^/"]+)\/outputs\/preview"/g

/** The previews that a node carries out, as references of `binds`. */
const previewsOf = ({ executor, with: values }: PlanNode): string[] =>
  executor === 'external' ? [...JSON.stringify(values ?? {}).matchAll(PREVIEW)].map(([, id]) => id ?? '') : []

/**
 * A gate between a preview and the node that carries it out binds the preview, whatever its policy says: what the tool
 * would do is part of what is approved (operations.md 7.5). A preview that nobody approves is a warning.
 */
export const bindPreviews = (gates: PlanGate[], nodes: readonly PlanNode[], warnings: Warning[]): PlanGate[] => {
  const acting = nodes.flatMap((node) => previewsOf(node).map((preview) => ({ preview, node_id: node.node_id })))
  if (acting.length === 0) return gates
  const guarded = new Set<string>()
  const bound = gates.map((gate) => {
    const cone = coneOf(nodes, gate.guards)
    const own = acting.filter(({ preview, node_id }) => cone.has(node_id) && !cone.has(preview))
    for (const { node_id } of own) guarded.add(node_id)
    return own.length === 0
      ? gate
      : {
          ...gate,
          policy: withBinds(
            gate.policy,
            own.map(({ preview }) => `nodes/${preview}/outputs/preview`),
          ),
        }
  })
  for (const { node_id } of acting)
    if (!guarded.has(node_id))
      warnings.push({
        code: 'preview_unguarded',
        message: `No gate is between the preview and "${node_id}": it carries out what nobody has read.`,
      })
  return bound
}
