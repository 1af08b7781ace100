import { statementsOf } from '../../../db/catalog/held/edges.ts'
import { heldOf } from '../../../db/catalog/held/rows.ts'
import { getResource, getResourcesByRid } from '../../../db/catalog/resources/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { ImportItem, ImportRequest } from '../../shared/contracts/imports/imports.ts'
import { AppError, wrongAt } from '../../shared/errors.ts'
import { readAccess, type Write } from '../command/request.ts'
import type { CatalogDeps } from '../deps.ts'
import { visibleOf } from '../read/access.ts'
import { statedBy } from '../relationships/edges.ts'
import { managerOf } from './fields.ts'

/** The container and the edges that an item names, and what its source no longer states. */

/** Our ids by the source's. */
type Known = Pick<ReadonlyMap<string, string>, 'get'>
type Stating = { deps: CatalogDeps; request: ImportRequest; write: Write; known: Known }

export const parentOf = ({ parent_id, parent_external_id }: ImportItem, known: Known) => {
  if (parent_external_id === undefined) return parent_id
  if (parent_id !== undefined)
    throw wrongAt('/parent_id', 'cannot be combined with parent_external_id', {
      detail: 'An item names its container by parent_id or by parent_external_id, not by both.',
    })
  const found = known.get(parent_external_id)
  if (found !== undefined) return found
  throw new AppError('validation_error', 'target_not_found', `${parent_external_id} has not been imported.`, {
    violations: [{ pointer: '/parent_external_id', code: 'target_not_found', message: 'names no imported resource' }],
    hint: 'Put containers before what they contain.',
  })
}

export const edgesOf = ({ relationships = [] }: ImportItem, known: Known) => {
  const found: RelationshipChange[] = []
  const missing: string[] = []
  for (const [index, edge] of relationships.entries()) {
    const { target_external_id, target_id, type_key, direction, properties } = edge
    const target = target_external_id === undefined ? target_id : known.get(target_external_id)
    if (target === undefined) missing.push(`/relationships/${index}`)
    else
      found.push({
        op: 'add',
        type_key,
        target_id: target,
        ...(direction && { direction }),
        ...(properties && { properties }),
      })
  }
  return { found, missing }
}

/** The containment change if the source names another container. */
export const moved = async (
  tx: Tx,
  resource_id: string,
  parent_id: string | undefined,
): Promise<RelationshipChange[]> => {
  const row = await getResource(tx, resource_id)
  if (!row || parent_id === undefined || row.parent_id === parent_id) return []
  const into = { op: 'add' as const, type_key: 'contained_in', target_id: parent_id }
  return row.parent_id === null ? [into] : [{ op: 'remove', type_key: 'contained_in', target_id: row.parent_id }, into]
}

/**
 * Edges that an item no longer lists, of complete types, stated by this source or, if asked, by no known manager. An edge
 * that others state too stays theirs; one to a resource that the caller may not see stays, unnamed.
 */
export const superfluous = async (
  tx: Tx,
  { deps, request, write, known }: Stating,
  resource_id: string,
  { relationships = [] }: ImportItem,
): Promise<RelationshipChange[]> => {
  const { types } = deps.registry
  if (!readsEdges(request)) return []
  const { complete_relationships, unowned_relationships, complete_relationship_types = [] } = request.options ?? {}
  const nameOf = (type_key: string, end: 'src' | 'dst', target_id: string | undefined) =>
    `${type_key} ${types.relationship(type_key)?.symmetric ? '' : end} ${target_id}`
  const listed = new Set(
    relationships.map(({ type_key, direction, target_id, target_external_id = '' }) =>
      nameOf(type_key, direction === 'in' ? 'dst' : 'src', target_id ?? known.get(target_external_id)),
    ),
  )
  const edges = heldOf(tx).edgesOf(resource_id)
  const peerOf = ({ edge, end }: (typeof edges)[number]) => (end === 'src' ? edge.dst : edge.src)
  const peers = await getResourcesByRid(tx, edges.map(peerOf))
  const seen = await visibleOf(tx, types, readAccess(deps, write.caller), peers)
  return edges.flatMap((one) => {
    const { edge, end, peer_id: target_id } = one
    const { type_key = '', containment } = types.relationshipById(edge.reltype_id) ?? {}
    const [statement, statements] = [statedBy(managerOf(request), end), statementsOf(edge)]
    const own = complete_relationships && statements.includes(statement)
    const unowned = unowned_relationships && statements.length === 0
    const free = end === 'src' && (unowned || complete_relationship_types.includes(type_key))
    if (containment || listed.has(nameOf(type_key, end, target_id)) || !(own || free) || !seen.has(peerOf(one)))
      return []
    if (!free && statements.length > 1) {
      heldOf(tx).edges.leave(edge, statement)
      return []
    }
    return [{ op: 'remove' as const, type_key, target_id, ...(end === 'dst' && { direction: 'in' as const }) }]
  })
}

/** Whether every existing edge of an item is needed. */
export const readsEdges = ({ options = {} }: Pick<ImportRequest, 'options'>): boolean =>
  options.complete_relationships === true ||
  options.unowned_relationships === true ||
  (options.complete_relationship_types ?? []).length > 0
