import type { FastifyRequest } from 'fastify'
import type { AuditEntry } from '../../../db/audit.ts'
import type { Tx } from '../../../db/client.ts'
import { fingerprintOf, type IdempotentRequest } from '../../../db/command/keys.ts'
import { type Answer, type Decision, keysIn, runAnswered } from '../../../db/command/run.ts'
import { appendAudit } from '../../../db/operations/facts/state.ts'
import { idempotency } from '../../../db/operations/tables/index.ts'
import { actorOfCaller, type Caller } from '../../shared/auth/caller.ts'
import type { Actor } from '../../shared/contracts/operations/graph.ts'
import type { Uses } from '../deps.ts'
import { auditDenial } from './command.ts'

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

/** Runs a mutation once per key; a dry run passes all checks and is not stored. */
export const mutate = (
  deps: MutationDeps,
  mutation: Mutation,
  decide: (tx: Tx) => Promise<Decision<Record<string, unknown>>>,
): Promise<Answer> =>
  runAnswered(
    {
      db: deps.db,
      keys: keysIn(idempotency),
      denied: (error) => {
        const { route } = mutation.request
        return auditDenial(deps, { ...callerOf(mutation), action: route, object: route }, error)
      },
    },
    mutation,
    decide,
    (effect) => ({ dry_run: true, effect, allowed_actions: [] }),
  )

const callerOf = ({ request, caller, request_id }: Mutation) => ({
  ...{ actor: request.caller, roles: caller.roles, request_id },
})

/** The audit row of a completed mutation. */
export const auditDone = (
  { keys }: Uses<'keys'>,
  tx: Tx,
  mutation: Mutation,
  done: Pick<AuditEntry, 'action' | 'object' | 'reason' | 'after'>,
) => appendAudit(tx, keys.audit, { ...callerOf(mutation), ...done, outcome: 'done' })
