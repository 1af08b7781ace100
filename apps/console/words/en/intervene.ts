import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })
const list = new Intl.ListFormat('en', { type: 'conjunction' })
const EXCEPTION = ' The operation can then at best succeed with exceptions.'

/** Words of interventions: what a person does to a node that its plan does not say. */
export const intervene = {
  open: 'Intervene',
  title: (node: string) => `Intervene in ${node}?`,
  button: 'Intervene',
  what: 'What is to happen to it?',
  was: (state: string) => `It is “${state}” now.`,
  needed: 'This is needed.',
  an_object: 'it must be an object',
  a_number: 'This must be a whole number, 1 or more.',
  second: 'The risk is high: a second person has to agree before it is done.',
  released: (resources: string[]) => `Given back: ${list.format(resources)}.`,
  by: 'Asked for by',
  ticket: 'Ticket',
  of: { operation: 'the operation', gate: 'a gate', attempt: 'the attempt of an agent outside' },
  hours: (n: number) => count(n, 'one hour', '{n} hours'),
  types: {
    skip: {
      word: 'Skip it: it is not done at all',
      button: 'Skip node',
      effect: `It will not run; what waits for it goes on without it.${EXCEPTION}`,
    },
    mark_succeeded: {
      word: 'Mark it succeeded: it was done by hand',
      button: 'Mark succeeded',
      effect: `It counts as done with these outputs; what waits for it goes on.${EXCEPTION}`,
    },
    mark_failed: {
      word: 'Mark it failed: it will not come to an end',
      button: 'Mark failed',
      effect: `It counts as failed; what its plan says about failures follows.${EXCEPTION}`,
    },
    mark_compensated: {
      word: 'Mark it undone: it was undone by hand',
      button: 'Mark undone',
      effect: `It counts as undone; nothing runs for it any more.${EXCEPTION}`,
    },
    set_output: {
      word: 'Set its outputs',
      button: 'Set outputs',
      effect: 'What comes after it works with these; a gate that was approved on others asks again.',
    },
    set_input: {
      word: 'Set other inputs for it',
      button: 'Set inputs',
      effect: 'Its next run works with these; a gate that was approved on others asks again.',
    },
    trigger_compensation: {
      word: 'Undo it now, by its compensation',
      button: 'Undo node',
      effect: `Its compensation runs; what waits for it begins anew.${EXCEPTION}`,
    },
    set_limits: {
      word: 'Let more or fewer nodes run at once',
      button: 'Set limit',
      effect: 'What runs goes on; from now on no more than this start beside each other.',
    },
    extend_deadline: {
      word: 'Give it more time',
      button: 'Give more time',
      effect: 'The deadline moves by this much.',
    },
    release_leases: {
      word: 'Give its leases back, so that others may work on its resources',
      button: 'Give leases back',
      effect: 'Others may change its resources; on resume it takes them again, and says what has changed.',
    },
    delegate_gate: {
      word: 'Let one more person decide a gate',
      button: 'Let them decide',
      effect: 'That person may vote like a member of the groups of the gate; four eyes stay.',
    },
    override_freeze: {
      word: 'Override a freeze',
      button: 'Override freeze',
      effect: `The freeze holds nothing of this operation any more.${EXCEPTION}`,
    },
  } as Record<string, { word: string; button: string; effect: string }>,
  fields: {
    outputs: { label: 'Outputs (JSON)', note: 'What the node would have put out; {} when it puts out nothing.' },
    note: { label: 'What was done by hand', note: 'Kept in history and evidence.' },
    message: { label: 'What is wrong', note: 'Shown as the error of the node.' },
    input_overrides: {
      label: 'Inputs (JSON)',
      note: 'Only the members that change: a merge patch of the inputs of the plan.',
    },
    max_parallel: { label: 'At most at once', note: 'Number of nodes, 1 to 500.' },
    of: { label: 'Of what', note: 'Whose deadline moves.' },
    id: { label: 'Which', note: 'The gate, or the id of the node whose attempt it is.' },
    add_s: { label: 'Minutes more', note: 'Whole minutes, at most a day (1440).' },
    gate_id: { label: 'Gate', note: 'Only a gate that waits now.' },
    to_user: { label: 'Person (id of the user)', note: 'Somebody who may decide gates of this kind elsewhere.' },
    until: { label: 'For', note: 'Afterwards it is as before.' },
    freeze_id: { label: 'Freeze', note: 'Its id, as the calendar names it.' },
    payload: { label: 'Payload (JSON)', note: 'What this intervention needs, as the API describes it.' },
  },
}
