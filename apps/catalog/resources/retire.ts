import { heldOf } from '../../../db/catalog/held/rows.ts'
import { getResourcesByRid, wishLock } from '../../../db/catalog/resources/rows.ts'
import type { EdgeRow, LockMode, ResourceRow } from '../../../db/catalog/rows.ts'
import type { Tx } from '../../../db/client.ts'
import type { RelationshipEvent } from '../../shared/contracts/catalog/events.ts'
import { pluck } from '../../shared/data/pick.ts'
import { AppError } from '../../shared/errors.ts'
import { type Claimed, isClaim, lockClaimed } from '../capabilities/claims.ts'
import { type ProviderEvent, withdraw } from '../capabilities/declare.ts'
import { tellClaims } from '../capabilities/tell.ts'
import type { Cause } from '../command/outbox.ts'
import type { Types } from '../packs/registry.ts'
import { cascading, edgeEvent, restricting, type Sees } from '../relationships/edges.ts'

const MAX_CASCADE = 200
const MAX_BLOCKERS = 20
/** How many resources that still need this one are counted. */
const MAX_COUNTED = 1000
/** How many relationships can close within the time of one request. */
const MAX_CLOSED = 50_000

/** All resources that become terminal together, the requested one first; locked `for update` with it. */
export const planRetirement = (tx: Tx, types: Types, rid: string, locks: Map<string, LockMode>): string[] => {
  const gone = heldOf(tx).edges.cascade(rid, cascading(types), MAX_CASCADE + 1)
  if (gone.length > MAX_CASCADE) {
    throw new AppError(
      'validation_error',
      'cascade_too_large',
      `More than ${MAX_CASCADE} resources would be retired with this one.`,
    )
  }
  for (const member of gone) wishLock(locks, member, 'update')
  lockClaimed(tx, types, gone, locks)
  return gone
}

/**
 * Closes the edges of a resource that becomes terminal (catalog.md 3): outgoing ones always, incoming ones by
 * on_delete. Resources in `leaving` end with it and do not block. Its parent and path stay, because its last place
 * decides who may see it. Returns the changes to its edges and the capabilities that it no longer provides.
 */
export const closeAllEdges = async (
  tx: Tx,
  types: Types,
  row: ResourceRow,
  { leaving, sees, cause }: { leaving: ReadonlySet<string>; sees: Sees; cause: Cause },
): Promise<{ edges: RelationshipEvent[]; providers: ProviderEvent[] }> => {
  const held = heldOf(tx)
  const blocking = held.edges.to(row.rid, restricting(types), [...leaving]).slice(0, MAX_COUNTED + 1)
  if (blocking.length > 0) throw await blocked(tx, types, row, blocking, sees)
  if (held.edges.countAll(row.rid) > MAX_CLOSED) throw tooManyToClose(row)
  const claimed: Claimed = new Map()
  const idOf = (rid: string) => held.rowOf(rid).resource_id
  const edges = held.edges.closeAll(row.rid, cause, idOf).map((edge) => {
    const type_key = types.relationshipById(edge.reltype_id)?.type_key ?? ''
    const { provider_id } = edge.properties
    if (isClaim({ type_key }) && typeof provider_id === 'string')
      claimed.set(provider_id, { owner: edge.dst, op: 'removed' })
    return edgeEvent(
      'removed',
      edge,
      type_key,
      new Map([
        [edge.src, edge.from_id],
        [edge.dst, edge.to_id],
      ]),
    )
  })
  await tellClaims(tx, types, claimed, { own_rid: row.rid, leaving, cause })
  return { edges, providers: held.offers.of(row.rid).map((offer) => withdraw(tx, offer, cause)) }
}

const tooManyToClose = ({ resource_id }: ResourceRow) =>
  new AppError(
    'validation_error',
    'too_many_relationships',
    `More than ${MAX_CLOSED} relationships would end with ${resource_id}.`,
    { hint: 'Remove some of its relationships first, up to 100 per command.' },
  )

const blocked = async (tx: Tx, types: Types, row: ResourceRow, edges: EdgeRow[], sees: Sees) => {
  const rows = await getResourcesByRid(tx, pluck(edges, 'src'))
  const seen = await sees(rows)
  const peers = new Map(rows.filter(({ rid }) => seen.has(rid)).map((peer) => [peer.rid, peer]))
  const visible = edges.flatMap((edge) => {
    const peer = peers.get(edge.src)
    const type_key = types.relationshipById(edge.reltype_id)?.type_key
    return peer ? [{ resource_id: peer.resource_id, name: peer.name, relationship: type_key }] : []
  })
  const hidden = edges.length - visible.length
  const all = `${edges.length > MAX_COUNTED ? 'at least ' : ''}${edges.length}`
  return new AppError(
    'validation_error',
    'blocked_by_dependents',
    `Other resources still need ${row.resource_id}: ${all}${hidden > 0 ? `, of which you may see ${visible.length}` : ''}.`,
    {
      extra: { blockers: visible.slice(0, MAX_BLOCKERS), blockers_count: visible.length, blockers_hidden: hidden },
      ...(hidden > 0 && { hint: unseenBy(row) }),
    },
  )
}

const unseenBy = ({ resource_id }: ResourceRow): string =>
  `For those outside your scope, ask an administrator: an account without a topology limit lists them with GET /v1/resources/${resource_id}/relationships?direction=in.`
