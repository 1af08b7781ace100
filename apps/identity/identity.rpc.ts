import { listMachines } from '../../db/identity/machines.ts'
import { preferencesOf } from '../../db/identity/preferences.ts'
import { getUserByFolded, listUsers, preparedGetLinked, preparedGetUser } from '../../db/identity/queries.ts'
import { foldUsername } from '../shared/auth/username.ts'
import { Identity } from '../shared/contracts/gen/auth_pb.ts'
import { AppError } from '../shared/errors.ts'
import { isUuid } from '../shared/ids.ts'
import { rpcContext, rpcService } from '../shared/rpc/client.ts'
import type { Uses } from './deps.ts'
import { linkExternal, previewExternal, type Resolved, resolveExternal } from './federation/external.ts'
import { listExternal, unlinkExternal } from './federation/unlink.ts'
import { authenticateMachine, type MachineDeps } from './machines/authenticate.ts'
import { addPasskey, listPasskeys, removePasskey } from './passkeys/passkeys.ts'
import { verifyAssertion } from './passkeys/verify.ts'
import { principalMessage, principalsOf, signingIn, userMessage } from './principal.ts'
import { refuseUsername } from './rules.ts'

const MAX_PAGE = 500

/** People and their rights, for the other apps. An unknown user is an absent message, never an error. */
export const identityRpc = (deps: MachineDeps & Uses<'keys' | 'providers'>) => {
  const { db } = deps
  const read = 'identity:read'
  const [getUser, getLinked] = [preparedGetUser(db), preparedGetLinked(db)]
  return rpcService(
    Identity,
    {
      getUser: read,
      getUserByUsername: read,
      getPrincipal: read,
      listPrincipals: read,
      getPreferences: read,
      resolveExternal: 'identity:federate',
      previewExternal: 'identity:federate',
      linkExternal: 'identity:federate',
      listExternal: read,
      unlinkExternal: 'identity:federate',
      authenticateMachine: 'machines:authenticate',
      getOwnedMachine: read,
      listPasskeys: read,
      addPasskey: 'passkeys:write',
      removePasskey: 'passkeys:write',
      verifyAssertion: 'passkeys:verify',
    },
    {
      getUser: async ({ id, providerId }) => {
        const found = providerId === '' ? getUser : (id: string) => getLinked(id, providerId)
        const user = isUuid(id) ? await found(id) : undefined
        return user ? { user: signingIn(user) } : {}
      },
      getUserByUsername: async ({ username }) => {
        const possible = !refuseUsername(username.normalize('NFKC'), { provided: true })
        const user = possible ? await getUserByFolded(db, foldUsername(username)) : undefined
        return user ? { user: signingIn(user) } : {}
      },
      getPrincipal: async ({ userId }) => {
        const principal = isUuid(userId) ? await principalMessage(db, userId) : undefined
        return principal ? { principal } : {}
      },
      getPreferences: async ({ userId }) => {
        const { zone = '', language = '' } = isUuid(userId) ? await preferencesOf(db, userId) : {}
        return { zone, language }
      },
      authenticateMachine: (request) => authenticateMachine(deps, request),
      getOwnedMachine: async ({ machineId, ownerId }) => {
        const [user] =
          isUuid(machineId) && isUuid(ownerId) ? await listMachines(db, { owner_id: ownerId, id: machineId }) : []
        return user ? { user: userMessage(user) } : {}
      },
      listPasskeys: ({ userId }) => listPasskeys(deps, userId),
      addPasskey: (request, context) => addPasskey(deps, request, rpcContext(context).request_id),
      removePasskey: (request, context) => removePasskey(deps, request, rpcContext(context).request_id),
      verifyAssertion: (request, context) => verifyAssertion(deps, request, rpcContext(context).request_id),
      listPrincipals: async ({ role, groupKey, pageSize, pageToken }) => {
        const limit = Math.min(Math.max(pageSize || 50, 1), MAX_PAGE)
        const after = pageToken ? keyOf(pageToken) : undefined
        const users = await listUsers(db, {
          limit,
          status: 'ACTIVE',
          ...(role && { role }),
          ...(groupKey && { group_key: groupKey }),
          ...(after && { after }),
        })
        const last = users.length === limit ? users.at(-1) : undefined
        return {
          principals: await principalsOf(db, users),
          nextPageToken: last ? JSON.stringify([last.username, last.id]) : '',
        }
      },
      resolveExternal: async (request, context) =>
        resolvedMessage(await resolveExternal(deps, request, rpcContext(context).request_id)),
      previewExternal: async (request, context) => {
        const { resolved, ...preview } = await previewExternal(deps, request, rpcContext(context).request_id)
        return { resolved: resolvedMessage(resolved), ...preview }
      },
      linkExternal: async (request, context) =>
        resolvedMessage(await linkExternal(deps, request, rpcContext(context).request_id)),
      listExternal: ({ userId }) => listExternal(deps, userId),
      unlinkExternal: (request, context) => unlinkExternal(deps, request, rpcContext(context).request_id),
    },
  )
}

const resolvedMessage = (resolved: Resolved) =>
  'user' in resolved ? { user: userMessage(resolved.user) } : { refused: resolved.refused }

/** Between services a page token needs no seal, because it grants no right. */
const keyOf = (token: string): { username: string; id: string } => {
  try {
    const [username, id] = JSON.parse(token) as unknown[]
    if (typeof username === 'string' && typeof id === 'string' && isUuid(id)) return { username, id }
  } catch {}
  throw new AppError('validation_error', 'schema_violation', 'The page token is not valid.')
}
