import type * as en from '../../words/frame/inbox.ts'
import { count, list } from './plural.ts'

/** A gate, a patch, or a mix of both: as the subject, and in the plural. */
export const ONE = { gate: 'Eine Freigabe', patch: 'Eine Planänderung', item: 'Ein Eintrag' }
export const MANY = { gate: 'Freigaben', patch: 'Planänderungen', item: 'Einträge' }

/** The German texts for the inbox. */
export const inbox: typeof en.inbox = {
  title: 'Eingang',
  sentence: ({ gates_mine, gates_all, patches_mine, failures_mine }, lines) => {
    const mine = [
      gates_mine > 0 && count(gates_mine, 'eine Freigabe', '{n} Freigaben'),
      patches_mine > 0 && count(patches_mine, 'eine Planänderung', '{n} Planänderungen'),
      failures_mine > 0 && count(failures_mine, 'ein Vorgang', '{n} Vorgänge'),
    ].filter((part) => part !== false)
    if (mine.length > 0) {
      const all = list.format(mine)
      const one = gates_mine + patches_mine + failures_mine === 1
      return `${all.charAt(0).toUpperCase()}${all.slice(1)} ${one ? 'wartet' : 'warten'} auf Sie.`
    }
    const none = lines ? 'Keine Entscheidung wartet auf Sie.' : 'Ihr Eingang ist leer.'
    return gates_all > 0
      ? count(gates_all, `${none} Eine Freigabe wartet auf andere.`, `${none} {n} Freigaben warten auf andere.`)
      : lines
        ? none
        : 'Der Eingang ist leer.'
  },
  news: (n: number) => count(n, '{n} neuer Eintrag', '{n} neue Einträge'),
  patch: 'Planänderung',
  patch_changes: (n: number) => count(n, 'eine Änderung', '{n} Änderungen'),
  more_failures: (n: number) => count(n, 'und ein weiterer', 'und {n} weitere'),
  rest: 'Fehler, Planänderungen und Fristen',
  mine: 'Für mich',
  all: 'Alle',
  filter: 'Für wen',
  empty: 'Ihr Eingang ist leer.',
  empty_all: 'Der Eingang ist leer.',
  see_others: (n: number) => count(n, 'Eine Freigabe wartet auf andere', '{n} Freigaben warten auf andere'),
  see_operations: 'Laufende Vorgänge ansehen',
  waiting_since: 'Wartet seit',
  expires: 'Läuft ab',
  and_then: (what: string) => `danach ${what}`,
  votes: 'Stimmen',
  changes: 'Änderungen',
  risk: 'Risiko',
  not_you: 'Über diese Freigabe können Sie nicht entscheiden',
  bulk: {
    select: (question: string, operation: string) => `${question} auswählen, ${operation}`,
    alone: {
      kind: 'Freigaben dieser Art werden nur einzeln entschieden. Bitte öffnen.',
      signature: 'Braucht Ihren Passkey. Bitte öffnen.',
      policy: 'Laut Richtlinie nur einzeln zu entscheiden. Bitte öffnen.',
      comment: 'Braucht einen eigenen Kommentar. Bitte öffnen.',
      risk: 'Zu hohes Risiko für gemeinsames Freigeben. Bitte öffnen.',
    },
  },
  unreached: 'Sie bekommen keine Nachricht, wenn eine Entscheidung wartet oder Ihr Konto gefährdet ist.',
  reach: 'Adresse hinzufügen',
  guide_title: 'Neu hier?',
  guide: [
    'Ein Vorgang führt einen geprüften Plan Schritt für Schritt aus. Freigaben halten ihn, bis jemand entscheidet.',
    'Unten steht, was auf Sie wartet: Freigaben, Planänderungen und angehaltene Vorgänge.',
    'Unter „Vorgänge“ steht alles, was läuft oder fehlschlug, mit Graphen und Logs.',
  ],
  guide_close: 'Nicht mehr anzeigen',
}
