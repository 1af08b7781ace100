import type pg from 'pg'
import { AUDIT_LOGS, SEAL_START, sealHash } from '../../../db/audit.ts'
import { keyedLock } from '../../../db/locks.ts'

const BATCH = 500

/**
 * Chains newly written audit rows (reliability.md 5.4). This is separate from writing them, because a chain head that
 * every transaction locks would make them wait for one another. One turn runs at a time, by a lock of the transaction.
 * Returns whether there may be more.
 */
export const sealAudit = async (pool: pg.Pool): Promise<boolean> => {
  const waits = AUDIT_LOGS.map(({ table }) => `exists (select 1 from ${table} where seal_seq is null) as "${table}"`)
  const { rows } = await pool.query<Record<string, boolean>>(`select ${waits.join(', ')}`)
  let more = false
  for (const { table } of AUDIT_LOGS) if (rows[0]?.[table]) more = (await sealTable(pool, table)) || more
  return more
}

type Unsealed = { id: string; mac: string | null }

const sealTable = async (pool: pg.Pool, table: string): Promise<boolean> => {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(`select ${keyedLock('seal', '$1::text')}`, [table])
    const head = await client.query<{ seal_seq: string; seal_hash: string }>(
      `select seal_seq, seal_hash from ${table} where seal_seq is not null order by seal_seq desc limit 1`,
    )
    const { rows } = await client.query<Unsealed>(
      `select id, mac from ${table} where seal_seq is null order by id limit ${BATCH}`,
    )
    let seq = BigInt(head.rows[0]?.seal_seq ?? 0)
    let prev = head.rows[0]?.seal_hash ?? SEAL_START
    const seals = rows.map(({ id, mac }) => {
      seq += 1n
      const seal = { id, seq: String(seq), prev, hash: sealHash(prev, seq, mac, id) }
      prev = seal.hash
      return seal
    })
    const column = (name: 'id' | 'seq' | 'prev' | 'hash') => seals.map((seal) => seal[name])
    await client.query(
      `update ${table} as a set seal_seq = s.seq, prev_hash = s.prev, seal_hash = s.hash
       from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) as s(id, seq, prev, hash)
       where a.id = s.id and a.seal_seq is null`,
      [column('id'), column('seq'), column('prev'), column('hash')],
    )
    await client.query('commit')
    return rows.length === BATCH
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}
