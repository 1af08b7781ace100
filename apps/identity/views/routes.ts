import Type from 'typebox'
import { sharedViewsOf, viewsOf } from '../../../db/identity/views.ts'
import { allow } from '../../shared/auth/http.ts'
import { NewView, SavedView, SavedViews, ViewParams, ViewPatch } from '../../shared/contracts/identity/views.ts'
import { CommandHeaders, routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import type { ChangeDeps } from '../deps.ts'
import { changeView, createView, removeView, savedView } from './change.ts'

const PATH = '/v1/users/me/views'
const read = allow('self', { kind: 'R' })
const write = allow('self', { kind: 'W' })

/** Views of other people that a list has. */
const MOST_SHARED = 200

/** A person's saved searches. Members of a group read those that are shared with it; only the owner changes one. */
export const viewsRoutes = routes<ChangeDeps>('views', (app, { deps }) => {
  app.get(PATH, {
    operationId: 'listViews',
    summary: 'List your views',
    description:
      "Lists the caller's saved searches by name, at most 50, then at most 200 that members of the caller's groups share with them.",
    response: { 200: SavedViews },
    preHandler: read,
    handler: async (req) => {
      const { user_id } = req.caller
      const [own, shared] = [await viewsOf(deps.db, user_id), await sharedViewsOf(deps.db, user_id, MOST_SHARED)]
      return {
        items: [...own.map((row) => savedView(row)), ...shared.map(({ view, owner }) => savedView(view, owner))],
      }
    },
  })
  app.post(PATH, {
    operationId: 'createView',
    summary: 'Save a view',
    description:
      "Saves the filters of a list under a name that is unique among the caller's views, alone or shared with one of the caller's groups.",
    'x-reply-headers': ['etag'],
    headers: CommandHeaders,
    body: NewView,
    response: { 201: SavedView },
    preHandler: write,
    handler: async (req, reply) => sendStored(reply, await createView(deps, req, req.body)),
  })
  app.patch(`${PATH}/:view_id`, {
    operationId: 'updateView',
    summary: 'Change a view',
    description:
      'Renames a view, replaces its filters or shares it with another group or none. If-Match holds the version that was read, in quotes.',
    params: ViewParams,
    'x-reply-headers': ['etag'],
    headers: VersionedHeaders,
    body: ViewPatch,
    response: { 200: SavedView },
    preHandler: write,
    handler: async (req, reply) => sendStored(reply, await changeView(deps, req, req.params.view_id, req.body)),
  })
  app.delete(`${PATH}/:view_id`, {
    operationId: 'deleteView',
    summary: 'Delete a view',
    description: "Deletes one of the caller's views.",
    params: ViewParams,
    headers: VersionedHeaders,
    response: { 204: Type.Null() },
    preHandler: write,
    handler: async (req, reply) => sendStored(reply, await removeView(deps, req, req.params.view_id)),
  })
})
