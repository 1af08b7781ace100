import type * as en from '../../words/operations/graph.ts'
import { count, number } from '../frame/plural.ts'

/** The German texts for the graph. */
export const graph: typeof en.graph = {
  label: 'Graph des Vorgangs',
  drawing: 'Zeichnung',
  list: 'Liste',
  matrix: 'Matrix',
  matrix_label: 'Ziele und ihre Schritte',
  no_matrix: 'Keine zwei Ziele dieses Plans haben einen Schritt gemeinsam.',
  no_cell: 'Nicht geplant',
  host: 'Ziel',
  done: (n: number, of: number) => `${number(n)} von ${number(of)} fertig`,
  p50: (time: string) => `Median\u00a0${time}`,
  broken: 'Fehlgeschlagene Schritte',
  find: 'Schritt suchen',
  found: (at: number | undefined, n: number) =>
    n === 0
      ? 'Kein Schritt gefunden'
      : at === undefined
        ? count(n, '{n} Schritt', '{n} Schritte')
        : `${number(at)} von ${number(n)}`,
  cell_marks: {
    held: 'hält für eine Planänderung',
    excepted: 'von einer Person geändert',
    critical: 'auf dem erwarteten kritischen Pfad',
  },
  why: 'Wartet auf',
  view: 'Ansicht',
  legend: 'Legende: Status auswählen, um danach zu filtern',
  only: (word: string, n: number) => `${word} (${number(n)})`,
  all: 'Alle',
  fit: 'Einpassen',
  zoom_in: 'Vergrößern',
  zoom_out: 'Verkleinern',
  collapse: (name: string) => `${name} einklappen`,
  expand: (name: string) => `${name} ausklappen`,
  nodes: (n: number) => count(n, '{n} Schritt', '{n} Schritte'),
  laying_out: 'Graph wird angeordnet …',
  layout_failed: 'Das Anordnen dauerte zu lange. Die Spalten folgen dem längsten Pfad.',
  spoken: (name: string, status: string, attempt: number) =>
    `${name}, ${status}${attempt > 1 ? `, Versuch ${attempt}` : ''}`,
  gate: 'Freigabe',
  gates: 'Freigaben',
  /** "Waiting for a person" does not fit into a box. */
  gate_state: (word: string, open: boolean) =>
    open ? 'Freigabe: offen' : `Freigabe: ${word.charAt(0).toLowerCase()}${word.slice(1)}`,
  spoken_gate: (question: string, status: string, guards: number) =>
    `Freigabe, ${question}, ${status}, ${count(guards, 'vor {n} Schritt', 'vor {n} Schritten')}`,
  guards: 'Steht vor',
  open_gate: 'Freigabe öffnen',
  selected_gate: 'Ausgewählte Freigabe',
  critical: 'auf dem erwarteten kritischen Pfad',
  gate_before: (question: string) => `Freigabe davor: ${question}`,
  after: 'Nach',
  open: 'Schritt öffnen',
  draw: 'Graph zeichnen',
  keys: 'Pfeil- und Bildtasten folgen dem Graphen, Enter öffnet. Plus und Minus ändern die Größe, 0 passt ein.',
  selected: 'Ausgewählter Schritt',
  marks: {
    added: { sign: '+', word: 'Hinzugefügt' },
    changed: { sign: '~', word: 'Geändert' },
    removed: { sign: '−', word: 'Entfernt' },
  },
}
