import { timingSafeEqual } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { type Anchor, readAnchor } from '../../../db/audit.anchors.ts'
import { AUDIT_LOGS, SEAL_START, sealHash } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { secretKeysOf } from '../../shared/config.ts'
import { canonicalJson, deriveKey, hmacSha256 } from '../../shared/data/digest.ts'
import { table } from '../../shared/data/print.ts'
import { readKeyFile } from '../../shared/service/keys.ts'
import { settingOf, withDb } from './access.ts'

type Row = Record<string, unknown> & { id: string; body: string; mac: string | null }
type Sealed = { id: string; mac: string | null; seal_seq: string; prev_hash: string | null; seal_hash: string | null }
/** What was found in one log: `fault` names the first bad row. */
export type Verdict = { log: string; rows: number; sealed: number; fault?: string }

const BATCH = 1000

/**
 * Reads an audit log to its end: each row's MAC, its columns against its signed body, the chain of sealed rows, and that
 * every row that an anchor names stands where it stood.
 */
export const verifyLog = async (
  db: Db,
  log: string,
  keys: readonly Buffer[],
  anchors: readonly Anchor[] = [],
): Promise<Verdict> => {
  // What was anchored first counts: a later anchor may have been made of a log that was changed by then.
  const anchored = new Map(
    anchors
      .toReversed()
      .flatMap(({ at, heads }) =>
        heads.filter((head) => head.log === log).map(({ seal_seq, seal_hash }) => [seal_seq, { at, seal_hash }]),
      ),
  )
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
      const anchor = anchored.get(String(seq))
      if (anchor && anchor.seal_hash !== prev)
        return { ...verdict, fault: `row ${row.id}: it is not the one that was anchored at ${anchor.at}` }
      anchored.delete(String(seq))
      verdict.sealed += 1
    }
    if (rows.length < BATCH) break
  }
  const [missing] = anchored
  if (!missing) return verdict
  const [number, { at }] = missing
  return { ...verdict, fault: `the log ends before row number ${number}, which was anchored at ${at}` }
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

/** The anchors of the relay's file, and the number of the first line that its key did not sign. */
const readAnchors = (): { file: string; anchors: Anchor[]; forged?: number } => {
  const file = settingOf('relay', 'AUDIT__ANCHOR_FILE')
  if (!existsSync(file)) return { file, anchors: [] }
  const key = readKeyFile('RELAY__AUDIT__KEY_FILE', settingOf('relay', 'AUDIT__KEY_FILE'))
  const anchors: Anchor[] = []
  for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
    const anchor = readAnchor(line, key)
    if (!anchor) return { file, anchors, forged: anchors.length + 1 }
    anchors.push(anchor)
  }
  return { file, anchors }
}

/** `verify-audit`: all audit logs. Exits 3 when a row or an anchor is not as it was written. */
export const verifyAudit = async (): Promise<number> => {
  const { file, anchors, forged } = readAnchors()
  const verdicts: Verdict[] = []
  for (const { app, table: log } of AUDIT_LOGS) {
    const keys = secretKeysOf(JSON.parse(settingOf(app, 'SECRET__KEYS'))).map((key) => deriveKey(key, 'audit'))
    verdicts.push(await withDb(app, (db) => verifyLog(db, log, keys, anchors)))
  }
  const rows = verdicts.map(({ log, rows, sealed, fault }) => [
    log,
    String(rows),
    fault ? '' : String(rows - sealed),
    fault ?? 'as written',
  ])
  for (const line of table(['LOG', 'ROWS', 'NOT YET SEALED', 'VERDICT'], rows)) console.log(line)
  console.log(
    forged
      ? `\n${file}, line ${forged}: this anchor was not signed by the key of the relay`
      : `\n${anchors.length} anchors in ${file}, the last of ${anchors.at(-1)?.at ?? 'never'}`,
  )
  return forged || verdicts.some(({ fault }) => fault) ? 3 : 0
}
