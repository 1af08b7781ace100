import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { and, asc, eq } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable } from '../../../db/client.ts'
import { lockUser } from '../../../db/identity/queries.ts'
import { external_identities, user_events, users } from '../../../db/identity/tables.ts'
import type { Provider } from '../../shared/auth/providers.ts'
import type { UnlinkExternalRequest } from '../../shared/contracts/gen/auth_pb.ts'
import { isUuid } from '../../shared/ids.ts'
import { lockControl } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { hasAnotherWay } from '../passkeys/passkeys.ts'
import { alignIn } from './rights.ts'

type Deps = Uses<'db' | 'keys' | 'providers'>
type Identity = typeof external_identities.$inferSelect

const identitiesOf = (db: Queryable, user_id: string): Promise<Identity[]> =>
  db
    .select()
    .from(external_identities)
    .where(eq(external_identities.user_id, user_id))
    .orderBy(asc(external_identities.provider))

/** This person's identities at the providers. */
export const listExternal = async ({ db }: Pick<Deps, 'db'>, user_id: string) => ({
  identities: (isUuid(user_id) ? await identitiesOf(db, user_id) : []).map(({ provider, subject, created_at }) => ({
    ...{ providerId: provider, subject },
    createdAt: timestampFromDate(new Date(created_at)),
  })),
})

/**
 * Removes a provider's identity from an account, with the rights that its sign-ins gave. A person keeps one way to sign
 * in. An administrator may remove the last one; the account then gets a password by a link from two administrators.
 */
export const unlinkExternal = async (deps: Deps, unlink: UnlinkExternalRequest, request_id: string) => {
  const { userId: user_id, providerId: id, by, hasPassword } = unlink
  if (!isUuid(user_id)) return {}
  return deps.db.transaction(async (tx) => {
    await lockControl(deps, tx)
    const user = await lockUser(tx, user_id)
    const identities = await identitiesOf(tx, user_id)
    const gone = identities.find(({ provider }) => provider === id)
    if (!user || !gone) return {}
    if (by === user_id && !hasPassword && !(await hasAnotherWay(deps, tx, user_id, { provider: id })))
      return { refused: 'last_way_in' }
    await tx
      .delete(external_identities)
      .where(and(eq(external_identities.provider, id), eq(external_identities.subject, gone.subject)))
    const provider = deps.providers.get(id)
    if (!provider?.scim) {
      await alignIn(deps, tx, provider ?? ({ id } as Provider), user_id, [], request_id)
      // The account still has no password; without its last provider it may get one.
      const others = identities.filter(({ provider }) => provider !== id && deps.providers.get(provider))
      const next = others[0]?.provider ?? null
      if (user.provider === id) await tx.update(users).set({ provider: next }).where(eq(users.id, user_id))
    }
    await appendAuditTo(tx, user_events, deps.keys.audit, {
      actor: `user:${by}`,
      action: 'user.identity_unlinked',
      object: `user:${user_id}`,
      outcome: 'done',
      before: { provider: id, subject: gone.subject },
      request_id,
    })
    return { removed: true }
  })
}
