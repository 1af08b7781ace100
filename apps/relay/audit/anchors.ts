import { appendFileSync, closeSync, fstatSync, fsyncSync, openSync, readFileSync, readSync } from 'node:fs'
import type { NatsConnection } from 'nats'
import type pg from 'pg'
import { readAnchor, type SealedHead, signAnchor } from '../../../db/audit.anchors.ts'
import { AUDIT_LOGS } from '../../../db/audit.ts'
import { ensureStreams, prefixed } from '../../shared/events/events.ts'
import type { PrivateKey } from '../../shared/service/keys.ts'

export type AnchorDeps = {
  pool: pg.Pool
  nats: { get: () => NatsConnection | undefined }
  prefix: string
  key: PrivateKey
  file: string
  interval_ms: number
}

/**
 * Writes the signed heads of all audit logs to an append-only file outside the database and to stream AUDIT, once per
 * interval. The database's owner can cut off the tail of a log, but cannot take it back from there.
 */
export const createAnchors = ({ pool, nats, prefix, key, file, interval_ms }: AnchorDeps) => {
  const begun_ms = performance.now()
  const age_ms = Date.now() - lastOf(file, key)
  /** Like the interval not by the wall clock: one that is set back would stop the anchors, with no one noticing. */
  let last_ms = age_ms < 0 ? Number.NEGATIVE_INFINITY : begun_ms - age_ms
  /** Lines that have not reached the stream yet. */
  const unsent: string[] = []

  const send = async () => {
    const nc = nats.get()
    if (unsent.length === 0 || !nc) return
    await ensureStreams(nc, prefix, ['AUDIT'], { raise: false })
    for (; unsent[0]; unsent.shift()) await nc.jetstream().publish(prefixed(prefix, 'audit.anchor'), unsent[0])
    // Last: a server without room for a larger stream still keeps the anchors.
    await ensureStreams(nc, prefix, ['AUDIT'])
  }
  /** The file needs no NATS, so it never waits for the stream. */
  const write = async () => {
    if (performance.now() - last_ms < interval_ms) return
    const heads = await readHeads(pool)
    if (heads.length === 0) return
    const line = signAnchor({ at: new Date().toISOString(), heads }, key)
    appendAnchor(file, line)
    last_ms = performance.now()
    unsent.push(line)
  }

  return {
    turn: async (): Promise<boolean> => {
      await write()
      await send()
      return false
    },
    /** Seconds since the last anchor, or since the start if there is none. */
    age_s: () => (performance.now() - (Number.isFinite(last_ms) ? last_ms : begun_ms)) / 1000,
  }
}

/** Reads the last sealed row of each log. */
export const readHeads = async (pool: pg.Pool): Promise<SealedHead[]> => {
  const logs = AUDIT_LOGS.map(
    ({ table }) =>
      `(select '${table}' as log, seal_seq::text, seal_hash from ${table}
        where seal_seq is not null order by ${table}.seal_seq desc limit 1)`,
  )
  const { rows } = await pool.query<SealedHead>(logs.join(' union all '))
  return rows
}

/** The line must be on disk before it is published. It does not continue one that a full disk or a crash cut off. */
export const appendAnchor = (file: string, line: string): void => {
  const handle = openSync(file, 'a+', 0o600)
  try {
    const end = Buffer.alloc(1, '\n')
    const { size } = fstatSync(handle)
    if (size > 0) readSync(handle, end, 0, 1, size - 1)
    appendFileSync(handle, `${end.toString() === '\n' ? '' : '\n'}${line}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** The time of the last anchor; infinite if there is none. */
const lastOf = (file: string, key: PrivateKey): number => {
  try {
    const line = readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? ''
    return Date.parse(readAnchor(line, key)?.at ?? '') || Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
