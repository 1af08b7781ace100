import type { SecurityFact } from '../../../../db/operations/tables/index.ts'
import type { SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'
import { line, type Message, plain, type Style } from './decisions.ts'

const SUBJECTS: Record<SecurityEvent, string> = {
  'device.new': 'A new device signed in to your account.',
  'password.changed': 'The password of your account was set.',
  'account.reset': 'A link to set the password of your account was made.',
  'account.recovery': 'The recovery of your account was begun: its password and its passkeys no longer count.',
  'passkey.added': 'A passkey was added to your account.',
  'passkey.removed': 'A passkey was removed from your account.',
  'totp.added': 'An authenticator app was set up for your account.',
  'totp.removed': 'The authenticator app of your account was removed.',
  'totp.locked': 'Too many wrong codes of your authenticator app were sent. Codes are refused for an hour.',
  'provider.linked': 'Your account was linked to a sign-in provider.',
  'provider.unlinked': 'A sign-in provider was unlinked from your account.',
  'rights.changed': 'The rights of your account were changed.',
  'key.ending': 'A credential of a machine that you answer for ends soon.',
}

/** Says which credential ends, when, and how to replace it. */
const endingMessage = (about: string, { console_url, content }: Style): Message => {
  const subject = SUBJECTS['key.ending']
  const link = `${console_url}/admin/machines`
  const remedy = `Until then an administrator rotates it, or makes a new one:\n${link}`
  return plain(
    subject,
    [subject, ...(content === 'titles' ? [line(about)] : []), remedy].join('\n\n'),
    link,
    'key.ending',
  )
}

/**
 * Says what happened, when and from where, and how to act on it. It holds no token, and following its link ends no
 * session.
 */
export const securityMessage = (fact: SecurityFact, style: Style): Message => {
  const { console_url, content } = style
  const { event, at, ip_address, user_agent, about } = fact
  if (about !== undefined) return endingMessage(about, style)
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
