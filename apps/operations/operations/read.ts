import { SNAPSHOT, type Tx, together } from '../../../db/client.ts'
import { lastSteering, listPendingCommands } from '../../../db/operations/commands/rows.ts'
import { getGraph } from '../../../db/operations/history/timeline.ts'
import { getOperation, getOwned, listLeases, listWaitingGates } from '../../../db/operations/operations/read.ts'
import { listOpenPatches } from '../../../db/operations/patches/rows.ts'
import { listFreezesNow } from '../../../db/operations/plans/calendar.ts'
import { isInFlight } from '../../../workflows/operation/rules/nodes.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Operation, OperationGraph } from '../../shared/contracts/operations/operations.ts'
import { pick } from '../../shared/data/pick.ts'
import { notFound } from '../../shared/errors.ts'
import { factsOf } from '../command/command.ts'
import type { PolicyDeps, Uses } from '../deps.ts'
import { viewGraph } from '../graph/drawing.ts'
import { withoutHidden } from '../plans/leases.ts'
import { isVisible, operationActions, placesFor } from '../policies/authority.ts'
import { operationInterventions } from './allowed.ts'

type OperationDeps = PolicyDeps & Uses<'config' | 'db'>

/** One operation as this caller sees it (a control plane: no actions), read over one connection. Throws not_found. */
export const readOperation = (
  deps: OperationDeps,
  caller: Caller | undefined,
  operation_id: string,
): Promise<Operation> => deps.db.transaction((tx) => operationIn(tx, deps, caller, operation_id), SNAPSHOT)

const operationIn = async (
  tx: Tx,
  deps: OperationDeps,
  caller: Caller | undefined,
  operation_id: string,
): Promise<Operation> => {
  const row = await getOperation(tx, operation_id)
  if (!row) throw notFound('operation', operation_id)
  const { governed } = row
  const [places, leases, open_gates, open_patches, pending_commands, steering, freezes] = await together(
    caller ? placesFor(tx, caller, governed.resource_ids) : Promise.resolve([]),
    listLeases(tx, operation_id),
    listWaitingGates(tx, operation_id),
    listOpenPatches(tx, operation_id),
    listPendingCommands(tx, operation_id),
    lastSteering(tx, operation_id),
    listFreezesNow(tx, operation_id, deps.clock.now().getTime()),
  )
  if (caller && !isVisible(caller, governed.requester_id, places)) throw notFound('operation', operation_id)
  const [summary = row.summary] = caller ? await withoutHidden(tx, caller, [row.summary]) : []
  const actionsOf = (who: Caller) => {
    const [operation, facts] = [{ ...governed, places }, factsOf(governed)]
    const offered = { leases: leases.length, open_gates: open_gates.length, freezes }
    return [
      ...operationActions(deps, who, operation, facts),
      ...operationInterventions(deps, who, operation, facts, offered),
    ]
  }
  return {
    ...summary,
    ...row.detail,
    leases,
    open_gates,
    open_patches: open_patches.map((patch) =>
      pick(patch, 'patch_id', 'proposer', 'reason', 'base_revision', 'held_nodes', 'expires_at'),
    ),
    pending_commands,
    steering: steering ?? null,
    evidence_head: { seq: row.evidence_seq, hash: row.evidence_hash },
    ...(row.engine_ref &&
      caller?.permissions.has('engine:inspect') && {
        engine_ref: { ...row.engine_ref, ui_url: pageOf(deps.config.OPERATIONS__TEMPORAL__UI_URL, row.engine_ref) },
      }),
    allowed_actions: caller ? actionsOf(caller) : [],
  }
}

/** The page of a workflow in the Temporal UI. */
const pageOf = (
  ui_url: string,
  { namespace, workflow_id, run_id }: Record<'namespace' | 'workflow_id' | 'run_id', string>,
) => {
  const parts = ['namespaces', namespace, 'workflows', workflow_id, run_id, 'history']
  return `${ui_url.replace(/\/+$/, '')}/${parts.map(encodeURIComponent).join('/')}`
}

/** Like requireVisible, of the logs: whoever may read logs somewhere else may not read these. */
export const requireLogs = async (deps: Uses<'db'>, caller: Caller, operation_id: string) => {
  const found = await requireVisible(deps, caller, operation_id)
  if (!isVisible(caller, found.requester_id, found.places, 'log:read')) throw notFound('operation', operation_id)
  return found
}

/** Throws not_found unless the caller may see the operation; returns the parts of its ETag. */
export const requireVisible = async (deps: Uses<'db'>, caller: Caller, operation_id: string) => {
  const owned = await getOwned(deps.db, operation_id)
  const places = owned ? await placesFor(deps.db, caller, owned.resource_ids) : []
  if (!owned || !isVisible(caller, owned.requester_id, places)) throw notFound('operation', operation_id)
  return { ...owned, places }
}

/**
 * Returns the drawing with live states, nodes in rank order; collapsed groups keep counts and omit their nodes. All of
 * it is of one moment: a reader takes `change_seq` as applied, and asks for no change before it again. `moves`: a node
 * is in flight.
 */
export const readGraph = async (
  deps: Uses<'db'>,
  operation_id: string,
  { collapse, revision }: { collapse?: 'auto' | 'none' | 'groups'; revision?: number },
): Promise<OperationGraph & { moves: boolean }> => {
  const found = await deps.db.transaction((tx) => getGraph(tx, operation_id, revision), SNAPSHOT)
  if (!found) throw notFound('plan revision', String(revision ?? 1), 'plan')
  const { drawing, states, gateStates, change_seq, as_of } = found
  return {
    ...pick(drawing, 'plan_revision', 'plan_hash'),
    ...viewGraph(drawing.graph, collapse, { nodes: states, gates: gateStates }),
    change_seq,
    as_of,
    moves: states.some(({ state }) => isInFlight(state)),
  }
}
