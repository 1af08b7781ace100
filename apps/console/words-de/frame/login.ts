import type { Code } from '../../../shared/contracts/codes.ts'
import type * as en from '../../words/frame/login.ts'
import type { Said } from '../../words/frame/refusal.ts'

const ADMIN = 'Bitte an die Administration wenden.'
const AGAIN = 'Bitte neu beginnen.'

/** Why a sign-in through a provider was refused. */
export const REFUSED = {
  provider_unavailable: [
    'Der Identitätsanbieter ist nicht erreichbar.',
    'Später noch einmal versuchen oder sich anders anmelden.',
  ],
  provider_refuses_client: [
    'Ihr Anbieter nimmt diese Installation nicht an: ihr Geheimnis dort ist vielleicht abgelaufen.',
    'Bitte den Betrieb verständigen.',
  ],
  provider_factor_missing: [
    'Ihr Anbieter hat keinen zweiten Faktor verlangt.',
    'Dort einen einrichten, dann neu beginnen.',
  ],
  sign_in_expired: ['Diese Anmeldung ist abgelaufen oder wurde zweimal geöffnet.', AGAIN],
  sign_in_cancelled: [
    'Ihr Anbieter hat die Anmeldung abgelehnt, oder sie wurde abgebrochen.',
    'Neu beginnen oder die Administration fragen.',
  ],
  no_account: ['Sie haben hier noch kein Konto.', ADMIN],
  account_disabled: ['Ihr Konto ist deaktiviert.', ADMIN],
  username_missing: ['Ihr Anbieter gibt keinen Kontonamen für Sie an.', ADMIN],
  username_invalid: ['Kein Konto hier kann den Namen haben, den Ihr Anbieter angibt.', ADMIN],
  username_taken: ['Ihr Name gehört hier zu einem anderen Konto.', ADMIN],
  email_unverified: ['Der Anbieter hat Ihre E-Mail-Adresse nicht bestätigt.', 'Dort bestätigen, dann neu beginnen.'],
  domain_not_allowed: ['Ihre E-Mail-Domain ist hier nicht zugelassen.', 'Eine zugelassene Adresse verwenden.'],
  subject_changed: [
    'Der Anbieter nennt eine andere Person als bisher.',
    'Als dieselbe Person anmelden oder an die Administration wenden.',
  ],
  identity_linked: ['Diese Identität gehört zu einem anderen Konto.', 'Damit anmelden oder eine andere verknüpfen.'],
  reauth_failed: ['Der Anbieter hat Ihre Zugangsdaten nicht erneut abgefragt.', AGAIN],
} satisfies Partial<Record<Code, Said>>

/** The German texts for signing in. */
export const tLogin: typeof en.tLogin = {
  title: 'Anmelden',
  username: 'Benutzername',
  password: 'Passwort',
  show: 'Passwort anzeigen',
  hide: 'Passwort verbergen',
  caps: 'Die Feststelltaste ist an.',
  submit: 'Anmelden',
  sending: 'Anmeldung läuft …',
  passkey: 'Passkey verwenden',
  code: 'Code der Authenticator-App',
  code_note: 'App auf dem Telefon öffnen und die 6 Ziffern für Signalbox eingeben.',
  code_missing: 'Die 6 Ziffern aus der App eingeben.',
  code_refused: 'Der Code ist falsch oder schon benutzt. Den nächsten abwarten.',
  expired: 'Die Anmeldung ist abgelaufen. Bitte neu beginnen.',
  again: 'Neu beginnen',
  passkey_refused: 'Der Passkey wurde nicht angenommen. Noch einmal versuchen oder das Passwort verwenden.',
  wrong: 'Benutzername oder Passwort ist falsch, oder das Konto darf sich nicht anmelden.',
  later: (at: string) => `Zu viele Versuche. Wieder möglich ab ${at}.`,
  locked: 'Zu viele Versuche. Nur ein Administrator kann das Konto entsperren.',
  busy: (at: string) => `Es melden sich gerade zu viele an. Wieder möglich ab ${at}.`,
  away: (at: string) => `Die Anmeldung ist nicht verfügbar. Ab ${at} noch einmal versuchen.`,
  no_answer: 'Der Server hat nicht geantwortet. Netz prüfen und noch einmal versuchen.',
  failed: 'Die Anmeldung ist nicht verfügbar. Gleich noch einmal versuchen.',
  missing_username: 'Benutzernamen eingeben.',
  missing_password: 'Passwort eingeben.',
  signed_out: 'Sie sind abgemeldet.',
  not_told:
    'Hier sind Sie abgemeldet, aber der Server hat es nicht bestätigt. Der Browser beendet die Sitzung dort bald.',
  revoked: 'Ihre Sitzung wurde an anderer Stelle beendet. Bitte neu anmelden.',
  or: 'oder',
  emergency: 'Im Notfall mit Passwort anmelden',
  provider_required: 'Bitte zuerst über Ihren Anbieter anmelden.',
  closed: 'Dieses Konto meldet sich nicht mit Passwort an. Passkey oder Anbieter verwenden.',
  through: (title: string) => `Weiter mit ${title}`,
  refused: REFUSED,
  refused_otherwise: (code: string) =>
    `Die Anmeldung wurde zurückgewiesen (${code}). Bitte an die Administration wenden.`,
}

/** The German texts for a session that has ended, and for a decision that asks who the person is. */
export const tSession: typeof en.tSession = {
  title: 'Ihre Sitzung ist beendet',
  text: (name: string) => `Wieder als ${name} anmelden. Ihre Eingaben auf der Seite bleiben erhalten.`,
  new_tab: 'Anbieter öffnen sich in einem neuen Tab. Nach der Anmeldung dort geht es hier weiter.',
  someone_else: 'Als andere Person anmelden',
  confirm_title: 'Identität bestätigen',
  confirm_text: 'Ihre Anmeldung liegt länger zurück. Für diese Entscheidung das Passwort erneut eingeben.',
  confirm: 'Bestätigen',
  wrong: 'Das Passwort ist falsch.',
  use_code: 'Code verwenden',
  confirm_through: (title: string) => `Bestätigen mit ${title}`,
  confirm_away: (title: string) =>
    `Ihre Anmeldung liegt länger zurück. Bei ${title} bestätigen, von wo es hierher zurückgeht, oder mit Passkey oder Code.`,
  confirm_factor: 'Mit einem zweiten Faktor bestätigen: Passkey oder Code der Authenticator-App.',
  link: (title: string) => `Verknüpfen mit ${title}`,
  link_title: 'Identitätsanbieter',
  link_text: 'Nach dem Verknüpfen ist die Anmeldung auch dort möglich. Zugangsdaten werden beim Anbieter eingegeben.',
  link_stale: 'Ihre Anmeldung liegt zu lange zurück. Neu anmelden und binnen fünf Minuten verknüpfen.',
}
