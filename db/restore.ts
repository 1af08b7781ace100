import { sql } from 'drizzle-orm'
import type { Queryable } from './client.ts'

/**
 * What stands between a database that was put back to an earlier state and the world that went on without it
 * (reliability.md 4.13). Rows of `relay_state` in the schemas that follow one another, so that each app reads its own:
 * - `restored`: `stream_created` says since when a person is waited for; `epoch` counts the restores that were accepted;
 *   `next` to `js_last_seq` are the event numbers that the last one lost.
 * - `checked <schema>`: for which run of the database the relay has compared that schema's events with the broker's.
 */
export const FENCED = ['catalog', 'operations'] as const
export type Fenced = (typeof FENCED)[number]

export type Fence = {
  epoch: number
  held_since: string | null
  /** Schemas whose events the relay has not compared since this database was started or made. */
  unchecked: string[]
  /** The numbers that the last restore lost, both included. */
  lost: { from: number; to: number } | null
}

/** This run of this database: another one may be an older copy. */
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

/** A restore takes the database away for longer than that. */
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

/** Why an event of this schema, told under this epoch, is not to be believed now; undefined if it is. */
export const refuseEvent = ({ held_since, unchecked, epoch }: Fence, of: Fenced, told: number): string | undefined => {
  if (held_since) return RESTORED
  if (unchecked.includes(of)) return `the relay has not compared the events of ${of} with this database yet`
  if (told !== epoch) return `it was told in epoch ${told}, and the database is in epoch ${epoch}`
  return undefined
}

export const RESTORED =
  'The database was restored to an earlier state. A person must accept it before anything starts: npm run ops -- accept-restore.'

/** Throws while a restore waits to be accepted: the health of an app that must not continue. */
export const refuseHeld = async (fence: ReadFence): Promise<void> => {
  const { held_since } = await fence()
  if (held_since) throw new Error(`restored, found at ${held_since}: waits for npm run ops -- accept-restore`)
}
