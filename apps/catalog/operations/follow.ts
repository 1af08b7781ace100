import { addOperation, setOperationStatus } from '../../../db/catalog/operations.ts'
import { inboxOf } from '../../../db/catalog/tables.ts'
import type { Tx } from '../../../db/client.ts'
import { lockVersion, parkLetter, passVersion, receive, setVersion } from '../../../db/inbox.ts'
import { OPERATION_ENDS, OPERATION_STATUSES } from '../../shared/contracts/operations/graph.ts'
import { crashPoint } from '../../shared/crash.ts'
import { whyOf } from '../../shared/errors.ts'
import type { Envelope } from '../../shared/events/events.ts'
import { Away, isOutage, refusalOf } from '../../shared/process/outage.ts'
import { audienceOf } from '../../shared/service/scopes.ts'
import type { CatalogDeps, Uses } from '../deps.ts'

/** The operations app's messages about operations, folded into operations-summary (reliability.md 4.6). */
export const CONSUMER = 'catalog-operations-index'
/** The name of this projection in the tables and on the wire. */
export const OPERATIONS_INDEX = 'operations_index'
const TIMEOUT_MS = 2000

type OperationEvent = { type: string; at?: string; data?: Record<string, unknown> }
type Message = Envelope & { events?: OperationEvent[] }

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const idsOf = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.flatMap((item) => text(item) ?? text((item as { resource_id?: unknown } | null)?.resource_id) ?? [])
    : []

/** Applies one message that is new to the index; other events are not ours to keep. */
export const fold = async (tx: Tx, message: Message): Promise<void> => {
  const operation_id = message.agg_id as string
  for (const { type, at = message.occurred_at, data = {} } of message.events ?? []) {
    const [noun, name] = type.split('.')
    if (noun !== 'operation' || name === undefined) continue
    if (name === 'queued') {
      const fact = {
        operation_id,
        kind: text(data.kind) ?? 'change',
        title: text(data.title) ?? '',
        status: 'queued',
        at,
      }
      await addOperation(tx, fact, idsOf(data.resources))
      continue
    }
    const status = [text(data.status), name].find((known) => (OPERATION_STATUSES as readonly unknown[]).includes(known))
    if (name !== 'started' && status === undefined) continue
    await setOperationStatus(tx, {
      operation_id,
      status: status ?? 'running',
      at,
      started: name === 'started',
      ended: (OPERATION_ENDS as readonly unknown[]).includes(status),
    })
  }
}

const changesIndex = ({ events = [] }: Message): boolean => events.some(({ type }) => type.startsWith('operation.'))

const agg = { agg_type: 'operation' }

/** The dependencies for following operations. */
export type Follower = Uses<'db'> & {
  config: Pick<CatalogDeps['config'], 'operations_url'>
  trust: Pick<CatalogDeps['trust'], 'signer'>
}

/** Applies one message once and in order; fetches missing earlier ones from the operations app. */
export const applyOperationMessage = async (deps: Follower, event: Envelope): Promise<void> => {
  if (event.agg_type !== 'operation' || !event.agg_id || !event.agg_version) return
  const { agg_id, agg_version } = event
  // Most events are about gates and nodes: only their operation's version moves.
  if (!changesIndex(event) && (await passVersion(deps.db, inboxOf, CONSUMER, agg.agg_type, agg_id, agg_version))) return
  const applied = await deps.db.transaction(async (tx) => {
    const { ver, held } = await lockVersion(tx, inboxOf, CONSUMER, agg.agg_type, agg_id)
    if (held || agg_version <= ver) return true
    if (agg_version > ver + 1) return false
    if (await receive(tx, inboxOf, CONSUMER, event.event_id)) await fold(tx, event)
    await setVersion(tx, inboxOf, CONSUMER, agg.agg_type, agg_id, agg_version)
    return true
  })
  crashPoint('consumer.before_ack')
  if (applied) return
  for (const missed of await fetchMissed(deps, agg_id, await versionOf(deps, agg_id))) {
    await applyOperationMessage(deps, missed)
  }
  // More events were missed than one reply holds.
  return applyOperationMessage(deps, event)
}

const versionOf = (deps: Follower, agg_id: string): Promise<number> =>
  deps.db.transaction(async (tx) => (await lockVersion(tx, inboxOf, CONSUMER, agg.agg_type, agg_id)).ver)

const fetchMissed = async (deps: Follower, agg_id: string, after: number): Promise<Envelope[]> => {
  const items = await fetchEvents(deps, { agg_id, after })
  if (items[0]?.agg_version !== after + 1) throw new Error(`operations does not have version ${after + 1} of ${agg_id}`)
  return items
}

type Where = { agg_id: string; after: number } | { agg_id?: undefined; after: string }

/** Events of one operation after a version, or of all operations after a position in their log. */
export const fetchEvents = async (deps: Follower, where: Where): Promise<Envelope[]> =>
  (await fetchLog(deps, where)).items

/** Like `fetchEvents`, with the position of the log's last event. */
export const fetchLog = async (
  { config, trust }: Follower,
  { agg_id, after }: Where,
): Promise<{ items: Envelope[]; last_pub_seq: string }> => {
  const url = new URL('/internal/v1/events', config.operations_url)
  const which = agg_id === undefined ? { after } : { ...agg, agg_id, after_version: String(after) }
  url.search = new URLSearchParams({ ...which, limit: '500' }).toString()
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${trust.signer(audienceOf('operations'))}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    redirect: 'error',
  }).catch((cause: unknown) => {
    // Also one whose certificate is refused: no event is at fault.
    throw new Away(`operations does not answer: ${whyOf(cause)}`, { cause })
  })
  if (!response.ok) throw refusalOf('operations', response.status, 'missed events')
  return (await response.json()) as { items: Envelope[]; last_pub_seq: string }
}

/** After this many tries the aggregate is held and the event parked, so that one bad event never blocks the rest. */
export const park = (deps: Follower) => async (event: Envelope | undefined, error: Error) => {
  if (!event?.agg_id) return
  const { event_id, agg_id, agg_version } = event
  const letter = { consumer: CONSUMER, event_id, ...agg, agg_id, agg_version: agg_version ?? null, tries: 5 }
  await deps.db.transaction((tx) => parkLetter(tx, inboxOf, { ...letter, error: error.message }))
}

/** Applies the events of an operation that the index lacks; an event that cannot be applied is parked again. */
export const followOperation = async (deps: Follower, agg_id: string): Promise<'followed' | 'parked again'> => {
  for (;;) {
    const events = await fetchEvents(deps, { agg_id, after: await versionOf(deps, agg_id) })
    if (events.length === 0) return 'followed'
    for (const event of events) {
      if (!(await applyOrPark(deps, event))) return 'parked again'
    }
  }
}

/** Applies an event that was read from the log. Returns false if it cannot be applied and is parked. */
export const applyOrPark = async (deps: Follower, event: Envelope): Promise<boolean> => {
  try {
    await applyOperationMessage(deps, event)
    return true
  } catch (error) {
    if (isOutage(error)) throw error
    await park(deps)(event, error as Error)
    return false
  }
}
