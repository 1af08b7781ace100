import type { NotifyEvent, SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'

/** How a person reads messages: in a language, with times of an IANA time zone. */
export type Reader = { language: 'en' | 'de'; zone: string }

/** Of groups, of programs, and of people who have chosen none. */
export const ANYONE: Reader = { language: 'en', zone: 'UTC' }

/** A time with the name of its zone. */
export const timeFor = ({ language, zone }: Reader, at: string): string => {
  const style = language === 'de' ? (['de', 'medium'] as const) : (['sv', 'short'] as const)
  const [locale, dateStyle] = style
  const text = new Intl.DateTimeFormat(locale, { dateStyle, timeStyle: 'short', timeZone: zone }).format(new Date(at))
  return `${text} ${zone}`
}

const en = {
  decisions: (count: number) =>
    count === 1 ? 'A decision is waiting for you.' : `${count} decisions are waiting for you.`,
  held: 'A failure holds up an operation.',
  failed: 'An operation failed.',
  stops: (count: number) => `${count} operations failed or are held up by a failure.`,
  more: (count: number, url: string) => `And ${count} more: ${url}`,
  no_longer_held: 'An operation is no longer held up.',
  no_longer_waiting: 'A decision is no longer waiting for you.',
  verdicts: { approved: 'Approved', rejected: 'Rejected', expired: 'Expired' } as Record<string, string>,
  by: (name: string) => ` by ${name}`,
  about: {
    'gate.waiting': '',
    'gate.reopened': ' (asked again)',
    'gate.escalated': ' (escalated)',
    'patch.waiting': ' (a patch)',
    'operation.held': ' (held up by a failure)',
    'operation.failed': ' (failed)',
  } as Record<NotifyEvent, string>,
  risk: (level: string) => `Risk: ${level}`,
  until: (time: string) => `, until ${time}`,
  decision: 'A decision',
  operation: 'An operation',
  open: 'Open',
  code: (code: string) =>
    `Someone asked Signalbox to notify this address when a decision is waiting for them. If it was you, confirm the address with this code:\n\n${code}\n\nIf not, ignore this message: no further one follows.`,
  code_subject: 'Confirm this address',
  test: (url: string) => `This is a test: Signalbox can reach you at this address.\n\n${url}`,
  test_subject: 'A test',
  time: (time: string) => `Time: ${time}`,
  address: (address: string) => `Address: ${address}`,
  client: (client: string) => `Client: ${client}`,
  last: 'This is the last message of this kind today; the audit log has all of them.',
  own: 'If it was not you, end your other sessions, change your password and tell an administrator:',
  sign_out: (url: string) =>
    `If it was not you, end all your sessions. This link works once, for 24 hours, without signing in:\n${url}\n\nThen change your password and tell an administrator.`,
  remedies: {
    'key.ending': 'Until then an administrator rotates it, or makes a new one:',
    'key.seen': 'An administrator rotates it, so that it stops working:',
    'key.unused': 'If the machine no longer needs it, an administrator revokes it:',
    'break_glass.used': 'If nobody announced this, disable the account and end its sessions:',
    'spray.suspected': 'Read which accounts were tried, and block the network in front of the gateway:',
    'change.waiting': 'Review it, then confirm or reject it:',
    'gate.bypassed': 'Read the reason. If it is not good enough, pause the operation:',
    'account.reset_requested': 'If you did not ask for it, tell an administrator now, who can reject it:',
  } as { [E in SecurityEvent]?: string },
  events: {
    'device.new': 'A new device signed in to your account.',
    'name.closed':
      'Too many wrong passwords were sent for your name, so it is closed. Passkeys, providers and devices known here still sign in.',
    'password.changed': 'The password of your account was set.',
    'account.reset_requested': 'An administrator asked for a reset of your account. Another one must confirm it.',
    'account.reset': 'A link to set the password of your account was made.',
    'account.recovery':
      'The recovery of your account was begun: its passkeys, its app and a password set here no longer count.',
    'passkey.added': 'A passkey was added to your account.',
    'passkey.removed': 'A passkey was removed from your account.',
    'passkey.cloned':
      'A passkey of your account answered out of turn and was refused: a copy of it may exist. Remove it and add another.',
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
    'key.unused': 'A credential of a machine that you answer for was not used for 90 days.',
    'break_glass.used': 'An emergency account signed in by its password.',
    'spray.suspected': 'Many usernames failed to sign in from one network: someone guesses passwords.',
    'change.waiting': 'A change waits for a second administrator.',
    'gate.bypassed': 'Someone bypassed a gate by break-glass.',
  } as Record<SecurityEvent, string>,
}

const de: typeof en = {
  decisions: (count) => (count === 1 ? 'Eine Entscheidung wartet auf Sie.' : `${count} Entscheidungen warten auf Sie.`),
  held: 'Ein Fehler hält einen Vorgang auf.',
  failed: 'Ein Vorgang ist fehlgeschlagen.',
  stops: (count) => `${count} Vorgänge sind fehlgeschlagen oder durch einen Fehler aufgehalten.`,
  more: (count, url) => `Und ${count} weitere: ${url}`,
  no_longer_held: 'Ein Vorgang ist nicht mehr aufgehalten.',
  no_longer_waiting: 'Eine Entscheidung wartet nicht mehr auf Sie.',
  verdicts: { approved: 'Freigegeben', rejected: 'Abgelehnt', expired: 'Abgelaufen' },
  by: (name) => ` von ${name}`,
  about: {
    'gate.waiting': '',
    'gate.reopened': ' (erneut gefragt)',
    'gate.escalated': ' (eskaliert)',
    'patch.waiting': ' (eine Planänderung)',
    'operation.held': ' (durch einen Fehler aufgehalten)',
    'operation.failed': ' (fehlgeschlagen)',
  },
  risk: (level) => `Risiko: ${RISKS_DE[level] ?? level}`,
  until: (time) => `, bis ${time}`,
  decision: 'Eine Entscheidung',
  operation: 'Ein Vorgang',
  open: 'Öffnen',
  code: (code) =>
    `Jemand hat Signalbox gebeten, diese Adresse zu benachrichtigen, wenn eine Entscheidung wartet. Wenn Sie das waren, bestätigen Sie die Adresse mit diesem Code:\n\n${code}\n\nWenn nicht, ignorieren Sie diese Nachricht: Es folgt keine weitere.`,
  code_subject: 'Bestätigen Sie diese Adresse',
  test: (url) => `Dies ist ein Test: Signalbox erreicht Sie unter dieser Adresse.\n\n${url}`,
  test_subject: 'Ein Test',
  time: (time) => `Zeit: ${time}`,
  address: (address) => `Adresse: ${address}`,
  client: (client) => `Programm: ${client}`,
  last: 'Dies ist heute die letzte Nachricht dieser Art; das Prüfprotokoll enthält alle.',
  own: 'Wenn Sie das nicht waren, beenden Sie Ihre anderen Sitzungen, ändern Sie Ihr Passwort und sagen Sie es einem Administrator:',
  sign_out: (url) =>
    `Wenn Sie das nicht waren, beenden Sie alle Ihre Sitzungen. Dieser Link gilt einmal, 24 Stunden lang, ohne Anmeldung:\n${url}\n\nÄndern Sie dann Ihr Passwort und sagen Sie es einem Administrator.`,
  remedies: {
    'key.ending': 'Bis dahin erneuert sie ein Administrator oder legt neue an:',
    'key.seen': 'Ein Administrator erneuert sie, damit die alten nicht mehr gelten:',
    'key.unused': 'Wenn das Dienstkonto sie nicht mehr braucht, widerruft sie ein Administrator:',
    'break_glass.used': 'Wenn das niemand angekündigt hat, sperren Sie das Konto und beenden Sie seine Sitzungen:',
    'spray.suspected': 'Lesen Sie, welche Konten versucht wurden, und sperren Sie das Netz vor dem Gateway:',
    'change.waiting': 'Prüfen Sie sie, und bestätigen Sie sie oder lehnen Sie sie ab:',
    'gate.bypassed': 'Lesen Sie den Grund. Reicht er nicht aus, halten Sie den Vorgang an:',
    'account.reset_requested':
      'Wenn Sie nicht darum gebeten haben, sagen Sie es sofort einem Administrator, der sie ablehnen kann:',
  },
  events: {
    'device.new': 'Ein neues Gerät hat sich in Ihrem Konto angemeldet.',
    'name.closed':
      'Für Ihren Namen wurden zu viele falsche Passwörter gesendet, er ist geschlossen. Passkeys, Anbieter und bekannte Geräte melden weiter an.',
    'password.changed': 'Das Passwort Ihres Kontos wurde gesetzt.',
    'account.reset_requested':
      'Ein Administrator hat eine Zurücksetzung Ihres Kontos beantragt. Ein zweiter muss sie bestätigen.',
    'account.reset': 'Ein Link zum Setzen Ihres Passworts wurde erstellt.',
    'account.recovery':
      'Die Wiederherstellung Ihres Kontos hat begonnen: Passkeys, App und ein hier gesetztes Passwort gelten nicht mehr.',
    'passkey.added': 'Ein Passkey wurde Ihrem Konto hinzugefügt.',
    'passkey.removed': 'Ein Passkey wurde aus Ihrem Konto entfernt.',
    'passkey.cloned':
      'Ein Passkey Ihres Kontos antwortete außer der Reihe und wurde abgelehnt: Es kann eine Kopie geben. Entfernen Sie ihn und fügen Sie einen neuen hinzu.',
    'totp.added': 'Eine Authenticator-App wurde für Ihr Konto eingerichtet.',
    'totp.removed': 'Die Authenticator-App Ihres Kontos wurde entfernt.',
    'totp.locked':
      'Zu viele falsche Codes Ihrer Authenticator-App wurden gesendet. Codes gelten eine Stunde lang nicht.',
    'provider.linked': 'Ihr Konto wurde mit einem Anmeldeanbieter verknüpft.',
    'provider.unlinked': 'Ein Anmeldeanbieter wurde von Ihrem Konto getrennt.',
    'rights.changed': 'Die Rechte Ihres Kontos wurden geändert.',
    'destination.added': 'Ein Ziel wurde den Benachrichtigungen Ihres Kontos hinzugefügt.',
    'destination.removed': 'Ein Ziel wurde aus den Benachrichtigungen Ihres Kontos entfernt.',
    'key.ending': 'Zugangsdaten eines Dienstkontos, für das Sie verantwortlich sind, enden bald.',
    'key.seen':
      'Jemand, der ausgeschieden ist, kennt Zugangsdaten eines Dienstkontos, für das Sie verantwortlich sind.',
    'key.unused':
      'Zugangsdaten eines Dienstkontos, für das Sie verantwortlich sind, wurden 90 Tage lang nicht benutzt.',
    'break_glass.used': 'Ein Notfallkonto hat sich mit seinem Passwort angemeldet.',
    'spray.suspected': 'Viele Anmeldungen aus einem Netz sind gescheitert: Jemand errät Passwörter.',
    'change.waiting': 'Eine Änderung wartet auf einen zweiten Administrator.',
    'gate.bypassed': 'Jemand hat eine Freigabe mit Notfallzugriff umgangen.',
  },
}

const RISKS_DE: Record<string, string> = { low: 'niedrig', medium: 'mittel', high: 'hoch', critical: 'kritisch' }

export const wordsFor = ({ language }: Pick<Reader, 'language'>): typeof en => (language === 'de' ? de : en)
