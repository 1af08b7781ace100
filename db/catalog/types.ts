import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Capability, RelationshipType, ResourceType } from '../../apps/shared/contracts/catalog/types.ts'
import type { Queryable, Tx } from '../client.ts'
import { lockOf } from '../locks.ts'
import { capability_def, pack, relationship_type, resource, resource_state, type } from './tables.ts'

/** Stored type packs: every version ever loaded stays, since rows keep the version that they fit. */
export const readTypes = (db: Queryable) => db.select().from(type).orderBy(type.id, type.version)
export const readRelationshipTypes = (db: Queryable) =>
  db.select().from(relationship_type).orderBy(relationship_type.id)
export const readCapabilities = (db: Queryable) => db.select().from(capability_def).orderBy(capability_def.id)

/** A number that grows with every load that changes something. */
export const readLoadNo = async (db: Queryable): Promise<number> => {
  const [row] = await db.select({ sum: sql<number>`coalesce(sum(load_no), 0)::int` }).from(pack)
  return row?.sum ?? 0
}

/** Only one load of packs at a time, across processes. */
export const lockPacks = (tx: Tx) => tx.execute(sql`select ${lockOf('packs')}`)

export const readPacks = (tx: Tx) => tx.select().from(pack)

export const savePack = (tx: Tx, row: typeof pack.$inferInsert) =>
  tx
    .insert(pack)
    .values(row)
    .onConflictDoUpdate({ target: [pack.pack, pack.version], set: row })

export const saveType = (tx: Tx, id: number, document: ResourceType) => {
  const values = { checksum: document.checksum, document, retired: false }
  return tx
    .insert(type)
    .values({ id, type_key: document.type_key, version: document.version, ...values })
    .onConflictDoUpdate({ target: [type.id, type.version], set: values })
}

export const saveRelationshipType = (tx: Tx, id: number, document: RelationshipType) => {
  const values = { checksum: document.checksum, document, retired: false }
  return tx
    .insert(relationship_type)
    .values({ id, type_key: document.type_key, ...values })
    .onConflictDoUpdate({ target: relationship_type.id, set: values })
}

export const saveCapability = (tx: Tx, id: number, document: Capability) => {
  const values = { checksum: document.checksum, document, retired: false }
  return tx
    .insert(capability_def)
    .values({ id, capability_key: document.capability_key, version: document.version, ...values })
    .onConflictDoUpdate({ target: [capability_def.id, capability_def.version], set: values })
}

/** Marks types that no file contains any longer: they stay readable, and no resource can be created with them. */
export const retireTypes = (tx: Tx, type_keys: string[]) =>
  tx.update(type).set({ retired: true }).where(inArray(type.type_key, type_keys))

const openOf = (type_id: number) => and(eq(resource.type_id, type_id), eq(resource.is_open, true))

export const hasOpenResources = async (tx: Tx, type_id: number): Promise<boolean> => {
  const rows = await tx.select({ rid: resource.rid }).from(resource).where(openOf(type_id)).limit(1)
  return rows.length > 0
}

/** One of these lifecycle states that an open resource of a type is in, if there is any. */
export const stateInUse = async (tx: Tx, type_id: number, states: string[]): Promise<string | undefined> => {
  const [row] = await tx
    .select({ state: resource_state.lifecycle_status })
    .from(resource)
    .innerJoin(resource_state, eq(resource_state.rid, resource.rid))
    .where(and(openOf(type_id), inArray(resource_state.lifecycle_status, states)))
    .limit(1)
  return row?.state
}
