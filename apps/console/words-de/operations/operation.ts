import type * as en from '../../words/operations/operation.ts'
import { count, list, number } from '../frame/plural.ts'

const finishing = (running: number): string =>
  running === 0
    ? 'Kein Schritt läuft'
    : count(running, 'Ein laufender Schritt endet noch', '{n} laufende Schritte enden noch')
/** Commands that have not taken effect yet. */
const KINDS: Record<string, string> = {
  start: 'starten',
  pause: 'anhalten',
  resume: 'fortsetzen',
  cancel: 'abbrechen',
  'force cancel': 'sofort abbrechen',
  retry: 'Schritt wiederholen',
  'retry node': 'Schritt wiederholen',
  intervene: 'Eingriff',
  'gate decided': 'Entscheidung einer Freigabe',
  'node result': 'Ergebnis eines Schritts',
  'node signal': 'Signal an einen Schritt',
  'patch proposed': 'Planänderung vorgeschlagen',
  'patch closed': 'Planänderung geschlossen',
  'patch applied': 'Planänderung angewendet',
  'catalog drift': 'Abweichung im Katalog',
  'lease granted': 'Belegung erteilt',
  'calendar changed': 'Kalender geändert',
  'place free': 'Platz frei',
}

/** The German texts for operations and their list. */
export const operations: typeof en.operations = {
  title: 'Vorgänge',
  tabs: {
    running: 'Offen',
    waiting: 'Handlungsbedarf',
    failed: 'Fehlgeschlagen',
    all: 'Alle',
    succeeded: 'Erfolgreich',
    cancelled: 'Abgebrochen',
  },
  ended_between: (from: string, to: string) => `Beendet: ${from} bis ${to}`,
  any_time: 'Beliebige Zeit',
  filters: {
    any: 'Beliebig',
    kind: 'Art',
    kinds: { change: 'Änderung', action: 'Aktion', runbook: 'Runbook', graph: 'Graph' },
    age: 'Angefordert seit',
    ages: { day: 'einem Tag', week: 'einer Woche', month: '30 Tagen' },
    by: 'Anforderer, oder me',
    env: 'Umgebung',
    on: 'ID einer Ressource',
  },
  filter: 'Vorgänge',
  search: 'Titel oder Ticket suchen',
  caption: 'Vorgänge, neueste zuerst',
  status: 'Status',
  operation: 'Vorgang',
  who: 'Angefordert von',
  progress: 'Fortschritt',
  waiting_on: 'Wartet auf',
  started: 'Begonnen',
  duration: 'Dauer',
  failed: (n: number) => `${number(n)} fehlgeschlagen`,
  ended: (part: number, whole: number) => `${number(part)} von ${number(whole)} beendet`,
  empty: {
    running: 'Kein Vorgang läuft.',
    waiting: 'Kein Handlungsbedarf.',
    failed: 'Kein Vorgang ist fehlgeschlagen.',
    all: 'Noch keine Vorgänge.',
    succeeded: 'Kein Vorgang war erfolgreich.',
    cancelled: 'Kein Vorgang wurde abgebrochen.',
  },
  no_match: 'Keine passenden Vorgänge.',
  clear: 'Filter zurücksetzen',
  see_all: 'Alle Vorgänge ansehen',
  demo: 'Einen Vorgang starten: npm run demo',
  /** Several operations paused, resumed or canceled together. */
  bulk: {
    title: 'Ausgewählte Vorgänge',
    select: (title: string) => `${title} auswählen`,
    selected: (n: number) => count(n, 'Ein Vorgang ausgewählt', '{n} Vorgänge ausgewählt'),
    most: (n: number) => `${number(n)} Vorgänge ausgewählt, mehr geht nicht auf einmal`,
    all: 'Alle auswählen',
    clear: 'Auswahl aufheben',
    open: { pause: 'Auswahl anhalten …', resume: 'Auswahl fortsetzen …', cancel: 'Auswahl abbrechen …' },
    titles: {
      pause: (n: number) => count(n, 'Diesen Vorgang anhalten?', 'Diese Vorgänge anhalten?'),
      resume: (n: number) => count(n, 'Diesen Vorgang fortsetzen?', 'Diese Vorgänge fortsetzen?'),
      cancel: (n: number) => count(n, 'Diesen Vorgang abbrechen?', 'Diese Vorgänge abbrechen?'),
    },
    buttons: {
      pause: (n: number) => count(n, 'Einen Vorgang anhalten', '{n} Vorgänge anhalten'),
      resume: (n: number) => count(n, 'Einen Vorgang fortsetzen', '{n} Vorgänge fortsetzen'),
      cancel: (n: number) => count(n, 'Einen Vorgang abbrechen', '{n} Vorgänge abbrechen'),
    },
    able: (n: number) => count(n, 'Ein Vorgang', '{n} Vorgänge'),
    out: 'Ausgelassen',
    none: 'Für keinen davon ist das jetzt möglich.',
    rest: (n: number) => count(n, 'Den letzten senden', 'Die übrigen {n} senden'),
    recorded: 'Aufgezeichnet, noch nicht bestätigt',
    held: 'Noch nicht gesendet',
    progress: (done: number, all: number) => `${number(done)} von ${number(all)} beantwortet.`,
  },
}

/** The German texts for one operation. */
export const operation: typeof en.operation = {
  tabs: {
    graph: 'Graph',
    nodes: 'Schritte',
    timeline: 'Verlauf',
    patches: 'Planänderungen',
    artifacts: 'Artefakte',
    evidence: 'Nachweise',
    activity: 'Aktivität',
  },
  tabs_label: 'Ansichten dieses Vorgangs',
  requested: (who: string) => `Angefordert von ${who}`,
  repeats: 'Folgt auf',
  plan: 'Plan',
  engine: 'In Temporal öffnen',
  nodes_done: (done: number, total: number) => `${number(done)} von ${number(total)} Schritten fertig`,
  failed: (n: number) => count(n, '{n} fehlgeschlagen', '{n} fehlgeschlagen'),
  running: (n: number) => count(n, '{n} läuft', '{n} laufen'),
  eta: (text: string) => `noch etwa ${text}`,
  blocked_on: (kind: string, id: string, message: string): string | undefined =>
    ({
      freeze: `Die Sperre ${id} hält Schritte auf.`,
      // A gate that was rejected or has expired also holds nodes.
      gate: message.endsWith(' waits for a decision.') ? `Freigabe ${id} wartet auf eine Entscheidung.` : undefined,
      lease: 'Andere Vorgänge halten die Ressourcen.',
      not_before: 'Beginnt frühestens: ',
      patch: 'Eine Planänderung hält Schritte auf, bis über sie entschieden ist.',
      window: `Das Zeitfenster ${id} ist geschlossen.`,
    })[kind],
  sentence: {
    queued: 'Eingereiht.',
    running: (n: number) => count(n, 'Läuft: ein Schritt in Arbeit.', 'Läuft: {n} Schritte in Arbeit.'),
    waiting_gate: 'Wartet auf eine Entscheidung:',
    more_gates: (n: number) => count(n, 'und eine weitere Freigabe', 'und {n} weitere Freigaben'),
    waiting_failed: 'Wartet nach einem Fehlschlag:',
    blocked: 'Blockiert:',
    pausing: (n: number, by: string) =>
      `Wird angehalten${by}${n > 0 ? count(n, ': Ein Schritt endet noch.', ': {n} Schritte enden noch.') : '.'}`,
    paused: (by: string) => `Angehalten${by}. Bis zum Fortsetzen startet kein neuer Schritt.`,
    by: (who: string, at: string) => ` von ${who}, ${at}`,
    cancelling: (n: number, by: string) =>
      `Wird abgebrochen${by}${n > 0 ? count(n, ': Ein Schritt endet noch.', ': {n} Schritte enden noch.') : '.'}`,
    succeeded: (duration: string) => `Erfolgreich nach ${duration}.`,
    succeeded_with_exceptions: (duration: string) => `Erfolgreich mit Ausnahmen nach ${duration}.`,
    failed: 'Fehlgeschlagen.',
    cancelled: (by: string) => `Abgebrochen${by}.`,
    timed_out: 'Zeit überschritten.',
  },
  /** Why the system paused or ended an operation. */
  system_reason: {
    node_failed: 'Ein Schritt ist fehlgeschlagen.',
    gate_rejected: 'Eine Freigabe wurde abgelehnt.',
    gate_expired: 'Eine Freigabe ist ohne Entscheidung abgelaufen.',
    deadline: 'Seine Frist ist abgelaufen.',
    failed_node: 'Ein Schritt ist fehlgeschlagen.',
    failure_budget: 'Mehr Schritte sind fehlgeschlagen, als der Plan erlaubt.',
    target_drift: 'Ein Ziel ist nicht wie geplant; sein Schritt nennt die Abweichung.',
    catalog_drift: 'Ziele haben sich seit dem Plan im Katalog geändert.',
    engine_lost: 'Die Temporal-Engine hat den Vorgang verloren.',
    engine_mismatch: 'Die Temporal-Engine kann den Vorgang so nicht fortsetzen.',
    start_withdrawn: 'Sie wurde zurückgezogen, bevor etwas begann.',
  },
  late: {
    applied: () => 'Ausgeführt.',
    refused: (kind: string) => `Aufgezeichnet, dann verweigert: ${kind}.`,
    withdrawn: (kind: string) => `Aufgezeichnet, dann zurückgezogen: ${kind}.`,
  },
  pause: {
    title: 'Diesen Vorgang anhalten?',
    button: 'Vorgang anhalten',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; bis zum Fortsetzen ${count(rest, 'startet einer nicht', 'starten {n} nicht')}.`,
  },
  resume: {
    title: 'Diesen Vorgang fortsetzen?',
    button: 'Vorgang fortsetzen',
    effect: (next: string[]) =>
      next.length === 0
        ? 'Kein Schritt startet sofort: Freigaben und Fehlschläge warten noch.'
        : `Als Nächstes starten: ${list.format(next)}.`,
    drifted: (names: string[]) => `Seit dem Plan im Katalog geändert: ${list.format(names)}.`,
    acknowledge: 'Geprüft. Die neuen Werte verwenden.',
  },
  cancel: {
    title: 'Diesen Vorgang abbrechen?',
    button: 'Vorgang abbrechen',
    mode: 'Art',
    graceful: 'Stoppen: Laufende Schritte enden noch, nichts startet neu, nichts wird zurückgebaut',
    force: 'Sofort stoppen: Laufende Schritte werden aufgegeben, ihr Ergebnis ist unbekannt',
    compensate: 'Stoppen und zurückbauen: erfolgreiche Schritte in umgekehrter Reihenfolge',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; ${count(rest, 'einer startet nicht mehr', '{n} starten nicht mehr')}.`,
    compensations: (n: number) =>
      n === 0
        ? 'Kein Schritt ist zurückzubauen.'
        : count(n, 'Ein Schritt wird zurückgebaut.', '{n} Schritte werden zurückgebaut.'),
  },
  retry: {
    moved: 'Dieser Schritt hat sich seit dem Öffnen des Dialogs geändert. Schließen und den Schritt neu ansehen.',
    decided: 'Diese Freigabe wartet nicht mehr. Schließen und den Vorgang neu ansehen.',
    title: 'Diesen Schritt wiederholen?',
    button: 'Schritt wiederholen',
    effect: (names: string[]) =>
      `${count(names.length, 'Dieser Schritt läuft', 'Diese Schritte laufen')} erneut: ${list.format(names)}.`,
    waiting: (names: string[]) =>
      `${count(names.length, 'Dieser Schritt wartet', 'Diese Schritte warten')} darauf: ${list.format(names)}.`,
    gates: (names: string[]) =>
      `${count(names.length, 'Diese Freigabe ist', 'Diese Freigaben sind')} erneut nötig: ${list.format(names)}.`,
    other_inputs: 'Mit anderen Eingaben',
    found: 'Das Ergebnis des letzten Versuchs ist unbekannt. Was ist am Ziel zu sehen?',
    findings: {
      effect_absent: 'Er hat nicht gewirkt',
      effect_present: 'Er hat vollständig gewirkt',
      effect_partial: 'Er hat teilweise gewirkt',
    },
  },
  kind: (kind: string) => KINDS[kind.replaceAll('_', ' ')] ?? kind,
  pending: (kind: string) => `ausstehend: ${kind}`,
  open: 'Vorgang öffnen',
  actions: 'Aktionen',
  action: {
    pause: 'Anhalten',
    resume: 'Fortsetzen',
    cancel: 'Abbrechen',
    again: 'Noch einmal ausführen',
    back: 'Zurücknehmen',
  },
  review_gate: 'Freigabe prüfen',
}
