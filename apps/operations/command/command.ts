import type { FastifyRequest } from 'fastify'
import type { AuditEntry } from '../../../db/audit.ts'
import { type Tx, together } from '../../../db/client.ts'
import { fingerprintOf, type IdempotentRequest } from '../../../db/command/keys.ts'
import { type AcceptedCommand, type LockedOperation, lockOperation } from '../../../db/operations/commands/rows.ts'
import { appendAudit, type Facts } from '../../../db/operations/facts/state.ts'
import type { CommandKind } from '../../../workflows/operation/messages.ts'
import { type OperationFacts, statusOf } from '../../../workflows/operation/rules/facts.ts'
import { actorOfCaller, type Caller } from '../../shared/auth/caller.ts'
import type { Place } from '../../shared/auth/scope.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { tagsOf } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'
import { hasScopes, isVisible, placesOf } from '../policies/authority.ts'

/** A command as it came in: its sender, content, operation and key. */
export type Command = {
  kind: CommandKind
  class: 'stop' | 'start' | 'edit'
  operation_id: string
  /** What a refusal is audited as, if not as one of its operation. */
  object?: string
  actor: Actor
  /** Undefined for a control plane, whose scope the route has checked. */
  caller: Caller | undefined
  reason: string | null
  request_id: string
  trace: string | null
  dry_run: boolean
  if_match: string | undefined
  request: IdempotentRequest
  /** Chosen by the sender (signal_id), or else generated here. */
  command_id?: string
  /** The path it came on; refusals that are answered later name it. */
  instance: string
}

/** A decision: the facts to record, and the message to the engine. */
export type Decision = {
  /** Body of the signal; null: complete in Postgres, no signal is sent. */
  payload: Record<string, unknown> | null
  /** The command is done, and sent, when another person agrees. */
  awaits?: true
  /** Another command that this one sends off: the answer is its outcome. */
  follows?: string
  /** Facts of the timeline; none if the command has no effect. */
  events: Facts['events']
  set?: Facts['set']
  /** Where the history ends: it has not moved since the lock. Facts and writes then go out with the commit. */
  head?: Facts['head']
  /** Writes that can no longer fail, not sent yet. */
  writes?: PromiseLike<unknown>[]
  /** Rows that a withdrawal puts back (operations.md 1.4). */
  undo?: Record<string, unknown>
  /** The effect that a dry run shows. */
  effect: Record<string, unknown>
  /** `operation:<id>`, `gate:…`, `node:…` for the audit log. */
  object: string
  before: unknown
}

export type Steps<S> = {
  /** Asks other apps before the transaction, so that no lock waits for their answers. */
  ahead?: () => Promise<void>
  /** Locks and reads the subject of the command; throws not_found. */
  lock: (tx: Tx) => Promise<S>
  /** Checks policy, state and version, then does the compare-and-swap writes, in that order; throws the refusal. */
  decide: (tx: Tx, subject: S, command_id: string) => Promise<Decision>
  /** The current state of the object, for the answer. */
  render: (accepted: AcceptedCommand) => Promise<object>
  /** The allowed actions in the answer to a dry run; read after its rollback. */
  allowed: () => Promise<unknown[]>
  /** For a command that creates something: 201 with this Location. */
  location?: (operation_id: string, command_id: string) => string
}

/** Builds a command that no person gave: one from a service, or from this app itself. */
export const ownCommand = (
  given: Omit<Command, 'caller' | 'dry_run' | 'if_match' | 'reason' | 'trace'> &
    Partial<Pick<Command, 'reason' | 'trace'>>,
): Command => ({ reason: null, trace: null, ...given, caller: undefined, dry_run: false, if_match: undefined })

/** The parts of a command that every public route takes from its request. */
export const commandOf = (
  deps: Uses<'keys'>,
  req: FastifyRequest,
  given: Pick<Command, 'kind' | 'class' | 'operation_id' | 'object'> & {
    reason?: string | null
    dry_run?: boolean | undefined
  },
): Command => {
  const { caller, headers, params, query, body } = req
  const if_match = headers['if-match']
  const trace = headers.traceparent
  return {
    ...pick(given, 'kind', 'class', 'operation_id', 'object'),
    reason: given.reason ?? null,
    dry_run: given.dry_run ?? false,
    actor: actorOfCaller(caller),
    caller,
    request_id: String(req.id),
    trace: typeof trace === 'string' ? trace : null,
    if_match,
    instance: req.url.split('?')[0] ?? '/',
    request: {
      caller: `user:${caller.user_id}`,
      route: `${req.method} ${req.routeOptions.url ?? ''}`,
      key: String(headers['idempotency-key']),
      fingerprint: fingerprintOf(deps.keys.fingerprint, {
        params,
        query,
        if_match: if_match ?? null,
        body: body ?? null,
      }),
    },
  }
}

export const actorText = ({ kind, id }: Actor): string => (kind === 'user' ? `user:${id}` : id)

/** An operation under command: locked, visible to the caller, with its facts and the places of its targets. */
export type Subject = LockedOperation & { facts: OperationFacts; places: Place[] }

type Addressed = { operation_id: string; caller: Caller | undefined }

/** Locks a command's operation; throws not_found if the caller may not see it. */
export const lockVisible = async (deps: Uses<'policies'>, tx: Tx, command: Addressed): Promise<Subject> => {
  const { caller, operation_id } = command
  const placed = deps.policies.site || (caller && hasScopes(caller))
  // Both are sent in the order of the calls, so the places are read once the lock is held.
  const [operation, places] = await together(
    lockOperation(tx, operation_id),
    placed ? placesOf(tx, operation_id) : Promise.resolve([{}]),
  )
  if (!operation) throw notFound('operation', operation_id)
  if (caller && !isVisible(caller, operation.requester_id, places)) throw notFound('operation', command.operation_id)
  return { ...operation, facts: factsOf(operation), places }
}

export const factsOf = (
  row: Pick<
    LockedOperation,
    'control' | 'engine_status' | 'cancel_mode' | 'cancelled_at' | 'pause_reason' | 'unknown_nodes'
  >,
): OperationFacts => ({
  status: statusOf(row.control, row.engine_status),
  ...pick(row, 'control', 'cancel_mode', 'cancelled_at', 'pause_reason', 'unknown_nodes'),
})

/** If-Match compares the first part of the ETag, the count of decided changes; the rest changes with all progress. */
export const checkIfMatch = (if_match: string | undefined, revision: number): void => {
  const tags = if_match === undefined ? ['*'] : tagsOf(if_match)
  if (tags.includes('*')) return
  if (!tags.some((tag) => Number(/^"(\d+)(?:-\d+)?"$/.exec(tag)?.[1]) === revision))
    throw new AppError('version_conflict', 'revision_moved', `The operation is now at revision ${revision}.`, {
      extra: { current_version: revision },
    })
}

export const etagOf = ({ revision, change_seq }: { revision: number; change_seq: number }): string =>
  `"${revision}-${change_seq}"`

type Denied = Pick<AuditEntry, 'actor' | 'roles' | 'action' | 'object' | 'request_id'>
/** Writes an audit row for a 403 in a separate transaction, because the command's own was rolled back. */
export const auditDenial = ({ db, keys }: Uses<'db' | 'keys'>, denied: Denied, { code }: AppError): Promise<void> =>
  db.transaction((tx) => appendAudit(tx, keys.audit, { ...denied, outcome: 'denied', reason: code }))
