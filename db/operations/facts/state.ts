import { eq, getTableName, type SQL, sql } from 'drizzle-orm'
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core'
import type { Actor } from '../../../apps/shared/contracts/operations/graph.ts'
import { digest } from '../../../apps/shared/data/digest.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import { type AuditEntry, appendAuditTo } from '../../audit.ts'
import type { Tx } from '../../client.ts'
import { inOne, insertRow, Statement, updateRow } from '../../rows.ts'
import type { EvidenceFact, EvidenceHead, EvidenceRecord } from '../tables/evidence.ts'
import {
  audit,
  operation_control,
  operation_evidence_index,
  operation_timeline_view,
  operations,
  outbox,
} from '../tables/index.ts'

/** Above this size the message omits the events, and readers fetch them from the timeline (operations.md 9.4). */
const MAX_EVENT_BYTES = 256 * 1024

export type Facts = {
  events: readonly TimelineEvent[]
  /** One more fact, without evidence, that states where the chain ends after the others. */
  last?: (evidence_head: EvidenceHead) => TimelineEvent
  /** Other columns of the operation that change with these facts. */
  set?: PgUpdateSetSource<typeof operations>
  /** Where the history ends, if the caller has read it under the lock and stated no facts since. */
  head?: Head | undefined
  request_id?: string | null
  trace?: string | null
}
export type Stated = { at: string; change_seq: number; timeline_seq: number; evidence_head: EvidenceHead }

/**
 * States facts of one operation: timeline, evidence chain, counters and one outbox message, in the transaction that
 * makes them true. Locks the row of `operations`; call it last, after the control row is locked or read. With a given
 * head it awaits no answer before its last statement is sent.
 */
export const stateFacts = async (tx: Tx, operation_id: string, facts: Facts): Promise<Stated> => {
  const head = facts.head ?? (await lockHead(tx, operation_id))
  const proofs = facts.events.flatMap(({ evidence, actor }) => (evidence ? [{ ...evidence, actor, at: head.at }] : []))
  const records = chainEvidence(operation_id, { seq: head.evidence_seq, hash: head.evidence_hash }, proofs)
  const newest = records.at(-1)
  const evidence_head = newest
    ? { seq: newest.seq, hash: newest.hash }
    : { seq: head.evidence_seq, hash: head.evidence_hash }
  const events = facts.last ? [...facts.events, facts.last(evidence_head)] : facts.events
  const rows = timelineRows(operation_id, head, events)
  const stated = { at: head.at, change_seq: head.change_seq + 1, timeline_seq: head.seq + rows.length, evidence_head }
  const moved = updateRow(
    tx,
    operations,
    { operation_id },
    {
      ...facts.set,
      ...pick(stated, 'change_seq', 'timeline_seq'),
      evidence_seq: stated.evidence_head.seq,
      evidence_hash: stated.evidence_head.hash,
      agg_version: head.agg_version + (rows.length > 0 ? 1 : 0),
      updated_at: head.at,
    },
  )
  const proved = records.length > 0 ? [insertAll(tx, operation_evidence_index, records)] : []
  const shown = rows.length > 0 ? [insertAll(tx, operation_timeline_view, rows)] : []
  const told = rows.length > 0 ? [promiseMessage(tx, operation_id, head.agg_version + 1, rows, stated, facts)] : []
  await inOne(moved, ...proved, ...shown, ...told)
  return stated
}

/** Counts one more decided change, which is the first half of the ETag. The caller holds the control row. */
export const bumpRevision = (tx: Tx, operation_id: string) =>
  tx
    .update(operation_control)
    .set({ revision: sql`${operation_control.revision} + 1` })
    .where(eq(operation_control.operation_id, operation_id))

/** Locks where the history of an operation ends, for a caller whose facts need its time. */
export const lockHead = async (tx: Tx, operation_id: string) => {
  const [head] = await tx.select(HEAD).from(operations).where(eq(operations.operation_id, operation_id)).for('update')
  if (!head) throw new Error(`no operation ${operation_id}`)
  return head
}

/** Postgres' time as RFC 3339 with microseconds: one clock for rows and evidence. */
export const NOW_TEXT: SQL<string> = sql<string>`to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** Where the history of an operation ends, and the time of the facts that follow. */
export const HEAD = {
  at: NOW_TEXT,
  seq: operations.timeline_seq,
  ...pick(operations, 'evidence_seq', 'evidence_hash', 'change_seq', 'agg_version'),
}
type Head = {
  at: string
  seq: number
  evidence_seq: number
  evidence_hash: string
  change_seq: number
  agg_version: number
}

/** Inserts any number of rows with one parameter: a thousand node events are one statement. */
const insertAll = (
  tx: Tx,
  table: typeof operation_timeline_view | typeof operation_evidence_index,
  rows: readonly object[],
) => {
  const name = `operations.${getTableName(table)}`
  const text = `insert into ${name} select * from jsonb_populate_recordset(null::${name}, $1::jsonb)`
  return new Statement(tx, text, [JSON.stringify(rows)])
}

const promiseMessage = (
  tx: Tx,
  operation_id: string,
  agg_version: number,
  rows: readonly TimelineRow[],
  { change_seq, at }: Stated,
  { request_id = null, trace = null }: Facts,
) => {
  const events = rows.map(({ operation_id: _, ...row }) => compact(row))
  const whole = { change_seq, events }
  const first = rows[0]?.seq ?? 0
  const payload =
    JSON.stringify(whole).length <= MAX_EVENT_BYTES
      ? whole
      : {
          change_seq,
          events: events.filter(({ type }) => String(type).startsWith('operation.')),
          fetch_href: `/v1/operations/${operation_id}/timeline?after_seq=${first - 1}`,
        }
  return insertRow(tx, outbox, {
    event_id: uuidv7(),
    agg_type: 'operation',
    agg_id: operation_id,
    agg_version,
    type: 'operation.changed',
    payload,
    request_id,
    trace,
    occurred_at: at,
  })
}

const compact = (row: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))

/** One fact of an operation's history (operations.md 6.2): `<noun>.<state>`, the actor, the reason, and the subject. */
export type TimelineEvent = {
  type: string
  actor: Actor
  /** RFC 3339; defaults to the time of the transaction. Node events carry their attempt's times. */
  at?: string | undefined
  on_behalf_of?: string | null | undefined
  reason?: string | null | undefined
  node_id?: string | null | undefined
  gate_id?: string | null | undefined
  patch_id?: string | null | undefined
  command_id?: string | null | undefined
  data?: Record<string, unknown>
  /** The evidence for this fact; its time is the transaction's. */
  evidence?: EvidenceFact | undefined
}

export type TimelineRow = Required<Omit<TimelineEvent, 'evidence' | 'on_behalf_of' | 'reason'>> & {
  operation_id: string
  seq: number
  on_behalf_of: string | null
  reason: string | null
  evidence_seq: number | null
}

export const ENGINE: Actor = { kind: 'engine', id: 'engine', name: 'Workflow engine' }
export const SYSTEM: Actor = { kind: 'system', id: 'system', name: 'Signalbox' }

/** Numbers events densely after `seq`; evidence takes the next numbers of its own chain in the same order. */
const timelineRows = (
  operation_id: string,
  head: { seq: number; evidence_seq: number; at: string },
  events: readonly TimelineEvent[],
): TimelineRow[] => {
  let { seq, evidence_seq } = head
  return events.map((event) => ({
    operation_id,
    seq: ++seq,
    at: event.at ?? head.at,
    ...pick(event, 'type', 'actor'),
    on_behalf_of: event.on_behalf_of ?? null,
    reason: event.reason ?? null,
    node_id: event.node_id ?? null,
    gate_id: event.gate_id ?? null,
    patch_id: event.patch_id ?? null,
    command_id: event.command_id ?? null,
    data: event.data ?? {},
    evidence_seq: event.evidence ? ++evidence_seq : null,
  }))
}

/** Adds one row to operations' audit log, in the transaction of the change. */
export const appendAudit = (tx: Tx, key: Uint8Array, entry: AuditEntry): Promise<void> =>
  appendAuditTo(tx, audit, key, entry)

/** The digest of a record without its own hash, which `hash` must equal. */
export const hashOf = ({ hash: _, ...record }: EvidenceRecord): string => digest({ v: 1, ...record })

/** Links facts to the head of their operation's chain, in order. */
export const chainEvidence = (
  operation_id: string,
  head: EvidenceHead,
  facts: readonly (EvidenceFact & { actor: Actor; at: string })[],
): EvidenceRecord[] => {
  let { seq, hash } = head
  return facts.map(({ kind, statement, subject, subject_digest, actor, at }) => {
    seq += 1
    const record = { operation_id, seq, kind, statement, subject, subject_digest, actor, at, prev_hash: hash, hash: '' }
    hash = hashOf(record)
    return { ...record, hash }
  })
}

/** The first record that is edited, missing or out of place; `undefined` if the chain is intact from plan to head. */
export const brokenLink = (
  plan_hash: string,
  records: readonly EvidenceRecord[],
  head: EvidenceHead,
): { seq: number; problem: 'missing' | 'link' | 'hash' | 'head' } | undefined => {
  let prev = plan_hash
  for (const [index, record] of records.entries()) {
    if (record.seq !== index + 1) return { seq: index + 1, problem: 'missing' }
    if (record.prev_hash !== prev) return { seq: record.seq, problem: 'link' }
    if (hashOf(record) !== record.hash) return { seq: record.seq, problem: 'hash' }
    prev = record.hash
  }
  if (head.seq !== records.length || head.hash !== prev) return { seq: head.seq, problem: 'head' }
  return undefined
}
