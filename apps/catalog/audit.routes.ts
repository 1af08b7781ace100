import { pageOfAudit } from '../../db/audit.ts'
import { audit } from '../../db/catalog/tables.ts'
import type { allow, requireScope } from '../shared/auth/http.ts'
import { AuditList, AuditQuery } from '../shared/contracts/audit.ts'
import { routes } from '../shared/http/routes.ts'
import type { CatalogDeps } from './deps.ts'

type Guard = ReturnType<typeof allow> | ReturnType<typeof requireScope>

/** The catalog's audit log, for people who may read it and for services that monitor it. */
export const auditRoutes = routes<CatalogDeps, { path: string; guard: Guard }>(
  'audit',
  (app, { deps, path, guard }) => {
    app.get(path, {
      operationId: 'listCatalogAudit',
      summary: 'List audit rows of the catalog',
      tags: ['audit'],
      description:
        'Lists writes to resources, and refused attempts, newest first. Not in the specification. Example: ?object=resource:eu1-web-01',
      querystring: AuditQuery,
      response: { 200: AuditList },
      preHandler: guard,
      handler: (req) => pageOfAudit(deps, audit, req.query),
    })
  },
)
