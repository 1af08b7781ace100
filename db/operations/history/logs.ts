import { and, asc, desc, gt, gte, lte, type SQL, sql } from 'drizzle-orm'
import type { LogLineView } from '../../../apps/shared/contracts/operations/nodes.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import { equals, first, type Queryable } from '../../client.ts'
import { anyCase } from '../../columns.ts'
import { log_chunks, node_attempts, operation_job_log_index } from '../tables/index.ts'
import { openChunk } from './archive.ts'

/** One attempt's log. Its chunks have no gaps, and there may be gaps between them: agents number their lines. */
export type LogRef = { operation_id: string; node_id: string; role: 'run' | 'undo'; attempt: number }

const i = operation_job_log_index
const ofLog = ({ operation_id, node_id, role, attempt }: LogRef) => equals(i, { operation_id, node_id, role, attempt })

/** The newest attempt of a node; `undefined` if it never started. */
export const latestAttempt = async (db: Queryable, operation_id: string, node_id: string, role: 'run' | 'undo') => {
  const [row] = await db
    .select({ attempt: node_attempts.attempt })
    .from(node_attempts)
    .where(equals(node_attempts, { operation_id, node_id, role }))
    .orderBy(desc(node_attempts.attempt))
    .limit(1)
  return row?.attempt
}

/** Where the bodies of a log are stored: a log moves as a whole, long after its last line. */
type Storage = 'hot' | 'archive' | 'gone'

/** The extent of an attempt's log; `undefined` if there is no such attempt. */
export const getLogHead = (db: Queryable, ref: LogRef) =>
  db
    .select({
      total_lines: sql<number>`coalesce((select max(${i.last_seq}) from ${i} where ${ofLog(ref)}), 0)::int`,
      total_bytes: sql<number>`coalesce((select sum(${i.bytes}) from ${i} where ${ofLog(ref)}), 0)::int`,
      complete: node_attempts.log_complete,
      storage: sql<Storage>`coalesce((select max(${i.storage}) filter (where ${i.storage} <> 'hot') from ${i} where ${ofLog(ref)}), 'hot')`,
    })
    .from(node_attempts)
    .where(equals(node_attempts, { ...pick(ref, 'operation_id', 'node_id', 'role', 'attempt') }))
    .then(first)

/** The number of the nearest line from `seq` on, or back from it; `undefined` if there is none. */
export const nearestLine = async (db: Queryable, ref: LogRef, seq: number, backwards: boolean) => {
  const [row] = await db
    .select({
      seq: backwards
        ? sql<number | null>`max(least(${i.last_seq}, ${seq}::bigint))::int`
        : sql<number | null>`min(greatest(${i.first_seq}, ${seq}::bigint))::int`,
    })
    .from(i)
    .where(and(ofLog(ref), backwards ? sql`${i.first_seq} <= ${seq}` : sql`${i.last_seq} >= ${seq}`))
  return row?.seq ?? undefined
}

export type LogRange = {
  /** Lines with from_seq <= seq <= to_seq. */
  from_seq: number
  to_seq: number
  stream?: string | undefined
  level?: string | undefined
  limit: number
  /** Takes lines from the end of the range instead of the start. */
  backwards: boolean
}

/** Lines of a log in order; filters examine every line of the range. */
export const listLines = async (db: Queryable, ref: LogRef, range: LogRange): Promise<LogLineView[]> => {
  const { from_seq, to_seq, stream, level, limit, backwards } = range
  const rows = await db
    .select({ line: sql<LogLineView>`l.line` })
    .from(i)
    .innerJoin(log_chunks, sameChunk)
    .innerJoin(sql`lateral jsonb_array_elements(${log_chunks.lines}) as l(line)`, sql`true`)
    .where(
      and(
        ofLog(ref),
        sql`${i.last_seq} >= ${from_seq} and ${i.first_seq} <= ${to_seq}`,
        sql`(l.line ->> 'seq')::bigint between ${from_seq} and ${to_seq}`,
        stream === undefined ? undefined : sql`l.line ->> 'stream' = ${stream}`,
        level === undefined ? undefined : sql`l.line ->> 'level' = ${level}`,
      ),
    )
    .orderBy(backwards ? sql`(l.line ->> 'seq')::bigint desc` : sql`(l.line ->> 'seq')::bigint`)
    .limit(limit)
  const lines = rows.map(({ line }) => line)
  return backwards ? lines.reverse() : lines
}

/** Like `listLines`, for an archived log, whose chunks are unpacked here. */
export const listArchivedLines = async (db: Queryable, ref: LogRef, range: LogRange): Promise<LogLineView[]> => {
  const { from_seq, to_seq, stream, level, limit, backwards } = range
  const found: LogLineView[] = []
  for await (const lines of wholeLog(db, ref, range)) {
    const fit = lines.filter(
      (line) =>
        line.seq >= from_seq &&
        line.seq <= to_seq &&
        (stream === undefined || line.stream === stream) &&
        (level === undefined || line.level === level),
    )
    found.push(...fit)
    if (backwards) found.splice(0, found.length - limit)
    else if (found.length >= limit) break
  }
  return found.slice(0, limit)
}

const opened = async (rows: readonly { lines: LogLineView[]; packed: Buffer | null }[]): Promise<LogLineView[]> =>
  (await Promise.all(rows.map(({ lines, packed }) => openChunk(lines, packed)))).flat()

const sameChunk: SQL = sql`${log_chunks.operation_id} = ${i.operation_id} and ${log_chunks.node_id} = ${i.node_id}
  and ${log_chunks.role} = ${i.role} and ${log_chunks.attempt} = ${i.attempt} and ${log_chunks.chunk} = ${i.chunk}`

const MATCHES_SHOWN = 1000

const NEWEST_SHOWN = 200
type Sought = { q: string; match_before_seq?: number | undefined }

/**
 * Case-insensitive plain text search over a whole log. Returns the exact count and the first thousand line numbers, or
 * the newest ones before a line, backwards.
 */
export const searchLines = async (db: Queryable, ref: LogRef, { q, match_before_seq }: Sought) => {
  const seq = sql`(l.line ->> 'seq')::bigint`
  const seqs =
    match_before_seq === undefined
      ? sql`(array_agg(${seq} order by ${seq}))[1:${sql.raw(String(MATCHES_SHOWN))}]`
      : sql`(array_agg(${seq} order by ${seq} desc) filter (where ${seq} < ${match_before_seq}))[1:${sql.raw(String(NEWEST_SHOWN))}]`
  const [row] = await db
    .select({ count: sql<number>`count(*)::int`, seqs: sql<number[]>`coalesce(${seqs}, '{}')::int[]` })
    .from(i)
    .innerJoin(log_chunks, sameChunk)
    .innerJoin(sql`lateral jsonb_array_elements(${log_chunks.lines}) as l(line)`, sql`true`)
    .where(
      and(ofLog(ref), sql`position(lower(${q}::text${anyCase(q)}) in lower((l.line ->> 'text')${anyCase(q)})) > 0`),
    )
  return row ?? { count: 0, seqs: [] }
}

/** Like `searchLines`, for an archived log. */
export const searchArchivedLines = async (db: Queryable, ref: LogRef, { q, match_before_seq }: Sought) => {
  const wanted = q.toLowerCase()
  const seqs: number[] = []
  for await (const lines of wholeLog(db, ref))
    for (const { seq, text } of lines) if (text.toLowerCase().includes(wanted)) seqs.push(seq)
  const newest = seqs.filter((seq) => match_before_seq !== undefined && seq < match_before_seq).slice(-NEWEST_SHOWN)
  return { count: seqs.length, seqs: match_before_seq === undefined ? seqs.slice(0, MATCHES_SHOWN) : newest.reverse() }
}

/** Positions of several logs at once, for tailing by the live stream. */
export const listLogHeads = async (db: Queryable, refs: readonly LogRef[]) => {
  if (refs.length === 0) return []
  const { rows } = await db.execute<LogRef & { last_seq: number }>(sql`
    select w.operation_id, w.node_id, w.role, w.attempt, max(${i.last_seq})::int as last_seq
    from jsonb_to_recordset(${JSON.stringify(refs)}::jsonb) as w(operation_id uuid, node_id text, role text, attempt int)
    join ${i} on ${i.operation_id} = w.operation_id and ${i.node_id} = w.node_id and ${i.role} = w.role and ${i.attempt} = w.attempt
    group by 1, 2, 3, 4`)
  return rows
}

const CHUNKS_AT_ONCE = 16

/** A log in order, or the part of it around a range of lines, 1 MiB at a time: all of it may be 50 MiB. */
export async function* wholeLog(
  db: Queryable,
  ref: LogRef,
  { from_seq, to_seq }: Partial<LogRange> = {},
): AsyncGenerator<LogLineView[], void> {
  for (let after = -1, more = true; more; ) {
    const rows = await db
      .select({ chunk: i.chunk, lines: log_chunks.lines, packed: log_chunks.packed })
      .from(i)
      .innerJoin(log_chunks, sameChunk)
      .where(
        and(
          ofLog(ref),
          gt(i.chunk, after),
          from_seq === undefined ? undefined : gte(i.last_seq, from_seq),
          to_seq === undefined ? undefined : lte(i.first_seq, to_seq),
        ),
      )
      .orderBy(asc(i.chunk))
      .limit(CHUNKS_AT_ONCE)
    yield await opened(rows)
    after = rows.at(-1)?.chunk ?? after
    more = rows.length === CHUNKS_AT_ONCE
  }
}
