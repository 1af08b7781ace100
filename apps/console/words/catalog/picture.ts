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

const ASSUMED = { unhealthy: 'fails', gone: 'is gone', maintenance: 'is in maintenance' }

export const impact = {
  assume: 'Assume that it',
  assumptions: ASSUMED,
  title: (name: string, assumed: keyof typeof ASSUMED) => `If ${name} ${ASSUMED[assumed]}`,
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
  healthy: 'Maintenance passes on no health: no other resource changes.',
  without: 'Needs that it meets',
  unmet: (unmet: number, all: number) =>
    all === 0
      ? 'It meets no need.'
      : `It meets ${count(all, 'one need', '{n} needs')}; unmet without it: ${number(unmet)}.`,
  prevents: (n: number) =>
    n === 0
      ? 'No resource prevents its retirement.'
      : count(n, 'One resource prevents its retirement.', '{n} resources prevent its retirement.'),
  unseen: (n: number) =>
    count(n, 'You may not see one resource that uses it.', 'You may not see {n} resources that use it.'),
  first_users: 'Only the first 1,000 resources that use it are examined.',
  need: 'Need',
  left: 'Left',
  of_needed: (left: number, needed: number) => `${number(needed)} needed, ${number(left)} left`,
  effect: 'Effect',
  now: 'Now',
  distance: 'Hops',
  path: 'Path',
}
