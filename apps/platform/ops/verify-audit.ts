import { sql } from 'drizzle-orm'
import { type Anchor, anchoredHeads } from '../../../db/audit.anchors.ts'
import { AUDIT_LOGS, SEAL_START } from '../../../db/audit.ts'
import type { Db } from '../../../db/client.ts'
import { secretKeysOf } from '../../shared/config.ts'
import { deriveKey } from '../../shared/data/digest.ts'
import { printTable, settingOf, withDb } from './access.ts'
import { type Anchors, anchorsOfFile, anchorsOfStream, distinct } from './audit-anchors.ts'
import { bearsId, breakOf, faultOf, isWhole, type Row, type Sealed } from './audit-rows.ts'

/** The result for one log: `fault` names the first bad row. */
export type Verdict = { log: string; rows: number; sealed: number; version_1: number; fault?: string }

const BATCH = 1000
/** One statement compares all rows of a log. */
const WHOLE_LOG_MS = 6 * 3_600_000

/**
 * Reads an audit log to its end. Checks each row's MAC, all its columns against its signed body, and that no row is a
 * copy. Also checks the chain of sealed rows, and that every row that an anchor names is in its place.
 */
export const verifyLog = async (
  db: Db,
  log: string,
  keys: readonly Buffer[],
  anchors: readonly Anchor[] = [],
): Promise<Verdict> => {
  const verdict: Verdict = { log, rows: 0, sealed: 0, version_1: 0 }
  const fault =
    (await readRows(db, log, keys, verdict)) ??
    (await findCopy(db, log)) ??
    (await readChain(db, log, anchoredHeads(anchors, log), verdict))
  return fault === undefined ? verdict : { ...verdict, fault }
}

const AT = sql.raw(`to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`)

const readRows = async (
  db: Db,
  log: string,
  keys: readonly Buffer[],
  verdict: Verdict,
): Promise<string | undefined> => {
  for (let after: string | undefined; ; ) {
    const from = after === undefined ? sql`` : sql`where id > ${after}::bigint`
    const { rows } = await db.execute<Row>(
      sql`select *, ${AT} as at from ${sql.raw(log)} ${from} order by id limit ${BATCH}`,
    )
    for (const row of rows) {
      verdict.rows += 1
      const fault = faultOf(log, row, keys)
      if (fault) return `row ${row.id}: ${fault}`
      if (!isWhole(row)) verdict.version_1 += 1
    }
    after = rows.at(-1)?.id
    if (rows.length < BATCH) return undefined
  }
}

/** Every body has a unique id (except those of version 1 in the catalog), so a MAC occurs in a log only once. */
const findCopy = async (db: Db, log: string): Promise<string | undefined> => {
  const { rows } = await db.execute<{ first: string; second: string }>(
    sql`select min(id)::text as first, max(id)::text as second from ${sql.raw(log)}
        where body like '%"audit_id":%' or body like '%"event_id":%' group by mac having count(*) > 1 order by min(id) limit 1`,
  )
  return rows[0] && `row ${rows[0].second}: it is a copy of row ${rows[0].first}`
}

const readChain = async (
  db: Db,
  log: string,
  anchored: ReturnType<typeof anchoredHeads>,
  verdict: Verdict,
): Promise<string | undefined> => {
  let prev = SEAL_START
  let with_id = false
  for (let seq = 0n; ; ) {
    const { rows } = await db.execute<Sealed>(
      sql`select id, mac, seal_seq, prev_hash, seal_hash from ${sql.raw(log)}
          where seal_seq > ${String(seq)}::bigint order by seal_seq limit ${BATCH}`,
    )
    for (const row of rows) {
      const fault = breakOf(row, seq + 1n, prev, with_id)
      if (fault) return `row ${row.id}: ${fault}`
      seq += 1n
      with_id ||= bearsId(row, seq, prev)
      prev = String(row.seal_hash)
      const anchor = anchored.get(String(seq))
      if (anchor && anchor.seal_hash !== prev)
        return `row ${row.id}: it is not the one that was anchored at ${anchor.at}`
      anchored.delete(String(seq))
      verdict.sealed += 1
    }
    if (rows.length < BATCH) break
  }
  const [missing] = anchored
  return missing && `the log ends before row number ${missing[0]}, which was anchored at ${missing[1].at}`
}

/** The keys with which an app signs its audit rows, newest first. */
export const auditKeysOf = (app: string): Buffer[] =>
  secretKeysOf(JSON.parse(settingOf(app, 'SECRET__KEYS'))).map((key) => deriveKey(key, 'audit'))

/**
 * `verify-audit`: checks all audit logs. Exits 3 if a row or an anchor is not as it was written, or, in production, if the
 * relay's file is not here: without it, a tail that was cut off is missed.
 */
export const verifyAudit = async (): Promise<number> => {
  const file = anchorsOfFile()
  const stream = await anchorsOfStream().catch((error: Error) => error)
  const places = stream instanceof Error ? [file] : [file, stream]
  const code = await reportAudit(places, process.env.NODE_ENV === 'production')
  if (stream instanceof Error) console.log(`the stream AUDIT could not be read: ${stream.message}`)
  return stream instanceof Error ? code || 1 : code
}

/** Checks all audit logs against these anchors, and prints it. Returns 3 for a fault, else 0. */
export const reportAudit = async (places: readonly Anchors[], file_required: boolean): Promise<0 | 3> => {
  const anchors = distinct(places)
  const verdicts: Verdict[] = []
  for (const { app, table: log } of AUDIT_LOGS)
    verdicts.push(await withDb(app, (db) => verifyLog(db, log, auditKeysOf(app), anchors), WHOLE_LOG_MS))
  const rows = verdicts.map(({ log, rows, sealed, version_1, fault }) => [
    log,
    String(rows),
    fault ? '' : String(rows - sealed),
    fault ? '' : String(version_1),
    fault ?? 'as written',
  ])
  printTable(['LOG', 'ROWS', 'NOT YET SEALED', 'VERSION 1', 'VERDICT'], rows)
  console.log('')
  if (verdicts.some(({ fault, version_1 }) => !fault && version_1 > 0))
    console.log(
      'Rows of version 1 were written before all columns were signed: their time is held to that of their id.',
    )
  for (const torn of places.flatMap((place) => place.torn))
    console.log(`${torn}: it was cut off as it was written, and names no rows`)
  for (const place of places) console.log(summaryOf(place))
  for (const { at, restored } of anchors)
    if (restored)
      console.log(
        `restore accepted at ${at} (epoch ${restored.epoch}): anchored rows lost with it: ${restored.lost.length}`,
      )
  const is_missing = file_required && places.some(({ missing }) => missing)
  return is_missing || places.some(({ forged }) => forged) || verdicts.some(({ fault }) => fault) ? 3 : 0
}

const summaryOf = ({ place, anchors, forged, missing }: Anchors): string => {
  if (forged) return `${forged}: this anchor was not signed by the key of the relay`
  if (missing)
    return `no anchor file ${place}: copy the relay's, and name the copy in RELAY__AUDIT__ANCHOR_FILE (guides/restore.md)`
  return `anchors in ${place}: ${anchors.length}, the last at ${anchors.at(-1)?.at ?? 'no time'}`
}
