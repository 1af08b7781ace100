import { and, eq } from 'drizzle-orm'
import { appendAuditTo } from '../../../db/audit.ts'
import type { Queryable, Tx } from '../../../db/client.ts'
import { getUser, getUserByFolded } from '../../../db/identity/queries.ts'
import { isById, scimBy, scimGroupNames, scimGroupsOf } from '../../../db/identity/scim.ts'
import { external_identities, type UserRow, user_events, users } from '../../../db/identity/tables.ts'
import { builtOnce, NOW } from '../../../db/rows.ts'
import { giverOf, type Provider } from '../../shared/auth/providers.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import type { LinkExternalRequest, Principal, ResolveExternalRequest } from '../../shared/contracts/gen/auth_pb.ts'
import type { Code } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { lockControl } from '../control/dual.ts'
import type { Uses } from '../deps.ts'
import { inControl } from '../mutations.ts'
import { principalMessage } from '../principal.ts'
import { mayGainWayIn, refuseClosedLogin, refuseNewName } from '../rules.ts'
import { alignRights } from './rights.ts'

type Deps = Uses<'config' | 'keys' | 'providers'> & { db: Queryable }
type External = ResolveExternalRequest
/** The account, or why there is none. */
export type Resolved = { user: UserRow } | { refused: Code }

const identityOf = (provider: string, subject: string) =>
  and(eq(external_identities.provider, provider), eq(external_identities.subject, subject))

/** The user who has signed in here as this subject of a provider. */
export const knownUser = async (db: Queryable, { providerId, subject }: Pick<External, 'providerId' | 'subject'>) => {
  const rows = await db
    .select({ user: users })
    .from(external_identities)
    .innerJoin(users, eq(users.id, external_identities.user_id))
    .where(identityOf(providerId, subject))
  return rows[0]?.user
}

/** The same at a sign-in, which a later one by passkey may rest on, with the groups by which a directory manages them. */
const proved = builtOnce(['provider', 'subject', 'by_id'], (db, { provider, subject, by_id }) =>
  db
    .update(external_identities)
    .set({ proved_at: NOW })
    .from(users)
    .where(and(identityOf(provider, subject), eq(users.id, external_identities.user_id)))
    .returning({
      user: users,
      external_id: external_identities.external_id,
      groups: scimGroupsOf(users.id, provider, by_id),
    }),
)

/**
 * Resolves a sign-in: the account of this provider and subject, or a new one if the provider creates accounts. A name
 * or an email address never finds an account. Each sign-in aligns the rights that the provider gives.
 */
export const resolveExternal = async (deps: Deps, external: External, request_id: string): Promise<Resolved> => {
  const provider = deps.providers.get(external.providerId)
  if (!provider) return { refused: 'no_account' }
  const { externalId: external_id, subject } = external
  const [linked] = await proved(deps.db, { provider: provider.id, subject, by_id: isById(provider.scim) })
  if (linked && provider.scim && external_id && external_id !== linked.external_id) {
    const { user } = linked
    const claims = () => deps.db.transaction((tx) => claimId(deps, tx, user, external, request_id))
    if (!(await inControl(deps.db, claims))) return { refused: 'identity_linked' }
  }
  const found: Resolved = linked
    ? { user: linked.user }
    : await inControl(deps.db, () => deps.db.transaction((tx) => createUser(deps, tx, provider, external, request_id)))
  if ('refused' in found) return found
  if (found.user.status !== 'ACTIVE') return { refused: 'account_disabled' }
  const groupsIn = async (db: Queryable) => {
    const first = db === deps.db
    const user = first ? found.user : await knownUser(db, external)
    if (user?.status !== 'ACTIVE') return undefined
    // If a directory manages the person, it is authoritative.
    const ask = async () => (await scimGroupNames(db, provider, [user.id])).get(user.id)
    const named = provider.scim && (first && linked ? linked.groups : await ask())
    return named ?? (external.groupsKnown ? external.groups : undefined)
  }
  await alignRights(deps, provider, found.user.id, groupsIn, request_id)
  return found
}

/** What a sign-in would make of this person: it is done in full, and then undone. */
export const previewExternal = async (deps: Deps, external: External, request_id: string) => {
  const undo = new Error('only a preview')
  let found: { resolved: Resolved; outcome: string; principal?: Principal } | undefined
  const done = deps.db.transaction(async (tx) => {
    const known = await knownUser(tx, external)
    const resolved = await resolveExternal({ ...deps, db: tx }, external, request_id)
    if ('refused' in resolved) found = { resolved, outcome: 'refused' }
    else {
      const { id } = resolved.user
      const existed = known ?? (await getUser(deps.db, id))
      const principal = await principalMessage(tx, id)
      found = { resolved, outcome: known ? 'known' : existed ? 'linked' : 'created', ...(principal && { principal }) }
    }
    throw undo
  })
  await done.catch((error: unknown) => {
    if (error !== undo) throw error
  })
  if (!found) throw undo
  return found
}

/**
 * Keeps the id by which the directory finds the account. Returns false, and tells the log, if it manages another one of
 * this person: it would disable that one when they leave, and this one stay open.
 */
const claimId = async (deps: Deps, tx: Tx, { id }: UserRow, external: External, request_id: string) => {
  const { providerId: provider, subject, externalId: external_id } = external
  await lockControl(deps, tx)
  const other = await managedBeside(tx, id, provider, external_id)
  // Nor may a sign-in by passkey rest on this one.
  const set = other ? { proved_at: null } : { external_id }
  await tx.update(external_identities).set(set).where(identityOf(provider, subject))
  if (!other) return true
  await appendAuditTo(tx, user_events, deps.keys.audit, {
    actor: giverOf(provider),
    action: 'user.identity_linked',
    object: `user:${id}`,
    outcome: 'denied',
    reason: `the directory manages user:${other.id} of this person: delete one of the two`,
    request_id,
  })
  return false
}

/** Another account of the person with this id, which the directory manages. One that was deleted here stays so. */
const managedBeside = async (db: Queryable, user_id: string, provider: string, external_id: string) => {
  const user = external_id ? (await scimBy(db, provider, 'User', { external_id }))?.user : undefined
  return user && user.id !== user_id && user.status !== 'DELETED' ? user : undefined
}

const createUser = async (
  deps: Deps,
  tx: Tx,
  provider: Provider,
  external: External,
  request_id: string,
): Promise<Resolved> => {
  await lockControl(deps, tx)
  // A concurrent sign-in of the same person may have come first.
  const again = await knownUser(tx, external)
  if (again) return { user: again }
  // A person created here by the directory who signs in for the first time: a verified claim contains their id there.
  const { externalId: external_id } = external
  const kept = provider.scim && external_id ? await scimBy(tx, provider.id, 'User', { external_id }) : undefined
  // A local one that it manages is linked again by its person alone, unless only a provider lets them in.
  if (kept?.user)
    return isProvided(deps, kept.user, provider.id)
      ? linkIn(deps, tx, { ...external, userId: kept.user.id }, request_id)
      : { refused: 'identity_linked' }
  const { jit } = provider
  const required = jit.require_group
  if (!jit.enabled || (required && !required.some((name) => external.groups.includes(name))))
    return { refused: 'no_account' }
  const name = external.username.normalize('NFKC')
  if (name === '') return { refused: 'username_missing' }
  // The name of a deleted account is numbered: neither the name nor the account passes to another person.
  let username = name
  for (let n = 2; ; n += 1) {
    if (refuseNewName(username, { provided: true })) return { refused: 'username_invalid' }
    const holder = await getUserByFolded(tx, foldUsername(username))
    if (!holder) break
    if (holder.status !== 'DELETED')
      return { refused: (await isFrom(tx, holder.id, provider.id)) ? 'subject_changed' : 'username_taken' }
    username = `${name}~${n}`
  }
  const folded = foldUsername(username)
  const [user] = await tx
    .insert(users)
    .values({ id: uuidv7(), username, folded, link_shown: false, provider: provider.id })
    .returning()
  if (!user) throw new Error('a user was not written')
  const link = { provider: provider.id, subject: external.subject, user_id: user.id, external_id: external_id || null }
  await tx.insert(external_identities).values(link)
  await appendAuditTo(tx, user_events, deps.keys.audit, {
    actor: giverOf(provider.id),
    action: 'user.created',
    object: `user:${user.id}`,
    outcome: 'done',
    after: { username, ...link },
    request_id,
  })
  return { user }
}

/** Whether its person signs in through this provider alone: it created the account, or passwords are closed. */
const isProvided = ({ config }: Deps, { provider, username }: UserRow, id: string): boolean =>
  provider === null ? refuseClosedLogin(config.break_glass, username) !== undefined : provider === id

const isFrom = async (db: Queryable, user_id: string, provider: string): Promise<boolean> => {
  const own = and(eq(external_identities.user_id, user_id), eq(external_identities.provider, provider))
  return (await db.select({ id: external_identities.user_id }).from(external_identities).where(own)).length > 0
}

/** Links the account of the signed-in person, who has just proved their identity here and at the provider. */
export const linkExternal = async (deps: Deps, link: Link, request_id: string): Promise<Resolved> =>
  deps.providers.get(link.providerId)
    ? inControl(deps.db, () => deps.db.transaction((tx) => linkIn(deps, tx, link, request_id)))
    : { refused: 'no_account' }

type Link = Pick<LinkExternalRequest, 'userId' | 'providerId' | 'subject' | 'externalId'>

const linkIn = async (deps: Deps, tx: Tx, link: Link, request_id: string): Promise<Resolved> => {
  const { userId: user_id, providerId: provider, subject, externalId: external_id } = link
  await lockControl(deps, tx)
  const user = await getUser(tx, user_id)
  if (!mayGainWayIn(user)) return { refused: 'account_disabled' }
  const holder = await knownUser(tx, link)
  if (holder) return holder.id === user.id ? { user } : { refused: 'identity_linked' }
  if (await isFrom(tx, user.id, provider)) return { refused: 'subject_changed' }
  // The directory would disable its account when the person leaves, and this one stay open.
  if (await managedBeside(tx, user.id, provider, external_id)) return { refused: 'identity_linked' }
  await tx.insert(external_identities).values({ provider, subject, user_id, external_id: external_id || null })
  await appendAuditTo(tx, user_events, deps.keys.audit, {
    actor: `user:${user_id}`,
    action: 'user.identity_linked',
    object: `user:${user_id}`,
    outcome: 'done',
    after: { provider, subject },
    request_id,
  })
  return { user }
}
