import { type Tx, updateRows } from '../../../db/client.ts'
import { type Asked, askAgain } from '../../../db/operations/gates/ask.ts'
import { nodes } from '../../../db/operations/tables/index.ts'
import { NOW } from '../../../db/rows.ts'
import { mergeDiff } from '../../shared/data/merge-patch.ts'
import { isObject } from '../../shared/data/pointer.ts'
import { AppError } from '../../shared/errors.ts'
import type { Subject } from '../command/command.ts'
import type { PlanningDeps } from '../deps.ts'
import { specDigest } from '../graph/hashes.ts'
import { lookAhead, refuseBound } from '../plans/ahead.ts'
import { throwIfRefused } from '../policies/authority.ts'

/**
 * Replaces a node's inputs with a person's values: a merge patch on the `with` of the plan, valid until another one
 * replaces it completely. It is checked like a patch to the graph. Every gate that approved or is asked about other
 * inputs asks again before the node begins. Throws parameters_invalid with every reason.
 */
export const overrideInputs = async (
  deps: PlanningDeps,
  tx: Tx,
  subject: Subject,
  node_id: string,
  input_overrides: Record<string, unknown>,
): Promise<Asked> => {
  const change = { op: 'update_node' as const, node_id, set: { with: input_overrides } }
  const outlook = await lookAhead(deps, tx, subject, [change], { instead: node_id })
  if (outlook.patched.violations.length > 0)
    throw new AppError('validation_error', 'parameters_invalid', 'The node cannot run with these inputs.', {
      violations: outlook.patched.violations.slice(0, 100),
    })
  throwIfRefused(refuseBound(subject, outlook))
  const planned = outlook.rows.nodes.find((row) => row.node_id === node_id)?.spec
  const node = outlook.patched.nodes.find((candidate) => candidate.node_id === node_id)
  if (!planned || !node) throw new Error(`node ${node_id} is not in the graph of its operation`)
  const overrides = isObject(planned.with) && isObject(node.with) ? mergeDiff(planned.with, node.with) : {}
  await updateRows(tx, { operation_id: subject.operation_id, node_id }, nodes, {
    input_overrides: Object.keys(overrides).length > 0 ? overrides : null,
    spec_digest: specDigest(node),
    updated_at: NOW,
  })
  return askAgain(tx, subject.operation_id, outlook.rows.gates, outlook.gates, () => [node_id])
}
