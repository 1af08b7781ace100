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
  } as Record<string, { word: string; button: string; effect: string }>,
  fields: {
    outputs: { label: 'Outputs (JSON)', note: 'What the node would have put out; {} when it puts out nothing.' },
    note: { label: 'What was done by hand', note: 'Kept in history and evidence.' },
    message: { label: 'What is wrong', note: 'Shown as the error of the node.' },
    input_overrides: {
      label: 'Inputs (JSON)',
      note: 'Only the members that change: a merge patch of the inputs of the plan.',
    },
    payload: { label: 'Payload (JSON)', note: 'What this intervention needs, as the API describes it.' },
  },
}
