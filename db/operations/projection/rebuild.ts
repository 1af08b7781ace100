import { sql } from 'drizzle-orm'
import type { Queryable, Tx } from '../../client.ts'
import { brokenLink } from '../facts/state.ts'
import { type FoldedEvent, foldEvents } from '../history/fold.ts'
import type { EvidenceRecord } from '../tables/evidence.ts'
import { operation_timeline_view } from '../tables/index.ts'

/** One place where a read model of an operation differs from the event log. */
export type Difference = {
  operation_id: string
  model: 'timeline' | 'evidence' | 'summary' | 'nodes' | 'gates' | 'patches' | 'resources'
  what: string
}

/**
 * Folds the events of one operation and compares the result with the read models (operations.md 6.1). Read models are
 * written in the transaction that states the fact, most of them as views over rows, so none can lag. The only possible
 * fault is a row that was edited or lost. Pruned messages are not compared. Nodes and counters are compared once the
 * operation has ended: before that a claim may be ahead of the next record by design.
 */
export const findDifferences = async (db: Queryable, operation_id: string): Promise<Difference[]> => {
  const found: Difference[] = []
  const differs = (model: Difference['model'], what: string) => found.push({ operation_id, model, what })
  for (const { seq } of await strayEvents(db, operation_id)) differs('timeline', `event ${seq}`)
  const row = await readOperation(db, operation_id)
  if (!row) return [{ operation_id, model: 'summary', what: 'there is no such operation' }]
  const { rows: events } = await db.execute<FoldedEvent & { seq: string }>(sql`
    select seq, type, node_id, gate_id, patch_id from operations.operation_timeline_view
    where operation_id = ${operation_id} order by seq`)
  const gap = events.findIndex(({ seq }, i) => Number(seq) !== i + 1)
  if (gap >= 0 || events.length !== Number(row.timeline_seq))
    differs('timeline', gap >= 0 ? `event ${gap + 1} is missing` : `${events.length} of ${row.timeline_seq} events`)
  const broken = await brokenEvidence(db, row)
  if (broken) differs('evidence', broken)

  const folded = foldEvents(events)
  for (const { gate_id, status } of row.gates)
    if (status !== (folded.gates.get(gate_id) ?? 'armed')) differs('gates', `${gate_id} is ${status}`)
  for (const { patch_id, status } of row.patches)
    if (status !== folded.patches.get(patch_id)) differs('patches', `${patch_id} is ${status}`)
  if ((folded.ended !== null) !== row.ended) differs('summary', row.ended ? 'its end is not told' : 'it has not ended')
  if (folded.ended === null) return found
  if (row.engine_status !== folded.ended)
    differs('summary', `the operation is ${row.engine_status}, not ${folded.ended}`)
  for (const { node_id, state } of row.nodes) {
    const said = folded.nodes.get(node_id) ?? 'pending'
    if (state !== said) differs('nodes', `${node_id} is ${state}, not ${said}`)
  }
  for (const { resource_id, status } of row.resources)
    if (status !== folded.ended) differs('resources', `${resource_id} shows ${status}`)
  return found
}

/** Outbox events that the timeline lacks or has in another form. */
const strayEvents = async (db: Queryable, operation_id: string) => {
  const { rows } = await db.execute<{ seq: string }>(sql`
    select e.event ->> 'seq' as seq
    from operations.outbox o, jsonb_array_elements(o.payload -> 'events') as e(event)
    left join operations.operation_timeline_view t on t.operation_id = ${operation_id} and t.seq = (e.event ->> 'seq')::bigint
    where o.agg_type = 'operation' and o.agg_id = ${operation_id} and (t.seq is null or jsonb_strip_nulls(e.event) <>
      jsonb_strip_nulls(to_jsonb(t) - 'operation_id' || jsonb_build_object('at', e.event ->> 'at'))
      or t.at <> (e.event ->> 'at')::timestamptz)
    order by (e.event ->> 'seq')::bigint limit 100`)
  return rows
}

type Row = {
  operation_id: string
  engine_status: string
  ended: boolean
  plan_hash: string
  timeline_seq: string
  evidence_seq: string
  evidence_hash: string
  nodes: { node_id: string; state: string }[]
  gates: { gate_id: string; status: string }[]
  patches: { patch_id: string; status: string }[]
  resources: { resource_id: string; status: string }[]
}

const readOperation = async (db: Queryable, operation_id: string): Promise<Row | undefined> => {
  const list = (columns: string, table: string) =>
    sql.raw(
      `coalesce((select jsonb_agg(jsonb_build_object(${columns
        .split(' ')
        .map((name) => `'${name}', x.${name}`)
        .join(', ')})) from operations.${table} x where x.operation_id = o.operation_id), '[]'::jsonb)`,
    )
  const { rows } = await db.execute<Row>(sql`
    select o.operation_id, o.engine_status, c.ended, o.timeline_seq, o.evidence_seq, o.evidence_hash,
      coalesce((select prev_hash from operations.operation_evidence_index e where e.operation_id = o.operation_id and e.seq = 1), o.evidence_hash) as plan_hash,
      ${list('node_id state', 'nodes')} as nodes, ${list('gate_id status', 'gates')} as gates,
      ${list('patch_id status', 'patches')} as patches, ${list('resource_id status', 'resource_operation_index')} as resources
    from operations.operations o join operations.operation_control c using (operation_id)
    where o.operation_id = ${operation_id}`)
  return rows[0]
}

const brokenEvidence = async (db: Queryable, row: Row): Promise<string | undefined> => {
  const { rows } = await db.execute<EvidenceRecord & { seq: string }>(sql`
    select * from operations.operation_evidence_index where operation_id = ${row.operation_id} order by seq`)
  const records = rows.map((record) => ({ ...record, seq: Number(record.seq) }))
  const broken = brokenLink(row.plan_hash, records, { seq: Number(row.evidence_seq), hash: row.evidence_hash })
  return broken && `record ${broken.seq}: ${broken.problem}`
}

/** Rewrites outbox events into the timeline if they are missing or differ. Returns how many. */
export const repairTimeline = async (tx: Tx, operation_id: string): Promise<number> => {
  const stray = await strayEvents(tx, operation_id)
  if (stray.length === 0) return 0
  const seqs = stray.map(({ seq }) => Number(seq))
  await tx.execute(sql`
    delete from ${operation_timeline_view} where operation_id = ${operation_id} and seq = any(${sql.param(seqs)}::bigint[])`)
  await tx.execute(sql`
    insert into ${operation_timeline_view}
    select (jsonb_populate_record(null::${operation_timeline_view}, e.event || jsonb_build_object('operation_id', o.agg_id,
      'data', coalesce(e.event -> 'data', '{}'::jsonb)))).*
    from operations.outbox o, jsonb_array_elements(o.payload -> 'events') as e(event)
    where o.agg_type = 'operation' and o.agg_id = ${operation_id} and (e.event ->> 'seq')::bigint = any(${sql.param(seqs)}::bigint[])`)
  return stray.length
}

/** Ids of all operations, one page at a time. */
export const listOperationIds = async (db: Queryable, after: string, limit: number): Promise<string[]> => {
  const { rows } = await db.execute<{ operation_id: string }>(sql`
    select operation_id from operations.operations where operation_id > ${after} order by operation_id limit ${limit}`)
  return rows.map(({ operation_id }) => operation_id)
}
