/** Words of interventions: what a person states is to count as the end of a node. */
export const intervene = {
  open: 'Intervene',
  title: (node: string) => `Intervene in ${node}?`,
  button: 'Intervene',
  what: 'What is to count as its end?',
  was: (state: string) => `It is “${state}” now.`,
  exceptions: 'The operation can then at best succeed with exceptions, and the evidence names you.',
  needed: 'This is needed.',
  an_object: 'it must be an object',
  types: {
    skip: {
      word: 'Skip it: it is not done at all',
      button: 'Skip node',
      effect: 'It will not run; what waits for it goes on without it.',
    },
    mark_succeeded: {
      word: 'Mark it succeeded: it was done by hand',
      button: 'Mark succeeded',
      effect: 'It counts as done with these outputs; what waits for it goes on.',
    },
    mark_failed: {
      word: 'Mark it failed: it will not come to an end',
      button: 'Mark failed',
      effect: 'It counts as failed; what its plan says about failures follows.',
    },
    mark_compensated: {
      word: 'Mark it undone: it was undone by hand',
      button: 'Mark undone',
      effect: 'It counts as undone; nothing runs for it any more.',
    },
  } as Record<string, { word: string; button: string; effect: string }>,
  fields: {
    outputs: { label: 'Outputs (JSON)', note: 'What the node would have put out; {} when it puts out nothing.' },
    note: { label: 'What was done by hand', note: 'Kept in history and evidence.' },
    message: { label: 'What is wrong', note: 'Shown as the error of the node.' },
    payload: { label: 'Payload (JSON)', note: 'What this intervention needs, as the API describes it.' },
  },
}
