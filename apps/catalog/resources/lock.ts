import {
  getResource,
  getResourcesByRid,
  lockAndGet,
  lockRelationshipTypes,
  lockStates,
  wishLock,
} from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import { AppError, notFound } from '../../shared/errors.ts'
import type { EdgePlan } from '../command/edges.ts'
import { mayWriteOf, readAccess, type Write } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { isTerminal } from '../document/lifecycle.ts'
import type { Types } from '../packs/registry.ts'
import { type Access, type MayWrite, outOfScope, scopeOfRow, visibleOf } from '../read/access.ts'
import { planEdges, type Sees } from '../relationships/edges.ts'
import { refuseForeignEdges, refuseForeignEnds } from '../relationships/rights.ts'
import { planRetirement } from './retire.ts'
import type { Locked } from './write.ts'

type LockWish = {
  relationship_changes?: readonly RelationshipChange[]
  /** The place of the changes in the command, for pointers in violations. */
  pointer?: string
  lifecycle_status?: string | undefined
  read: Access
  /** What the caller may write; services may write everything. */
  mayWrite?: MayWrite | undefined
}

/**
 * Finds a resource and takes all locks that a command on it needs: relationship types, then rows by number. Every
 * command follows this order (catalog.md 3). The result was read under the locks. 404 if no such resource exists or the
 * reader may not see it. 403 if the caller may not write others that change with it.
 */
export const lockResource = async (tx: Tx, types: Types, resource_id: string, wish: LockWish): Promise<Locked> => {
  const { lifecycle_status, relationship_changes = [] } = wish
  const alone = lifecycle_status === undefined && relationship_changes.length === 0
  return (alone ? lockAlone : lockWithPeers)(tx, types, resource_id, wish)
}

/** Like `lockResource`, for a caller with limited rights: 404, or 403 for a resource that they see but cannot write. */
export const lockToWrite = async (
  tx: Tx,
  deps: CatalogDeps,
  write: Write,
  resource_id: string,
  wish: Omit<LockWish, 'read' | 'mayWrite'> = {},
) => {
  const { types } = deps.registry
  const mayWrite = mayWriteOf(deps, write)
  const locked = await lockResource(tx, types, resource_id, { ...wish, read: readAccess(deps, write.caller), mayWrite })
  const { row } = locked
  const scope = await scopeOfRow(tx, types, row)
  const lacking = mayWrite(row.type_id, scope)
  if (lacking !== undefined) throw outOfScope(row.resource_id, lacking)
  return { ...locked, scope }
}

/** A change that touches no other resource needs only its own lock. */
const lockAlone = async (tx: Tx, types: Types, resource_id: string, { read }: LockWish): Promise<Locked> => {
  const row = await lockAndGet(tx, resource_id)
  const plan: EdgePlan = { resolved: [], locks: new Map(), type_locks: new Map(), mayWrite: undefined }
  return { ...(await seen(tx, types, row, resource_id, read)), plan, leaving: [] }
}

const seen = async (tx: Tx, types: Types, row: ResourceRow | undefined, resource_id: string, read: Access) => {
  if (!row) throw notFound('resource', resource_id)
  const sees: Sees = (rows) => visibleOf(tx, types, read, rows)
  if (!(await sees([row])).has(row.rid)) throw notFound('resource', resource_id)
  return { row, sees }
}

const lockWithPeers = async (tx: Tx, types: Types, resource_id: string, wish: LockWish): Promise<Locked> => {
  const found = await getResource(tx, resource_id)
  if (!found) throw notFound('resource', resource_id)
  const plan = await planEdges(tx, types, wish.relationship_changes ?? [], {
    is_new: false,
    pointer: wish.pointer ?? '/changes/relationship_changes',
    mayWrite: wish.mayWrite,
  })
  wishLock(plan.locks, found.rid, 'no key update')
  const lifecycle = types.byId(found.type_id)?.lifecycle
  const ends = wish.lifecycle_status !== undefined && lifecycle && isTerminal(lifecycle, wish.lifecycle_status)
  const leaving = ends && found.is_open ? planRetirement(tx, types, found.rid, plan.locks) : []
  await lockRelationshipTypes(tx, plan.type_locks)
  await lockStates(tx, plan.locks)
  const [row] = await getResourcesByRid(tx, [found.rid])
  const locked = { ...(await seen(tx, types, row, resource_id, wish.read)), plan, leaving }
  await refuseForeignEdges(tx, types, plan, locked.sees)
  await refuseForeignEnds(tx, types, resource_id, leaving.slice(1), wish.mayWrite)
  return locked
}

/** The optimistic lock: a command applies only to the version that it was based on, one of these. */
export const refuseVersion = (row: ResourceRow, expected: readonly number[], status = 409): AppError | undefined =>
  expected.includes(row.version)
    ? undefined
    : new AppError(
        'version_conflict',
        'version_mismatch',
        `${row.resource_id} is at version ${row.version}, not ${expected.join(' or ')}.`,
        {
          status,
          extra: {
            current_version: row.version,
            expected_version: expected[0],
            last_changed_by: {
              actor: row.updated_by,
              command_id: row.last_command_id,
              operation_id: row.last_operation_id,
              at: row.updated_at,
            },
          },
          hint: 'Read the resource again and decide on its current version.',
        },
      )
