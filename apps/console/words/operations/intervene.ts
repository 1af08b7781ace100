import { count, list, number } from '../frame/plural.ts'

const EXCEPTION = ' The operation can then at best succeed with exceptions.'

/** Texts for interventions: changes to a node by a person, outside its plan. */
export const intervene = {
  open: 'Intervene',
  title: (node: string) => `Intervene in ${node}?`,
  button: 'Intervene',
  what: 'Intervention',
  asked_on: 'State at the request',
  was: (state: string) => `Current state: ${state}.`,
  needed: 'Required.',
  an_object: 'it must be an object',
  a_number: 'Enter a whole number of 1 or more.',
  second: 'The risk is high: a second person must approve this first.',
  released: (resources: string[]) => `Released: ${list.format(resources)}.`,
  by: 'Requested by',
  ticket: 'Ticket',
  of: { operation: 'the operation', gate: 'a gate', attempt: 'the attempt of an external agent' },
  hours: (n: number) => count(n, 'one hour', '{n} hours'),
  types: {
    skip: {
      word: 'Skip: do not run it',
      button: 'Skip node',
      effect: `It will not run; its dependents continue without it.${EXCEPTION}`,
    },
    mark_succeeded: {
      word: 'Mark succeeded: it was done by hand',
      button: 'Mark succeeded',
      effect: `It counts as succeeded with these outputs; its dependents continue.${EXCEPTION}`,
    },
    mark_failed: {
      word: 'Mark failed: it will not finish',
      button: 'Mark failed',
      effect: `It counts as failed; the failure rule of its plan applies.${EXCEPTION}`,
    },
    mark_compensated: {
      word: 'Mark undone: it was undone by hand',
      button: 'Mark undone',
      effect: `It counts as undone; no compensation runs for it.${EXCEPTION}`,
    },
    set_output: {
      word: 'Set outputs',
      button: 'Set outputs',
      effect: 'Downstream nodes use these; a gate that was approved with other outputs asks again.',
    },
    set_input: {
      word: 'Set inputs',
      button: 'Set inputs',
      effect: 'Its next run uses these; a gate that was approved with other inputs asks again.',
    },
    trigger_compensation: {
      word: 'Undo: run its compensation',
      button: 'Undo node',
      effect: `Its compensation runs; its dependents start over.${EXCEPTION}`,
    },
    set_limits: {
      word: 'Limit how many nodes run at once',
      button: 'Set limit',
      effect: 'Running nodes continue; new nodes start only within this limit.',
    },
    extend_deadline: {
      word: 'Extend a deadline',
      button: 'Extend deadline',
      effect: 'The deadline moves by this time.',
    },
    release_leases: {
      word: 'Release its leases, so that others may change its resources',
      button: 'Release leases',
      effect: 'Others may change its resources. On resume it takes the leases again and reports the changes.',
    },
    delegate_gate: {
      word: 'Let one more person decide a gate',
      button: 'Delegate gate',
      effect: 'That person may vote like a member of the gate’s groups. The four-eyes rule still applies.',
    },
    override_freeze: {
      word: 'Override a freeze',
      button: 'Override freeze',
      effect: `The freeze no longer holds this operation.${EXCEPTION}`,
    },
  } as Record<string, { word: string; button: string; effect: string }>,
  fields: {
    outputs: { label: 'Outputs (JSON)', note: 'The outputs that the node would have had; {} if none.' },
    note: { label: 'Work done by hand', note: 'Recorded in history and evidence.' },
    message: { label: 'Error message', note: 'Shown as the error of the node.' },
    input_overrides: {
      label: 'Inputs (JSON)',
      note: 'Only the members that change: a merge patch of the planned inputs.',
    },
    max_parallel: { label: 'Limit', note: 'Number of nodes, 1 to 500.' },
    of: { label: 'Deadline of', note: 'The item whose deadline moves.' },
    id: { label: 'ID', note: 'The ID of the gate, or of the node whose attempt it is.' },
    add_s: { label: 'Minutes to add', note: 'Whole minutes, up to 1440 (one day).' },
    gate_id: { label: 'Gate', note: 'Only gates that are waiting.' },
    to_user: { label: 'Person (user ID)', note: 'Someone who may decide gates of this kind elsewhere.' },
    until: { label: 'Duration', note: 'It ends automatically after this time.' },
    freeze_id: { label: 'Freeze', note: 'The ID of the freeze in the calendar.' },
    payload: { label: 'Payload (JSON)', note: 'The payload of this intervention, as the API documents it.' },
  },
}

/** Without a title for a reader who may not see it. */
const operation = (title: string) => (title ? `“${title}”` : 'another operation')

/** Obstacles to a run, by kind, with the number of its resources or plans. */
export const obstacles: Record<string, (title: string, n: number) => string> = {
  lease: (title: string, n: number) => `${operation(title)} holds ${number(n)} of these`,
  dependent: (title: string, n: number) =>
    `${operation(title)} is changing ${count(n, '1 dependent', '{n} dependents')}`,
  waits: (title: string) => `${operation(title)} will hold some of these`,
  plan: (title: string, n: number) =>
    !title
      ? 'another ready plan changes some of these'
      : count(n, `the ready plan “${title}” changes some of these`, `{n} ready plans “${title}” change some of these`),
  failed: (what: string) => `failed elsewhere: ${what}`,
  window: (title: string) => `the window ${title} is closed`,
  freeze: (title: string) => `freeze “${title}”`,
}
