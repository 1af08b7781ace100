import Type from 'typebox'
import { viewsOf } from '../../../db/identity/views.ts'
import { allow } from '../../shared/auth/http.ts'
import { NewView, SavedView, SavedViews, ViewParams, ViewPatch } from '../../shared/contracts/identity/views.ts'
import { CommandHeaders, routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import type { ChangeDeps } from '../deps.ts'
import { changeView, createView, removeView, savedView } from './change.ts'

const PATH = '/v1/users/me/views'
const read = allow('self', { kind: 'R' })
const write = allow('self', { kind: 'W' })

/** A person's saved searches. No one else reads or changes them. */
export const viewsRoutes = routes<ChangeDeps>('views', (app, { deps }) => {
  app.get(PATH, {
    operationId: 'listViews',
    summary: 'List your views',
    description: "Lists the caller's saved searches by name, at most 50.",
    response: { 200: SavedViews },
    preHandler: read,
    handler: async (req) => ({ items: (await viewsOf(deps.db, req.caller.user_id)).map(savedView) }),
  })
  app.post(PATH, {
    operationId: 'createView',
    summary: 'Save a view',
    description: "Saves the filters of a list under a name that is unique among the caller's views.",
    headers: CommandHeaders,
    body: NewView,
    response: { 201: SavedView },
    preHandler: write,
    handler: async (req, reply) => sendStored(reply, await createView(deps, req, req.body)),
  })
  app.patch(`${PATH}/:view_id`, {
    operationId: 'updateView',
    summary: 'Change a view',
    description: 'Renames a view or replaces its filters. If-Match holds the version that was read.',
    params: ViewParams,
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
