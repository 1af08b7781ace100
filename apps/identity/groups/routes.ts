import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { Pending } from '../../shared/contracts/identity/changes.ts'
import { GroupKey, GroupPatch, GroupView, NewGroup, PageQuery, pageOf } from '../../shared/contracts/identity/users.ts'
import { createPages } from '../../shared/http/pages.ts'
import { CommandHeaders, routes, sendStored, VersionedHeaders } from '../../shared/http/routes.ts'
import { perform } from '../control/changes.ts'
import type { ChangeDeps } from '../deps.ts'
import { createGroup, deleteGroup, groupViews, listGroups, removeMember, updateGroup } from './change.ts'
import { memberMeasure } from './measures.ts'

const GroupParams = Type.Object({ group_key: GroupKey })
const MemberParams = Type.Object({ group_key: GroupKey, user_id: Type.String({ format: 'uuid' }) })

const arm = allow('identity:admin', { kind: 'A' })
const stop = allow('identity:admin', { kind: 'S' })

/** Groups are flat and have a key that never changes, because gate policies name it. */
export const groupsRoutes = routes<ChangeDeps>('groups', (app, { deps }) => {
  const pages = createPages(deps.keys.page)
  app.get('/v1/admin/groups', {
    operationId: 'listGroups',
    summary: 'List groups',
    description: 'Groups by key, with their members and who added each.',
    querystring: PageQuery,
    response: { 200: pageOf(GroupView) },
    preHandler: allow('identity:read', { kind: 'R' }),
    handler: async (req) => {
      const list = { route: 'groups' }
      const { page_size, page_token } = req.query
      const [after] = pages.after(page_token, list) ?? []
      const rows = await listGroups(deps.db, after ?? undefined, page_size + 1)
      const { items, next_page_token } = pages.cut(rows, page_size, list, ({ group_key }) => [group_key])
      return { items: await groupViews(deps.db, items), next_page_token, as_of: deps.clock.now().toISOString() }
    },
  })
  app.post('/v1/admin/groups', {
    operationId: 'createGroup',
    summary: 'Create a group',
    description: 'Creates a group.',
    'x-reply-headers': ['etag'],
    headers: CommandHeaders,
    body: NewGroup,
    response: { 201: GroupView },
    preHandler: arm,
    handler: async (req, reply) => sendStored(reply, await createGroup(deps, req, req.body)),
  })
  app.patch('/v1/admin/groups/:group_key', {
    operationId: 'updateGroup',
    summary: 'Change a group',
    description: 'Changes name or description of a group. If-Match holds the version that was read, in quotes.',
    params: GroupParams,
    'x-reply-headers': ['etag'],
    headers: VersionedHeaders,
    body: GroupPatch,
    response: { 200: GroupView },
    preHandler: arm,
    handler: async (req, reply) => sendStored(reply, await updateGroup(deps, req, req.params.group_key, req.body)),
  })
})

export const membersRoutes = routes<ChangeDeps>('groups', (app, { deps }) => {
  app.delete('/v1/admin/groups/:group_key', {
    operationId: 'deleteGroup',
    summary: 'Delete a group',
    description: 'Removes a group, its memberships and its grants.',
    params: GroupParams,
    headers: VersionedHeaders,
    response: { 204: Type.Null() },
    preHandler: stop,
    handler: async (req, reply) => sendStored(reply, await deleteGroup(deps, req, req.params.group_key)),
  })
  app.put('/v1/admin/groups/:group_key/members/:user_id', {
    operationId: 'addGroupMember',
    summary: 'Add a member to a group',
    description: 'Adds a user to a group; 202 if a second administrator must confirm it.',
    params: MemberParams,
    headers: CommandHeaders,
    response: { 202: Pending, 204: Type.Null() },
    preHandler: arm,
    handler: async (req, reply) =>
      sendStored(reply, await perform(deps, req, { kind: 'member.add', request: req.params }, memberMeasure)),
  })
  app.delete('/v1/admin/groups/:group_key/members/:user_id', {
    operationId: 'removeGroupMember',
    summary: 'Remove a member from a group',
    description:
      'Removes a user from a group; refused while a provider gives the membership, which ends there or by disabling the account.',
    params: MemberParams,
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    preHandler: stop,
    handler: async (req, reply) => sendStored(reply, await removeMember(deps, req, req.params)),
  })
})
