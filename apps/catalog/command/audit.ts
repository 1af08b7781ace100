import type { FastifyRequest } from 'fastify'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps } from '../deps.ts'
import { recordAudit } from './outbox.ts'

/** Writes a separate audit row when policy refuses a person or a service; the refused request left no other trace. */
export const recordDenied = (deps: CatalogDeps, req: FastifyRequest, error: AppError) =>
  deps.db.transaction((tx) =>
    recordAudit(
      tx,
      deps,
      {
        actor: req.service ? `svc:${req.service.name}` : `user:${req.caller.user_id}`,
        roles: req.service ? [] : req.caller.roles,
        action: `${req.method} ${req.routeOptions.url ?? ''}`,
        at: deps.clock.now().toISOString(),
        request_id: req.id,
        reason: error.code,
        command_id: null,
      },
      { object: req.url.split('?')[0] ?? '', outcome: 'denied' },
    ),
  )

/** Returns the result of `work`; audits a 403 before rethrowing it. */
export const auditDenied = async <T>(deps: CatalogDeps, req: FastifyRequest, work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (error instanceof AppError && error.status === 403) await recordDenied(deps, req, error)
    throw error
  }
}
