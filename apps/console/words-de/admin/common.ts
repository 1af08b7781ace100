import type * as en from '../../words/admin/common.ts'
import { count } from '../frame/plural.ts'

/** The German texts that the administration shares. */
export const common: typeof en.common = {
  title: 'Verwaltung',
  tabs: 'Seiten der Verwaltung',
  reason: 'Begründung',
  reason_needed: 'Begründung eingeben.',
  second: 'Eine zweite Person der Administration muss das unter „Änderungen“ bestätigen.',
  everywhere: 'Überall',
  never: 'Nie',
  remove: 'Entfernen',
  remove_one: (name: string) => `Entfernen: ${name}`,
  copy: 'Kopieren',
  losing: {
    none: 'Keine offene Freigabe verliert eine Stimme.',
    unknown: 'Die Wirkung auf offene Freigaben ist gerade nicht lesbar.',
    blocked: 'zu wenige bleiben, um sie zu erteilen.',
    left: (n: number) => count(n, 'eine Person kann noch stimmen.', '{n} Personen können noch stimmen.'),
    votes: (n: number) => count(n, 'Eine Stimme zählt nicht mehr.', '{n} Stimmen zählen nicht mehr.'),
    more: (n: number) => count(n, 'Noch eine Freigabe verliert Stimmen.', 'Noch {n} Freigaben verlieren Stimmen.'),
  },
  scope: {
    region_id: 'Region',
    datacenter_id: 'Rechenzentrum',
    layer_id: 'Ebene',
    segment_id: 'Segment',
    type_key: 'Ressourcentyp',
  },
}
