import {
  dropNotices,
  endDelivery,
  type Leased,
  leaseDeliveries,
  listNotices,
  markShown,
  putOff,
} from '../../../db/operations/notifications/deliveries.ts'
import {
  type Destination,
  deleteDestination,
  getDestination,
  getRules,
  moveDestination,
} from '../../../db/operations/notifications/destinations.ts'
import { among, getDecision, listOpen, listWaiting } from '../../../db/operations/notifications/waiting.ts'
import type { DecisionKey, SecurityFact } from '../../../db/operations/tables/index.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import type { Uses } from '../deps.ts'
import type { Channels } from './channels/channels.ts'
import type { Reach, Sent } from './channels/reach.ts'
import { isUrgent } from './find.ts'
import {
  codeMessage,
  decisionsMessage,
  isStop,
  type Message,
  outcomeMessage,
  type Style,
  type Told,
  testMessage,
} from './messages/decisions.ts'
import { quietUntil } from './messages/quiet.ts'
import { isOwn, securityMessage } from './messages/security.ts'
import { mayReach, readerOf, viewOf } from './view.ts'

type SendDeps = Uses<'clock' | 'config' | 'db' | 'fence' | 'notifyKeys' | 'telemetry' | 'trust'> & {
  channels: Channels
}

const BATCH = 20
const PER_KIND = BATCH / 2
const FIRST_S = 5
const LONGEST_S = 3600
/** How long a message waits while it is unknown who may decide. */
const OUTAGE_S = 10

/**
 * Sends due messages. One process sends each message; if it dies while sending, another one sends it under the same id.
 * Messages wait while a restored database is held, because it reflects the past. `sending` holds what this process is
 * still sending, so that a caller who does not wait for all of it can look again meanwhile. Returns whether any was due:
 * one look takes a share, and more may wait.
 */
export const sendDue = async (deps: SendDeps, sending = new Set<Promise<void>>()): Promise<boolean> => {
  if ((await deps.fence()).held_since !== null) return false
  const due = await leaseDeliveries(deps.db, { limit: BATCH - sending.size, per_kind: PER_KIND })
  const taken = due.map((delivery) => {
    const one = sendOne(deps, delivery).finally(() => sending.delete(one))
    sending.add(one)
    return one
  })
  await Promise.all(taken)
  return due.length > 0
}

const sendOne = async (deps: SendDeps, delivery: Leased): Promise<void> => {
  try {
    const destination = await getDestination(deps.db, delivery.destination_id)
    if (!destination || !mayReach(destination, delivery) || !(await isOfSession(deps, destination))) {
      await deps.db.transaction((tx) => endDelivery(tx, delivery.delivery_id, 'obsolete'))
      return
    }
    const message = await messageOf(deps, delivery, destination)
    if (message) await carry(deps, delivery, destination, message)
  } catch (err) {
    deps.telemetry.log.warn({ err, delivery_id: delivery.delivery_id }, 'a message could not be made')
    await deps.db.transaction(async (tx) => {
      if (isLate(deps, delivery, OUTAGE_S)) {
        await endDelivery(tx, delivery.delivery_id, 'dead', 'The message could not be made.')
        countMessages(deps.telemetry).inc({ result: 'dead' })
      } else await putOff(tx, delivery.delivery_id, OUTAGE_S)
    })
  }
}

/** Whether its next try would come after the time in which it is retried, which the first try begins. */
const isLate = ({ clock, config }: Pick<SendDeps, 'clock' | 'config'>, { tried_since }: Leased, wait_s: number) =>
  clock.now().getTime() + wait_s * 1000 - Date.parse(tried_since) > config.NOTIFY__GIVE_UP_S * 1000

/** Whether a browser's session still lasts; if it has ended, the browser is removed. */
const isOfSession = async ({ db, trust }: SendDeps, { destination_id, owner, session_id }: Destination) => {
  if (session_id === null || (await trust.isActive(owner.slice('user:'.length), session_id))) return true
  await db.transaction((tx) => deleteDestination(tx, destination_id))
  return false
}

const carry = async (deps: SendDeps, delivery: Leased, destination: Destination, message: Message): Promise<void> => {
  const { kind } = destination
  const reach = reachOf(deps, delivery, destination)
  const sent: Sent = reach
    ? await deps.channels.send(reach, message, deps.clock.now())
    : { error: 'Its key is gone.', final: true }
  await settle(deps, delivery, { kind, message }, sent)
}

/** `undefined` if a part was sealed with a key that no longer exists. */
const reachOf = (
  { notifyKeys, clock }: SendDeps,
  { delivery_id }: Leased,
  { destination_id, kind, address: sealed_address, secret: sealed_secret, ...destination }: Destination,
): Reach | undefined => {
  const address = notifyKeys.open(destination_id, sealed_address)
  const secret = sealed_secret ? notifyKeys.open(destination_id, sealed_secret) : undefined
  if (address === undefined || (sealed_secret && secret === undefined)) return undefined
  const { previous_secret, previous_until } = destination
  const overlaps = previous_secret && previous_until !== null && Date.parse(previous_until) > clock.now().getTime()
  const previous = overlaps ? notifyKeys.open(destination_id, previous_secret) : undefined
  return { delivery_id, kind, address, secrets: [secret, previous].filter((one) => one !== undefined) }
}

/** Counts the results of tries to send a message. */
export const countMessages = (telemetry: Telemetry) =>
  telemetry.counter('signalbox_notifications_total', 'Messages to people, by the result of a try.', ['result'])

/** Records the result: sent, given up, or to be retried after a backoff or when the receiver asks. */
const settle = (
  deps: SendDeps,
  delivery: Leased,
  { kind, message }: { kind: Destination['kind']; message: Message },
  { error, final, gone, retry_after_ms = 0 }: Sent,
) =>
  deps.db.transaction(async (tx) => {
    const { telemetry } = deps
    const { delivery_id, destination_id, attempts } = delivery
    const count = (result: 'sent' | 'again' | 'dead') => countMessages(telemetry).inc({ result })
    if (error === undefined) {
      await endDelivery(tx, delivery_id, 'sent')
      // A failed operation is final, so its notification stays.
      const [one, ...others] = message.items
      const ends = one !== undefined && others.length === 0 && one.event !== 'operation.failed'
      if (kind === 'push' && delivery.purpose === 'notices' && ends) await markShown(tx, delivery_id)
      return count('sent')
    }
    const wait_s = Math.max(Math.min(FIRST_S * 4 ** attempts, LONGEST_S), retry_after_ms / 1000)
    if (!final && !isLate(deps, delivery, wait_s)) {
      await putOff(tx, delivery_id, wait_s, { error })
      return count('again')
    }
    telemetry.log.warn({ delivery_id, error }, 'a message was given up')
    await endDelivery(tx, delivery_id, 'dead', error)
    count('dead')
    if (gone && kind === 'push') await deleteDestination(tx, destination_id)
    else if (gone) await moveDestination(tx, destination_id, { status: 'disabled', status_reason: error })
  })

/** Returns the message's current content; `undefined` if it is not sent now. */
const messageOf = async (deps: SendDeps, delivery: Leased, destination: Destination): Promise<Message | undefined> => {
  const { console_url } = deps.channels
  const style = { console_url, content: deps.config.NOTIFY__CONTENT, reader: await readerOf(deps, destination) }
  if (delivery.purpose === 'code') return codeMessage(deps.notifyKeys.codeOf(delivery.destination_id), style)
  if (delivery.purpose === 'test') return testMessage(style)
  if (delivery.fact) {
    const sign_out = await signOutFor(deps, destination, delivery.fact)
    return securityMessage(delivery.fact, { ...style, ...(sign_out !== undefined && { sign_out }) })
  }
  if (delivery.decision) return outcomeOf(deps, delivery, delivery.decision, style)
  const now = deps.clock.now().getTime()
  const rules = await getRules(deps.db, delivery.owner)
  const silent_until = quietUntil(rules.quiet, now)
  const { told, over, urgent } = await stillWaiting(deps, delivery, silent_until)
  const quiet = urgent ? undefined : silent_until
  await deps.db.transaction(async (tx) => {
    await dropNotices(tx, over)
    if (told.length === 0) await endDelivery(tx, delivery.delivery_id, 'obsolete')
    else if (quiet !== undefined) await putOff(tx, delivery.delivery_id, (quiet - now) / 1000, { untried: true })
  })
  if (told.length === 0 || quiet !== undefined) return undefined
  return decisionsMessage(told, style)
}

/**
 * The token that ends all sessions of the person whose account it is about: by mail alone, since webhooks and pushes pass
 * through others' hands. The message does not wait for session: without a token it links to a page that asks for sign-in.
 */
const signOutFor = async (
  { trust, telemetry }: SendDeps,
  { owner, kind, removed_at }: Destination,
  { event }: SecurityFact,
): Promise<string | undefined> => {
  if (kind !== 'email' || removed_at !== null || !isOwn(event) || !owner.startsWith('user:')) return undefined
  return trust.offerSignOut(owner.slice('user:'.length)).catch((err: unknown) => {
    telemetry.log.warn({ err }, 'a message about an account is sent without its link to end all sessions')
    return undefined
  })
}

/** Returns how a decision or hold ended; `undefined` if it is gone, waits again or has a newer notice: that ends it. */
const outcomeOf = async (
  { db, trust }: SendDeps,
  { delivery_id, owner }: Leased,
  decision: DecisionKey,
  style: Style,
): Promise<Message | undefined> => {
  const view = await viewOf(owner, trust.principals.ask)
  const decided = await getDecision(db, decision, view?.visible)
  const mayWait = decided && (decided.status === 'waiting' || isStop(decided))
  const waiting = view && mayWait ? await listOpen(db, view, [decision]) : []
  const { events } = await getRules(db, owner)
  const again = waiting.some(
    ({ operation_id, object, event }) =>
      operation_id === decision.operation_id &&
      object === decision.object &&
      // A failure that the rules leave out has no notice of its own.
      (event !== 'operation.failed' || events.includes(event)),
  )
  if (decided && !again) return outcomeMessage(decided, style, view !== undefined && decided.readable)
  await db.transaction((tx) => endDelivery(tx, delivery_id, 'obsolete'))
  return undefined
}

/** Returns which of its subjects still wait for its owner, with the rights that identity states now. */
const stillWaiting = async ({ db, trust }: SendDeps, { delivery_id, owner }: Leased, silent_until?: number) => {
  const view = await viewOf(owner, trust.principals.ask)
  const notices = await listNotices(db, [delivery_id])
  const waiting = view ? await listWaiting(db, view, among(notices)) : []
  const told: Told[] = []
  const over: Awaited<ReturnType<typeof listNotices>> = []
  let urgent = false
  for (const notice of notices) {
    const { operation_id, object, round } = notice
    const one = waiting.find((w) => w.operation_id === operation_id && w.object === object && w.round === round)
    if (!one) over.push(notice)
    else if (!told.some((t) => t.operation_id === operation_id && t.object === object)) told.push(one)
    // Quiet hours may have begun since it was queued.
    urgent ||= one !== undefined && (notice.urgent || isUrgent(one, silent_until))
  }
  return { told, over, urgent }
}
