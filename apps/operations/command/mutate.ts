import type { FastifyRequest } from 'fastify'
import type { Tx } from '../../../db/client.ts'
import { fingerprintOf, type IdempotentRequest } from '../../../db/command/keys.ts'
import { type Answer, type Decision, keysIn, runAnswered } from '../../../db/command/run.ts'
import { appendAudit } from '../../../db/operations/facts/audit.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { actorOfCaller, type Caller } from '../../shared/auth/caller.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import type { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'

/** A mutation that is not a command on an operation: its caller and key. */
export type Mutation = {
  caller: Caller
  actor: Actor
  request: IdempotentRequest
  request_id: string
  dry_run: boolean
}

export const mutationOf = ({ keys }: Uses<'keys'>, req: FastifyRequest): Mutation => {
  const { caller, headers, params, query } = req
  const body = req.body as { dry_run?: boolean } | undefined
  return {
    caller,
    actor: actorOfCaller(caller),
    request_id: String(req.id),
    request: {
      caller: `user:${caller.user_id}`,
      route: `${req.method} ${req.routeOptions.url ?? ''}`,
      key: String(headers['idempotency-key']),
      fingerprint: fingerprintOf(keys.fingerprint, { params, query, body: body ?? null }),
    },
    dry_run: body?.dry_run ?? false,
  }
}

type MutationDeps = Uses<'db' | 'keys'>

/** Runs a mutation once per key; a dry run goes through all checks and is not stored. */
export const mutate = (
  deps: MutationDeps,
  mutation: Mutation,
  decide: (tx: Tx) => Promise<Decision<Record<string, unknown>>>,
): Promise<Answer> =>
  runAnswered(
    { db: deps.db, keys: keysIn(idempotency), denied: (error) => auditDenial(deps, mutation, error) },
    mutation,
    decide,
    (effect) => ({ dry_run: true, effect, allowed_actions: [] }),
  )

/** A 403 leaves a row of its own: its transaction is gone. */
const auditDenial = (deps: MutationDeps, { request, caller, request_id }: Mutation, { code }: AppError) =>
  deps.db.transaction((tx) =>
    appendAudit(tx, deps.keys.audit, {
      actor: request.caller,
      roles: caller.roles,
      action: request.route,
      object: request.route,
      outcome: 'denied',
      reason: code,
      request_id,
    }),
  )
