import { saveAudit } from '../../db/catalog/commands.ts'
import type { ResourceRow } from '../../db/catalog/resources.ts'
import { outbox } from '../../db/catalog/tables.ts'
import type { Tx } from '../../db/client.ts'
import { appendOutbox } from '../../db/outbox.ts'
import type { EvidenceRef } from '../shared/contracts/catalog/common.ts'
import type { RelationshipEvent, ResourceEventPayload } from '../shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../shared/contracts/catalog/resources.ts'
import { canonicalJson, hmacSha256 } from '../shared/digest.ts'
import { uuidv7 } from '../shared/ids.ts'
import type { CatalogDeps } from './deps.ts'
import { summaryOf } from './documents.ts'
import type { ChangeSource } from './rules/lifecycle.ts'

/** Why and by whom something changes: what events, revisions, edges and audit rows say of it. */
export type Cause = {
  actor: string
  roles: string[]
  source: ChangeSource
  /** Method and route, or the job's name: the action of the audit row. */
  action: string
  command_id: string
  operation_id: string | null
  request_id: string | null
  reason: string | null
  evidence_refs: EvidenceRef[]
  at: string
}

type Subject = { resource_id: string; type_key: string; version: number; generation: number }
type Told = { type: string; agg_type: string; agg_id: string; agg_version: number; payload: Record<string, unknown> }

const MAX_PAYLOAD_BYTES = 262_144

/** Promises one event. Call it last in the transaction, under the aggregate's lock (catalog.md 11). */
export const tell = (
  tx: Tx,
  cause: Cause,
  { resource_id, type_key, version, generation }: Subject,
  previous_version: number | null,
  { payload, ...event }: Told,
): Promise<void> =>
  appendOutbox(tx, outbox, {
    event_id: uuidv7(),
    ...event,
    request_id: cause.request_id,
    payload: {
      resource_id,
      type_key,
      version,
      previous_version,
      generation,
      actor: cause.actor,
      command_id: cause.command_id,
      operation_id: cause.operation_id,
      evidence_refs: cause.evidence_refs,
      ...payload,
    },
  })

/** The event of one version of a resource: exactly one per version. */
export const tellResource = (
  tx: Tx,
  cause: Cause,
  row: ResourceRow,
  document: ResourceDocument,
  change: {
    type: 'resource.created' | 'resource.updated' | 'resource.retired'
    changed_paths: string[]
    relationship_changes: RelationshipEvent[]
  },
): Promise<void> => {
  const { type, changed_paths, relationship_changes } = change
  const payload: ResourceEventPayload = {
    summary: summaryOf(row, document),
    changed_paths,
    relationship_changes,
    document,
  }
  if (Buffer.byteLength(JSON.stringify(payload)) > MAX_PAYLOAD_BYTES) {
    delete payload.document
    payload.fetch_href = `/internal/v1/resources/${row.resource_id}`
  }
  return tell(tx, cause, document, row.version === 1 ? null : row.version - 1, {
    type,
    agg_type: 'resource',
    agg_id: row.resource_id,
    agg_version: row.version,
    payload,
  })
}

/** One audit row in the transaction of the change; the relay seals it afterwards (reliability.md 5.4). */
export const recordAudit = (
  tx: Tx,
  { keys }: Pick<CatalogDeps, 'keys'>,
  cause: Pick<Cause, 'actor' | 'roles' | 'action' | 'at' | 'request_id' | 'reason'> & { command_id: string | null },
  what: {
    object: string
    outcome: string
    before_hash?: string
    after_hash?: string
    details?: Record<string, unknown>
  },
) => {
  const { actor, roles, action, at, request_id, reason, command_id } = cause
  const { details, ...row } = what
  const body = canonicalJson({ actor, roles, action, at, request_id, reason, command_id, ...row, details })
  return saveAudit(tx, {
    actor,
    roles,
    action,
    at,
    request_id,
    reason,
    command_id,
    ...row,
    body,
    mac: hmacSha256(keys.audit, body).toString('hex'),
  })
}
