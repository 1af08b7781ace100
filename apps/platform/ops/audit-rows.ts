import { timingSafeEqual } from 'node:crypto'
import { sealHash } from '../../../db/audit.ts'
import { canonicalJson, hmacSha256 } from '../../shared/data/digest.ts'

export type Row = Record<string, unknown> & { id: string; at: string; body: string; mac: string | null }
export type Sealed = {
  id: string
  mac: string | null
  seal_seq: string
  prev_hash: string | null
  seal_hash: string | null
}

/** Columns that no body contains: the row's position, and what binds it. */
const UNSIGNED = new Set(['id', 'body', 'mac', 'seal_seq', 'prev_hash', 'seal_hash'])
/** How far the clocks of an app and of the database may differ. */
const APART_MS = 5 * 60_000
const DAY_MS = 86_400_000

/** Whether the body of this row was written in version 2, which signs all of it. */
export const isWhole = (row: Pick<Row, 'body'>): boolean => (JSON.parse(row.body) as { v?: number }).v !== undefined

/** Checks a single row: the MAC over its body, and every column against its body. Returns the fault. */
export const faultOf = (log: string, row: Row, keys: readonly Buffer[]): string | undefined => {
  const mac = Buffer.from(row.mac ?? '', 'hex')
  const genuine = keys.some((key) => {
    const right = hmacSha256(key, row.body)
    return right.length === mac.length && timingSafeEqual(right, mac)
  })
  if (!genuine) return row.mac === null ? 'it has no MAC' : 'its MAC does not fit its body'
  const body = JSON.parse(row.body) as Record<string, unknown>
  if (isWhole(row) && body.log !== log) return 'it belongs to another log'
  if (body.at === undefined && isWhole(row)) return 'its body has no time'
  for (const [name, stored] of Object.entries(row)) {
    if (UNSIGNED.has(name) || (name === 'at' && body.at === undefined)) continue
    const said = name === 'at' ? micros(String(body.at)) : body[name]
    if (canonicalJson(stored ?? null) !== canonicalJson(said ?? null)) return `its column ${name} differs from its body`
  }
  return body.at === undefined ? misdated(row.at, body.audit_id) : undefined
}

/** A time as Postgres writes it in our columns, to the microsecond. */
const micros = (iso: string): string => iso.replace(/(\.\d{3})?Z$/, (_all, ms = '.000') => `${ms}000Z`)

/** In version 1 the id of a row is signed and contains the time at which it was made (RFC 9562, UUIDv7). */
const misdated = (at: string, audit_id: unknown): string | undefined => {
  if (typeof audit_id !== 'string') return undefined
  const made = Number.parseInt(audit_id.replaceAll('-', '').slice(0, 12), 16)
  const apart = Math.abs(Date.parse(at) - made)
  if (apart <= APART_MS) return undefined
  const much = apart < DAY_MS ? `${Math.round(apart / 60_000)} minutes` : `${Math.round(apart / DAY_MS)} days`
  return `its column at differs by ${much} from the time in its id`
}

/** Checks a sealed row against the previous one. `with_id`: the chain has reached links that include a row's number. */
export const breakOf = (row: Sealed, expected: bigint, prev: string, with_id: boolean): string | undefined => {
  if (BigInt(row.seal_seq) !== expected) return `the sealed row number ${expected} before it is missing`
  if (row.prev_hash !== prev) return 'it does not follow the row before it'
  if (row.seal_hash === sealHash(prev, expected, row.mac, row.id)) return undefined
  if (!with_id && row.seal_hash === sealHash(prev, expected, row.mac)) return undefined
  return 'its seal does not fit it'
}

/** Whether the link of this row includes its number. */
export const bearsId = (row: Sealed, expected: bigint, prev: string): boolean =>
  row.seal_hash === sealHash(prev, expected, row.mac, row.id)
