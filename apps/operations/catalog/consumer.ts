import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from 'nats'
import type { Queryable } from '../../../db/client.ts'
import { firstHeld } from '../../../db/operations/projection/rows.ts'
import { type ReadFence, refuseEvent } from '../../../db/restore.ts'
import type { CatalogEvent } from '../../shared/contracts/catalog/events.ts'
import { AppError } from '../../shared/errors.ts'
import { consume, epochOf } from '../../shared/events/events.ts'
import type { Logger } from '../../shared/telemetry.ts'
import type { CatalogProjection } from './projection.ts'

/** How often the end of the catalog's log is checked, whatever NATS brings or loses (reliability.md 4.6). */
const WATCH_MS = 15_000
const RETRY_MS = 500
const WATERMARK_WAIT_MS = 2000
const WATERMARK_POLL_MS = 50

type CatalogConsumerDeps = {
  projection: CatalogProjection
  fence?: ReadFence
  log: Logger
  prefix: string
  watch_ms?: number
}

/** Follows the catalog over NATS, and its log for events that NATS lost. Ready once the projection is filled. */
export const startCatalogConsumer = ({ projection, log, prefix, fence, watch_ms = WATCH_MS }: CatalogConsumerDeps) => {
  const stopping = new AbortController()
  let ready = false
  let consumer: { stop: () => Promise<void> } | undefined

  const watch = (async () => {
    while (!stopping.signal.aborted) {
      let pause = watch_ms
      try {
        await projection.catchUp()
        ready = true
      } catch (error) {
        log.warn({ err: error }, 'the catalog cannot be followed right now')
        pause = RETRY_MS
      }
      await delay(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  })()

  return {
    isReady: () => ready,
    /** Subscribes as soon as the stream is available. */
    subscribe: (nc: NatsConnection): void => {
      consumer = consume({
        nc,
        prefix,
        stream: 'CATALOG',
        durable: 'operations-catalog',
        ...(fence && { fenced: async (message) => refuseEvent(await fence(), 'catalog', epochOf(message)) }),
        handle: async (message) => {
          const event = message as unknown as CatalogEvent
          if (projection.hasRead(event)) return
          const result = await projection.apply(event)
          if (typeof result !== 'string')
            throw new Error(`${result.resource_id} is at ${result.have}, not at ${result.need}`)
        },
        park: async (message, error) => {
          if (message) await projection.park(message as unknown as CatalogEvent, error, 5)
        },
        onError: (error) => log.warn({ err: error }, 'an event of the catalog was not applied'),
      })
    },
    stop: async (): Promise<void> => {
      stopping.abort()
      await consumer?.stop()
      await watch
    },
  }
}

export type Freshness = { min_watermark?: string; max_lag_ms: number; wait_ms?: number }

/**
 * Waits until the projection was at the end of the catalog's log at most `max_lag_ms` before now (0: since now), and
 * holds `min_watermark`. Refuses with 503 `projection_lag` if that takes too long.
 */
export const requireFresh = async (
  projection: CatalogProjection,
  { min_watermark, max_lag_ms, wait_ms = WATERMARK_WAIT_MS }: Freshness,
): Promise<string> => {
  const since = Date.now() - max_lag_ms
  const end = Date.now() + wait_ms
  for (;;) {
    const mark = await projection.watermark()
    const looked_at = mark?.at ? Date.parse(mark.at) : Number.NEGATIVE_INFINITY
    const reached = mark !== undefined && (min_watermark === undefined || BigInt(mark.pub_seq) >= BigInt(min_watermark))
    if (reached && looked_at >= since) return mark.pub_seq
    const left = end - Date.now()
    if (left <= 0) throw projectionLag(mark?.pub_seq ?? '0', min_watermark ?? null)
    await Promise.race([projection.catchUp().catch(() => {}), delay(left, undefined, { ref: false })])
    if (!reached) await delay(Math.min(left, WATERMARK_POLL_MS))
  }
}

/**
 * Refuses with 503 `projection_gap` if an event of one of these resources was set aside. That resource's known state is
 * not the catalog's, and none of its events is applied until a person decides (`npm run ops -- dead-letters`).
 */
export const refuseHeld = async (db: Queryable, resource_ids: readonly string[]): Promise<void> => {
  const held = await firstHeld(db, resource_ids)
  if (!held) return
  throw new AppError(
    'stale_catalog_projection',
    'projection_gap',
    `An event of "${held.resource_id}" was set aside: version ${held.have} is known here, ${held.need} is not.`,
    {
      hint: 'An administrator of this installation must decide on the event: npm run ops -- dead-letters.',
      extra: { resource_id: held.resource_id, watermark: { observed: String(held.have), required: String(held.need) } },
    },
  )
}

const projectionLag = (observed: string, required: string | null) =>
  new AppError('stale_catalog_projection', 'projection_lag', 'The local copy of the catalog is too old to plan on.', {
    retryable: true,
    retry_after_ms: 1000,
    hint: 'Send the same request again in a moment.',
    extra: { watermark: { observed, required } },
  })
