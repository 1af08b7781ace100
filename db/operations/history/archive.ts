import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { sql } from 'drizzle-orm'
import type { LogLineView } from '../../../apps/shared/contracts/operations/nodes.ts'
import type { Db } from '../../client.ts'
import { endedBefore } from '../expressions.ts'

const pack = promisify(gzip)
const unpack = promisify(gunzip)
/** Chunks packed per transaction: each is at most 64 KiB. */
const BATCH = 100

/** A row of `t` is about the chunk `m`. */
const SAME = sql`t.operation_id = m.operation_id and t.node_id = m.node_id and t.role = m.role
  and t.attempt = m.attempt and t.chunk = m.chunk`

type Chunk = { operation_id: string; node_id: string; role: string; attempt: number; chunk: number }

/** The lines of a chunk, wherever they are stored. */
export const openChunk = async (lines: LogLineView[], packed: Buffer | null): Promise<LogLineView[]> =>
  packed === null ? lines : (JSON.parse((await unpack(packed)).toString('utf8')) as LogLineView[])

/**
 * Packs the logs of operations that ended `hot_days` ago: about a tenth of the space, read by the same URL
 * (operations.md 6.4). The packed body stays in its row: no other store exists yet, and a single place is restored with
 * everything else. Safe to run anywhere at any time; returns how many chunks it packed.
 */
export const archiveLogs = async (db: Db, hot_days: number): Promise<number> => {
  for (let packed = 0; ; ) {
    const count = await db.transaction(async (tx) => {
      const { rows } = await tx.execute<Chunk & { lines: LogLineView[] }>(sql`
        select l.operation_id, l.node_id, l.role, l.attempt, l.chunk, l.lines
        from operations.operations o join operations.log_chunks l using (operation_id)
        where l.packed is null and ${endedBefore(hot_days, sql`l.operation_id`)}
        limit ${BATCH} for update of l skip locked`)
      const bodies = await Promise.all(rows.map(({ lines }) => pack(JSON.stringify(lines))))
      const values = rows.map(({ lines: _, ...key }, i) => ({ ...key, body: bodies[i]?.toString('base64') }))
      const moved = sql`jsonb_to_recordset(${JSON.stringify(values)}::jsonb)
        as m(operation_id uuid, node_id text, role text, attempt int, chunk int, body text)`
      if (rows.length > 0) {
        await tx.execute(
          sql`update operations.log_chunks t set packed = decode(m.body, 'base64'), lines = '[]' from ${moved} where ${SAME}`,
        )
        await tx.execute(
          sql`update operations.operation_job_log_index t set storage = 'archive' from ${moved} where ${SAME}`,
        )
      }
      return rows.length
    })
    packed += count
    if (count < BATCH) return packed
  }
}

const EXPIRED_AT_ONCE = 1000

/** Deletes the bodies of archived logs whose operation ended that long ago; the record of their existence stays. */
export const expireLogs = async (db: Db, days: number): Promise<void> => {
  for (let gone = EXPIRED_AT_ONCE; gone === EXPIRED_AT_ONCE; ) {
    const { rowCount } = await db.execute(sql`
      with old as (
        select t.operation_id, t.node_id, t.role, t.attempt, t.chunk
        from operations.log_chunks t join operations.operations o using (operation_id)
        where t.packed is not null and ${endedBefore(days, sql`t.operation_id`)} limit ${EXPIRED_AT_ONCE}),
      gone as (
        delete from operations.log_chunks t using old m where ${SAME} returning m.*)
      update operations.operation_job_log_index t set storage = 'gone' from gone m where ${SAME}`)
    gone = rowCount ?? 0
  }
}
