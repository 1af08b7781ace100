import { timingSafeEqual } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { AUDIT_LOGS, SEAL_START, sealHash } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { secretKeysOf } from '../../shared/config.ts'
import { canonicalJson, deriveKey, hmacSha256 } from '../../shared/digest.ts'
import { table } from '../../shared/print.ts'
import { settingOf, withDb } from './access.ts'

type Row = Record<string, unknown> & { id: string; body: string; mac: string | null }
type Sealed = { id: string; mac: string | null; seal_seq: string; prev_hash: string | null; seal_hash: string | null }
/** What was found in one log: `fault` names the first bad row. */
export type Verdict = { log: string; rows: number; sealed: number; fault?: string }

const BATCH = 1000

/** Reads an audit log to its end: each row's MAC, its columns against its signed body, and the chain of sealed rows. */
export const verifyLog = async (db: Db, log: string, keys: readonly Buffer[]): Promise<Verdict> => {
  const verdict: Verdict = { log, rows: 0, sealed: 0 }
  const from = sql.raw(log)
  for (let after = '0'; ; ) {
    const { rows } = await db.execute<Row>(
      sql`select * from ${from} where id > ${after}::bigint order by id limit ${BATCH}`,
    )
    for (const row of rows) {
      verdict.rows += 1
      const fault = faultOf(row, keys)
      if (fault) return { ...verdict, fault: `row ${row.id}: ${fault}` }
    }
    const last = rows.at(-1)
    if (!last || rows.length < BATCH) break
    after = last.id
  }
  let prev = SEAL_START
  for (let seq = 0n; ; ) {
    const { rows } = await db.execute<Sealed>(
      sql`select id, mac, seal_seq, prev_hash, seal_hash from ${from} where seal_seq > ${String(seq)}::bigint order by seal_seq limit ${BATCH}`,
    )
    for (const row of rows) {
      const fault = breakOf(row, seq + 1n, prev)
      if (fault) return { ...verdict, fault: `row ${row.id}: ${fault}` }
      seq += 1n
      prev = String(row.seal_hash)
      verdict.sealed += 1
    }
    if (rows.length < BATCH) return verdict
  }
}

/** A row alone: the MAC over its body, and every column that its body names. */
const faultOf = (row: Row, keys: readonly Buffer[]): string | undefined => {
  const mac = Buffer.from(row.mac ?? '', 'hex')
  const genuine = keys.some((key) => {
    const right = hmacSha256(key, row.body)
    return right.length === mac.length && timingSafeEqual(right, mac)
  })
  if (!genuine) return row.mac === null ? 'it has no MAC' : 'its MAC does not fit its body'
  const body = JSON.parse(row.body) as Record<string, unknown>
  const changed = Object.keys(body).find((name) => name in row && !same(row[name], body[name]))
  return changed && `its column ${changed} is not what its body says`
}

const same = (stored: unknown, said: unknown): boolean => {
  if (stored instanceof Date) return stored.getTime() === Date.parse(String(said))
  if (typeof stored === 'string' && typeof said === 'string')
    return stored === said || (!Number.isNaN(Date.parse(said)) && Date.parse(stored) === Date.parse(said))
  return canonicalJson(stored ?? null) === canonicalJson(said ?? null)
}

const breakOf = (
  { seal_seq, prev_hash, seal_hash, mac }: Sealed,
  expected: bigint,
  prev: string,
): string | undefined => {
  if (BigInt(seal_seq) !== expected) return `before it the sealed row number ${expected} is missing`
  if (prev_hash !== prev) return 'it does not follow the row before it'
  if (seal_hash !== sealHash(prev, expected, mac)) return 'its seal does not fit it'
  return undefined
}

/** `verify-audit`: all audit logs. Exits 3 when a row is not as it was written. */
export const verifyAudit = async (): Promise<number> => {
  const verdicts: Verdict[] = []
  for (const { app, table: log } of AUDIT_LOGS) {
    const keys = secretKeysOf(JSON.parse(settingOf(app, 'SECRET__KEYS'))).map((key) => deriveKey(key, 'audit'))
    verdicts.push(await withDb(app, (db) => verifyLog(db, log, keys)))
  }
  const rows = verdicts.map(({ log, rows, sealed, fault }) => [
    log,
    String(rows),
    fault ? '' : String(rows - sealed),
    fault ?? 'as written',
  ])
  for (const line of table(['LOG', 'ROWS', 'NOT YET SEALED', 'VERDICT'], rows)) console.log(line)
  return verdicts.some(({ fault }) => fault) ? 3 : 0
}
