import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  type NatsConnection,
  nanos,
  RetentionPolicy,
  StorageType,
} from 'nats'
import { linksOfProcess } from '../links.ts'
import { prefixed, raiseStream } from './events.ts'

/**
 * The work queue for external agents (operations.md 7.4). One message is one handover, on `execution.<pool>`, and goes
 * to one agent of the pool through the durable consumer of the pool's name. It is only transport: work not begun in
 * time is reissued as another attempt. `execution.<pool>.cancel` goes to all the pool's agents and is not stored.
 */
export const EXECUTION_STREAM = 'EXECUTION'
export const executionSubject = (pool: string): string => `execution.${pool}`
/** Where agents that read the stream say that they live. */
export const presenceSubject = (pool: string): string => `agents.${pool}`
export const cancelSubject = (pool: string): string => `execution.${pool}.cancel`

const MINUTE = 60_000
/** The longest time that work may wait for its "started". */
const DAY = 24 * 60 * MINUTE
const UNKNOWN = new Set([10_059, 10_014])

/** Creates the stream and the consumer of a pool if they are missing. Existing ones keep their settings, as in `ensureStreams`. */
export const ensureExecution = async (nc: NatsConnection, prefix: string, pool: string): Promise<void> => {
  const jsm = await nc.jetstreamManager()
  const stream = `${prefix}${EXECUTION_STREAM}`
  if (!(await exists(jsm.streams.info(stream))))
    await jsm.streams.add({
      name: stream,
      subjects: [prefixed(prefix, executionSubject('*'))],
      storage: StorageType.File,
      retention: RetentionPolicy.Workqueue,
      discard: DiscardPolicy.New,
      max_age: nanos(DAY),
      duplicate_window: nanos(10 * MINUTE),
      max_bytes: 1024 ** 3,
      num_replicas: linksOfProcess().nats_replicas,
    })
  await ensureConsumer(jsm, stream, pool, prefixed(prefix, executionSubject(pool)))
}

/** Raises the copies of a stream that was made before there were as many servers. Work goes out all the same. */
export const raiseExecution = async (nc: NatsConnection, prefix: string): Promise<void> =>
  raiseStream(await nc.jetstreamManager(), `${prefix}${EXECUTION_STREAM}`, {
    num_replicas: linksOfProcess().nats_replicas,
  })

const ensureConsumer = async (jsm: JetStreamManager, stream: string, pool: string, filter_subject: string) => {
  if (await exists(jsm.consumers.info(stream, pool))) return
  await jsm.consumers.add(stream, {
    durable_name: pool,
    filter_subject,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: nanos(10_000),
  })
}

const exists = async (asked: Promise<unknown>): Promise<boolean> => {
  try {
    await asked
    return true
  } catch (error) {
    if (UNKNOWN.has((error as { api_error?: { err_code?: number } }).api_error?.err_code ?? 0)) return false
    throw error
  }
}
