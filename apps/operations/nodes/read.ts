import { SNAPSHOT, type Tx, together } from '../../../db/client.ts'
import { listUnpassed } from '../../../db/operations/gates/rows.ts'
import { getNode, listArtifacts, listAttempts, listCone, listGatesOfNode } from '../../../db/operations/nodes/rows.ts'
import { getOperation } from '../../../db/operations/operations/read.ts'
import type { NodeFacts, OperationFacts } from '../../../workflows/operation/rules/facts.ts'
import {
  refuseGuardedEnd,
  refuseIntervention,
  refuseRetry,
  refuseRetryPast,
  resetCone,
} from '../../../workflows/operation/rules/nodes.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import { type AllowedAction, NODE_INTERVENTIONS } from '../../shared/contracts/operations/graph.ts'
import type { Node } from '../../shared/contracts/operations/nodes.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { notFound } from '../../shared/errors.ts'
import { factsOf } from '../command/command.ts'
import type { Uses } from '../deps.ts'
import {
  allowedAction,
  type Governed,
  isVisible,
  operationObject,
  placesFor,
  refuseByPolicy,
} from '../policies/authority.ts'

type Unpassed = Awaited<ReturnType<typeof listUnpassed>>
const ARTIFACTS_SHOWN = 200

type NodeDeps = Uses<'clock' | 'db' | 'policies'>

/**
 * Returns one node with its attempts, as this caller sees it. Throws not_found. All of it is of one moment and over one
 * connection: a request that takes five waits for the last of them on a busy machine, and is refused.
 */
export const readNode = (
  deps: NodeDeps,
  caller: Caller,
  operation_id: string,
  node_id: string,
  attempt?: number,
): Promise<Node> => deps.db.transaction((tx) => nodeIn(tx, deps, caller, { operation_id, node_id, attempt }), SNAPSHOT)

type Asked = { operation_id: string; node_id: string; attempt: number | undefined }

const nodeIn = async (
  tx: Tx,
  deps: NodeDeps,
  caller: Caller,
  { operation_id, node_id, attempt }: Asked,
): Promise<Node> => {
  const operation = await getOperation(tx, operation_id)
  const governed = operation?.governed
  const places = governed ? await placesFor(tx, caller, governed.resource_ids) : []
  if (!operation || !governed || !isVisible(caller, governed.requester_id, places))
    throw notFound('operation', operation_id)
  const row = await getNode(tx, operation_id, node_id)
  if (!row) throw notFound('node', node_id)
  const [attempts, artifacts, gates, cone, unpassed] = await together(
    listAttempts(tx, operation_id, node_id, attempt),
    listArtifacts(tx, operation_id, { node_id, after: undefined, limit: ARTIFACTS_SHOWN }),
    listGatesOfNode(tx, operation_id, row.gate_ids),
    listCone(tx, operation_id, node_id),
    listUnpassed(tx, operation_id, node_id),
  )
  if (attempt !== undefined && attempts.length === 0) throw notFound('attempt', String(attempt))
  const latest = attempts.findLast(({ role }) => role === 'run')
  const overrides = row.input_overrides
  return {
    ...row.node,
    spec: row.spec as unknown as Record<string, unknown>,
    inputs: {
      effective: latest?.inputs ?? (overrides ? mergePatch(row.spec.with, overrides) : row.spec.with),
      overridden: Object.keys(overrides ?? {}).map((key) => `/${key}`),
    },
    outputs: row.outputs,
    attempts: attempts.map(({ inputs: _, ...rest }) => rest),
    artifacts,
    gates,
    catalog: row.catalog,
    change_seq: operation.summary.change_seq,
    allowed_actions: nodeActions(deps, caller, { ...governed, places }, factsOf(governed), { cone, node_id, unpassed }),
  }
}

/** Returns what the caller may do with a node, by the rules that decide the commands. */
const nodeActions = (
  deps: Uses<'clock' | 'policies'>,
  caller: Caller,
  operation: Governed,
  facts: OperationFacts,
  { cone, node_id, unpassed }: { cone: readonly NodeFacts[]; node_id: string; unpassed: Unpassed },
): AllowedAction[] => {
  const node = cone.find((candidate) => candidate.node_id === node_id)
  if (!node) return []
  const object = operationObject(operation)
  const retry = refuseByPolicy(deps, caller, 'node.retry', object, operation.places)
  const intervene = refuseByPolicy(deps, caller, 'node.intervene', object, operation.places)
  const reset = resetCone(cone, node_id, 'downstream')
  return [
    allowedAction(
      'retry',
      retry,
      refuseRetry(facts, node, { cone: reset, reconciliation: true }) ?? refuseRetryPast(unpassed, node),
    ),
    ...NODE_INTERVENTIONS.map((type) =>
      allowedAction(
        type,
        intervene,
        refuseIntervention(facts, node, { type, cone }) ?? refuseGuardedEnd(unpassed, node, { type, cone }),
      ),
    ),
  ]
}
