import type { LockMode, ResourceRow } from '../../../db/catalog/rows.ts'
import type { RelationshipChange } from '../../shared/contracts/catalog/relationships.ts'
import type { StoredRelationshipType } from '../packs/registry.ts'
import type { MayWrite } from '../read/access.ts'

/** A change with both ends resolved. `peer` is missing if no such resource exists. */
export type Resolved = {
  at: string
  /** The pointer of the peer's name, for violations about it. */
  target_at: string
  change: RelationshipChange
  relation: StoredRelationshipType | undefined
  peer: ResourceRow | undefined
}
export type EdgePlan = {
  resolved: Resolved[]
  locks: Map<string, LockMode>
  type_locks: Map<number, 'shared' | 'exclusive'>
  /** What the caller may write; services may write everything. */
  mayWrite: MayWrite | undefined
}
