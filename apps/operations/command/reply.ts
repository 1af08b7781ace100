import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isKnown, sendUnchanged } from '../../shared/http/routes.ts'
import { etagOf } from './command.ts'

/**
 * Returns the body with its ETag, or 304 if the reader has exactly this state. `moves`: what claims and agents report
 * changes it now, which no ETag counts.
 */
export const unlessKnown = <B>(
  req: FastifyRequest,
  reply: FastifyReply,
  head: { revision: number; change_seq: number } | string,
  body: B,
  moves = false,
): B | FastifyReply => {
  const etag = typeof head === 'string' ? head : etagOf(head)
  reply.headers({ etag, 'cache-control': 'no-store' })
  return !moves && isKnown(req, etag) ? sendUnchanged(reply) : body
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 500

/**
 * Looks until there is something or the time is over; returns the last result. Before it waits, it says so by a 102:
 * the gateway then gives the request's seat to others.
 */
export const lookUntil = async <T>(
  { raw }: FastifyReply,
  look: () => Promise<T>,
  isThere: (found: T) => boolean,
  wait_ms: number,
): Promise<T> => {
  const end = performance.now() + wait_ms
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const found = await look()
    const left = end - performance.now()
    if (isThere(found) || left <= 0) return found
    if (pause === FIRST_PAUSE_MS) raw.writeProcessing()
    await delay(Math.min(pause, left))
  }
}
