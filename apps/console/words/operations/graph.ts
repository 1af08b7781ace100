import { count, number } from '../frame/plural.ts'

/** Texts for the graph. */
export const graph = {
  label: 'Graph of the operation',
  drawing: 'Drawing',
  list: 'List',
  matrix: 'Matrix',
  matrix_label: 'Hosts by steps',
  no_matrix: 'No two targets of this plan share a step.',
  no_cell: 'Not planned',
  host: 'Target',
  done: (n: number, of: number) => `${number(n)} of ${number(of)} done`,
  p50: (time: string) => `median\u00a0${time}`,
  broken: 'Failed nodes',
  find: 'Find a node',
  found: (at: number | undefined, n: number) =>
    n === 0 ? 'No node found' : at === undefined ? count(n, '{n} node', '{n} nodes') : `${number(at)} of ${number(n)}`,
  cell_marks: { held: 'held by a patch', excepted: 'changed by a person', critical: 'on the expected critical path' },
  why: 'Waits for',
  view: 'View',
  legend: 'Legend: select a status to filter by it',
  only: (word: string, n: number) => `${word} (${number(n)})`,
  all: 'All',
  fit: 'Fit',
  zoom_in: 'Zoom in',
  zoom_out: 'Zoom out',
  collapse: (name: string) => `Collapse ${name}`,
  expand: (name: string) => `Expand ${name}`,
  nodes: (n: number) => count(n, '{n} node', '{n} nodes'),
  laying_out: 'Laying out the graph …',
  layout_failed: 'The layout timed out. Nodes are in columns by their longest path.',
  spoken: (name: string, status: string, attempt: number) =>
    `${name}, ${status}${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  gate: 'Gate',
  gates: 'Gates',
  /** "Waiting for a person" does not fit into a box. */
  gate_state: (word: string, open: boolean) =>
    open ? 'Gate: undecided' : `Gate: ${word.charAt(0).toLowerCase()}${word.slice(1)}`,
  spoken_gate: (question: string, status: string, guards: number) =>
    `Gate, ${question}, ${status}, ${count(guards, 'guards {n} node', 'guards {n} nodes')}`,
  guards: 'Guards',
  open_gate: 'Open gate',
  selected_gate: 'Selected gate',
  critical: 'on the expected critical path',
  gate_before: (question: string) => `gate before it: ${question}`,
  after: 'After',
  open: 'Open node',
  draw: 'Draw the graph',
  keys: 'Arrow and page keys move along the graph, Enter opens a node or gate, plus and minus zoom, 0 fits.',
  selected: 'Selected node',
  marks: {
    added: { sign: '+', word: 'Added' },
    changed: { sign: '~', word: 'Changed' },
    removed: { sign: '−', word: 'Removed' },
  },
}
