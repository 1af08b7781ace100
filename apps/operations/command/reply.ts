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

const LONG_POLL_MS = 100

/** Looks until there is something or the time is over; returns the last result. */
export const lookUntil = async <T>(
  look: () => Promise<T>,
  isThere: (found: T) => boolean,
  wait_ms: number,
): Promise<T> => {
  const end = performance.now() + wait_ms
  for (;;) {
    const found = await look()
    if (isThere(found) || performance.now() + LONG_POLL_MS > end) return found
    await delay(LONG_POLL_MS)
  }
}
