import type * as en from '../../words/frame/inbox-parts.ts'
import { MANY, ONE } from './inbox.ts'
import { count, number } from './plural.ts'

/** The German texts for deadlines that are near, and pauses by drift. */
export const tExpiring: typeof en.tExpiring = {
  drifted: 'Pausiert: Ziele haben sich im Katalog geändert',
  kinds: { operation: 'Frist', plan: 'Plan', gate: 'Andere entscheiden', delegation: 'An Sie übertragen' },
  /** These follow „danach“, after which German swaps verb and subject. */
  follows: {
    plan: 'braucht er eine neue Vorschau',
    delegation: 'können Sie nicht mehr entscheiden',
    graceful: 'wird er abgebrochen',
    compensate: 'wird er abgebrochen und rückgängig gemacht',
  },
}

const oldest = (n: number, all: number | undefined) =>
  all === undefined ? number(n) : `${number(n)} von ${number(all)}`

/** The German texts for lists that the server cuts off. */
export const tListed: typeof en.tListed = {
  patches: (n, all) => `Nur die ältesten ${oldest(n, all)} Planänderungen werden gezeigt.`,
  failures: (n, all) => `Nur die ältesten ${oldest(n, all)} angehaltenen Vorgänge werden gezeigt.`,
}

/** A gate, a patch, or a mix of both: as the object, with its article, and the verb of an approval. */
const THE_ONE = { ...ONE, item: 'Einen Eintrag' }
const THIS = { gate: 'Diese Freigabe', patch: 'Diese Planänderung', item: 'Diesen Eintrag' }
const GIVE = { gate: 'erteilen', patch: 'annehmen', item: 'freigeben' }

/** The German texts for the dialog that decides gates and patches together. */
export const tBulk: typeof en.tBulk = {
  bar: {
    title: 'Gemeinsam entscheiden',
    selected: (n, noun) => (n === 0 ? 'Nichts ausgewählt' : `${count(n, ONE[noun], `{n} ${MANY[noun]}`)} ausgewählt`),
    most: (n, noun) => `${n} ${MANY[noun]} ausgewählt, mehr geht nicht auf einmal`,
    all: 'Alle auswählen',
    clear: 'Auswahl aufheben',
    decide: { approve: 'Auswahl freigeben …', reject: 'Auswahl ablehnen …' },
  },
  titles: {
    approve: (n, noun) => `${n === 1 ? THIS[noun] : `Diese ${MANY[noun]}`} ${GIVE[noun]}?`,
    reject: (n, noun) => `${n === 1 ? THIS[noun] : `Diese ${MANY[noun]}`} ablehnen?`,
  },
  buttons: {
    approve: (n, noun) => `${count(n, THE_ONE[noun], `{n} ${MANY[noun]}`)} ${GIVE[noun]}`,
    reject: (n, noun) => `${count(n, THE_ONE[noun], `{n} ${MANY[noun]}`)} ablehnen`,
  },
  rest: (n: number) => count(n, 'Die letzte senden', 'Die übrigen {n} senden'),
  alike: (n, noun) => count(n, ONE[noun], `{n} ${MANY[noun]} mit derselben Änderung`),
  apart: 'Andere Änderungen',
  out: 'Ausgelassen',
  none: 'Nichts davon kann hier entschieden werden.',
  moved: 'Seit der Auswahl geändert. Bitte neu lesen.',
  elsewhere: (environment: string) => `Andere Umgebung: ${environment}.`,
  counted: 'Stimme gezählt',
  held: 'Noch nicht entschieden',
  progress: (done: number, all: number) => `${done} von ${all} beantwortet.`,
}
