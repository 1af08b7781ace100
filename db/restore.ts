import { sql } from 'drizzle-orm'
import type { Queryable } from './client.ts'

/**
 * The fence between a database restored to an earlier state and the world that continued without it (reliability.md
 * 4.13). It consists of rows of `relay_state` in the schemas that follow each other's events, so that each app reads
 * its own:
 * - `restored`: `stream_created` states since when a person's acceptance is awaited; `epoch` counts the accepted
 * restores; `next` to `js_last_seq` are the event numbers that the last one lost.
 * - `checked <schema>`: for which run of the database the relay has compared that schema's events with the broker's.
 */
export const FENCED = ['catalog', 'operations'] as const
export type Fenced = (typeof FENCED)[number]

export type Fence = {
  epoch: number
  held_since: string | null
  /** Schemas whose events the relay has not compared since this database was started or created. */
  unchecked: string[]
  /** The event numbers that the last restore lost, inclusive. */
  lost: { from: number; to: number } | null
}

/** This run of this database: another run may be an older copy. */
export const runOf = (schema: Fenced): string =>
  `pg_postmaster_start_time()::text || ' ' || '${schema}.relay_state'::regclass::oid`

type Row = {
  name: string
  epoch: string
  next: string
  js_last_seq: string | null
  held: string | null
  stale: boolean
}

export const readFence = async (db: Queryable, schema: Fenced): Promise<Fence> => {
  const { rows } = await db.execute<Row>(
    sql.raw(`select name, epoch, next, js_last_seq, stream_created as held, stream_created is distinct from ${runOf(schema)} as stale
      from ${schema}.relay_state where name = 'restored' or name like 'checked %'`),
  )
  const restored = rows.find(({ name }) => name === 'restored')
  return {
    epoch: Number(restored?.epoch ?? 0),
    held_since: restored?.held ?? null,
    unchecked: rows
      .filter(({ name, stale }) => name !== 'restored' && stale)
      .map(({ name }) => name.slice('checked '.length)),
    lost: restored?.js_last_seq ? { from: Number(restored.next), to: Number(restored.js_last_seq) } : null,
  }
}

/** A restore takes the database away for longer than this. */
const TRUSTED_MS = 1000

/** The fence of a schema, at most a second old. */
export const createFence = (db: Queryable, schema: Fenced) => {
  let read_at = Number.NEGATIVE_INFINITY
  let known: Promise<Fence> | undefined
  return (): Promise<Fence> => {
    if (known && performance.now() - read_at < TRUSTED_MS) return known
    read_at = performance.now()
    const reading = readFence(db, schema)
    known = reading
    reading.catch(() => {
      if (known === reading) known = undefined
    })
    return reading
  }
}
export type ReadFence = ReturnType<typeof createFence>

/** Why an event of this schema, emitted under this epoch, must not be trusted now; `undefined` if it can be. */
export const refuseEvent = ({ held_since, unchecked, epoch }: Fence, of: Fenced, told: number): string | undefined => {
  if (held_since) return RESTORED
  if (unchecked.includes(of)) return `the relay has not compared the events of ${of} with this database yet`
  if (told !== epoch) return `it was told in epoch ${told}, and the database is in epoch ${epoch}`
  return undefined
}

export const RESTORED =
  'The database was restored to an earlier state. A person must accept it before anything starts: npm run ops -- accept-restore.'

/** Throws while a restore waits for acceptance: the health check of an app that must not continue. */
export const refuseHeld = async (fence: ReadFence): Promise<void> => {
  const { held_since } = await fence()
  if (held_since) throw new Error(`a restore was detected at ${held_since}: run npm run ops -- accept-restore`)
}
