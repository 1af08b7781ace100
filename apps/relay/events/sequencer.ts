import type pg from 'pg'

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
  const values = [rows.map((row) => row.id), epoch]
  const client = await pool.connect()
  try {
    // Sent together. Without the lead no row is numbered, and the commit changes none.
    const [, { rowCount }] = await Promise.all([
      client.query('begin'),
      client.query({ name: `number_${schema}`, text: numbering(schema), values }),
      client.query('commit'),
    ])
    if (rowCount !== rows.length) throw new Error(`another relay leads ${schema}`)
    return rows.length
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}

const numbering = (schema: string) => `
with taken as (
  update ${schema}.relay_state set next = next + cardinality($1::bigint[]) where name = 'relay' and epoch = $2
  returning next - cardinality($1::bigint[]) as start)
update ${schema}.outbox o set pub_seq = taken.start + b.n - 1
from taken, unnest($1::bigint[]) with ordinality as b(id, n) where o.id = b.id`
