import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { and, asc, eq } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import { deletePasskeys } from '../../../db/identity/passkeys.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import { freeId } from '../../../db/identity/scim.ts'
import { external_identities, type UserRow, user_events, users } from '../../../db/identity/tables.ts'
import type { Provider } from '../../shared/auth/providers.ts'
import type { UnlinkExternalRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid } from '../../shared/ids.ts'
import { lockControl } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { announce, inControl } from '../mutations.ts'
import { refuseClosedLogin } from '../rules.ts'
import { alignIn } from './rights.ts'

type Deps = Uses<'config' | 'db' | 'keys' | 'providers'>
type Identity = typeof external_identities.$inferSelect

export const identitiesOf = (db: Queryable, user_id: string): Promise<Identity[]> =>
  db
    .select()
    .from(external_identities)
    .where(eq(external_identities.user_id, user_id))
    .orderBy(asc(external_identities.provider))

export const listExternal = async ({ db }: Pick<Deps, 'db'>, user_id: string) => ({
  identities: (isUuid(user_id) ? await identitiesOf(db, user_id) : []).map(({ provider, subject, created_at }) => ({
    ...{ providerId: provider, subject },
    createdAt: timestampFromDate(new Date(created_at)),
  })),
})

/** Those at providers in the file: another one signs no one in. */
const signingInBy = async ({ providers }: Uses<'providers'>, db: Queryable, user_id: string) =>
  (await identitiesOf(db, user_id)).filter(({ provider }) => providers.get(provider))

/**
 * Removes a provider's identity from an account, with the rights that its sign-ins gave. A person keeps a password or
 * another provider. An administrator may remove the last one; the account then gets a password by a link from two
 * administrators.
 */
export const unlinkExternal = async (deps: Deps, unlink: UnlinkExternalRequest, request_id: string) => {
  const { userId: user_id, providerId: id, by, hasPassword, keepSessionId } = unlink
  if (!isUuid(user_id)) return {}
  const end = async (tx: Tx) => {
    await lockControl(deps, tx)
    const user = await lockUser(tx, user_id)
    const gone = (await identitiesOf(tx, user_id)).find(({ provider }) => provider === id)
    // The directory could otherwise never hire the person of a deleted account again.
    const freed = user?.status === 'DELETED' && (await freeId(tx, id, user_id))
    if (freed && !gone) {
      await noteUnlinked(deps, tx, user_id, { provider: id }, { by: `user:${by}`, request_id })
      return { removed: true }
    }
    if (!user || !gone) return {}
    // A passkey does not count: no one would tell it that its person has left.
    if (
      by === user_id &&
      !hasPassword &&
      !(await signingInBy(deps, tx, user_id)).some(({ provider }) => provider !== id)
    )
      return { refused: 'last_way_in' }
    await endIdentity(deps, tx, user, gone, { by: `user:${by}`, request_id })
    // session ends them at once, and the relay again. A session of an earlier build does not tell which one to keep.
    if (by === user_id && !keepSessionId) return { removed: true }
    const payload = { user_id, ...(keepSessionId && { keep_session_id: keepSessionId }) }
    await announce(tx, { actor: { type: 'user', id: by }, request_id }, 'auth.user.identity_unlinked.v1', payload)
    return { removed: true }
  }
  return inControl(deps.db, () => deps.db.transaction(end))
}

type Cause = { by: string; request_id: string | null }

/**
 * Ends all ways into an account except its password: identities at providers, with the rights that their sign-ins gave,
 * and passkeys. Someone else may have added them. Returns the removed passkeys.
 */
export const endWaysIn = async (deps: Uses<'config' | 'keys' | 'providers'>, tx: Tx, user: UserRow, cause: Cause) => {
  const ended: Awaited<ReturnType<typeof deletePasskeys>> = []
  for (const gone of await identitiesOf(tx, user.id)) ended.push(...(await endIdentity(deps, tx, user, gone, cause)))
  return [...ended, ...(await deletePasskeys(tx, user.id))]
}

/** Returns the passkeys that ended with it. */
const endIdentity = async (
  deps: Uses<'config' | 'keys' | 'providers'>,
  tx: Tx,
  user: UserRow,
  { provider: id, subject }: Identity,
  cause: Cause,
) => {
  await tx
    .delete(external_identities)
    .where(and(eq(external_identities.provider, id), eq(external_identities.subject, subject)))
  const provider = deps.providers.get(id)
  const [next] = await signingInBy(deps, tx, user.id)
  if (!provider?.scim) {
    await alignIn(deps, tx, provider ?? ({ id } as Provider), new Map([[user.id, []]]), cause.request_id)
    // The account still has no password; without its last provider it may get one.
    if (user.provider === id)
      await tx
        .update(users)
        .set({ provider: next?.provider ?? null })
        .where(eq(users.id, user.id))
  }
  // No provider says any longer whether the person is still there: their passkeys would sign them in for ever.
  const closed = refuseClosedLogin(deps.config.break_glass, user.username) !== undefined
  const alone = !next && (user.provider === null ? closed : !provider?.scim)
  const passkeys = alone ? await deletePasskeys(tx, user.id) : []
  const before = { provider: id, subject, passkeys: passkeys.map((passkey) => passkey.id) }
  await noteUnlinked(deps, tx, user.id, before, cause)
  return passkeys
}

const noteUnlinked = (deps: Uses<'keys'>, tx: Tx, user_id: string, before: object, { by, request_id }: Cause) =>
  appendAuditTo(tx, user_events, deps.keys.audit, {
    actor: by,
    action: 'user.identity_unlinked',
    object: `user:${user_id}`,
    outcome: 'done',
    before,
    request_id,
  })
