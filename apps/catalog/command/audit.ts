import type { FastifyRequest } from 'fastify'
import { audit } from '../../../db/catalog/tables.ts'
import { RESOURCE_ID } from '../../shared/contracts/catalog/common.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { auditOf } from './outbox.ts'

/** A refusal by policy; `object`: what it was about, if the request alone does not tell. */
export type Denied = { code: string; object: string | undefined }

/**
 * Writes a separate audit row for each time that policy refuses a person or a service; what was refused left no other
 * trace. All in one statement: the answer waits for it.
 */
export const recordDenied = async (
  deps: CatalogDeps,
  req: FastifyRequest,
  ...denied: (AppError | Denied)[]
): Promise<void> => {
  const cause = {
    actor: req.service ? `svc:${req.service.name}` : `user:${req.caller.user_id}`,
    roles: req.service ? [] : req.caller.roles,
    action: `${req.method} ${req.routeOptions.url ?? ''}`,
    at: deps.clock.now().toISOString(),
    request_id: req.id,
    command_id: null,
  }
  const rows = denied.map((one) => deniedRow(deps, cause, { code: one.code, object: objectOf(req, one) }))
  if (rows.length > 0) await deps.db.transaction((tx) => tx.insert(audit).values(rows))
}

/** The audit row of a refusal. */
export const deniedRow = (
  deps: Uses<'keys'>,
  cause: Omit<Parameters<typeof auditOf>[1], 'reason'>,
  { code: reason, object = '' }: Denied,
) => auditOf(deps, { ...cause, reason }, { object, outcome: 'denied' })

const ID = new RegExp(RESOURCE_ID)
type Named = { resource_id?: unknown; items?: unknown } | null | undefined

/** The resource that a refused request or its item names; its path, if there is none. */
const objectOf = ({ params, body, url }: FastifyRequest, denied: AppError | Denied): string => {
  if (!(denied instanceof AppError)) return denied.object ?? url.split('?')[0] ?? ''
  const { index } = denied.options.extra ?? {}
  const items = (body as Named)?.items
  const item = Array.isArray(items) && typeof index === 'number' ? items[index] : undefined
  const named = [params, item?.change ?? item?.command ?? body] as Named[]
  const id = named.map((one) => one?.resource_id).find((one) => typeof one === 'string' && ID.test(one))
  return id === undefined ? (url.split('?')[0] ?? '') : `resource:${id}`
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
