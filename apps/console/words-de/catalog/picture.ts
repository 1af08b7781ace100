import type * as en from '../../words/catalog/picture.ts'
import { count, number } from '../frame/plural.ts'

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

const ASSUMED = { unhealthy: 'ausfällt', gone: 'fehlt', maintenance: 'gewartet wird' }

/** The German texts for impact. */
export const impact: typeof en.impact = {
  assume: 'Angenommen, sie',
  assumptions: { unhealthy: 'fällt aus', gone: 'fehlt', maintenance: 'wird gewartet' },
  title: (name: string, assumed: keyof typeof ASSUMED) => `Wenn ${name} ${ASSUMED[assumed]}`,
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
  healthy: 'Wartung gibt keine Störung weiter: Keine andere Ressource ändert sich.',
  without: 'Bedarf, den sie deckt',
  unmet: (unmet: number, all: number) =>
    all === 0 ? 'Sie deckt keinen Bedarf.' : `Gedeckter Bedarf: ${number(all)}; ohne sie offen: ${number(unmet)}.`,
  prevents: (n: number) =>
    n === 0
      ? 'Ihrer Stilllegung steht keine Ressource entgegen.'
      : count(
          n,
          'Eine Ressource steht ihrer Stilllegung entgegen.',
          '{n} Ressourcen stehen ihrer Stilllegung entgegen.',
        ),
  unseen: (n: number) =>
    count(
      n,
      'Eine Ressource, die sie nutzt, dürfen Sie nicht sehen.',
      '{n} Ressourcen, die sie nutzen, dürfen Sie nicht sehen.',
    ),
  first_users: 'Untersucht sind nur die ersten 1.000 Ressourcen, die sie nutzen.',
  need: 'Bedarf',
  left: 'Übrig',
  of_needed: (left: number, needed: number) => `${number(needed)} nötig, ${number(left)} übrig`,
  effect: 'Auswirkung',
  now: 'Jetzt',
  distance: 'Entfernung',
  path: 'Pfad',
}
