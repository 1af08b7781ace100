import { count, number } from '../frame/plural.ts'

/** Texts for relations and impact as pictures. */
export const picture = {
  view: 'View',
  views: { picture: 'Picture', table: 'Table' },
  keys: 'Arrow keys move along the relations, Enter opens a resource.',
  neighbors: (name: string) => `Relations of ${name}`,
  rest: (n: number) => `${number(n)} more, in the table`,
  more: (n: number) => `${number(n)} more`,
  needs: (title: string) => `Who needs and provides ${title}`,
  becomes: (now: string, effect: 'unhealthy' | 'degraded') => `${now} → ${effect}`,
  partial: 'Only some relations are loaded.',
}

export const impact = {
  title: (name: string) => `If ${name} fails`,
  sentence: (unhealthy: number, degraded: number) => {
    const all = [
      ...(unhealthy > 0 ? [count(unhealthy, 'one becomes unhealthy', '{n} become unhealthy')] : []),
      ...(degraded > 0 ? [count(degraded, 'one becomes degraded', '{n} become degraded')] : []),
    ].join(', ')
    return `${all.charAt(0).toUpperCase()}${all.slice(1)}.`
  },
  hidden: (n: number) => count(n, 'You may not see one of them.', 'You may not see {n} of them.'),
  at_least: 'There are more: the count stopped at its limit.',
  shown: (n: number) => `The worst ${number(n)} are shown.`,
  none: 'No resource depends on it.',
  effect: 'Effect',
  now: 'Now',
  distance: 'Hops',
  path: 'Path',
}
