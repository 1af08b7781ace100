import type * as en from '../../words/frame/account.ts'

/** German words of one’s own account: sessions, password, first sign-in, display. */
export const sessions: typeof en.sessions = {
  title: 'Aktive Sitzungen',
  note: 'Jede Sitzung abmelden, die Sie nicht kennen. Das wirkt sofort.',
  device: 'Browser oder Programm',
  on: (browser: string, system: string) => `${browser} unter ${system}`,
  unknown: 'Unbekannt',
  current: 'Diese Sitzung',
  address: 'Adresse',
  last_used: 'Zuletzt benutzt',
  since: 'Angemeldet',
  end: 'Abmelden',
  end_one: (device: string) => `${device} abmelden`,
  ended: 'Sitzung abgemeldet.',
  end_others: 'Überall sonst abmelden',
  ended_others: 'Überall sonst abgemeldet.',
}

/** German words of passkeys. */
export const passkeys: typeof en.passkeys = {
  title: 'Passkeys',
  note: 'Ein Passkey meldet ohne Passwort an und unterschreibt Stimmen, wo eine Freigabe es verlangt.',
  name: 'Name des neuen Passkeys',
  add: 'Passkey hinzufügen',
  added: 'Passkey hinzugefügt.',
  remove: 'Entfernen',
  remove_one: (name: string) => `${name} entfernen`,
  removed: 'Passkey entfernt.',
  since: 'Hinzugefügt',
  last_used: 'Zuletzt benutzt',
  missing_name: 'Namen für den Passkey eingeben.',
  cancelled: 'Es wurde kein Passkey benutzt. Noch einmal versuchen oder einen anderen nehmen.',
  empty: 'Sie haben keine Passkeys.',
}

/** German words of the sign-in of a device. */
export const device: typeof en.device = {
  title: 'Gerät anmelden',
  note: 'Den Code eingeben, den signalbox login --device im Terminal zeigt.',
  code: 'Code',
  missing: 'Code eingeben.',
  look: 'Weiter',
  request: (host: string) => `Anmeldung von ${host}`,
  machine: 'Rechner',
  client: 'Programm',
  clients: { 'signalbox-cli': 'Signalbox-Befehlszeile' },
  address: 'Adresse',
  asked: 'Angefragt',
  only_yours: (host: string) => `Nur zulassen, wenn Sie diese Anmeldung gerade auf ${host} begonnen haben.`,
  phishing:
    'Code oder Link von anderen: verweigern. Sonst handelt jemand in Ihrem Namen. Wir fragen nie nach dem Code.',
  elsewhere: 'Die Anfrage kam von einer anderen Adresse als Ihrer.',
  approve: 'Zulassen',
  deny: 'Verweigern',
  approved: (host: string, name: string) => `${host} meldet sich als ${name} an. Die Sitzung ist jederzeit beendbar.`,
  denied: 'Verweigert. Das Gerät bekommt keine Sitzung.',
}

/** German words of the authenticator app. */
export const totp: typeof en.totp = {
  title: 'Authenticator-App',
  note: 'Mit App verlangt die Anmeldung per Passwort zusätzlich 6 Ziffern. Der Code unterschreibt keine Stimmen.',
  add: 'App einrichten',
  replace: 'App ersetzen',
  scan: 'Mit der Authenticator-App scannen',
  type: 'Oder diesen Schlüssel in die App eingeben. Er wird nur jetzt gezeigt.',
  code: 'Code aus der App',
  confirm: 'Einschalten',
  cancel: 'Zurück',
  on_since: 'Eingeschaltet:',
  none: 'Sie haben keine Authenticator-App.',
  set: 'Die Authenticator-App ist eingeschaltet.',
  remove: 'App entfernen',
  removed: 'Die Authenticator-App ist entfernt.',
}

/** German words of notifications. */
export const notifications: typeof en.notifications = {
  title: 'Benachrichtigungen',
  note: 'Gemeldet wird, was auf Ihre Stimme wartet. Ruhezeiten und Stufen: signalbox notify rules.',
  kind: 'Art',
  kinds: { email: 'E-Mail', webhook: 'Webhook', slack: 'Slack', teams: 'Teams', push: 'Browser' },
  device: {
    title: 'Dieses Gerät',
    start: 'Auf diesem Gerät benachrichtigen',
    started: 'Dieses Gerät wird benachrichtigt, solange Sie angemeldet sind.',
    stop: 'Auf diesem Gerät nicht mehr benachrichtigen',
    stopped: 'Dieses Gerät wird nicht mehr benachrichtigt.',
    blocked: 'Der Browser blockiert Benachrichtigungen. In seinen Einstellungen erlauben, dann noch einmal versuchen.',
    unsupported: 'Dieser Browser zeigt hier keine Benachrichtigungen. Auf dem iPhone zuerst Signalbox installieren.',
    off: 'Diese Installation benachrichtigt keine Browser.',
    install: 'Installieren',
    install_note: 'Im Menü des Browsers „Installieren“ oder „Zum Home-Bildschirm“ wählen.',
  },
  address: 'E-Mail-Adresse oder URL',
  address_note: 'Eine E-Mail-Adresse bekommt erst einen Code. Von einer URL bleibt nur der Ursprung sichtbar.',
  missing_address: 'Adresse eingeben.',
  to: 'Adresse',
  status: 'Status',
  statuses: { unconfirmed: 'Unbestätigt', active: 'Aktiv', disabled: 'Deaktiviert' },
  add: 'Ziel hinzufügen',
  added: 'Ziel hinzugefügt.',
  code: (address: string) => `Code, gesendet an ${address}`,
  confirm: 'Bestätigen',
  confirmed: 'Adresse bestätigt.',
  missing_code: 'Die acht Ziffern aus der E-Mail eingeben.',
  test: 'Test senden',
  test_one: (address: string) => `Test senden an ${address}`,
  tested: 'Ein Test ist unterwegs.',
  remove: 'Entfernen',
  remove_one: (address: string) => `${address} entfernen`,
  removed: 'Ziel entfernt.',
  empty: 'Sie haben keine Ziele.',
  log: 'Letzte Nachrichten',
  no_log: 'Noch keine Nachrichten.',
  about: 'Worüber',
  purposes: { notices: 'Entscheidungen', outcome: 'Ergebnis', code: 'Code', test: 'Test', security: 'Ihr Konto' },
  state: 'Stand',
  states: { queued: 'Eingereiht', sent: 'Gesendet', dead: 'Aufgegeben', obsolete: 'Nicht mehr nötig' },
  at: 'Erstellt',
  error: 'Letzter Fehler',
  again: 'Noch einmal senden',
  again_one: (about: string) => `Noch einmal senden: ${about}`,
  queued: 'Die Nachricht wird noch einmal gesendet.',
}

/** German words of the change of one’s password. */
export const password: typeof en.password = {
  title: 'Passwort ändern',
  note: 'Das meldet alle Ihre anderen Sitzungen ab.',
  current: 'Bisheriges Passwort',
  next: 'Neues Passwort',
  wrong: 'Das ist nicht Ihr bisheriges Passwort.',
  submit: 'Passwort ändern',
  sending: 'Wird geändert …',
  done: 'Passwort geändert.',
  rules: 'Anforderungen an das Passwort',
  guessing: 'Schwer zu erraten, wie es der Server beurteilt',
  rule: {
    PasswordTooWeakError: 'Mindestens acht Zeichen',
    PasswordMissingUppercaseError: 'Ein Großbuchstabe',
    PasswordMissingLowercaseError: 'Ein Kleinbuchstabe',
    PasswordMissingDigitError: 'Eine Ziffer',
    PasswordMissingSpecialCharError: 'Ein Zeichen außer Buchstaben und Ziffern',
  },
  met: 'erfüllt',
  not_met: 'fehlt',
}

/** German words of the first sign-in. */
export const enrol: typeof en.enrol = {
  title: 'Passwort festlegen',
  submit: 'Passwort festlegen',
  sending: 'Wird festgelegt …',
  done: 'Ihr Passwort ist festgelegt',
  next: 'Der Link ist verbraucht. Mit Benutzername und neuem Passwort anmelden.',
  token: 'Anmeldeschlüssel aus dem Link',
  token_note: 'Der Teil nach # in Ihrem Link. Er gilt einmal.',
  half: 'Die andere Hälfte des Links',
  half_note: 'Ihr Link kam in zwei Hälften, von zwei Personen der Administration. Die andere hier einfügen.',
}

/** German words of the display settings. */
export const display: typeof en.display = {
  title: 'Anzeige',
  language: 'Sprache',
  languages: { en: 'English', de: 'Deutsch' },
  theme: 'Farbschema',
  themes: { system: 'System', light: 'Hell', dark: 'Dunkel' },
  contrast: 'Kontrast',
  contrasts: { system: 'System', more: 'Hoch' },
  density: 'Dichte der Tabellen',
  densities: { comfortable: 'Normal', compact: 'Kompakt' },
  zone: 'Zeitzone',
  zones: { utc: 'UTC', local: 'Ortszeit' },
  shortcuts: 'Kurzbefehle mit einer Taste',
  on: 'An',
  off: 'Aus',
  note: 'Nur in diesem Browser gespeichert.',
}
