import { createHash } from 'node:crypto'
import {
  AckPolicy,
  ConsumerEvents,
  type ConsumerMessages,
  connect,
  DeliverPolicy,
  DiscardPolicy,
  ErrorCode,
  type JetStreamManager,
  type JsMsg,
  type NatsConnection,
  nanos,
  nkeyAuthenticator,
  RetentionPolicy,
  StorageType,
  type TlsOptions,
} from 'nats'
import { type Links, linksOfProcess } from '../links.ts'
import { isOutage } from '../process/outage.ts'
import { repeatUntilDone } from '../process/repeat.ts'
import { withSpan } from '../tracing.ts'
import { bareHost } from '../web/addresses.ts'

/** The streams, their subjects and retention (auth.md 10, reliability.md 4.3). Postgres is the log of record. */
export const STREAMS = { AUTH: 'auth.>', CATALOG: 'catalog.>', OPERATIONS: 'operations.>', AUDIT: 'audit.>' } as const
export type StreamName = keyof typeof STREAMS
/** How long the streams of domain events keep them. */
export const KEPT_DAYS = 7

/** The members of every domain event on the wire; the area's payload is beside them. */
export type Envelope = {
  event_id: string
  type: string
  schema_version: number
  occurred_at: string
  request_id?: string | null
  agg_type?: string
  agg_id?: string
  agg_version?: number
  pub_seq?: string
  [member: string]: unknown
}

const PING_MS = 3000
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/**
 * Connects with endless reconnects; while NATS is away, calls fail fast instead of queueing. The client does not read
 * credentials from a URL, so they are passed separately.
 */
export const connectNats = (
  url: string,
  name: string,
  links: Links = linksOfProcess(),
  timeout = 2_000,
): Promise<NatsConnection> => {
  const { protocol, host, hostname, username, password } = new URL(url)
  // Includes the host: otherwise the client would compare the certificate of an IP address with "localhost".
  // Each reconnect reads the texts of its moment.
  const tls = {
    host: bareHost(hostname),
    get ca() {
      return links.tls.ca
    },
    get cert() {
      return links.tls.cert
    },
    get key() {
      return links.tls.key
    },
  } as TlsOptions
  return connect({
    servers: host,
    ...(username && { user: decodeURIComponent(username), pass: decodeURIComponent(password) }),
    ...(links.nkey_seed && { authenticator: nkeyAuthenticator(Buffer.from(links.nkey_seed)) }),
    ...(protocol === 'tls:' && { tls }),
    name,
    maxReconnectAttempts: -1,
    // While accounts are renewed the server may refuse the same sign-in several times.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 500,
    reconnectJitter: 500,
    waitOnFirstConnect: false,
    timeout,
    // A frozen server closes no connection, so after this many unanswered pings it counts as gone.
    pingInterval: PING_MS,
    maxPingOut: 2,
  })
}

/** Names of streams and subjects with the prefix that separates test runs (empty in production). */
export const streamName = (prefix: string, stream: StreamName): string => `${prefix}${stream}`
export const prefixed = (prefix: string, subject: string): string => (prefix ? `${prefix}.${subject}` : subject)

/**
 * Creates missing streams. Existing ones keep their settings. Only the relay gives them more replicas and bytes, if
 * configured: on a server with accounts no one else may make or change them.
 */
export const ensureStreams = async (
  nc: NatsConnection,
  prefix: string,
  names: readonly StreamName[],
  { raise = true } = {},
): Promise<JetStreamManager> => {
  const { nats_replicas: num_replicas, nats_stream_bytes: max_bytes } = linksOfProcess()
  const jsm = await nc.jetstreamManager()
  for (const name of names) {
    try {
      await raiseStream(jsm, streamName(prefix, name), raise ? { num_replicas, max_bytes } : {})
    } catch (error) {
      if ((error as { api_error?: { err_code?: number } }).api_error?.err_code !== 10_059) throw error
      const add = (bytes: number) =>
        jsm.streams.add({
          name: streamName(prefix, name),
          subjects: [prefixed(prefix, STREAMS[name])],
          storage: StorageType.File,
          retention: RetentionPolicy.Limits,
          discard: DiscardPolicy.New,
          max_age: nanos((name === 'AUDIT' ? 400 : KEPT_DAYS) * DAY),
          duplicate_window: nanos(10 * MINUTE),
          max_bytes: bytes,
          num_replicas,
        })
      await add(max_bytes ?? LEAST_BYTES)
        // A small stream is better than none: later, the relay tries to raise it and reports the refusal.
        .catch((refusal) => (max_bytes && isFull(refusal) ? add(LEAST_BYTES) : Promise.reject(refusal)))
        .catch((refusal: Error & { code?: string }) => {
          if (refusal.code !== ErrorCode.PermissionsViolation) throw refusal
          throw new Error(`the stream ${streamName(prefix, name)} does not exist yet: the relay makes it`)
        })
    }
  }
  return jsm
}

const LEAST_BYTES = 1024 ** 3
/** No room on this server, on no peer of a cluster, or within the account. */
const FULL: ReadonlySet<number | undefined> = new Set([10_047, 10_005, 10_002])
const isFull = (refusal: { api_error?: { err_code?: number } }): boolean => FULL.has(refusal.api_error?.err_code)

type Room = { num_replicas?: number; max_bytes?: number | undefined }

/** Gives a stream at least this many replicas and bytes. */
export const raiseStream = async (jsm: JetStreamManager, stream: string, least: Room): Promise<void> => {
  const { config } = await jsm.streams.info(stream)
  const num_replicas = Math.max(config.num_replicas, least.num_replicas ?? 0)
  // Without a bound it is -1.
  const max_bytes = config.max_bytes > 0 ? Math.max(config.max_bytes, least.max_bytes ?? 0) : config.max_bytes
  if (num_replicas > config.num_replicas || max_bytes > config.max_bytes)
    await jsm.streams.update(stream, { ...config, num_replicas, max_bytes })
}

/**
 * `<area>.<agg_type>.pNN.<agg_id>`: NN = first byte of SHA-256(agg_id) mod 16, so that consumers can share the work by
 * part. A dot in an id would split the subject, so it is written `=`; ids are read only from the payload.
 */
export const subjectOf = (prefix: string, area: 'catalog' | 'operations', agg_type: string, agg_id: string): string => {
  const part = (createHash('sha256').update(agg_id).digest()[0] ?? 0) % 16
  return prefixed(
    prefix,
    `${area}.${agg_type}.p${String(part).padStart(2, '0')}.${agg_id.replaceAll('.', '=').replaceAll(' ', '_')}`,
  )
}

export type ConsumeOptions = {
  nc: NatsConnection
  prefix: string
  stream: StreamName
  /** Durable name; processes with the same name share the work. */
  durable: string
  /** Subjects without the prefix; the whole stream if empty. */
  filter?: string[]
  /** Returns why a message must wait, such as after a restore of the database: it is redelivered, and never parked. */
  fenced?: (message: JsMsg) => Promise<string | undefined>
  /** Applies one event; it must be idempotent. If it throws, the message is given back after a backoff. */
  handle: (event: Envelope, message: JsMsg) => Promise<void>
  /** After this many faults of an event `park` is called and the message dropped, so that it never blocks the rest. */
  max_deliver?: number
  park?: (event: Envelope | undefined, error: Error) => Promise<void>
  onError?: (error: Error) => void
}

const FENCED_MS = 2000

/** Returns the restore epoch under which an event was published (reliability.md 4.13). */
export const epochOf = ({ headers }: Pick<JsMsg, 'headers'>): number => Number(headers?.get('Sb-Epoch') || 0)

/** How long a pull waits at the server; also how soon a missing consumer is noticed. */
const PULL_MS = 10_000
const GONE = new Set<string>([ConsumerEvents.StreamNotFound, ConsumerEvents.ConsumerNotFound])

/**
 * A durable pull consumer with explicit acknowledgement. If it cannot begin, it retries until it can. If it was lost
 * with its stream, it is recreated and reads the stream from its start. `stop` ends it between two messages.
 */
export const consume = (options: ConsumeOptions): { stop: () => Promise<void> } => {
  const { nc, prefix, durable } = options
  const stream = streamName(prefix, options.stream)
  const filter_subjects = (options.filter ?? []).map((subject) => prefixed(prefix, subject))
  const stopping = new AbortController()
  const failed = (error: Error) => options.onError?.(error)
  const apply = applier(options)
  let messages: ConsumerMessages | undefined

  const ensure = async () => {
    const jsm = await ensureStreams(nc, prefix, [options.stream], { raise: false })
    await jsm.consumers.add(stream, {
      durable_name: durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(30_000),
      max_ack_pending: 64,
      ...(filter_subjects.length > 0 && { filter_subjects }),
    })
  }
  const heal = async (pulled: ConsumerMessages) => {
    for await (const { type } of await pulled.status()) if (GONE.has(type)) await ensure().catch(failed)
  }
  const pull = async () => {
    await ensure()
    const consumer = await nc.jetstream().consumers.get(stream, durable)
    const pulled = await consumer.consume({ max_messages: 64, expires: PULL_MS })
    messages = pulled
    if (stopping.signal.aborted) await pulled.close()
    void heal(pulled)
    for await (const message of pulled) await apply(message)
    if (!stopping.signal.aborted && !nc.isClosed()) throw new Error(`the consumer ${durable} has ended`)
  }
  const work = repeatUntilDone(pull, stopping.signal, failed)
  return {
    stop: async () => {
      stopping.abort()
      await messages?.close()
      await work
    },
  }
}

/** Applies one message. An outage is not the event's fault; only its own faults are counted. */
const applier = ({ handle, park, fenced, onError, max_deliver = 5 }: ConsumeOptions) => {
  const faults = new Map<number, number>()
  return async (message: JsMsg): Promise<void> => {
    let event: Envelope | undefined
    try {
      if (await fenced?.(message)) return message.nak(FENCED_MS)
      const taken = message.json<Envelope>()
      event = taken
      const { type, event_id } = taken
      await withSpan(`event ${type}`, message.headers?.get('traceparent'), { event_id }, () => handle(taken, message))
      faults.delete(message.seq)
      message.ack()
    } catch (error) {
      onError?.(error as Error)
      const found = (faults.get(message.seq) ?? 0) + (isOutage(error) ? 0 : 1)
      if (found > 0) faults.set(message.seq, found)
      if (found < max_deliver) return message.nak(Math.min(200 * 2 ** message.info.redeliveryCount, 10_000))
      try {
        await park?.(event, error as Error)
      } catch (fault) {
        onError?.(fault as Error)
        if (!isRefused(fault)) return message.nak(10_000)
      }
      faults.delete(message.seq)
      message.term()
    }
  }
}

/** Postgres refuses the values, for example a missing id: it would do so at each later try. */
const isRefused = (fault: unknown): boolean => {
  const { code, cause } = fault as { code?: string; cause?: { code?: string } }
  return /^2[23]/.test(cause?.code ?? code ?? '')
}
