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

/** Columns that no body names: where the row stands, and what binds it. */
const UNSIGNED = new Set(['id', 'body', 'mac', 'seal_seq', 'prev_hash', 'seal_hash'])
/** How far the clocks of an app and of the database may be apart. */
const APART_MS = 5 * 60_000
const DAY_MS = 86_400_000

/** Whether the body of this row was written in version 2, which signs all of it. */
export const isWhole = (row: Pick<Row, 'body'>): boolean => (JSON.parse(row.body) as { v?: number }).v !== undefined

/** A row alone: the MAC over its body, and every column against its body. Says what is wrong. */
export const faultOf = (log: string, row: Row, keys: readonly Buffer[]): string | undefined => {
  const mac = Buffer.from(row.mac ?? '', 'hex')
  const genuine = keys.some((key) => {
    const right = hmacSha256(key, row.body)
    return right.length === mac.length && timingSafeEqual(right, mac)
  })
  if (!genuine) return row.mac === null ? 'it has no MAC' : 'its MAC does not fit its body'
  const body = JSON.parse(row.body) as Record<string, unknown>
  if (isWhole(row) && body.log !== log) return 'it was written for another log'
  if (body.at === undefined && isWhole(row)) return 'its body does not say when it was written'
  for (const [name, stored] of Object.entries(row)) {
    if (UNSIGNED.has(name) || (name === 'at' && body.at === undefined)) continue
    const said = name === 'at' ? micros(String(body.at)) : body[name]
    if (canonicalJson(stored ?? null) !== canonicalJson(said ?? null))
      return `its column ${name} is not what its body says`
  }
  return body.at === undefined ? misdated(row.at, body.audit_id) : undefined
}

/** As Postgres spells a time of our columns, to the microsecond. */
const micros = (iso: string): string => iso.replace(/(\.\d{3})?Z$/, (_all, ms = '.000') => `${ms}000Z`)

/** The id of a row of version 1 is signed and bears the time at which it was made (RFC 9562, UUIDv7). */
const misdated = (at: string, audit_id: unknown): string | undefined => {
  if (typeof audit_id !== 'string') return undefined
  const made = Number.parseInt(audit_id.replaceAll('-', '').slice(0, 12), 16)
  const apart = Math.abs(Date.parse(at) - made)
  if (apart <= APART_MS) return undefined
  const much = apart < DAY_MS ? `${Math.round(apart / 60_000)} minutes` : `${Math.round(apart / DAY_MS)} days`
  return `its column at is ${much} from when its id was made`
}

/** A sealed row against the one before it. `with_id`: the chain has come to links that bear the row's number. */
export const breakOf = (row: Sealed, expected: bigint, prev: string, with_id: boolean): string | undefined => {
  if (BigInt(row.seal_seq) !== expected) return `before it the sealed row number ${expected} is missing`
  if (row.prev_hash !== prev) return 'it does not follow the row before it'
  if (row.seal_hash === sealHash(prev, expected, row.mac, row.id)) return undefined
  if (!with_id && row.seal_hash === sealHash(prev, expected, row.mac)) return undefined
  return 'its seal does not fit it'
}

/** Whether the link of this row bears its number. */
export const bearsId = (row: Sealed, expected: bigint, prev: string): boolean =>
  row.seal_hash === sealHash(prev, expected, row.mac, row.id)
