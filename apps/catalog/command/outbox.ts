import { signAudit } from '../../../db/audit.ts'
import { saveAudit } from '../../../db/catalog/resources/commands.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import { outbox } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import { appendOutbox, type OutboxEvent } from '../../../db/outbox.ts'
import type { EvidenceRef } from '../../shared/contracts/catalog/common.ts'
import type { RelationshipEvent, ResourceEventPayload } from '../../shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../../shared/contracts/catalog/resources.ts'
import { AppError } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import type { Uses } from '../deps.ts'
import type { ChangeSource } from '../document/lifecycle.ts'
import { summaryOf } from '../read/documents.ts'

/** Why and by whom something changes, as recorded in events, revisions, edges and audit rows. */
export type Cause = {
  actor: string
  /** Who owns the fields of a change: the actor, unless it is an import, an operation, or names another manager. */
  manager?: string | undefined
  /** Takes over edges that others state with other properties. */
  force?: boolean | undefined
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

/** The manager that owns the fields set by a change. */
export const managerOf = ({ manager, operation_id, actor }: Cause): string =>
  manager ?? (operation_id === null ? actor : `operation:${operation_id}`)

type Subject = { resource_id: string; type_key: string; version: number; generation: number }
type Told = { type: string; agg_type: string; agg_id: string; agg_version: number; payload: Record<string, unknown> }

/** The maximum size of an event's payload, as JSON (reliability.md 4.2). */
const MAX_PAYLOAD_BYTES = 262_144
/** When a list is split among several events, each takes about this many bytes and at most this many items. */
const PART_BYTES = 131_072
const PART_ITEMS = 500

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Splits a list into parts that each fit into an event. */
export const partsOf = <T>(items: readonly T[]): T[][] => {
  const parts: T[][] = []
  let room = 0
  for (const item of items) {
    const bytes = bytesOf(item) + 1
    const last = parts.at(-1)
    if (last && bytes <= room && last.length < PART_ITEMS) last.push(item)
    else {
      parts.push([item])
      room = PART_BYTES
    }
    room -= bytes
  }
  return parts
}

/** The evidence that fits into the event; the resource's versions name all of it. */
const evidenceIn = ({ evidence_refs }: Cause) => {
  const [named = [], ...more] = partsOf(evidence_refs)
  if (more.length === 0) return { evidence_refs: named }
  return { evidence_refs: named, evidence_omitted: evidence_refs.length - named.length }
}

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
    ...evidenceIn(cause),
    ...payload,
  },
})

/** Writes events to the outbox in order. Call last in the transaction, under the aggregate's lock (catalog.md 11). */
export const tell = async (tx: Tx, ...events: OutboxEvent[]): Promise<void> => {
  for (const event of events) checkSize(event)
  await appendOutbox(tx, outbox, ...events)
}

/** Events whose size is already checked. */
const fitting = new WeakSet<OutboxEvent>()

/** Refuses an event too large for any consumer. */
const checkSize = (event: OutboxEvent): void => {
  if (fitting.has(event) || bytesOf(event.payload) <= MAX_PAYLOAD_BYTES) return
  throw new AppError('validation_error', 'too_large', `The change is larger than ${MAX_PAYLOAD_BYTES} bytes.`, {
    status: 413,
    hint: 'Divide the change into smaller ones.',
  })
}

type ResourceChange = {
  type: 'resource.created' | 'resource.updated' | 'resource.retired'
  changed_paths: string[]
  relationship_changes: RelationshipEvent[]
}

/**
 * The events of one version of a resource: exactly one `resource.*`. A document that does not fit must be fetched.
 * Relationships that do not fit precede it in parts, as an aggregate of their own named by the event's id.
 */
export const resourceEventsOf = (
  cause: Cause,
  row: ResourceRow,
  document: ResourceDocument,
  change: ResourceChange,
): OutboxEvent[] => {
  const { type, changed_paths, relationship_changes } = change
  const summary = summaryOf(row, document)
  const previous = row.version === 1 ? null : row.version - 1
  const whole = (payload: ResourceEventPayload) =>
    eventOf(cause, document, previous, {
      type,
      agg_type: 'resource',
      agg_id: row.resource_id,
      agg_version: row.version,
      payload,
    })
  const fits = (event: OutboxEvent) => bytesOf(event.payload) <= MAX_PAYLOAD_BYTES && !!fitting.add(event)
  // Far more edges than a command may name, so their bytes need not be counted.
  const many = relationship_changes.length > PART_ITEMS
  const full = !many && whole({ summary, changed_paths, relationship_changes, document })
  if (full && fits(full)) return [full]
  const fetch_href = `/internal/v1/resources/${row.resource_id}`
  const lean = !many && whole({ summary, changed_paths, relationship_changes, fetch_href })
  if (lean && fits(lean)) return [lean]
  const parts = partsOf(relationship_changes)
  const counted = { summary, changed_paths, relationship_changes: [], relationship_parts: parts.length }
  const last = whole({ ...counted, document })
  const main = fits(last) ? last : whole({ ...counted, fetch_href })
  const { name, lifecycle_status, health_status } = summary
  const told = parts.map((part, index) =>
    eventOf({ ...cause, evidence_refs: [] }, document, previous, {
      type: 'resource.relationships',
      agg_type: 'relationships',
      agg_id: main.event_id,
      agg_version: index + 1,
      payload: { of: type, summary: { name, lifecycle_status, health_status }, relationship_changes: part },
    }),
  )
  return [...told, main]
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

/** Writes one audit row in the transaction of the change; the relay seals it afterwards (reliability.md 5.4). */
export const recordAudit = async (tx: Tx, deps: Uses<'keys'>, cause: AuditCause, what: Audited) => {
  await saveAudit(tx, auditOf(deps, cause, what))
}

/** Builds the audit row, bound to this app's key. */
export const auditOf = ({ keys }: Uses<'keys'>, cause: AuditCause, { details, ...row }: Audited) => {
  const { actor, roles, action, at, request_id, reason, command_id } = cause
  // Fastify writes the colon of a path twice, because one begins a parameter.
  const columns = { actor, roles, action: action.replace('::', ':'), at, request_id, reason, command_id, ...row }
  return { ...columns, ...signAudit('catalog.audit', keys.audit, { ...columns, details }) }
}
