import type { GateRow } from '../../../db/operations/gates/rows.ts'
import { getGate } from '../../../db/operations/gates/rows.ts'
import { getGateContext } from '../../../db/operations/history/timeline.ts'
import { getPlanOf } from '../../../db/operations/plans/rows.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Gate } from '../../shared/contracts/operations/gates.ts'
import type { OperationStatus } from '../../shared/contracts/operations/graph.ts'
import { notFound } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { listConflicts } from '../plans/conflicts.ts'
import { impactFor } from '../plans/preview.ts'
import type { PlanReport } from '../plans/types.ts'
import { operationFactsOf } from '../policies/footing.ts'
import { isVisible, placesFor } from '../policies/visibility.ts'
import { readBrief } from './brief.ts'
import { viewGate } from './view.ts'

/**
 * One gate with its subject and context, as this caller sees it. Throws not_found. The brief and what stands in the way
 * now are looked up when the gate is read, not in the answer to a vote (`for_voter`).
 */
export const readGate = async (
  deps: Uses<'clock' | 'db' | 'library' | 'lookback_s' | 'policies' | 'trust'>,
  caller: Caller,
  operation_id: string,
  gate_id: string,
  { for_voter = false } = {},
): Promise<{ view: Gate; operation_status: OperationStatus; row: GateRow }> => {
  const row = await getGate(deps.db, operation_id, gate_id)
  if (!row) throw notFound('gate', gate_id)
  const places = await placesFor(deps.db, caller, row.operation.resource_ids)
  if (!isVisible(caller, row.operation.requester_id, places)) throw notFound('operation', operation_id)
  const [{ subject, context: read }, approvers, conflicts, brief] = await Promise.all([
    getGateContext(deps.db, operation_id, gate_id),
    deps.trust.approvers.list(),
    for_voter ? conflictsOf(deps, operation_id) : [],
    for_voter ? readBrief(deps.db, caller, operation_id, gate_id) : null,
  ])
  const { impact, ...context } = read
  const { dependents = [], affected = null } = impact
    ? await impactFor(deps.db, caller, { impact: impact as PlanReport['impact'] })
    : {}
  const view = {
    ...viewGate(deps, caller, row, places, approvers),
    subject,
    context: { ...context, dependents, affected, conflicts },
    brief,
  }
  return { view, operation_status: operationFactsOf(row).status, row }
}

const conflictsOf = async (deps: Uses<'clock' | 'db' | 'library'>, operation_id: string) => {
  const plan = await getPlanOf(deps.db, operation_id)
  return plan ? listConflicts(deps.db, deps, plan, operation_id) : []
}
