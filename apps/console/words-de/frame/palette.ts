import type * as en from '../../words/frame/palette.ts'

const VIEWED: Record<string, string> = { inbox: 'Eingang', operations: 'Vorgänge', resources: 'Ressourcen' }

/** The German texts for the list below the go-to field. */
export const palette: typeof en.palette = {
  none: 'Keine passenden Seiten, Aktionen, Ansichten, Vorgänge, Pläne oder Ressourcen.',
  no_line: 'Auf der Seite eines Schritts die Nummer einer Protokollzeile eingeben.',
  hint: '> Aktionen · # Schritte · : Protokollzeile',
  page: 'Seite',
  action: 'Aktion',
  recent: 'zuvor geöffnet',
  plan: 'Plan',
  intent: 'Vorhaben',
  view_of: (list: string) => `Ansicht: ${VIEWED[list] ?? list}`,
  line: (n: number) => `Zeile ${n} dieses Protokolls`,
}
