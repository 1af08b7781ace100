import { eq, inArray } from 'drizzle-orm'
import Type from 'typebox'
import { readAsOf } from '../../../db/operations/operations/read.ts'
import { INTENT_STATUS, intentFound, listIntents } from '../../../db/operations/plans/rows.ts'
import { intents } from '../../../db/operations/tables/index.ts'
import { allow } from '../../shared/auth/http.ts'
import { DryRunReply } from '../../shared/contracts/operations/common.ts'
import {
  IntentBody,
  IntentList,
  IntentListQuery,
  IntentParams,
  type IntentRow,
  IntentView,
} from '../../shared/contracts/operations/intents.ts'
import { CommandHeaders, ReadHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import { mutationOf } from '../command/mutate.ts'
import { unlessKnown } from '../command/reply.ts'
import type { Uses } from '../deps.ts'
import { isInScope, placesFor, visibleSql } from '../policies/authority.ts'
import { createIntent, intentView, linksOf, type Outline, readIntent } from './create.ts'

/** Intents: the state that should be true, and the preview of how to reach it. */
export const intentsRoutes = routes<
  Uses<'config' | 'db' | 'keys' | 'library' | 'pages' | 'projection'>,
  { outline: Outline }
>('intents', (app, { deps, outline }) => {
  app.post('/v1/intents', {
    operationId: 'createIntent',
    summary: 'Create an intent',
    description:
      'Records an intent without changing anything. Preview it to see a plan, then start the plan. Targets are resolved now and again for each plan.',
    headers: CommandHeaders,
    'x-reply-headers': ['etag', 'location'],
    body: IntentBody,
    response: { 201: IntentView, 200: DryRunReply },
    preHandler: allow('intent:create', { kind: 'W' }),
    handler: async (req, reply) =>
      sendStored(reply, await createIntent(deps, mutationOf(deps, req), req.body, outline)),
  })

  app.get('/v1/intents', {
    operationId: 'listIntents',
    summary: 'List intents',
    description: 'Intents that the caller may see, newest first.',
    querystring: IntentListQuery,
    response: { 200: IntentList },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async (req) => {
      const { status, requester, kind, q, page_size = 50, page_token } = req.query
      const list = { route: 'intents', status, requester, kind, q, user: req.caller.user_id }
      const rows = await listIntents(deps.db, {
        where: [
          visibleSql(req.caller, intents),
          status && inArray(INTENT_STATUS, status),
          // The same by the stored status, which has an index.
          status && inArray(intents.status, status.includes('expired') ? [...status, 'open', 'previewed'] : status),
          kind && eq(intents.kind, kind),
          q === undefined ? undefined : intentFound(q),
          requester && eq(intents.requester_id, requester === 'me' ? req.caller.user_id : requester),
        ].map((condition) => condition || undefined),
        after: deps.pages.after(page_token, list),
        limit: page_size + 1,
      })
      const page = deps.pages.cut(rows, page_size, list, (row) => [row.created_at, row.intent_id])
      return {
        ...page,
        items: page.items.map(({ request: _, targets_resolved, resource_ids: _ids, requester_id: _id, ...row }) => ({
          ...row,
          status: row.status as IntentRow['status'],
          targets: targets_resolved.length,
          links: linksOf(row),
        })),
        as_of: await readAsOf(deps.db),
      }
    },
  })

  app.get('/v1/intents/:intent_id', {
    operationId: 'getIntent',
    summary: 'Read an intent',
    description: 'Returns one intent with its original request, its newest plan and its operation.',
    'x-reply-headers': ['etag'],
    params: IntentParams,
    headers: ReadHeaders,
    response: { 200: IntentView, 304: Type.Null() },
    preHandler: allow('operation:read', { kind: 'R' }),
    handler: async (req, reply) => {
      const intent = await readIntent(deps, req.caller, req.params.intent_id)
      const places = await placesFor(deps.db, req.caller, intent.resource_ids)
      const view = intentView(intent, req.caller, isInScope(req.caller, 'intent:create', places))
      return unlessKnown(req, reply, `"${intent.revision}"`, view)
    },
  })
})
