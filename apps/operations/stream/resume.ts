import type { Fence } from '../../../db/restore.ts'

/** A stream's position in each source; sent as the opaque frame id and returned as Last-Event-ID. */
export type Cursor = {
  /** pub_seq of this app's outbox. */
  p: number
  /** Change counter of the catalog's projection. */
  c: number
  /** The last line of each followed log, by a short name of its topic: the whole must fit into a header. */
  l: Record<string, number>
}

export const encodeCursor = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString('base64url')

/** Reads a cursor that a client sent back; undefined if it is invalid. */
export const decodeCursor = (text: string): Cursor | undefined => {
  try {
    const value = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<Cursor> | null
    const isPosition = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) >= 0
    if (!value || !isPosition(value.p) || !isPosition(value.c)) return undefined
    const logs = Object.entries(value.l ?? {}).filter((entry): entry is [string, number] => isPosition(entry[1]))
    return { p: value.p, c: value.c, l: Object.fromEntries(logs) }
  } catch {
    return undefined
  }
}

/** A reader further behind than this reloads instead. */
const MAX_CATCH_UP = 5000

type Log = { first: number; last: number; lost: Fence['lost'] }

/** Whether the log still holds all events after this position. */
export const isResumable = (p: number, { first, last, lost }: Log): boolean => {
  // The reader has seen events that a restore of the database removed.
  const astray = lost !== null && p >= lost.from && p <= lost.to
  return !astray && p <= last && p + 1 >= Math.min(first, last + 1) && last - p <= MAX_CATCH_UP
}
