import type * as en from '../../words/operations/intervene.ts'
import { count, list, number } from '../frame/plural.ts'

const EXCEPTION = ' Der Vorgang kann dann bestenfalls mit Ausnahmen erfolgreich enden.'

/** The German texts for interventions: changes to a node by a person, outside its plan. */
export const intervene: typeof en.intervene = {
  open: 'Eingreifen',
  title: (node: string) => `In ${node} eingreifen?`,
  button: 'Eingreifen',
  what: 'Eingriff',
  asked_on: 'Zustand bei der Anfrage',
  was: (state: string) => `Derzeit: ${state}.`,
  needed: 'Pflichtangabe.',
  an_object: 'es muss ein Objekt sein',
  a_number: 'Ganze Zahl ab 1 eingeben.',
  second: 'Das Risiko ist hoch: Eine zweite Person muss dies zuerst freigeben.',
  released: (resources: string[]) => `Belegung aufgehoben: ${list.format(resources)}.`,
  by: 'Angefordert von',
  ticket: 'Ticket',
  of: { operation: 'Vorgang', gate: 'Freigabe', attempt: 'Versuch eines externen Agenten' },
  hours: (n: number) => count(n, 'eine Stunde', '{n} Stunden'),
  types: {
    skip: {
      word: 'Überspringen: nicht ausführen',
      button: 'Schritt überspringen',
      effect: `Der Schritt läuft nicht; abhängige Schritte laufen ohne ihn weiter.${EXCEPTION}`,
    },
    mark_succeeded: {
      word: 'Als erfolgreich markieren: von Hand erledigt',
      button: 'Als erfolgreich markieren',
      effect: `Der Schritt gilt mit diesen Ausgaben als erfolgreich; abhängige Schritte laufen weiter.${EXCEPTION}`,
    },
    mark_failed: {
      word: 'Als fehlgeschlagen markieren: endet nicht mehr',
      button: 'Als fehlgeschlagen markieren',
      effect: `Der Schritt gilt als fehlgeschlagen; die Fehlerregel seines Plans greift.${EXCEPTION}`,
    },
    mark_compensated: {
      word: 'Als zurückgebaut markieren: von Hand zurückgebaut',
      button: 'Als zurückgebaut markieren',
      effect: `Der Schritt gilt als zurückgebaut; für ihn läuft kein Rückbau.${EXCEPTION}`,
    },
    set_output: {
      word: 'Ausgaben setzen',
      button: 'Ausgaben setzen',
      effect: 'Spätere Schritte nutzen sie. Freigaben mit anderen Ausgaben sind erneut nötig.',
    },
    set_input: {
      word: 'Eingaben setzen',
      button: 'Eingaben setzen',
      effect: 'Der nächste Lauf nutzt sie. Freigaben mit anderen Eingaben sind erneut nötig.',
    },
    trigger_compensation: {
      word: 'Zurückbauen: den Rückbau ausführen',
      button: 'Schritt zurückbauen',
      effect: `Der Rückbau des Schritts läuft; abhängige Schritte beginnen von vorn.${EXCEPTION}`,
    },
    set_limits: {
      word: 'Zahl gleichzeitiger Schritte begrenzen',
      button: 'Grenze setzen',
      effect: 'Laufende Schritte laufen weiter; neue starten nur innerhalb dieser Grenze.',
    },
    extend_deadline: {
      word: 'Eine Frist verlängern',
      button: 'Frist verlängern',
      effect: 'Die Frist verschiebt sich um diese Zeit.',
    },
    release_leases: {
      word: 'Belegungen aufheben, damit andere die Ressourcen ändern können',
      button: 'Belegungen aufheben',
      effect: 'Andere dürfen die Ressourcen ändern. Das Fortsetzen belegt sie neu und meldet die Änderungen.',
    },
    delegate_gate: {
      word: 'Eine weitere Person über eine Freigabe entscheiden lassen',
      button: 'Freigabe delegieren',
      effect: 'Die Person stimmt wie ein Mitglied der Gruppen ab. Das Vier-Augen-Prinzip gilt weiter.',
    },
    override_freeze: {
      word: 'Eine Änderungssperre übergehen',
      button: 'Änderungssperre übergehen',
      effect: `Die Änderungssperre hält diesen Vorgang nicht mehr auf.${EXCEPTION}`,
    },
  },
  fields: {
    outputs: { label: 'Ausgaben (JSON)', note: 'Die Ausgaben, die der Schritt gehabt hätte; {} wenn keine.' },
    note: { label: 'Von Hand erledigte Arbeit', note: 'Steht danach im Verlauf und in den Nachweisen.' },
    message: { label: 'Fehlermeldung', note: 'Wird als Fehler des Schritts gezeigt.' },
    input_overrides: {
      label: 'Eingaben (JSON)',
      note: 'Nur die geänderten Felder, als JSON Merge Patch der geplanten Eingaben.',
    },
    max_parallel: { label: 'Grenze', note: 'Zahl der Schritte, 1 bis 500.' },
    of: { label: 'Gegenstand der Frist', note: 'Wessen Frist sich verschiebt.' },
    id: { label: 'ID', note: 'Die ID der Freigabe oder des Schritts, zu dem der Versuch gehört.' },
    add_s: { label: 'Zusätzliche Minuten', note: 'Ganze Minuten, bis 1440 (ein Tag).' },
    gate_id: { label: 'Freigabe', note: 'Nur offene Freigaben.' },
    to_user: { label: 'Person (Benutzer-ID)', note: 'Wer anderswo über solche Freigaben entscheiden darf.' },
    until: { label: 'Dauer', note: 'Danach endet es von selbst.' },
    freeze_id: { label: 'Änderungssperre', note: 'Die ID der Änderungssperre im Kalender.' },
    payload: { label: 'Nutzdaten (JSON)', note: 'Die Nutzdaten dieses Eingriffs, wie in der API dokumentiert.' },
  },
}

const operation = (title: string) => (title ? `„${title}“` : 'ein anderer Vorgang')

/** The German texts for obstacles to a run. */
export const obstacles: typeof en.obstacles = {
  lease: (title: string, n: number) => `${operation(title)} hält ${number(n)} davon`,
  dependent: (title: string, n: number) =>
    `${operation(title)} ändert gerade ${count(n, '1 abhängige Ressource', '{n} abhängige Ressourcen')}`,
  waits: (title: string) => `${operation(title)} wird einige davon halten`,
  plan: (title: string, n: number) =>
    !title
      ? 'ein anderer fertiger Plan ändert einige davon'
      : count(n, `der fertige Plan „${title}“ ändert einige davon`, `{n} fertige Pläne „${title}“ ändern einige davon`),
  failed: (what: string) => `anderswo fehlgeschlagen: ${what}`,
  window: (title: string) => `das Zeitfenster ${title} ist geschlossen`,
  freeze: (title: string) => `Sperre „${title}“`,
}
