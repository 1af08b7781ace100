import type * as en from '../../words/frame/expiring.ts'

/** The German texts for deadlines that are near. */
export const tExpiring: typeof en.tExpiring = {
  kinds: { operation: 'Frist', plan: 'Plan', gate: 'Andere entscheiden', delegation: 'An Sie übertragen' },
  follows: {
    plan: 'er braucht eine neue Vorschau',
    delegation: 'Sie können nicht mehr entscheiden',
    graceful: 'er wird abgebrochen',
    compensate: 'er wird abgebrochen und rückgängig gemacht',
  },
}
