import type { Tx } from '../../../db/client.ts'
import { lockOwner } from '../../../db/locks.ts'
import { lockDelivery, queueDelivery, reviveDelivery } from '../../../db/operations/notifications/deliveries.ts'
import {
  countAsked,
  type Destination,
  getDestination,
  insertDestination,
  listDestinations,
  lockDestination,
  moveDestination,
  removeDestination as removeRow,
  saveRules,
} from '../../../db/operations/notifications/destinations.ts'
import { refuseStaleAuth } from '../../shared/auth/caller.ts'
import type { DestinationBody, DestinationView } from '../../shared/contracts/notifications/notifications.ts'
import { DEFAULT_RULES, type RulesBody } from '../../shared/contracts/notifications/rules.ts'
import { pick } from '../../shared/data/pick.ts'
import { AppError, notFound, wrongAt } from '../../shared/errors.ts'
import { uuidv7 } from '../../shared/ids.ts'
import { auditDone, type Mutation, mutate } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { refuseZone } from '../schedules/when.ts'
import type { Channels } from './channels/channels.ts'
import { newSecret } from './keys.ts'
import { queueFact } from './security.ts'
import { deliveryViews, mayReach, type Owned } from './view.ts'

type Deps = Uses<'channels' | 'clock' | 'config' | 'db' | 'keys' | 'notifyKeys' | 'trust'>

export const MOST_DESTINATIONS = 10
/** Codes and tests per day, so that no one can flood another person's address. */
const MOST_ASKED = 20
const MOST_TRIES = 5
const CODE_MS = 24 * 3600_000

export const destinationView = (destination: Destination): DestinationView => ({
  ...pick(destination, 'destination_id', 'kind', 'name', 'status', 'status_reason', 'previous_until', 'created_at'),
  address: destination.shown,
})

export const invalid = (pointer: string, message: string) => wrongAt(pointer, message, { status: 422 })

const MAIL = /^[^\s@<>",;:\\()[\]]{1,64}@[^\s@<>",;:\\()[\]]{1,253}$/

/** Returns the address as stored, and the part of it that is shown. Throws why nobody can be reached there. */
const addressOf = (channels: Channels | undefined, { kind, address }: DestinationBody) => {
  const off = (detail: string) => new AppError('validation_error', 'notifications_off', detail)
  if (!channels) throw off('This installation sends no notifications.')
  if (kind === 'email') {
    if (!channels.mail) throw off('This installation sends no mail.')
    if (!MAIL.test(address)) throw invalid('/address', 'is not a mail address')
    return { address, shown: address }
  }
  // A line break in the middle is left out by URL.parse: another address than the one that was sent.
  const url = /\p{Cc}/u.test(address) ? null : URL.parse(address)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) throw invalid('/address', 'is not a URL')
  if (!channels.mayCall(url))
    throw new AppError('validation_error', 'address_refused', `This deployment does not allow calls to ${url.origin}.`)
  return { address: url.href, shown: url.origin }
}

/**
 * Adds a destination. A mail address first gets a code. The same address again is the same destination; one that is not
 * active is replaced, with a new code.
 */
export const addDestination = (deps: Deps, { owner, ...mutation }: Owned, { dry_run: _, ...body }: DestinationBody) =>
  mutate(deps, mutation, async (tx) => {
    refuseStale(deps, mutation)
    const { address, shown } = addressOf(deps.channels, body)
    await refuseEmptyGroup(deps, owner)
    await lockOwner(tx, owner)
    const all = await listDestinations(tx, owner)
    const same = all.find((one) => one.kind === body.kind && one.shown === shown && isAt(deps, one, address))
    const effect = { kind: body.kind, address: shown }
    if (same?.status === 'active') return { effect, keep: async () => ({ status: 201, body: destinationView(same) }) }
    if (all.length - (same ? 1 : 0) >= MOST_DESTINATIONS)
      throw tooMany(`There are already ${MOST_DESTINATIONS} destinations, the most allowed.`)
    const mail = body.kind === 'email'
    if (mail) await refuseFlood(tx, owner)
    const destination_id = uuidv7()
    const keep = async () => {
      if (same) await removeRow(tx, same)
      await tellOwner(deps, tx, owner, 'destination.added', { kind: body.kind, shown })
      await insertDestination(tx, {
        ...{ destination_id, owner, kind: body.kind, name: body.name, shown },
        address: deps.notifyKeys.seal(destination_id, address),
        secret: body.kind === 'webhook' ? deps.notifyKeys.seal(destination_id, newSecret()) : null,
        status: mail ? 'unconfirmed' : 'active',
      })
      if (mail) await queueDelivery(tx, { destination_id, owner }, 'code')
      await audit(deps, tx, mutation, 'notify.destination.add', destination_id, { kind: body.kind, address: shown })
      const made = (await getDestination(tx, destination_id)) as Destination
      return { status: 201, body: destinationView(made) }
    }
    return { effect, keep }
  })

/** Whether a destination has this address. One sealed with a key that is gone can be added anew. */
const isAt = ({ notifyKeys }: Deps, { destination_id, kind, address: sealed }: Destination, address: string) =>
  kind === 'email' || notifyKeys.open(destination_id, sealed) === address

/** Whoever holds a stolen session could read decisions elsewhere, or keep notices of the theft from their reader. */
const refuseStale = ({ clock, config }: Deps, { caller }: Mutation): void => {
  const stale = refuseStaleAuth(caller, config.AUTH__REAUTH__MAX_AGE_S, clock.now())
  if (stale) throw stale
}

/** A mistyped group would never be told. One whose members have left keeps its destinations until they are removed. */
const refuseEmptyGroup = async ({ trust }: Deps, owner: string): Promise<void> => {
  const group = owner.startsWith('group:') ? owner.slice('group:'.length) : undefined
  if (group === undefined || (await trust.hasMembers(group))) return
  throw wrongAt('/querystring/group', 'names a group without an active member', {
    code: 'unknown_reference',
    detail: `No active account is in a group "${group}".`,
    hint: 'Check the key of the group, or add its first member.',
    status: 422,
  })
}

/** Tells a person at all other destinations, and at a removed mail address, that one was added or removed. */
const tellOwner = async (
  { clock }: Deps,
  tx: Tx,
  owner: string,
  event: 'destination.added' | 'destination.removed',
  { kind, shown }: Pick<Destination, 'kind' | 'shown'>,
): Promise<void> => {
  if (owner.startsWith('user:'))
    await queueFact(tx, owner.slice('user:'.length), {
      ...{ event, at: clock.now().toISOString(), about: `${kind}: ${shown}` },
    })
}

export const tooMany = (detail: string) => new AppError('validation_error', 'too_many_destinations', detail)

const notActive = (status: string) =>
  new AppError('invalid_state_transition', 'destination_not_active', `The destination is ${status}.`)

const refuseFlood = async (tx: Tx, owner: string): Promise<void> => {
  if ((await countAsked(tx, owner)) >= MOST_ASKED)
    throw tooMany(`${MOST_ASKED} codes and tests were sent in the last 24 hours, the most allowed.`)
}

const lockOwn = async (tx: Tx, { owner }: Owned, destination_id: string): Promise<Destination> => {
  const found = await lockDestination(tx, destination_id)
  if (found?.owner !== owner) throw notFound('destination', destination_id)
  return found
}

export const shownAfter = async (tx: Tx, destination_id: string) => ({
  status: 200,
  body: destinationView((await getDestination(tx, destination_id)) as Destination),
})

/** Activates a mail address with the code that was sent there. After five wrong codes no code is accepted. */
export const confirmDestination = async (deps: Deps, mutation: Owned, destination_id: string, code: string) => {
  if (!(await tryCode(deps, mutation, destination_id, code)))
    throw new AppError('validation_error', 'code_wrong', 'The code is wrong or too old.')
  return mutate(deps, mutation, async (tx) => {
    await lockOwn(tx, mutation, destination_id)
    const keep = async () => {
      await moveDestination(tx, destination_id, { status: 'active' })
      await audit(deps, tx, mutation, 'notify.destination.confirm', destination_id, {})
      return shownAfter(tx, destination_id)
    }
    return { effect: { status: 'active' }, keep }
  })
}

/** Whether the code is right. Counts a wrong one in its own transaction, because a refused command is rolled back. */
const tryCode = (deps: Deps, mutation: Owned, destination_id: string, code: string): Promise<boolean> =>
  deps.db.transaction(async (tx) => {
    const found = await lockDestination(tx, destination_id)
    // Gone or another's: the command itself knows whether it is a repeat.
    if (found?.owner !== mutation.owner) return true
    const { status, tries, created_at } = found
    if (status === 'active') return true
    const old = Date.parse(created_at) + CODE_MS < deps.clock.now().getTime()
    if (status === 'unconfirmed' && tries < MOST_TRIES && !old && deps.notifyKeys.isCode(destination_id, code))
      return true
    await moveDestination(tx, destination_id, { tries: tries + 1 })
    return false
  })

/** Sends a message that says it is a test. */
export const testDestination = (deps: Deps, mutation: Owned, destination_id: string) =>
  mutate(deps, mutation, async (tx) => {
    const found = await lockOwn(tx, mutation, destination_id)
    if (found.status !== 'active') throw notActive(found.status)
    await lockOwner(tx, found.owner)
    await refuseFlood(tx, found.owner)
    const keep = async () => {
      await queueDelivery(tx, found, 'test')
      return shownAfter(tx, destination_id)
    }
    return { effect: { test: found.shown }, keep }
  })

/**
 * Makes the next secret of a webhook. Until `overlap_s` have passed, messages are signed with the previous one too, so
 * that the receiver may change over at any moment. The stored answer holds no secret.
 */
export const makeSecret = (deps: Deps, mutation: Owned, destination_id: string, overlap_s: number) =>
  mutate(deps, mutation, async (tx) => {
    refuseStale(deps, mutation)
    const { secret } = await lockOwn(tx, mutation, destination_id)
    if (!secret) throw notFound('destination', destination_id)
    const until = deps.clock.now().getTime() + overlap_s * 1000
    const previous_until = overlap_s > 0 ? new Date(until).toISOString() : null
    const keep = async () => {
      await moveDestination(tx, destination_id, {
        secret: deps.notifyKeys.seal(destination_id, newSecret()),
        previous_secret: previous_until === null ? null : secret,
        previous_until,
      })
      await audit(deps, tx, mutation, 'notify.destination.secret', destination_id, { previous_until })
      return shownAfter(tx, destination_id)
    }
    return { effect: { previous_until }, keep }
  })

/** Tries a message again that was given up, under the id that its receiver may know. */
export const redeliver = (deps: Deps, mutation: Owned, delivery_id: string) =>
  mutate(deps, mutation, async (tx) => {
    const found = await lockDelivery(tx, delivery_id)
    if (found?.owner !== mutation.owner) throw notFound('delivery', delivery_id)
    if (found.state !== 'dead')
      throw new AppError('invalid_state_transition', 'delivery_not_dead', `The message is ${found.state}.`)
    const destination = await getDestination(tx, found.destination_id)
    if (!destination || !mayReach(destination, found)) throw notActive(destination?.status ?? 'removed')
    const keep = async () => {
      const queued = await reviveDelivery(tx, delivery_id, 'queued')
      await audit(deps, tx, mutation, 'notify.delivery.redeliver', delivery_id, { address: destination.shown })
      return { status: 200, body: await deliveryViews(tx, queued ? [queued] : []).then(([view]) => view) }
    }
    return { effect: { redeliver: destination.shown }, keep }
  })

export const removeDestination = (deps: Deps, mutation: Owned, destination_id: string) =>
  mutate(deps, mutation, async (tx) => {
    refuseStale(deps, mutation)
    const found = await lockOwn(tx, mutation, destination_id)
    const keep = async () => {
      await removeRow(tx, found)
      await tellOwner(deps, tx, found.owner, 'destination.removed', found)
      await audit(deps, tx, mutation, 'notify.destination.remove', destination_id, {})
      return { status: 204, body: undefined }
    }
    return { effect: {}, keep }
  })

/** Sets an owner's rules; undefined restores the defaults. */
export const changeRules = (deps: Deps, { owner, ...mutation }: Owned, body: RulesBody | undefined) =>
  mutate(deps, mutation, async (tx) => {
    const { dry_run: _, ...rules }: RulesBody = body ?? DEFAULT_RULES
    if (rules.quiet) refuseZone(rules.quiet.timezone, '/quiet/timezone')
    if (body) await refuseEmptyGroup(deps, owner)
    const own = new Set((await listDestinations(tx, owner)).map(({ destination_id }) => destination_id))
    const foreign = rules.steps.findIndex(({ destination_id }) => !own.has(destination_id))
    if (foreign >= 0) throw invalid(`/steps/${foreign}/destination_id`, 'is not one of your destinations')
    const keep = async () => {
      await saveRules(tx, owner, rules)
      await audit(deps, tx, mutation, 'notify.rules.change', owner, rules)
      return { status: 200, body: rules }
    }
    return { effect: rules, keep }
  })

/** Never contains a full address: a webhook's or a browser's is a secret. */
export const audit = (deps: Uses<'keys'>, tx: Tx, mutation: Mutation, action: string, id: string, after: object) =>
  auditDone(deps, tx, mutation, { action, object: `notification:${id}`, after })
