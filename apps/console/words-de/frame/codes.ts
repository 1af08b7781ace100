import type { Code, CodeOf } from '../../../shared/contracts/codes.ts'
import type { Said } from '../../words/frame/refusal.ts'
import { REFUSED } from './login.ts'

/** Every code of these categories has a German text; of the others, only those that people meet. */
type Whole = Exclude<
  CodeOf<
    | 'policy_denied'
    | 'gate_not_waiting'
    | 'plan_locked'
    | 'patch_not_applicable'
    | 'invalid_state_transition'
    | 'stale_catalog_projection'
    | 'rate_limited'
    | 'unavailable'
    | 'internal_error'
  >,
  'not_an_agent' | 'sandbox_needed' | 'machine_vote' | 'signature_invalid' | 'certificate_required'
>
type Codes = Readonly<Record<Whole, Said> & Partial<Record<Exclude<Code, Whole>, Said>>>

const READ = 'Neu laden und über den jetzigen Stand entscheiden.'
const FIX = 'Die genannten Felder berichtigen.'
const WAIT = 'Gleich noch einmal versuchen.'
const AGAIN = 'Von vorn beginnen.'
const CHECK = 'Kennung und eigene Rollen prüfen.'
const ADMIN = 'Die Administration fragen.'
const OTHER = 'Eine andere Person muss entscheiden.'
const STATE = 'Den Vorgang ansehen.'

/** The German texts for refusals. */
const CODES: Codes = {
  ...REFUSED,
  // Not allowed
  device_grant_off: [
    'Geräte werden hier nicht per Code angemeldet.',
    'Mit Passwort oder über einen Anbieter anmelden.',
  ],
  local_login_closed: [
    'Passwörter gelten hier nur für Notfallkonten.',
    'Über den Identitätsanbieter oder mit einem Passkey anmelden.',
  ],
  provider_required: [
    'Der Anbieter dieses Kontos hat die Person zu lange nicht angemeldet.',
    'Über den Anbieter anmelden, oder ihn durch die Administration lösen lassen.',
  ],
  permission_missing: ['Ihnen fehlt ein Recht.', 'Die Administration um eine Rolle bitten, die es hat.'],
  out_of_scope: ['Ihre Rollen gelten hier nicht.', 'Um eine Rolle bitten, die hier gilt.'],
  reauth_required: ['Die Anmeldung liegt zu lange zurück.', 'Die Identität bestätigen und wiederholen.'],
  invalid_token: ['Die Anmeldung gilt nicht mehr.', 'Neu anmelden.'],
  csrf_failed: ['Die Anfrage konnte dieser Seite nicht zugeordnet werden.', 'Die Seite neu laden.'],
  origin_not_allowed: ['Von dieser Adresse sind keine Anfragen erlaubt.', 'Die richtige Adresse öffnen.'],
  network_refused: [
    'Dieses Dienstkonto darf von dieser Adresse nicht benutzt werden.',
    'Aus einem erlaubten Netz aufrufen.',
  ],
  last_way_in: ['Das Konto hat keine andere Anmeldung.', 'Zuerst einen Anbieter verknüpfen oder Passkey hinzufügen.'],
  person_required: ['Das darf nur ein Mensch.', 'Mit dem eigenen Konto anmelden.'],
  freeze_elsewhere: ['Diese Änderungssperre kommt aus einer Datei oder einem System.', 'Dort zurückziehen.'],
  not_your_schedule: ['Diesen Zeitplan setzt nur sein Besitzer in Gang.', 'Einen eigenen Zeitplan anlegen.'],
  self_action: ['Das geht nicht am eigenen Konto.', 'Eine andere Person der Administration bitten.'],
  self_grant: ['Sich selbst kann niemand Rechte geben.', 'Eine andere Person der Administration bitten.'],
  second_admin: ['Diese Änderung ist von Ihnen oder betrifft Sie.', 'Eine andere Person muss sie bestätigen.'],
  not_your_change: ['An dieser Änderung sind Sie nicht beteiligt.', 'Fragen, wer sie angefordert hat, oder ablehnen.'],
  renewal_required: ['Eine Person hat den ganzen Link dieses Kontos gesehen.', 'Einen neuen Link anfordern.'],
  bulk_not_allowed: ['Diese Freigabe wird nicht mit anderen entschieden.', 'Einzeln öffnen und entscheiden.'],
  self_approval: ['Sie sind an diesem Vorgang beteiligt.', OTHER],
  self_patch_approval: ['Sie haben diese Planänderung vorgeschlagen.', OTHER],
  second_person_needed: [
    'Eine zweite Person muss das zuerst sehen.',
    'Anhalten, ohne neue Eingaben wiederholen und die Eingaben durch einen Eingriff setzen.',
  ],
  second_person: ['Sie haben bereits zugestimmt.', OTHER],
  not_eligible: ['Sie sind in keiner Gruppe, die hier entscheidet.', 'Eine berechtigte Person fragen.'],
  assertion_invalid: ['Der Passkey wurde nicht angenommen.', 'Einen eigenen Passkey dieser Seite benutzen.'],
  totp_invalid: ['Der Code ist falsch oder schon benutzt.', 'Den nächsten Code abwarten und die Uhr prüfen.'],
  second_factor_required: ['Das Passwort stimmt; ein zweiter Faktor fehlt noch.', 'Passkey oder Code der App angeben.'],
  factor_required: ['Dafür ist ein zweiter Faktor nötig.', 'Unter „Passkeys und Codes“ bestätigen oder hinzufügen.'],
  signature_required: ['Diese Freigabe braucht Ihren Passkey.', 'Unter „Passkeys und Codes“ einen hinzufügen.'],
  tainted_right: ['Dieses Recht gab Ihnen ein Beteiligter oder erst ein Anbieter.', OTHER],
  hard_policy: ['Eine Richtlinie verbietet das.', 'Die genannte Richtlinie lesen.'],
  risk_ceiling: ['Der Plan ist riskanter, als das Vorhaben erlaubt.', 'Grenze anheben oder weniger ändern.'],
  secret_not_allowed: ['Der Pool darf dieses Geheimnis nicht lesen.', 'Einen anderen Pool benutzen.'],
  force_not_allowed: ['Sie dürfen das nicht erzwingen.', 'Um das Recht bitten oder nicht erzwingen.'],
  break_glass_not_allowed: ['Notfallzugriff ist hier nicht erlaubt.', 'Die regulären Stimmen abwarten.'],
  // Gates, plans, patches
  not_reached: ['Der Vorgang ist noch nicht bei dieser Freigabe.', 'Warten, bis die Freigabe wartet.'],
  already_decided: ['Die Freigabe ist bereits entschieden.', 'Die Freigabe ansehen.'],
  already_consumed: ['Die Entscheidung wirkt bereits.', STATE],
  expired: ['Die Frist der Freigabe ist abgelaufen.', STATE],
  cancelled: ['Der Vorgang ist abgebrochen.', STATE],
  round_superseded: ['Die Freigabe hat eine neue Runde.', 'Die Freigabe noch einmal prüfen.'],
  already_started: ['Dieser Plan ist bereits gestartet.', 'Seinen Vorgang ansehen.'],
  resource_lease_held: ['Ein anderer Vorgang belegt ein Ziel.', 'Sein Ende abwarten oder beim Start einreihen.'],
  base_revision_moved: ['Der Graph hat sich seit der Planänderung geändert.', 'Auf den neuen Stand heben.'],
  node_already_dispatched: ['Ein zu ändernder Schritt hat begonnen.', 'Diesen Schritt auslassen.'],
  patch_overlap: ['Eine andere offene Planänderung hält einen der Schritte.', 'Ihre Entscheidung abwarten.'],
  unsound: ['Der neue Graph wäre fehlerhaft.', FIX],
  // States and versions
  intent_closed: ['Das Vorhaben ist geschlossen.', 'Ein neues Vorhaben anlegen.'],
  plan_not_ready: ['Der Plan kann nicht gestartet werden.', 'Die Vorschau des Vorhabens erneuern.'],
  operation_terminal: ['Der Vorgang ist beendet.', 'Einen neuen starten.'],
  already_paused: ['Der Vorgang ist bereits angehalten.', 'Fortsetzen, sobald er weitergehen soll.'],
  not_paused: ['Der Vorgang ist nicht angehalten.', STATE],
  already_cancelling: ['Der Vorgang wurde zuvor abgebrochen.', STATE],
  command_withdrawn: ['Der Befehl hatte keine Wirkung.', 'Den Vorgang neu ansehen, dann erneut senden.'],
  mode_not_allowed: ['So lässt sich jetzt nicht abbrechen.', 'Eine andere Art wählen.'],
  force_needs_cancel_first: ['Erzwingen geht nur nach einem Abbruch.', 'Zuerst abbrechen.'],
  cooloff_not_elapsed: ['Zum Erzwingen ist es zu früh.', 'Die angegebene Zeit abwarten.'],
  outcome_unknown_open: ['Das Ergebnis eines Schritts ist unbekannt.', 'Zuerst diesen Schritt klären.'],
  engine_lost: ['Die Engine hat den Vorgang verloren.', 'Die Technik schließt ihn.'],
  node_not_retryable: ['Der Schritt kann nicht noch einmal laufen.', 'Seinen Zustand ansehen.'],
  cone_in_flight: ['Ein folgender Schritt läuft bereits.', 'Sein Ende abwarten.'],
  intervention_not_applicable: ['Der Eingriff passt nicht zum jetzigen Zustand.', 'Den Schritt neu ansehen.'],
  patch_closed: ['Über die Planänderung ist bereits entschieden.', 'Eine neue vorschlagen.'],
  delivery_not_dead: ['Diese Benachrichtigung ist noch unterwegs.', 'Ihren Stand ansehen.'],
  destination_not_active: ['Das Ziel ist nicht aktiv.', 'Bestätigen oder neu anlegen.'],
  operation_running: ['Der Vorgang läuft noch.', 'Sein Ende abwarten, oder ihn abbrechen.'],
  nothing_changed: ['Der Vorgang hat keine Änderung, die sich zurücknehmen lässt.', 'Seine Schritte ansehen.'],
  no_state_before: ['Der Stand eines Ziels davor ist nicht bekannt.', 'Die gewünschte Änderung neu anlegen.'],
  changed_since: ['Ein Ziel hat sich seither geändert.', 'Zuerst die spätere Änderung zurücknehmen.'],
  target_gone: ['Ein Ziel gibt es nicht mehr.', 'Nur die anderen zurücknehmen.'],
  schedule_ended: ['Der Zeitplan ist beendet.', 'Einen neuen anlegen.'],
  freeze_ended: ['Die Sperre ist beendet.', 'Den Kalender ansehen.'],
  no_webhook: ['Der Zeitplan hat keinen Webhook.', 'Einen mit Webhook anlegen.'],
  resource_version_moved: ['Ein Ziel hat sich seit dem Plan geändert.', 'Die Vorschau erneuern.'],
  reservation_lost: ['Eine Reservierung, auf die der Plan baut, ist abgelaufen.', 'Neu reservieren, dann wiederholen.'],
  drift_unacknowledged: ['Ziele weichen vom Soll ab.', 'Die Abweichung prüfen und bestätigen.'],
  projection_gap: ['Die Kopie des Katalogs hat eine Lücke.', WAIT],
  projection_lag: ['Die Kopie des Katalogs ist veraltet.', WAIT],
  version_mismatch: ['Das Objekt hat eine andere Version.', READ],
  revision_moved: ['Der Vorgang hat sich inzwischen geändert.', READ],
  digest_moved: ['Das Geprüfte hat sich geändert.', READ],
  plan_hash_moved: ['Der Plan ist nicht der geprüfte.', READ],
  generation_moved: ['Der Schritt ist inzwischen noch einmal gelaufen.', READ],
  in_progress: ['Dieselbe Anfrage läuft bereits.', WAIT],
  already_exists: ['Das Objekt gibt es bereits.', 'Eine andere Kennung wählen oder das Objekt ändern.'],
  challenge_expired: ['Die Anfrage nach dem Faktor ist abgelaufen.', AGAIN],
  device_decided: ['Über die Anmeldung des Geräts ist entschieden.', 'Am Gerät neu beginnen.'],
  passkey_known: ['Dieser Passkey ist bereits eingetragen.', 'Diesen benutzen oder einen anderen wählen.'],
  too_many_passkeys: ['Mehr als 10 Passkeys sind nicht möglich.', 'Zuerst einen entfernen.'],
  too_many_credentials: ['Das Dienstkonto hat so viele Schlüssel, wie es darf.', 'Einen widerrufen.'],
  kid_taken: ['Ein anderer Schlüssel des Dienstkontos hat diese kid.', 'Eine andere wählen oder jenen widerrufen.'],
  last_admin: ['Es bliebe niemand in der Administration.', 'Zuerst einer anderen Person die Rolle geben.'],
  change_pending: [
    'Die Änderung wartet auf eine zweite Person der Administration.',
    'Nach der Bestätigung wiederholen.',
  ],
  change_closed: ['Die Änderung ist nicht mehr offen.', 'Bei Bedarf neu anfordern.'],
  user_deleted: ['Das Benutzerkonto ist endgültig gelöscht.', 'Ein neues mit anderem Namen anlegen.'],
  user_disabled: ['Das Benutzerkonto ist deaktiviert.', 'Das Konto zuerst aktivieren.'],
  username_taken: ['Der Benutzername ist vergeben.', 'Einen anderen wählen.'],
  view_exists: ['Eine Ansicht dieses Namens gibt es bereits.', 'Anders benennen oder jene ändern.'],
  group_exists: ['Die Gruppe gibt es bereits.', 'Einen anderen Schlüssel wählen.'],
  group_managed: [
    'Ein Verzeichnis nennt die Gruppe, die dieses Recht gibt; es käme wieder.',
    'Person dort aus der Gruppe nehmen oder das Konto sperren.',
  ],
  provider_account: ['Das Konto meldet sich über einen Anbieter an.', 'Über den Anbieter anmelden.'],
  grant_exists: ['Dieses Recht ist bereits vergeben.', 'Die vergebenen Rechte ansehen.'],
  // Unknown objects
  not_found: ['Dieses Objekt gibt es nicht.', CHECK],
  gone: ['Diese Daten sind nicht mehr aufbewahrt.', 'Den Export benutzen.'],
  history_pruned: ['Diese Version ist nicht mehr aufbewahrt.', 'Die vorhandenen Versionen ansehen.'],
  resource: ['Diese Ressource gibt es nicht, oder sie ist für Sie nicht sichtbar.', CHECK],
  intent: ['Dieses Vorhaben gibt es nicht, oder es ist für Sie nicht sichtbar.', CHECK],
  plan: ['Diesen Plan gibt es nicht, oder er ist für Sie nicht sichtbar.', CHECK],
  schedule: ['Diesen Zeitplan gibt es nicht, oder er ist für Sie nicht sichtbar.', CHECK],
  operation: ['Diesen Vorgang gibt es nicht, oder er ist für Sie nicht sichtbar.', CHECK],
  node: ['Diesen Schritt hat der Vorgang nicht.', 'Die Schritte des Vorgangs ansehen.'],
  gate: ['Diese Freigabe hat der Vorgang nicht.', 'Die Freigaben des Vorgangs ansehen.'],
  patch: ['Diese Planänderung hat der Vorgang nicht.', 'Die Planänderungen des Vorgangs ansehen.'],
  artifact: ['Dieses Artefakt hat der Vorgang nicht.', 'Die Artefakte des Vorgangs ansehen.'],
  attempt: ['Diesen Versuch hat der Schritt nicht.', 'Den Schritt ansehen.'],
  device_request: ['Kein Gerät wartet auf diesen Code.', 'Den Code prüfen oder am Gerät neu beginnen.'],
  freeze: ['Diese Änderungssperre gibt es nicht.', 'Den Kalender ansehen.'],
  // The request
  schema_violation: ['Ein Feld passt nicht zu seiner Beschreibung.', FIX],
  parameters_invalid: ['Die Werte passen nicht zu ihrer Beschreibung.', FIX],
  target_not_found: ['Eine genannte Ressource gibt es nicht.', 'Die genannten Kennungen prüfen.'],
  no_targets: ['Das Vorhaben wählt kein Ziel aus.', 'Ziele oder Bedingungen berichtigen.'],
  too_many_targets: ['Das Vorhaben wählt zu viele Ziele aus.', 'In mehrere Vorhaben teilen.'],
  unknown_procedure: ['Diese Prozedur gibt es nicht.', 'Eine vorhandene Prozedur wählen.'],
  unsupported_change: ['Keine Prozedur macht diese Änderung.', 'Eine unterstützte Änderung anfordern.'],
  unknown_reference: ['Die Anfrage nennt etwas Unbekanntes.', FIX],
  expression_error: ['Ein Ausdruck lässt sich nicht auswerten.', FIX],
  filter_invalid: ['Der Filter ist nicht lesbar.', 'An der genannten Stelle berichtigen.'],
  query_too_expensive: ['Die Abfrage würde zu viel lesen.', 'Enger fassen.'],
  reconciliation_required: ['Das Ergebnis des letzten Versuchs ist unbekannt.', 'Angeben, wie es um das Ziel steht.'],
  cycle: ['Die Abhängigkeiten bildeten einen Kreis.', 'Eine der genannten entfernen.'],
  too_large: ['Die Anfrage ist zu groß.', 'Teilen.'],
  blocked_by_dependents: ['Andere Ressourcen hängen von dieser ab.', 'Zuerst diese umstellen oder stilllegen.'],
  current_password_wrong: ['Das jetzige Passwort ist falsch.', 'Noch einmal eingeben.'],
  enrolment_token_invalid: ['Der Link ist unbekannt, benutzt oder abgelaufen.', 'Um einen neuen Link bitten.'],
  sign_out_link_invalid: [
    'Der Link ist unbekannt, benutzt oder abgelaufen.',
    'Unter Einstellungen die Sitzungen beenden oder einen Administrator darum bitten.',
  ],
  PasswordTooWeakError: ['Das Passwort ist zu kurz oder zu leicht zu erraten.', 'Ein längeres wählen.'],
  scope_not_allowed: ['Die Rolle gilt überall.', 'Ohne Geltungsbereich vergeben.'],
  machine_role_refused: ['Ein Dienstkonto kann diese Rolle nicht haben.', 'Eine Rolle ohne Entscheidungen wählen.'],
  machine_owner_invalid: ['Ein Besitzer ist keine aktive Person.', 'Personen nennen, die sich anmelden können.'],
  too_many_schedules: ['Mehr Zeitpläne sind nicht möglich.', 'Einen nicht mehr gebrauchten beenden.'],
  too_many_views: ['Mehr Ansichten sind nicht möglich.', 'Eine löschen.'],
  too_many_destinations: [
    'Mehr Ziele, Codes oder Proben sind nicht möglich.',
    'Eines entfernen oder einen Tag warten.',
  ],
  notifications_off: ['Das versendet diese Installation nicht.', ADMIN],
  address_refused: ['Diese Adresse darf nicht aufgerufen werden.', 'https benutzen oder die Adresse zulassen lassen.'],
  code_wrong: ['Der Code ist falsch oder zu alt.', 'Den der neuesten Mail eingeben.'],
  invalid_credentials: ['Benutzername oder Passwort ist falsch.', 'Beides prüfen.'],
  invalid_grant: ['Die Sitzung gilt nicht mehr.', 'Neu anmelden.'],
  // The service
  rate_limited: ['Zu viele Anfragen.', 'Kurz warten.'],
  login_locked: ['Zu viele Anmeldungen sind gescheitert.', 'Kurz warten.'],
  totp_locked: ['Zu viele Codes waren falsch.', 'Einen Passkey benutzen oder warten.'],
  login_busy: ['Die Anmeldung ist ausgelastet.', WAIT],
  dependency_down: ['Eine Datenbank oder ein Dienst antwortet nicht.', WAIT],
  overloaded: ['Der Dienst ist überlastet.', WAIT],
  revocation_unknown: ['Unklar, ob die Anmeldung noch gilt.', WAIT],
  upstream_failed: ['Ein Teil des Dienstes war nicht erreichbar.', WAIT],
  upstream_timeout: ['Ein Teil des Dienstes hat nicht rechtzeitig geantwortet.', WAIT],
  unexpected: ['Im Dienst ist ein Fehler aufgetreten.', 'Wiederholen; sonst die Kennung der Anfrage melden.'],
  unavailable: ['Eine Datenbank oder ein Dienst antwortet nicht.', WAIT],
  restored: ['Die Datenbank wurde wiederhergestellt und noch nicht angenommen.', ADMIN],
}

/** `undefined` for a code that has no text here, or that this release does not know. */
export const saidOf = (code: string): Said | undefined =>
  Object.hasOwn(CODES, code) ? CODES[code as keyof Codes] : undefined
