import { signAudit } from '../../../db/audit.ts'
import { saveAudit } from '../../../db/catalog/resources/commands.ts'
import type { ResourceRow } from '../../../db/catalog/resources/rows.ts'
import { outbox } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import { appendOutbox, type OutboxEvent, outboxRow } from '../../../db/outbox.ts'
import type { EvidenceRef } from '../../shared/contracts/catalog/common.ts'
import type { RelationshipEvent, ResourceEventPayload } from '../../shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../../shared/contracts/catalog/resources.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { CatalogDeps } from '../deps.ts'
import type { ChangeSource } from '../document/lifecycle.ts'
import { summaryOf } from '../read/documents.ts'

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

/** The outbox row of one event. */
export const eventOf = (
  cause: Cause,
  { resource_id, type_key, version, generation }: Subject,
  previous_version: number | null,
  { payload, ...event }: Told,
): OutboxEvent => ({
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

/** Promises events in this order. Call it last in the transaction, under the aggregate's lock (catalog.md 11). */
export const tell = (tx: Tx, ...events: OutboxEvent[]): Promise<void> => appendOutbox(tx, outbox, ...events)

/** The same for one event, sent when it is awaited. */
export const telling = (tx: Tx, event: OutboxEvent) => outboxRow(tx, outbox, event)

type ResourceChange = {
  type: 'resource.created' | 'resource.updated' | 'resource.retired'
  changed_paths: string[]
  relationship_changes: RelationshipEvent[]
}

/** The event of one version of a resource: exactly one per version. */
export const resourceEventOf = (
  cause: Cause,
  row: ResourceRow,
  document: ResourceDocument,
  change: ResourceChange,
): OutboxEvent => {
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
  return eventOf(cause, document, row.version === 1 ? null : row.version - 1, {
    type,
    agg_type: 'resource',
    agg_id: row.resource_id,
    agg_version: row.version,
    payload,
  })
}

type Audited = {
  object: string
  outcome: string
  before_hash?: string
  after_hash?: string
  details?: Record<string, unknown>
}
type AuditCause = Pick<Cause, 'actor' | 'roles' | 'action' | 'at' | 'request_id' | 'reason'> & {
  command_id: string | null
}

/** One audit row in the transaction of the change; the relay seals it afterwards (reliability.md 5.4). */
export const recordAudit = async (...given: Parameters<typeof auditing>): Promise<void> => {
  await auditing(...given)
}

/** The same, sent when it is awaited. */
export const auditing = (tx: Tx, deps: Pick<CatalogDeps, 'keys'>, cause: AuditCause, what: Audited) =>
  saveAudit(tx, auditOf(deps, cause, what))

/** The audit row, bound to this app's key. */
export const auditOf = ({ keys }: Pick<CatalogDeps, 'keys'>, cause: AuditCause, { details, ...row }: Audited) => {
  const { actor, roles, action, at, request_id, reason, command_id } = cause
  const columns = { actor, roles, action, at, request_id, reason, command_id, ...row }
  return { ...columns, ...signAudit('catalog.audit', keys.audit, { ...columns, details }) }
}
