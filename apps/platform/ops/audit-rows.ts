import { timingSafeEqual } from 'node:crypto'
import { AUDIT_VERSION, sealHash } from '../../../db/audit.ts'
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
/** Checks a single row: the MAC over its body, and every column against its body. Returns the fault. */
export const faultOf = (log: string, row: Row, keys: readonly Buffer[]): string | undefined => {
  const mac = Buffer.from(row.mac ?? '', 'hex')
  const genuine = keys.some((key) => {
    const right = hmacSha256(key, row.body)
    return right.length === mac.length && timingSafeEqual(right, mac)
  })
  if (!genuine) return row.mac === null ? 'it has no MAC' : 'its MAC does not fit its body'
  const body = JSON.parse(row.body) as Record<string, unknown>
  if (body.v !== AUDIT_VERSION) return 'its body is of an unknown version'
  if (body.log !== log) return 'it belongs to another log'
  if (body.at === undefined) return 'its body has no time'
  for (const [name, stored] of Object.entries(row)) {
    if (UNSIGNED.has(name)) continue
    const said = name === 'at' ? micros(String(body.at)) : body[name]
    if (canonicalJson(stored ?? null) !== canonicalJson(said ?? null)) return `its column ${name} differs from its body`
  }
  return undefined
}

/** A time as Postgres writes it in our columns, to the microsecond. */
const micros = (iso: string): string => iso.replace(/(\.\d{3})?Z$/, (_all, ms = '.000') => `${ms}000Z`)

/** Checks a sealed row against the previous one. */
export const breakOf = (row: Sealed, expected: bigint, prev: string): string | undefined => {
  if (BigInt(row.seal_seq) !== expected) return `the sealed row number ${expected} before it is missing`
  if (row.prev_hash !== prev) return 'it does not follow the row before it'
  return row.seal_hash === sealHash(prev, expected, row.mac, row.id) ? undefined : 'its seal does not fit it'
}
