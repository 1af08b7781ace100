import { heldOf } from '../../../db/catalog/held/rows.ts'
import { getResourcesByRid, getSubtree } from '../../../db/catalog/resources/rows.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import { AppError } from '../../shared/errors.ts'
import type { Uses } from '../deps.ts'
import type { Types } from '../packs/registry.ts'
import type { MayWrite, Placed } from '../read/access.ts'
import { violated } from '../rules/change.ts'
import { depthOf, depthViolations } from '../rules/depth.ts'
import { refuseForeign } from './rights.ts'

const MAX_SUBTREE = 10_000

export type Move = {
  child_rid: string
  /** What the caller may write; services may move everything. */
  mayWrite: MayWrite | undefined
  /** Where the command names the other end, for violations about the place. */
  pointer: string
}

/**
 * Aligns a resource's parent and path with its containment edge, and the paths of everything below it, under the tree
 * lock. The caller must be allowed to write it and everything below it, in the old and the new place. Returns the
 * resource as it was if it moved.
 */
export const followParent = async (
  tx: Tx,
  { config }: Uses<'config'>,
  types: Types,
  { child_rid, mayWrite, pointer }: Move,
): Promise<ResourceRow | undefined> => {
  const relation = types.relationship('contained_in')
  const [child] = await getResourcesByRid(tx, [child_rid])
  if (!relation || !child) return undefined
  const edge = heldOf(tx).edges.outOf(child_rid, relation.id)
  const [parent] = edge ? await getResourcesByRid(tx, [edge.dst]) : []
  if ((parent?.rid ?? null) === child.parent_rid) return undefined
  const before = await getSubtree(tx, child, MAX_SUBTREE + 1)
  if (before.length > MAX_SUBTREE) throw tooLarge(child.resource_id)
  const path = parent ? `${parent.path}.${child.rid}` : child.rid
  const after = before.map((row) => ({ ...row, path: `${path}${row.path.slice(child.path.length)}` }))
  const violations = depthViolations(deepest(after), deepest(before), config.tree_depth, pointer)
  if (violations.length > 0) throw violated(violations)
  // Resources below are not named: they may be hidden.
  const nameOf = ({ resource_id }: Placed) =>
    resource_id === child.resource_id ? resource_id : `everything in ${child.resource_id}`
  if (mayWrite) await refuseForeign(tx, types, [...before, ...after], mayWrite, nameOf)
  heldOf(tx).moveSubtree(child, after, parent)
  return child
}

const deepest = (rows: readonly Placed[]): number => rows.reduce((most, { path }) => Math.max(most, depthOf(path)), 0)

const tooLarge = (resource_id: string) =>
  new AppError('validation_error', 'subtree_too_large', `More than ${MAX_SUBTREE} resources are below ${resource_id}.`)
