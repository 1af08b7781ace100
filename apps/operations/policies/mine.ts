import { and, type SQL, sql } from 'drizzle-orm'
import type { Queryable } from '../../../db/client.ts'
import { countInbox, votableBy } from '../../../db/operations/gates/inbox.ts'
import { countWaiting, patchVotableBy } from '../../../db/operations/operations/waiting.ts'
import { operations } from '../../../db/operations/tables/index.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Permission } from '../../shared/auth/permissions.ts'
import { coversAllSql, visibleSql } from './authority.ts'

/** The conditions under which something waits for this person: used for `for=me` and for the counts. */
const ifCovered = (caller: Caller, permission: Permission, condition: SQL): SQL =>
  caller.permissions.has(permission)
    ? (and(condition, coversAllSql(caller, operations, permission)) ?? condition)
    : sql`false`

export const decidableBy = (caller: Caller): SQL =>
  ifCovered(caller, 'gate:decide', votableBy(caller.user_id, caller.groups))

export const patchDecidableBy = (caller: Caller): SQL =>
  ifCovered(caller, 'patch:decide', patchVotableBy(caller.user_id, caller.groups))

/** A failure waits for the operation's requester and participants; if a machine's, for all who may control it. */
export const mendableBy = (caller: Caller): SQL =>
  ifCovered(
    caller,
    'operation:control',
    sql`(${caller.user_id} = any(${operations.involved}) or ${operations.requester} ? 'behind')`,
  )

/** Returns how much waits: gates for anyone, and gates, patches and failures for this person. */
export const countsFor = async (db: Queryable, caller: Caller) => {
  const visible = visibleSql(caller, operations)
  const [gates, waiting] = await Promise.all([
    countInbox(db, visible, decidableBy(caller)),
    countWaiting(db, visible, { patches: patchDecidableBy(caller), failures: mendableBy(caller) }),
  ])
  return { gates_mine: gates.mine, gates_all: gates.all, ...waiting }
}
