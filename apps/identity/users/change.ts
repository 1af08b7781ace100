import { setTimeout as delay } from 'node:timers/promises'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import { eq, sql } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import type { Queryable, Tx } from '../../../db/client.ts'
import {
  getUser,
  heldGrants,
  isPublished,
  lastingAdmins,
  lockAdmins,
  lockUser,
  membershipsOf,
} from '../../../db/identity/queries.ts'
import { grants, outbox, type UserRow, type UserStatus, users } from '../../../db/identity/tables.ts'
import { appendOutbox } from '../../../db/outbox.ts'
import { foldUsername } from '../../shared/auth/username.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import { isUuid, uuidv5, uuidv7 } from '../../shared/ids.ts'
import { fromRpc, withRequestId } from '../../shared/rpc/client.ts'
import type { IdentityDeps } from '../deps.ts'
import { actorOf, changeIdOf, changeOnce, eventActor, rolesChanged } from '../mutations.ts'
import {
  refuseDeleted,
  refuseLastAdmin,
  refuseMixedScripts,
  refuseScope,
  refuseSelfAction,
  refuseStatus,
  refuseUsername,
  throwIf,
} from '../rules.ts'

const isoOf = (text: string | null) => (text === null ? null : new Date(text).toISOString())

export const viewOf = (user: UserRow) => ({
  id: user.id,
  username: user.username,
  status: user.status,
  created_at: new Date(user.created_at).toISOString(),
  disabled_at: isoOf(user.disabled_at),
})

/** Users with everything they hold now; who is not ACTIVE holds nothing. */
export const detailsOf = async (db: Queryable, list: readonly UserRow[]) => {
  const ids = list.map(({ id }) => id)
  const [held, memberships] = await Promise.all([heldGrants(db, ids), membershipsOf(db, ids)])
  return list.map((user) => {
    const own = user.status === 'ACTIVE' ? held.filter(({ user_id }) => user_id === user.id) : []
    return {
      ...viewOf(user),
      roles: [...new Set(own.map((grant) => grant.role))].sort(),
      groups: memberships.flatMap(({ user_id, group_key }) => (user_id === user.id ? [group_key] : [])),
      grants: own.map(({ user_id: _, created_at: _at, created_by: _by, ...grant }) => grant),
    }
  })
}
export type UserDetail = Awaited<ReturnType<typeof detailsOf>>[number]

export const detailOf = async (db: Queryable, user: UserRow): Promise<UserDetail> => {
  const [detail] = await detailsOf(db, [user])
  if (!detail) throw new Error('one user has one detail')
  return detail
}

export const findUser = async (db: Queryable, id: string): Promise<UserRow> => {
  const user = isUuid(id) ? await getUser(db, id) : undefined
  if (!user) throw notFound('user', id, 'not_found')
  return user
}

/** A user to whom something can be given; a deleted one is refused. */
export const findLivingUser = async (db: Queryable, id: string): Promise<UserRow> => {
  const user = await findUser(db, id)
  throwIf(refuseDeleted(user))
  return user
}

const lockFound = async (tx: Tx, id: string): Promise<UserRow> => {
  const user = isUuid(id) ? await lockUser(tx, id) : undefined
  if (!user) throw notFound('user', id, 'not_found')
  return user
}

export type NewUser = {
  username: string
  grants?: { role: string; scope?: Record<string, string>; expires_at?: string }[]
}

/** Whoever makes an enrolment link could use it: votes of the account are measured by that. */
const handedOut = (reset_by: string) => ({ reset_at: sql`clock_timestamp()` as never, reset_by })

/** Creates a user with its grants. The name must be free in its folded form, deleted users included. */
export const insertUser = async (
  tx: Tx,
  { username, grants: wanted = [] }: NewUser,
  created_by: string,
): Promise<UserRow> => {
  for (const grant of wanted) throwIf(refuseScope(grant.role, grant.scope))
  const name = username.normalize('NFKC')
  throwIf(refuseUsername(name) ?? refuseMixedScripts(name))
  const [user] = await tx
    .insert(users)
    .values({ id: uuidv7(), username: name, folded: foldUsername(name), ...handedOut(created_by) })
    .onConflictDoNothing()
    .returning()
  if (!user) {
    throw new AppError('version_conflict', 'username_taken', `The name "${username}" is taken.`, {
      hint: 'Choose another name; names of deleted users are never used again.',
    })
  }
  if (wanted.length > 0) {
    await tx
      .insert(grants)
      .values(
        wanted.map((grant) => ({
          id: uuidv7(),
          subject_type: 'user' as const,
          subject_id: user.id,
          role: grant.role,
          scope: grant.scope ?? {},
          expires_at: grant.expires_at ?? null,
          created_by,
        })),
      )
      .onConflictDoNothing()
  }
  return user
}

/** POST admin/users: the user, and the one-time link by which the person sets the first password. */
export const createUser = async (deps: IdentityDeps, req: FastifyRequest, wanted: NewUser) => {
  const stored = await changeOnce(deps, req, { arming: true }, async (tx) => {
    const user = await insertUser(tx, wanted, actorOf(req))
    const detail = await detailOf(tx, user)
    return { status: 201, body: { user: detail }, action: 'user.created', object: `user:${user.id}`, after: detail }
  })
  const { user } = JSON.parse(stored.body.toString('utf8')) as { user: { id: string } }
  return { replayed: stored.replayed, body: { user, enrolment: await enrolmentOf(deps, req, user.id) } }
}

/** A one-time enrolment link. The same request gets the same one; it is never stored here. */
export const enrolmentOf = async (deps: IdentityDeps, req: FastifyRequest, user_id: string) => {
  try {
    const made = await deps.credential.createEnrolmentToken(
      { userId: user_id, changeId: changeIdOf(req), onlyIfNoPassword: false },
      withRequestId(String(req.id)),
    )
    return enrolmentView(deps, made)
  } catch (error) {
    throw fromRpc('credential', error)
  }
}

export const enrolmentView = (
  deps: Pick<IdentityDeps, 'config'>,
  made: { enrolmentToken: string; expiresAt?: Parameters<typeof timestampDate>[0] | undefined },
) => ({
  token: made.enrolmentToken,
  url: `${deps.config.GATEWAY__HTTP__PUBLIC_ORIGIN}/enrol#${made.enrolmentToken}`,
  expires_at: (made.expiresAt ? timestampDate(made.expiresAt) : new Date()).toISOString(),
})

/** POST admin/users/{id}/enrolment-token: a reset. Nobody enrols themselves. */
export const createEnrolment = async (deps: IdentityDeps, req: FastifyRequest, user_id: string) => {
  const stored = await changeOnce(deps, req, { arming: true }, async (tx) => {
    const user = await lockFound(tx, user_id)
    throwIf(refuseSelfAction(req.caller.user_id, user.id, 'enrol'))
    if (user.status !== 'ACTIVE')
      throw new AppError('version_conflict', 'user_deleted', `${user.username} is ${user.status}.`, {
        hint: 'Enable the user first.',
      })
    await tx
      .update(users)
      .set(handedOut(actorOf(req)))
      .where(eq(users.id, user.id))
    await rolesChanged(tx, req, [user.id])
    return { status: 201, body: { user_id }, action: 'user.enrolment_created', object: `user:${user_id}` }
  })
  return { replayed: stored.replayed, body: { enrolment: await enrolmentOf(deps, req, user_id) } }
}

const ACTIONS: Record<UserStatus, { word: string; action: string }> = {
  ACTIVE: { word: 'enable', action: 'user.enabled' },
  DISABLED: { word: 'disable', action: 'user.disabled' },
  DELETED: { word: 'delete', action: 'user.deleted' },
}
const MARK_MS = 2000

/**
 * Moves a user's status; login and refresh refuse from the commit on. Then waits until the relay has ended the sessions
 * (`revoked`), for at most 2 s (`pending`: 202).
 */
export const moveStatus = async (
  deps: IdentityDeps,
  req: FastifyRequest,
  user_id: string,
  to: UserStatus,
  reason: string,
) => {
  const event_id = uuidv5(changeIdOf(req), 'status')
  const stored = await changeOnce(deps, req, { arming: to === 'ACTIVE' }, async (tx) => {
    await lockAdmins(tx)
    const admins = await lastingAdmins(tx)
    const user = await lockFound(tx, user_id)
    throwIf(to === 'ACTIVE' ? undefined : refuseSelfAction(req.caller.user_id, user.id, ACTIONS[to].word))
    throwIf(refuseStatus(user, to))
    throwIf(
      to === 'ACTIVE'
        ? undefined
        : refuseLastAdmin(
            admins,
            admins.filter((id) => id !== user.id),
          ),
    )
    const moved =
      user.status === to
        ? user
        : await setStatus(tx, { actor: eventActor(req), request_id: String(req.id) }, user, to, event_id)
    const detail = await detailOf(tx, moved)
    return {
      status: 200,
      body: { user: detail },
      action: ACTIONS[to].action,
      object: `user:${user.id}`,
      reason,
      before: viewOf(user),
      after: viewOf(moved),
    }
  })
  const done = await marked(deps, event_id, user_id)
  const body = JSON.parse(stored.body.toString('utf8')) as { user: unknown }
  return {
    replayed: stored.replayed,
    status: done ? 200 : 202,
    body: { ...body, sessions: done ? ('revoked' as const) : ('pending' as const) },
  }
}

/** Moves the status and promises the event, on which the relay ends the sessions. */
export const setStatus = async (
  tx: Tx,
  by: { actor: { type: string; id: string }; request_id: string | null },
  user: UserRow,
  to: UserStatus,
  event_id: string,
): Promise<UserRow> => {
  const version = user.version + 1
  const [moved] = await tx
    .update(users)
    .set({ status: to, version, disabled_at: to === 'ACTIVE' ? null : (user.disabled_at ?? new Date().toISOString()) })
    .where(eq(users.id, user.id))
    .returning()
  await appendOutbox(tx, outbox, {
    event_id,
    agg_type: 'user',
    agg_id: user.id,
    agg_version: version,
    type: 'auth.user.status_changed.v1',
    payload: { user_id: user.id, from: user.status, to, user_version: version, actor: by.actor },
    request_id: by.request_id,
  })
  return moved ?? user
}

const marked = async (deps: IdentityDeps, event_id: string, user_id: string): Promise<boolean> => {
  const end = performance.now() + MARK_MS
  const known = await deps.db.select({ id: outbox.event_id }).from(outbox).where(eq(outbox.event_id, event_id))
  if (known.length === 0) return (await getUser(deps.db, user_id)) !== undefined
  for (;;) {
    if (await isPublished(deps.db, event_id)) return true
    if (performance.now() > end) return false
    await delay(25)
  }
}
