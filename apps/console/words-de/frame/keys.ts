import type * as en from '../../words/frame/keys.ts'

/** The German texts for the keys that work on every page. */
export const keys: typeof en.keys = {
  title: 'Tastenkürzel',
  entries: [
    ['?', 'diese Liste'],
    ['/', 'auf dieser Seite suchen'],
    ['Strg K', 'zu Seite, Vorgang oder Ressource springen'],
    ['n', 'neue Änderung, Aktion oder neues Runbook'],
    ['g i', 'Eingang'],
    ['g o', 'Vorgänge'],
    ['g n', 'Vorhaben'],
    ['g r', 'Ressourcen'],
    ['g f', 'Änderungssperren'],
    ['g p', 'Pakete'],
    ['t', 'genaue oder relative Zeiten, wie ein Tipp auf eine Zeit'],
    ['j, k', 'nächste, vorige Zeile'],
    ['x', 'Freigabe, Planänderung oder Vorgang auswählen'],
    ['Leertaste', 'im Eingang: Entscheidungsvorlage öffnen oder schließen'],
    ['[, ]', 'voriger, nächster Reiter; in der Matrix: fehlgeschlagener Schritt'],
    ['e, E', 'im Log: nächster, voriger Fehler'],
    ['n, N', 'im Log: älterer, neuerer Treffer; Esc in der Suche führt zu den Zeilen'],
    [':', 'im Log: zu einer Zeile springen'],
    ['w, t, f', 'im Log: Zeilen umbrechen, Zeiten zeigen, dem Ende folgen'],
    ['Umschalt ↑, ↓', 'im Log: Zeilen auswählen'],
    ['y, c', 'im Log: den Link, die markierten Zeilen kopieren'],
    ['Esc', 'schließen'],
  ],
}
