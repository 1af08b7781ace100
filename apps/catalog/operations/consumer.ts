import type { NatsConnection } from 'nats'
import { appliedVersions, startMark } from '../../../db/catalog/projections.ts'
import { inboxOf } from '../../../db/catalog/tables.ts'
import { moveMark, readMark } from '../../../db/inbox.ts'
import { createFence, refuseEvent } from '../../../db/restore.ts'
import { consume, type Envelope, epochOf } from '../../shared/events/events.ts'
import { type Loop, startLoop } from '../../shared/process/repeat.ts'
import { lagGauge } from '../../shared/telemetry.ts'
import { noteTurn } from '../../shared/turns.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import {
  applyOperationMessage,
  applyOrPark,
  CONSUMER,
  type Follower,
  fetchLog,
  OPERATIONS_INDEX,
  park,
} from './follow.ts'

/** How often a pause is looked for. */
const WATCH_MS = 1000
/** How often the end of the operations app's log is checked, whatever NATS brings or loses (reliability.md 4.6). */
const PULL_MS = 5000

/** How far the index has read the log of operations, and for how long it may lack later events. */
export const indexMark = async ({ db, clock }: Uses<'db' | 'clock'>) => {
  const { pub_seq = '0', at = null } = (await readMark(db, inboxOf, OPERATIONS_INDEX)) ?? {}
  return { pub_seq, lag_ms: at === null ? null : Math.max(0, clock.now().getTime() - Date.parse(at)) }
}

/** Consumes unless NATS is away or the index paused, and pulls from the log; `stop` ends it between two events. */
export const startOperationsConsumer = (
  deps: CatalogDeps,
  { watch_ms = WATCH_MS, pull_ms = PULL_MS }: { watch_ms?: number; pull_ms?: number } = {},
): Pick<Loop, 'stop'> => {
  const { db, clock, nats, telemetry } = deps
  const { log } = telemetry
  const gauge = lagGauge(telemetry)
  const fence = createFence(db, 'catalog')
  const open = (nc: NatsConnection) =>
    consume({
      nc,
      prefix: nats.prefix,
      stream: 'OPERATIONS',
      durable: CONSUMER,
      filter: ['operations.operation.>'],
      fenced: async (message) => refuseEvent(await fence(), 'operations', epochOf(message)),
      handle: (event) => applyOperationMessage(deps, event),
      park: park(deps),
      onError: (error) => log.warn({ err: error }, 'an event of operations could not be applied'),
    })
  let connection: NatsConnection | undefined
  nats.onConnect((nc) => {
    connection = nc
  })
  let consumer: ReturnType<typeof open> | undefined
  let stopped = false
  let pulled_at = Number.NEGATIVE_INFINITY
  const turn = async () => {
    const mark = await readMark(db, inboxOf, OPERATIONS_INDEX)
    if (!mark?.at) await startMark(db, OPERATIONS_INDEX, clock.now().toISOString())
    const paused = mark?.state === 'paused'
    if (connection && !paused) consumer ??= open(connection)
    if (consumer && paused) {
      await consumer.stop()
      consumer = undefined
    }
    if (!paused && performance.now() - pulled_at >= pull_ms) {
      pulled_at = performance.now()
      await pull(deps, () => stopped)
    }
  }
  const measured = async () => {
    try {
      await turn()
    } finally {
      const { lag_ms } = await indexMark(deps)
      if (lag_ms !== null) gauge.set({ consumer: OPERATIONS_INDEX }, lag_ms / 1000)
    }
  }
  const loop = startLoop(OPERATIONS_INDEX, measured, {
    every_ms: watch_ms,
    failed: (err) => log.warn({ err }, 'events of operations cannot be read right now'),
  })
  return {
    stop: async () => {
      stopped = true
      await loop.stop()
      await consumer?.stop()
    },
  }
}

/** Reads the log from the mark to its end and applies the events that NATS has not brought. A long log is no stuck loop. */
const pull = async (deps: Follower & Uses<'clock'>, stopped: () => boolean): Promise<void> => {
  const { db, clock } = deps
  while (!stopped()) {
    const asked_at = clock.now().toISOString()
    const mark = await readMark(db, inboxOf, OPERATIONS_INDEX)
    if (!mark || mark.state === 'paused') return
    const { items, last_pub_seq } = await fetchLog(deps, { after: mark.pub_seq })
    if (BigInt(last_pub_seq) < BigInt(mark.pub_seq))
      throw new Error(
        `the log of operations ends at ${last_pub_seq}, before ${mark.pub_seq}, which was read: it was restored`,
      )
    for (const event of await newOf(deps, items)) {
      if (stopped()) return
      await applyOrPark(deps, event)
    }
    noteTurn(OPERATIONS_INDEX)
    const read = items.at(-1)?.pub_seq ?? mark.pub_seq
    const ended = items.length === 0 || BigInt(read) >= BigInt(last_pub_seq)
    await moveMark(db, inboxOf, OPERATIONS_INDEX, read, ended ? { at: asked_at } : {})
    if (ended) return
  }
}

/** The events that are not yet applied: NATS has usually brought them all. */
const newOf = async ({ db }: Uses<'db'>, items: readonly Envelope[]): Promise<Envelope[]> => {
  const ours = items.filter(({ agg_type }) => agg_type === 'operation')
  const applied = await appliedVersions(
    db,
    CONSUMER,
    ours.map(({ agg_id = '' }) => agg_id),
  )
  return ours.filter(({ agg_id = '', agg_version = 0 }) => agg_version > (applied.get(agg_id) ?? 0))
}
