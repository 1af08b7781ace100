import type pg from 'pg'
import { crashPoint } from '../../shared/crash.ts'

export const BATCH = 500

/**
 * Gives committed outbox rows their `pub_seq`: gap-free, in the order they became visible, the only order anyone may
 * tail (reliability.md 4.3, 4.12). The epoch fences a relay that lost its lock. Returns how many rows it numbered; a
 * full batch may have left some.
 */
export const sequenceOnce = async (pool: pg.Pool, schema: string, epoch: number): Promise<number> => {
  const waiting = `select id from ${schema}.outbox where pub_seq is null order by id limit ${BATCH}`
  // Most turns find no rows, and then take one statement. Only the schema's leader numbers its rows.
  const { rows } = await pool.query<{ id: string }>({ name: `waiting_${schema}`, text: waiting })
  if (rows.length === 0) return 0
  const client = await pool.connect()
  try {
    await client.query('begin')
    const taken = await client.query<{ start: string }>(
      `update ${schema}.relay_state set next = next + $1 where name = 'relay' and epoch = $2 returning next - $1 as start`,
      [rows.length, epoch],
    )
    const start = taken.rows[0]?.start
    if (start === undefined) throw new Error(`another relay leads ${schema}`)
    await client.query(
      `update ${schema}.outbox o set pub_seq = $2::bigint + b.n - 1 from unnest($1::bigint[]) with ordinality as b(id, n) where o.id = b.id`,
      [rows.map((row) => row.id), start],
    )
    crashPoint('sequencer.before_commit')
    await client.query('commit')
    return rows.length
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}
