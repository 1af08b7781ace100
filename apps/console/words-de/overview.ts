import type * as en from '../words/overview.ts'
import { inSentence } from './frame/language.ts'
import { count, number } from './frame/plural.ts'

/** The German texts for the overview. */
export const tOverview: typeof en.tOverview = {
  title: 'Übersicht',
  now: 'Jetzt',
  waiting: (n: number) => count(n, 'Ein Eintrag wartet auf Sie', '{n} Einträge warten auf Sie'),
  waiting_all: (n: number) => count(n, 'Insgesamt wartet eine Freigabe', 'Insgesamt warten {n} Freigaben'),
  open: (n: number) => count(n, 'Ein Vorgang ist offen', '{n} Vorgänge sind offen'),
  attention: (n: number) => count(n, 'Ein Vorgang braucht Aufmerksamkeit', '{n} Vorgänge brauchen Aufmerksamkeit'),
  regions: {
    title: 'Regionen',
    none: 'Noch keine Regionen.',
    columns: {
      region: 'Region',
      health: 'Ressourcen',
      open: 'Offene Vorgänge',
      attention: 'Brauchen Aufmerksamkeit',
      gates: 'Offene Freigaben',
    },
    health: (n: number, word: string) => `${number(n)} ${inSentence(word)}`,
  },
  trends: 'Entwicklung',
  days: 'Zeitraum',
  period: { 14: '14 Tage', 30: '30 Tage', 90: '90 Tage' },
  measure: 'Kennzahl',
  this: 'Dieser Zeitraum',
  before: 'Zeitraum davor',
  outcomes: { succeeded: 'Erfolgreich', failed: 'Fehlgeschlagen', cancelled: 'Abgebrochen' },
  duration: 'Dauer bei Erfolg',
  approval: 'Zeit bis zur Freigabe',
  spread: (p50: string, p90: string) => `${p50}, 9 von 10 binnen ${p90}`,
  ended: 'Beendete Vorgänge je Tag',
  most: (n: number) => `Höchstwert je Tag: ${number(n)}`,
  none: 'In diesem Zeitraum endete kein Vorgang.',
  day: 'Tag',
  as_table: 'Als Tabelle',
  calendar: 'Nächste 14 Tage',
  freeze: 'Änderungssperre',
  window: 'Zeitfenster',
  kinds: { schedule: 'Zeitplan', operation: 'Vorgang muss enden', gate: 'Freigabe muss entschieden sein' },
  free: 'Frei',
  others: (n: number) => count(n, 'und ein weiterer Eintrag', 'und {n} weitere'),
  more: 'Geplant ist mehr, als hier gezeigt wird.',
}
