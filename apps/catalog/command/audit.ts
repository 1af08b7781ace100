import type { FastifyRequest } from 'fastify'
import { audit } from '../../../db/catalog/tables.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { auditOf } from './outbox.ts'

/**
 * Writes a separate audit row for each time that policy refuses a person or a service; what was refused left no other
 * trace. All in one statement: the answer waits for it.
 */
export const recordDenied = async (deps: CatalogDeps, req: FastifyRequest, ...errors: AppError[]): Promise<void> => {
  const cause = {
    actor: req.service ? `svc:${req.service.name}` : `user:${req.caller.user_id}`,
    roles: req.service ? [] : req.caller.roles,
    action: `${req.method} ${req.routeOptions.url ?? ''}`,
    at: deps.clock.now().toISOString(),
    request_id: req.id,
    command_id: null,
  }
  const object = req.url.split('?')[0] ?? ''
  const rows = errors.map(({ code: reason }) => auditOf(deps, { ...cause, reason }, { object, outcome: 'denied' }))
  if (rows.length > 0) await deps.db.transaction((tx) => tx.insert(audit).values(rows))
}

/** Returns the result of `work`; audits a 403 before rethrowing it. */
export const auditDenied = async <T>(deps: CatalogDeps, req: FastifyRequest, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (error instanceof AppError && error.status === 403) await recordDenied(deps, req, error)
    throw error
  }
}
