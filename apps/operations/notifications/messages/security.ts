import type { SecurityFact } from '../../../../db/operations/tables/index.ts'
import type { SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'
import { line, type Message, plain, type Style } from './decisions.ts'

const SUBJECTS: Record<SecurityEvent, string> = {
  'device.new': 'A new device signed in to your account.',
  'password.changed': 'The password of your account was set.',
  'account.reset': 'A link to set the password of your account was made.',
  'account.recovery':
    'The recovery of your account was begun: its passkeys, its app and a password set here no longer count.',
  'passkey.added': 'A passkey was added to your account.',
  'passkey.removed': 'A passkey was removed from your account.',
  'totp.added': 'An authenticator app was set up for your account.',
  'totp.removed': 'The authenticator app of your account was removed.',
  'totp.locked': 'Too many wrong codes of your authenticator app were sent. Codes are refused for an hour.',
  'provider.linked': 'Your account was linked to a sign-in provider.',
  'provider.unlinked': 'A sign-in provider was unlinked from your account.',
  'rights.changed': 'The rights of your account were changed.',
  'destination.added': 'A destination was added to the notifications of your account.',
  'destination.removed': 'A destination was removed from the notifications of your account.',
  'key.ending': 'A credential of a machine that you answer for ends soon.',
  'key.seen': 'Someone who left has seen a credential of a machine that you answer for.',
  'break_glass.used': 'An emergency account signed in by its password.',
  'spray.suspected': 'Many usernames failed to sign in from one network: someone guesses passwords.',
}

/** The remedy, and the page for it, of messages about more than one’s own account. */
const REMEDIES: { [E in SecurityEvent]?: [remedy: string, path: string] } = {
  'key.ending': ['Until then an administrator rotates it, or makes a new one:', '/admin/service-accounts'],
  'key.seen': ['An administrator rotates it, so that it stops working:', '/admin/service-accounts'],
  'break_glass.used': ['If nobody announced this, disable the account and end its sessions:', '/admin/users'],
  'spray.suspected': ['Read which accounts were tried, and block the network in front of the gateway:', '/audit'],
}

const OWN = [
  'If it was not you, end your other sessions, change your password and tell an administrator:',
  '/settings/sessions',
] as const

/** What happened, when and from where, and the way to act on it. It holds no token, and its link ends no session by itself. */
export const securityMessage = (fact: SecurityFact, style: Style): Message => {
  const { console_url, content } = style
  const { event, at, ip_address, user_agent, about, last } = fact
  const where = [ip_address && `Address: ${line(ip_address)}`, user_agent && `Client: ${line(user_agent)}`]
  const said = [`Time: ${at.slice(0, 16).replace('T', ' ')} UTC`, ...where.filter((one) => one)]
  const [remedy, path] = REMEDIES[event] ?? OWN
  const link = `${console_url}${path}`
  const shown = about === undefined ? said : [line(about), ...(event === 'key.ending' ? [] : said)]
  const details = content === 'titles' ? shown.join('\n') : undefined
  const more_today = last && 'This is the last message of this kind today; the audit log has all of them.'
  const text = [SUBJECTS[event], details, more_today, `${remedy}\n${link}`].filter(Boolean).join('\n\n')
  const more = details && { details, ...(about !== undefined && { about: line(about) }) }
  return { ...plain(SUBJECTS[event], text, link, event), ...more }
}
