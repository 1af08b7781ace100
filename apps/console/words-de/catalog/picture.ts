import type * as en from '../../words/catalog/picture.ts'
import { count } from '../frame/plural.ts'

const EFFECTS = { unhealthy: 'Gestört', degraded: 'Eingeschränkt' }

/** The German texts for relations as pictures. */
export const picture: typeof en.picture = {
  view: 'Darstellung',
  views: { picture: 'Bild', table: 'Tabelle' },
  keys: 'Pfeiltasten folgen den Beziehungen, die Eingabetaste öffnet eine Ressource.',
  neighbors: (name: string) => `Beziehungen von ${name}`,
  rest: (n: number) => count(n, 'noch eine, in der Tabelle', '{n} weitere, in der Tabelle'),
  more: (n: number) => count(n, 'noch eine', '{n} weitere'),
  needs: (title: string) => `Wer ${title} benötigt und bereitstellt`,
  becomes: (now: string, effect: 'unhealthy' | 'degraded') => `${now} → ${EFFECTS[effect]}`,
  partial: 'Nur ein Teil der Beziehungen ist geladen.',
}

/** The German texts for impact. */
export const impact: typeof en.impact = {
  title: (name: string) => `Wenn ${name} ausfällt`,
  sentence: (unhealthy: number, degraded: number) => {
    const all = [
      ...(unhealthy > 0 ? [count(unhealthy, 'eine ist dann gestört', '{n} sind dann gestört')] : []),
      ...(degraded > 0 ? [count(degraded, 'eine ist dann eingeschränkt', '{n} sind dann eingeschränkt')] : []),
    ].join(', ')
    return `${all.charAt(0).toUpperCase()}${all.slice(1)}.`
  },
  hidden: (n: number) => count(n, 'Eine davon dürfen Sie nicht sehen.', '{n} davon dürfen Sie nicht sehen.'),
  at_least: 'Es sind mehr: Die Zählung endete an ihrer Grenze.',
  shown: (n: number) => count(n, 'Gezeigt wird die schwerste.', 'Gezeigt werden die {n} schwersten.'),
  none: 'Keine Ressource hängt davon ab.',
  effect: 'Auswirkung',
  now: 'Jetzt',
  distance: 'Entfernung',
  path: 'Pfad',
}
