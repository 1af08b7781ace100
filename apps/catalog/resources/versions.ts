import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { CapabilityChange } from '../../shared/contracts/catalog/commands.ts'
import type { RelationshipEvent } from '../../shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../../shared/contracts/catalog/resources.ts'
import { digest } from '../../shared/data/digest.ts'
import { equalJson } from '../../shared/data/pointer.ts'
import { auditOf, type Cause, managerOf } from '../command/outbox.ts'
import type { CatalogDeps } from '../deps.ts'
import { driftOf } from '../document/common.ts'
import { fewPaths, type JsonObject } from '../document/pointers.ts'
import type { StoredType } from '../packs/registry.ts'
import { documentDelta, documentOf, factsChanged, storedDocument } from '../read/documents.ts'
import { identityHash } from '../rules/change.ts'
import { ownersAfter } from '../rules/field-owners.ts'
import { NOTES } from '../rules/notes.ts'

/** The content of a version in each table: computed in memory, written by one command or by a batch of them. */

/** The requested changes; states are given in full, as they should become. Absent members stay unchanged. */
export type Change = {
  display_name?: string
  owner?: string | null
  labels?: Record<string, string>
  annotations?: Record<string, string>
  desired_state?: JsonObject
  observed_state?: JsonObject
  lifecycle_status?: string
  capability_changes?: CapabilityChange[]
  capability_mode?: 'merge' | 'replace'
}

/** A valid change: the row before it, the type that its states fit, and the new states. */
export type Next = {
  row: ResourceRow
  type: StoredType
  change: Change
  lifecycle_status: string
  desired_state: JsonObject
  observed_state: JsonObject
  ends: boolean
}

/** Columns of the next version in `resource` (often none) and `resource_state`; `told`: count of capability events. */
export const columnsOf = (next: Next, cause: Cause, told: number) => {
  const { row, type, change, lifecycle_status, desired_state, observed_state, ends } = next
  const desired_moved = !equalJson(desired_state, row.desired_state)
  const generation = row.generation + (desired_moved ? 1 : 0)
  const drift = driftOf(type.drift_paths, desired_state, observed_state)
  const notes = Object.fromEntries(
    NOTES.filter((name) => change[name] !== undefined).map((name) => [name, change[name]]),
  )
  const owned = { ...notes, ...(desired_moved && { desired_state }) }
  const field_owners = Object.keys(owned).length > 0 ? ownersAfter(row, owned, managerOf(cause)) : row.field_owners
  const fixed = {
    ...notes,
    ...(type.version !== row.type_version && { type_version: type.version }),
    ...(desired_moved && { desired_state }),
    ...(desired_moved && type.identity.length > 0 && { identity_hash: identityHash(type, desired_state) }),
    ...(ends && { is_open: false }),
    ...(!equalJson(field_owners, row.field_owners) && { field_owners }),
  }
  const state = {
    version: row.version + 1,
    generation,
    observed_generation: change.observed_state === undefined ? row.observed_generation : generation,
    lifecycle_status,
    observed_state,
    drift_status: drift.status,
    drift_paths: drift.paths,
    ...(lifecycle_status !== row.lifecycle_status && { lifecycle_at: cause.at }),
    ...(drift.status !== row.drift_status && { drift_at: cause.at }),
    ...(told > 0 && { capability_revision: row.capability_revision + told }),
    ...(cause.operation_id !== null && {
      last_operation_id: cause.operation_id,
      last_command_id: cause.command_id,
      last_operation_at: cause.at,
    }),
    updated_at: cause.at,
    updated_by: cause.actor,
  }
  return { fixed, state }
}

export type Version = { cause: Cause; edges: RelationshipEvent[]; providers: readonly unknown[] }

const SNAPSHOT_EVERY = 20

/** Revision and audit row of a version, from the row before (`undefined` for a new resource) and the row after. */
export const recordOf = (
  deps: CatalogDeps,
  row: ResourceRow,
  before: ResourceRow | undefined,
  { cause, edges, providers }: Version,
) => {
  const { types } = deps.registry
  const document = documentOf(row, types)
  const old = before && documentOf(before, types)
  const changed_paths = old
    ? [
        ...fewPaths(factsChanged(old, document)),
        ...(edges.length > 0 ? ['/relationships'] : []),
        ...(providers.length > 0 ? ['/provided_capabilities'] : []),
      ]
    : []
  const audit = auditOf(deps, cause, {
    object: `resource:${row.resource_id}`,
    outcome: 'applied',
    ...(old && { before_hash: digest(old) }),
    after_hash: digest(document),
    details: { version: row.version, changed_paths },
  })
  return { document, old, changed_paths, revision: revisionOf(row, document, old, changed_paths, cause), audit }
}

const revisionOf = (
  row: ResourceRow,
  document: ResourceDocument,
  old: ResourceDocument | undefined,
  changed_paths: string[],
  cause: Cause,
) => {
  const whole = !old || row.version % SNAPSHOT_EVERY === 1
  return {
    rid: row.rid,
    version: row.version,
    at: cause.at,
    kind: whole ? ('snapshot' as const) : ('delta' as const),
    doc: whole ? storedDocument(document) : documentDelta(old, document),
    changed_paths,
    lifecycle_status: row.lifecycle_status,
    actor: cause.actor,
    command_id: cause.command_id,
    operation_id: cause.operation_id,
  }
}

/** A command's reference to its operation (if any) and its evidence. */
export const referencesOf = (row: ResourceRow, version_from: number, cause: Cause) => {
  const { command_id, operation_id, at } = cause
  return {
    operation:
      operation_id === null
        ? null
        : { rid: row.rid, operation_id, command_id, version_from, version_to: row.version, at },
    evidence: cause.evidence_refs.map((ref) => ({ rid: row.rid, command_id, operation_id, at, ref })),
  }
}
