import type { Tx } from '../../../db/client.ts'
import { type LockedOperation, lockOperation } from '../../../db/operations/commands/rows.ts'
import { type OperationFacts, statusOf } from '../../../workflows/operation/rules/facts.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Place } from '../../shared/auth/scope.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import { isVisible, loadPlaces, placesFor } from '../policies/visibility.ts'

/** An operation under command: locked, visible to the caller, with its facts and the places of its targets. */
export type Subject = LockedOperation & { facts: OperationFacts; places: Place[] }

type Addressed = { operation_id: string; caller: Caller | undefined }

/** Locks the operation that a command is about; throws not_found when the caller may not see it. */
export const lockVisible = async (deps: Uses<'policies'>, tx: Tx, command: Addressed): Promise<Subject> => {
  const operation = await lockOperation(tx, command.operation_id)
  if (!operation) throw notFound('operation', command.operation_id)
  const { caller } = command
  const places = deps.policies.site
    ? await loadPlaces(tx, operation.resource_ids)
    : await placesFor(tx, caller ?? NOBODY, operation.resource_ids)
  if (caller && !isVisible(caller, operation.requester_id, places)) throw notFound('operation', command.operation_id)
  return { ...operation, facts: factsOf(operation), places }
}
const NOBODY = { user_id: '', grants: [] }

export const factsOf = (
  row: Pick<
    LockedOperation,
    'control' | 'engine_status' | 'cancel_mode' | 'cancelled_at' | 'pause_reason' | 'unknown_nodes'
  >,
): OperationFacts => ({
  status: statusOf(row.control, row.engine_status),
  ...pick(row, 'control', 'cancel_mode', 'cancelled_at', 'pause_reason', 'unknown_nodes'),
})

/** If-Match compares the first part of the ETag, the count of decided changes; the rest moves with every progress. */
export const checkIfMatch = (if_match: string | undefined, revision: number): void => {
  if (if_match === undefined || if_match === '*') return
  const given = /^(?:W\/)?"(\d+)(?:-\d+)?"$/.exec(if_match)?.[1]
  if (given === undefined)
    throw new AppError('validation_error', 'schema_violation', 'If-Match must be an ETag of this object.')
  if (Number(given) !== revision)
    throw new AppError('version_conflict', 'revision_moved', `The operation is at revision ${revision} now.`, {
      extra: { current_version: revision },
    })
}

export const etagOf = ({ revision, change_seq }: { revision: number; change_seq: number }): string =>
  `"${revision}-${change_seq}"`
