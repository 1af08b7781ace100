import type { HealthStatus } from '../../apps/shared/contracts/catalog/resources.ts'
import type { resource } from './tables.ts'

type JsonObject = Record<string, unknown>

/** A resource with its state, as one row. Row numbers are text, times the database's own text. */
export type ResourceRow = {
  rid: string
  resource_id: string
  type_id: number
  type_version: number
  name: string
  display_name: string
  owner: string | null
  labels: Record<string, string>
  annotations: Record<string, string>
  parent_rid: string | null
  parent_id: string | null
  path: string
  desired_state: JsonObject
  /** Managers by pointer; empty in lists. */
  field_owners: Record<string, string>
  is_open: boolean
  created_at: string
  created_by: string
  version: number
  generation: number
  observed_generation: number
  lifecycle_status: string
  observed_state: JsonObject
  health_status: HealthStatus
  health_reason: string
  health_expires_at: string | null
  health_revision: number
  capability_revision: number
  drift_status: 'in_sync' | 'drifted' | 'unknown'
  drift_paths: string[]
  lifecycle_at: string
  drift_at: string
  health_at: string
  last_operation_id: string | null
  last_command_id: string | null
  last_operation_at: string | null
  updated_at: string
  updated_by: string
}

/** What of a resource is fixed for life: its row number, id and type. */
export type Fixed = Pick<ResourceRow, 'rid' | 'resource_id' | 'type_id'>

export type LockMode = 'key share' | 'no key update' | 'update'

export type NewResource = Omit<typeof resource.$inferInsert, 'rid'> & { rid: string }

/** An open edge. `rel_no` names it for ever. */
export type EdgeRow = {
  src: string
  reltype_id: number
  dst: string
  rel_no: string
  rev: number
  properties: Record<string, unknown>
  valid_from: string
}

export type EdgeKey = { src: string; reltype_id: number; dst: string }

export type EdgeCause = { at: string; command_id: string | null; operation_id: string | null }

/** An edge that was closed, with the ids of both ends. */
export type ClosedEdge = EdgeRow & { from_id: string; to_id: string }

export type ObservationRow = {
  rid: string
  source: string
  check_key: string
  status: HealthStatus
  observed_at: string
  expires_at: string
  swept: boolean
  summary: string | null
  command_id: string
}
