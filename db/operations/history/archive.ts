import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { sql } from 'drizzle-orm'
import type { LogLineView } from '../../../apps/shared/contracts/operations/nodes.ts'
import type { Db } from '../../client.ts'

const pack = promisify(gzip)
const unpack = promisify(gunzip)
/** Chunks packed per transaction: each is at most 64 KiB. */
const BATCH = 100

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
        where o.ended_at < clock_timestamp() - make_interval(days => ${hot_days}) and l.packed is null
        limit ${BATCH} for update of l skip locked`)
      const bodies = await Promise.all(rows.map(({ lines }) => pack(JSON.stringify(lines))))
      const values = rows.map(({ lines: _, ...key }, i) => ({ ...key, body: bodies[i]?.toString('base64') }))
      const moved = sql`jsonb_to_recordset(${JSON.stringify(values)}::jsonb)
        as m(operation_id uuid, node_id text, role text, attempt int, chunk int, body text)`
      const same = sql`t.operation_id = m.operation_id and t.node_id = m.node_id and t.role = m.role
        and t.attempt = m.attempt and t.chunk = m.chunk`
      if (rows.length > 0) {
        await tx.execute(
          sql`update operations.log_chunks t set packed = decode(m.body, 'base64'), lines = '[]' from ${moved} where ${same}`,
        )
        await tx.execute(
          sql`update operations.operation_job_log_index t set storage = 'archive' from ${moved} where ${same}`,
        )
      }
      return rows.length
    })
    packed += count
    if (count < BATCH) return packed
  }
}

/** Deletes expired bodies of archived logs and contents of artifacts; the record of their existence stays. */
export const expireBodies = async (db: Db, days: { logs: number; artifacts: number }): Promise<void> => {
  const ended = (n: number) => sql`o.ended_at < clock_timestamp() - make_interval(days => ${n})`
  await db.transaction(async (tx) => {
    await tx.execute(sql`
      update operations.operation_job_log_index t set storage = 'gone' from operations.operations o
      where t.operation_id = o.operation_id and t.storage = 'archive' and ${ended(days.logs)}`)
    await tx.execute(sql`
      delete from operations.log_chunks t using operations.operations o
      where t.operation_id = o.operation_id and t.packed is not null and ${ended(days.logs)}`)
    await tx.execute(sql`
      update operations.operation_artifact_index t set content = null from operations.operations o
      where t.operation_id = o.operation_id and t.content is not null and ${ended(days.artifacts)}`)
  })
}
