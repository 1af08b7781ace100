import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { observation_latest, relationship, resource, resource_state } from './tables.ts'

type Fixed_ = Omit<typeof resource.$inferSelect, 'rid' | 'identity_hash'>
type State = Omit<typeof resource_state.$inferSelect, 'health_status' | 'drift_status'>

/** A resource with its state, as one row. Row numbers are text; times are the database's own text. */
export type ResourceRow = Fixed_ &
  State & { parent_id: string | null; health_status: HealthStatus; drift_status: 'in_sync' | 'drifted' | 'unknown' }

/** The immutable parts of a resource: its row number, id and type. */
export type Fixed = Pick<ResourceRow, 'rid' | 'resource_id' | 'type_id'>

export type LockMode = 'key share' | 'no key update' | 'update'

export type NewResource = Omit<typeof resource.$inferInsert, 'rid'> & { rid: string }

/** An open edge. `rel_no` identifies it permanently. */
export type EdgeRow = Pick<
  typeof relationship.$inferSelect,
  'src' | 'reltype_id' | 'dst' | 'rev' | 'properties' | 'valid_from'
> & { rel_no: string }

export type EdgeKey = Pick<EdgeRow, 'src' | 'reltype_id' | 'dst'>

export type EdgeCause = {
  at: string
  command_id: string | null
  operation_id: string | null
  /** Who states the edge. */
  manager: string
}

/** A closed edge, with the ids of both ends. */
export type ClosedEdge = EdgeRow & { from_id: string; to_id: string }

export type ObservationRow = Omit<typeof observation_latest.$inferSelect, 'status' | 'attributes' | 'evidence_refs'> & {
  status: HealthStatus
}
