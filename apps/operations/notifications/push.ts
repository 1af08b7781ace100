import { createHash } from 'node:crypto'
import { lockOwner } from '../../../db/locks.ts'
import {
  deleteDestination,
  getDevice,
  listDestinations,
  lockDestination,
  saveDevice,
} from '../../../db/operations/notifications/destinations.ts'
import type { PushBody } from '../../shared/contracts/notifications/notifications.ts'
import { AppError } from '../../shared/errors.ts'
import { type Mutation, mutate } from '../command/mutate.ts'
import type { Uses } from '../deps.ts'
import { areKeys } from './channels/encrypt.ts'
import type { Subscription } from './channels/push.ts'
import { audit, destinationView, invalid, MOST_DESTINATIONS, shownAfter, tooMany } from './commands.ts'

type Deps = Uses<'channels' | 'clock' | 'db' | 'keys' | 'notifyKeys'>

/** A browser has one row, whoever subscribes it: its id derives from the endpoint, which only the browser knows. */
const deviceIdOf = (endpoint: string): string =>
  createHash('sha256')
    .update(endpoint)
    .digest('hex')
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')

/** Returns the key that a browser subscribes with, and whether this session's browser is subscribed. */
export const readPush = async ({ channels, db }: Deps, session_id: string) => {
  const device = await getDevice(db, session_id)
  return { public_key: channels?.push?.public_key ?? null, destination: device ? destinationView(device) : null }
}

const checked = ({ channels }: Deps, { endpoint, keys }: PushBody): URL => {
  if (!channels?.push) throw new AppError('validation_error', 'notifications_off', 'This installation sends no pushes.')
  const url = URL.parse(endpoint)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw invalid('/endpoint', 'is not a URL')
  if (!channels.push.mayCall(url))
    throw new AppError(
      'validation_error',
      'address_refused',
      `${url.origin} is not a push service in NOTIFY__PUSH__HOSTS.`,
    )
  if (!areKeys(keys)) throw invalid('/keys', 'are not those of a subscription')
  return url
}

/** Sends notices to the browser of the caller's session from now on, as long as that session lasts. */
export const subscribe = (deps: Deps, mutation: Mutation, body: PushBody) =>
  mutate(deps, mutation, async (tx) => {
    const { href, origin } = checked(deps, body)
    const { user_id, session_id } = mutation.caller
    const owner = `user:${user_id}`
    const destination_id = deviceIdOf(href)
    await lockOwner(tx, owner)
    const others = (await listDestinations(tx, owner)).filter(
      (one) => one.destination_id !== destination_id && one.session_id !== session_id,
    )
    if (others.length >= MOST_DESTINATIONS)
      throw tooMany(`There are already ${MOST_DESTINATIONS} destinations, the most allowed.`)
    const keep = async () => {
      const { p256dh, auth } = body.keys
      const address = JSON.stringify({ endpoint: href, p256dh, auth } satisfies Subscription)
      await saveDevice(tx, {
        ...{ destination_id, owner, session_id, name: body.name, shown: origin },
        address: deps.notifyKeys.seal(destination_id, address),
      })
      await audit(deps, tx, mutation, 'notify.device.subscribe', destination_id, { address: origin })
      return shownAfter(tx, destination_id)
    }
    return { effect: { kind: 'push', address: origin }, keep }
  })

/** Stops notices to the browser of the caller's session. A repeat has no effect. */
export const unsubscribe = (deps: Deps, mutation: Mutation) =>
  mutate(deps, mutation, async (tx) => {
    const keep = async () => {
      const device = await getDevice(tx, mutation.caller.session_id)
      const locked = device && (await lockDestination(tx, device.destination_id))
      if (locked) {
        await deleteDestination(tx, locked.destination_id)
        await audit(deps, tx, mutation, 'notify.device.unsubscribe', locked.destination_id, {})
      }
      return { status: 204, body: undefined }
    }
    return { effect: {}, keep }
  })
