import { sql } from 'drizzle-orm'
import type { FastifyRequest } from 'fastify'
import type { Queryable } from '../../../db/client.ts'
import { type Delivery, listNotices } from '../../../db/operations/notifications/deliveries.ts'
import { type Destination, getRules } from '../../../db/operations/notifications/destinations.ts'
import { named, type View } from '../../../db/operations/notifications/waiting.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import { type Caller, callerBy } from '../../shared/auth/caller.ts'
import { missingWords } from '../../shared/auth/permissions.ts'
import type { Principal } from '../../shared/auth/principals.ts'
import { SECURITY_EVENTS } from '../../shared/contracts/notifications/notifications.ts'
import { isTimezone } from '../../shared/data/calendar.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { type Mutation, mutationOf } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { visibleSql } from '../policies/authority.ts'
import { decidableBy, patchDecidableBy } from '../policies/mine.ts'
import { idsOf } from './messages/decisions.ts'
import { ANYONE, type Reader } from './messages/words.ts'

/** A mutation of rules or destinations of this owner. */
export type Owned = Mutation & { owner: string }

/** Returns whose rules and destinations a request is about. Only an administrator may set those of a group. */
export const ownerOf = ({ user_id, permissions }: Caller, group: string | undefined): string => {
  if (group === undefined) return `user:${user_id}`
  if (permissions.has('identity:admin')) return `group:${group}`
  throw new AppError('policy_denied', 'permission_missing', missingWords(['identity:admin']))
}

/** Returns the mutation of a request, including the owner. */
export const ownedBy = (deps: Uses<'keys'>, req: FastifyRequest<{ Querystring: { group?: string } }>): Owned => ({
  ...mutationOf(deps, req as FastifyRequest),
  owner: ownerOf(req.caller, req.query.group),
})

/**
 * How the reader at a destination is written to. A person's device may have the zone `local`, which no one else knows;
 * then that of their quiet hours counts. No message waits for identity only to learn this.
 */
export const readerOf = async (
  { db, trust }: Uses<'db' | 'trust'>,
  { owner, kind }: Pick<Destination, 'owner' | 'kind'>,
): Promise<Reader> => {
  if (!owner.startsWith('user:') || kind === 'webhook') return ANYONE
  const { zone, language } = await trust
    .preferences(owner.slice('user:'.length))
    .catch(() => ({ zone: '', language: '' }))
  const known = zone === 'utc' ? 'UTC' : isTimezone(zone) ? zone : (await getRules(db, owner)).quiet?.timezone
  return { language: language === 'de' ? 'de' : 'en', zone: known ?? 'UTC' }
}

/** Whether a message of this purpose and owner may go to a destination. */
export const mayReach = (
  { status, removed_at, owner }: Destination,
  { purpose, owner: reader }: Pick<Delivery, 'purpose' | 'owner'>,
): boolean => {
  const open = removed_at ? purpose === 'security' : status === (purpose === 'code' ? 'unconfirmed' : 'active')
  return open && owner === reader
}

/** Returns messages as their owner reads them, with the decisions that each reports. */
export const deliveryViews = async (db: Queryable, rows: readonly Delivery[]) => {
  const all = await listNotices(db, pluck(rows, 'delivery_id'))
  return rows.map(({ fact, ...row }) => ({
    ...row,
    // A newer build may have stated one that is unknown here.
    security_event: SECURITY_EVENTS.find((event) => event === fact?.event) ?? null,
    notices: all
      .filter(({ delivery_id }) => delivery_id === row.delivery_id)
      .map(({ delivery_id: _, object, urgent: __, ...notice }) => ({ ...notice, ...idsOf(object) })),
  }))
}

/**
 * Returns what this owner may see and decide, with the rights that `ask` returns; `undefined` if the owner may not be
 * told. A group is told only about decisions that name it and operations on its team's resources: only those are its
 * members' to read. A person is told of the failures of operations in which they take part.
 */
export const viewOf = async (
  owner: string,
  ask: (user_id: string) => Promise<Principal | undefined>,
): Promise<View | undefined> => {
  const [kind, id] = [owner.slice(0, owner.indexOf(':')), owner.slice(owner.indexOf(':') + 1)]
  if (kind === 'group') return { visible: undefined, ...named(id) }
  const principal = await ask(id)
  if (principal?.user.status !== 'ACTIVE' || principal.user.kind !== 'person') return undefined
  const caller = callerBy(principal)
  return {
    visible: visibleSql(caller, operations),
    gates: decidableBy(caller),
    patches: patchDecidableBy(caller),
    operations: sql`${caller.user_id} = any(${operations.involved})`,
  }
}
