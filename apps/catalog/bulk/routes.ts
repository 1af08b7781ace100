import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { closed } from '../../shared/contracts/catalog/common.ts'
import { WriteQuery } from '../../shared/contracts/catalog/resources.ts'
import { BULK_CHANGES, BULK_ITEMS, BulkReply, BulkRequest } from '../../shared/contracts/imports/bulk.ts'
import { JSON_LIMITS } from '../../shared/data/json.ts'
import { CommandHeaders, faultsIn, routes, sendText } from '../../shared/http/routes.ts'
import { auditDenied, recordDenied } from '../command/audit.ts'
import { writeOf } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { needRecordPermission } from '../resources/routes.ts'
import { bulkResources, type CheckShape } from './run.ts'

const { expected_version: _version, ...query } = WriteQuery.properties
const BulkQuery = Type.Object(query, closed)

/** Bulk changes of resources by people, in one request. */
export const bulkRoutes = routes<CatalogDeps>('catalog', (app, { deps }) => {
  app.post('/v1/resources::bulk', {
    operationId: 'changeResources',
    summary: 'Change many resources',
    description:
      'Creates, updates, relates or retires up to 1,000 items, each with the checks and rights of the single route. Items succeed or fail alone, or with atomic all together. relate and retire need mode=record_only. A repeat with the same key returns the first answer of finished items and retries the others; other items under that key are 422. Not in the specification.',
    headers: Type.Partial(CommandHeaders),
    querystring: BulkQuery,
    body: BulkRequest,
    response: { 200: BulkReply },
    config: { json_limits: { ...JSON_LIMITS, each: BULK_ITEMS } },
    onRequest: needRecordPermission(deps),
    preHandler: allow(['catalog:write', 'catalog:record'], { kind: 'W' }),
    handler: async (req, reply) => {
      const check: CheckShape = (op, change) => faultsIn(req, BULK_CHANGES[op], change)
      const write = writeOf(req, null)
      const { body, denied } = await auditDenied(deps, req, bulkResources(deps, req.body, write, check))
      await recordDenied(deps, req, ...denied)
      return sendText(reply, body)
    },
  })
})
