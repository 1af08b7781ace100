import { countSecurity, queueDelivery, takeSecurity } from '../../../db/operations/notifications/deliveries.ts'
import { listDestinations } from '../../../db/operations/notifications/destinations.ts'
import type { SecurityFact } from '../../../db/operations/tables/index.ts'
import type { SecurityEvent } from '../../shared/contracts/notifications/notifications.ts'
import type { OperationsDeps } from '../deps.ts'
import { line, type Message, plain, type Style } from './message.ts'

const BATCH = 50
/** To one destination, so that nobody who signs in again and again can flood it. */
const MOST_A_DAY = 50

/**
 * Makes messages of what happened to people's accounts, one to each of their active destinations, once. Rules and quiet
 * hours do not hold them back.
 */
export const queueSecurity = ({ db, telemetry }: Pick<OperationsDeps, 'db' | 'telemetry'>): Promise<void> =>
  db.transaction(async (tx) => {
    for (const { user_id, fact } of await takeSecurity(tx, BATCH)) {
      const destinations = await listDestinations(tx, `user:${user_id}`)
      for (const destination of destinations.filter(({ status }) => status === 'active')) {
        if ((await countSecurity(tx, destination.destination_id)) < MOST_A_DAY)
          await queueDelivery(tx, destination, 'security', fact)
        else telemetry.log.warn({ user_id, event: fact.event }, 'too many messages about one account in a day')
      }
    }
  })

const SUBJECTS: Record<SecurityEvent, string> = {
  'device.new': 'A new device signed in to your account.',
  'password.changed': 'The password of your account was set.',
  'account.reset': 'A link to set the password of your account was made.',
  'account.recovery': 'The recovery of your account was begun: its password and its passkeys no longer count.',
  'passkey.added': 'A passkey was added to your account.',
  'passkey.removed': 'A passkey was removed from your account.',
  'provider.linked': 'Your account was linked to a sign-in provider.',
  'rights.changed': 'The rights of your account were changed.',
}

/** What happened, when and from where, and the way to act on it. It holds no token, and its link ends no session by itself. */
export const securityMessage = (fact: SecurityFact, { console_url, content }: Style): Message => {
  const { event, at, ip_address, user_agent } = fact
  const where = [ip_address && `Address: ${line(ip_address)}`, user_agent && `Client: ${line(user_agent)}`]
  const said = [`Time: ${at.slice(0, 16).replace('T', ' ')} UTC`, ...where.filter((one) => one)]
  const link = `${console_url}/settings/sessions`
  const text = [
    SUBJECTS[event],
    ...(content === 'titles' ? [said.join('\n')] : []),
    `If it was not you, end your other sessions, change your password and tell an administrator:\n${link}`,
  ].join('\n\n')
  return plain(SUBJECTS[event], text, link, event)
}
