import type { FastifyRequest } from 'fastify'
import { ableAdmins } from '../../../db/identity/queries.ts'
import { keepDisabled } from '../../../db/identity/scim.ts'
import type { UserStatus } from '../../../db/identity/tables.ts'
import { type Measure, perform } from '../control/changes.ts'
import { lockControl } from '../control/dual.ts'
import { linkOf } from '../control/links.ts'
import type { ChangeDeps, Uses } from '../deps.ts'
import { changeIdOf, changeOnce, endedOf, statusEventOf } from '../mutations.ts'
import { refuseLastAdmin, refuseSelfAction, refuseStatus, throwIf } from '../rules.ts'
import { detailOf, lockFound, setStatus, viewOf } from './change.ts'
import { createMeasure, enableMeasure, recoverMeasure, resetMeasure } from './measures.ts'
import type { NewUser } from './new.ts'

type Stored = Awaited<ReturnType<typeof perform>>
const bodyOf = <T>({ body }: Stored): T => JSON.parse(body.toString('utf8')) as T

/** POST admin/users: the user and a one-time link to set the first password, or the pending change. */
export const createUser = async (deps: ChangeDeps, req: FastifyRequest, wanted: NewUser) => {
  const asked = { kind: 'user.create' as const, request: wanted as never }
  const stored = await perform(deps, req, asked, createMeasure)
  const { status, replayed } = stored
  if (status === 202) return { replayed, status, body: bodyOf<object>(stored) }
  const { user } = bodyOf<{ user: { id: string } }>(stored)
  return { replayed, status, body: { user, enrolment: await enrolmentOf(deps, req, user.id) } }
}

type LinkKind = 'user.reset' | 'user.recover'
const LINKS = { 'user.reset': resetMeasure, 'user.recover': recoverMeasure }

/** POST admin/users/{id}/enrolment-token and /recovery: a password or full credential reset, or the pending change. */
export const createEnrolment = async (deps: ChangeDeps, req: FastifyRequest, user_id: string, kind: LinkKind) => {
  const stored = await perform<LinkKind>(deps, req, { kind, request: { user_id } }, LINKS[kind] as Measure<LinkKind>)
  const { status, replayed } = stored
  if (status === 202) return { replayed, status, body: bodyOf<object>(stored) }
  const ended = kind === 'user.recover' ? { sessions: await endedOf(deps, user_id) } : {}
  if (status !== 201) return { replayed, status, body: { ...bodyOf<object>(stored), ...ended } }
  return { replayed, status, body: { enrolment: await enrolmentOf(deps, req, user_id), ...ended } }
}

/**
 * A one-time enrolment link, which ends the older ones. The same request gets the same link until a newer one replaces
 * it; it is never stored here.
 */
const enrolmentOf = (deps: Uses<'config' | 'credential' | 'db'>, req: FastifyRequest, user_id: string) =>
  linkOf(deps, { userId: user_id, changeId: changeIdOf(req) }, String(req.id))

const ACTIONS: Record<Exclude<UserStatus, 'ACTIVE'>, { word: string; action: string }> = {
  DISABLED: { word: 'disable', action: 'user.disabled' },
  DELETED: { word: 'delete', action: 'user.deleted' },
}

/** POST admin/users/{id}/disable, /delete: login and refresh refuse once it commits. */
export const endUser = async (
  deps: ChangeDeps,
  req: FastifyRequest,
  user_id: string,
  to: 'DISABLED' | 'DELETED',
  reason: string,
) => {
  const stored = await changeOnce(deps, req, { arming: false }, async (tx) => {
    await lockControl(deps, tx)
    const admins = await ableAdmins(tx)
    const user = await lockFound(tx, user_id)
    throwIf(refuseSelfAction(req.caller.user_id, user.id, ACTIONS[to].word))
    throwIf(refuseStatus(user, to))
    const left = admins.filter((id) => id !== user.id)
    throwIf(refuseLastAdmin(admins, left))
    // Also for an account that its directory disabled: from now on an administrator has disabled it.
    if (user.status === to) await keepDisabled(tx, user.id)
    const moved = user.status === to ? user : await setStatus(deps, tx, statusEventOf(req), user, to)
    return {
      status: 200,
      body: { user: await detailOf(tx, moved) },
      action: ACTIONS[to].action,
      object: `user:${user.id}`,
      reason,
      before: viewOf(user),
      after: viewOf(moved),
    }
  })
  return withSessions(deps, user_id, stored)
}

/** POST admin/users/{id}/enable, or the pending change. */
export const enableUser = async (deps: ChangeDeps, req: FastifyRequest, user_id: string, reason: string) => {
  const asked = { kind: 'user.enable' as const, request: { user_id, reason } }
  const stored = await perform(deps, req, asked, enableMeasure)
  if (stored.status === 202) return { replayed: stored.replayed, status: 202, body: bodyOf<object>(stored) }
  return withSessions(deps, user_id, stored)
}

/**
 * Waits until the relay has ended the sessions after a status change (`revoked`), for at most 2 s (`pending`: 202). The
 * change may be an earlier one: a request that finds the status as wanted writes no event.
 */
const withSessions = async (deps: Uses<'db'>, user_id: string, stored: Stored) => {
  const sessions = await endedOf(deps, user_id)
  return {
    replayed: stored.replayed,
    status: sessions === 'revoked' ? 200 : 202,
    body: { ...bodyOf<{ user: unknown }>(stored), sessions },
  }
}
