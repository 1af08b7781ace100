import { pageOfAudit } from '../../../db/audit.ts'
import { audit } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { AuditList, AuditQuery } from '../../shared/contracts/audit.ts'
import { routes } from '../../shared/http/routes.ts'
import type { Uses } from '../deps.ts'

/** The audit log of operations: who gave which commands, and who was refused. */
export const auditRoutes = routes<Uses<'clock' | 'db' | 'pages'>>('history', (app, { deps }) => {
  app.get('/v1/audit', {
    operationId: 'listOperationAudit',
    summary: 'List audit rows of operations',
    description:
      'Lists commands on intents, plans and operations, and refused attempts, newest first. Example: ?object=operation:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10',
    querystring: AuditQuery,
    response: { 200: AuditList },
    preHandler: allow('audit:read', { kind: 'R' }),
    handler: (req) => pageOfAudit(deps, audit, req.query),
  })
})
