import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { IMPORT_ITEMS, ImportQuery, ImportReply, ImportRequest } from '../../shared/contracts/catalog/imports.ts'
import { JSON_LIMITS } from '../../shared/data/json.ts'
import { CommandHeaders, errorReplies, sendStored } from '../../shared/http/app.ts'
import { auditDenied } from '../command/audit.ts'
import { writeOf } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { importItems } from './run.ts'

/** Takes over what other systems know. */
export const importsRoutes: FastifyPluginAsyncTypebox<{ deps: CatalogDeps }> = async (app, { deps }) => {
  app.post(
    '/v1/resources::import',
    {
      schema: {
        operationId: 'importResources',
        summary: 'Import resources',
        description:
          'Up to 200 items of one source, each created, updated or left as it is by its id in the source, with the differences. validate_only stores nothing. Nothing is ever retired. What the time of the request does not suffice for is deferred: send it in another request. Not in the specification.',
        tags: ['catalog'],
        headers: Type.Partial(CommandHeaders),
        querystring: ImportQuery,
        body: ImportRequest,
        response: { 200: ImportReply, ...errorReplies },
      },
      config: { json_limits: { ...JSON_LIMITS, each: IMPORT_ITEMS } },
      preHandler: allow('catalog:record', { kind: 'W' }),
    },
    async (req, reply) => {
      const write = writeOf(req, { query: req.query, body: req.body })
      return sendStored(reply, await auditDenied(deps, req, importItems(deps, req.body, write)))
    },
  )
}
