import type * as en from '../../words/admin/people.ts'

/** The German texts for users, their sessions and identities, groups and grants. */
export const user: typeof en.user = {
  title: 'Benutzer',
  empty: 'Keine passenden Benutzer.',
  search: 'Benutzer nach Namen suchen',
  columns: { name: 'Name', status: 'Status', roles: 'Rollen', groups: 'Gruppen', since: 'Angelegt' },
  create: 'Benutzer anlegen',
  create_effect: 'Das Konto bekommt einen Einmal-Link, um ein Passwort festzulegen.',
  username: 'Benutzername',
  first_role: 'Erste Rolle',
  machine: 'Dienstkonto',
  disable: 'Deaktivieren',
  disable_effect: 'Alle Sitzungen enden, keine Anmeldung ist möglich. Rechte bleiben.',
  sessions_pending: 'Die Sitzungen enden gleich.',
  enable: 'Aktivieren',
  enable_effect: 'Die Anmeldung ist wieder möglich. Frühere Sitzungen bleiben beendet.',
  delete: 'Löschen',
  delete_effect: 'Das Konto endet endgültig. Sein Name wird nie wieder vergeben.',
  link: 'Neuer Link',
  link_effect: 'Ein Einmal-Link legt ein neues Passwort fest.',
  recover: 'Wiederherstellen',
  recover_effect:
    'Passkeys, Anbieter-Verknüpfungen, Sitzungen und Passwort enden. Ein Einmal-Link legt ein neues Passwort fest. Wer sich über einen Anbieter anmeldet, verliert nur die Faktoren und richtet neue ein.',
  unlock: 'Entsperren',
  unlock_effect: 'Fehlversuche verzögern die nächste Anmeldung nicht mehr.',
  link_shown: 'Diesen Link jetzt übergeben. Er wird nur einmal gezeigt.',
}

export const session: typeof en.session = {
  title: 'Sitzungen',
  empty: 'Keine aktiven Sitzungen.',
  end: 'Beenden',
  end_one: (device: string) => `Sitzung beenden: ${device}`,
  end_effect: 'Dieses Gerät wird abgemeldet.',
  end_all: 'Alle Sitzungen beenden',
  end_all_effect: 'Jedes Gerät dieses Benutzerkontos wird abgemeldet.',
}

export const identity: typeof en.identity = {
  title: 'Identitäten bei Anbietern',
  empty: 'Keine Identität bei einem Anbieter.',
  provider: 'Anbieter',
  subject: 'Kennung',
  linked: 'Verknüpft',
  unlink: 'Lösen',
  unlink_one: (provider: string) => `Lösen: ${provider}`,
  unlink_effect:
    'Alle Sitzungen enden, ebenso die Rechte aus Anmeldungen dort. Nur Passwort oder ein weiterer Anbieter bleibt.',
}

export const unlinked: typeof en.unlinked = {
  title: 'Ohne Anbieter',
  about:
    'Aktive Personen, die kein Anbieter anmeldet. Wer dort ein zweites Konto hat, verknüpft das alte und gibt das neue auf; die Anleitung steht in apps/identity.',
  empty: 'Alle melden sich über einen Anbieter an.',
  twins: 'Vielleicht auch',
  emergency: 'Notfallkonto',
  invited: 'noch nie angemeldet',
}

export const group: typeof en.group = {
  title: 'Gruppen',
  empty: 'Noch keine Gruppen.',
  create: 'Gruppe anlegen',
  create_effect: 'Freigaberichtlinien nennen eine Gruppe mit ihrem Schlüssel. Er ändert sich nie.',
  rename: 'Umbenennen',
  rename_one: (name: string) => `Umbenennen: ${name}`,
  rename_effect: 'Nur der Name ändert sich. Schlüssel und Mitglieder bleiben.',
  delete: 'Löschen',
  delete_one: (name: string) => `Löschen: ${name}`,
  delete_effect: 'Mitgliedschaften und Rechte der Gruppe enden sofort. Sie gibt keine Freigaben mehr.',
  key: 'Schlüssel',
  name: 'Name',
  add: 'Mitglied hinzufügen',
  join: 'Zu Gruppe hinzufügen',
  join_effect: 'Die Rechte der Gruppe gelten für dieses Benutzerkonto.',
  member: 'Mitglied',
  added_by: 'Aufgenommen von',
  members: (name: string) => `Mitglieder von ${name}`,
  no_members: 'Keine Mitglieder.',
  group: 'Gruppe',
  leave: (user: string, group: string) => `${user} aus ${group} entfernen`,
  leave_effect: 'Die Rechte der Gruppe gelten nicht mehr für dieses Benutzerkonto.',
}

export const grant: typeof en.grant = {
  title: 'Rechte',
  empty: 'Keine Rechte.',
  columns: { subject: 'Für', role: 'Rolle', where: 'Wo', until: 'Bis', from: 'Herkunft' },
  add: 'Rolle vergeben',
  to: (name: string) => `Rolle vergeben an ${name}`,
  add_effect: 'Leere Felder bedeuten überall. Die Rollen admin und auditor gelten ohne Ort.',
  remove: (role: string, where: string, name: string) => `${role} (${where}) von ${name} entfernen`,
  remove_effect: 'Das Recht endet sofort.',
  direct: 'Direkt',
  until: 'Letzter Tag (UTC)',
  role: 'Rolle',
}
