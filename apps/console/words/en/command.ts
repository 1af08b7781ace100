import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })
const finishing = (running: number): string =>
  running === 0 ? 'No node is running' : count(running, 'One running node finishes', '{n} running nodes finish')
const list = new Intl.ListFormat('en', { type: 'conjunction' })

/** Words of the dialogs of commands. */
export const command = {
  reason: 'Reason',
  reason_needed: 'A reason is needed.',
  sending: 'Sending …',
  consequences: 'What will happen',
  asking: 'Asking the server what this would do …',
  no_dry_run: 'The server could not say what this would do.',
  accepted_start: 'Recorded at',
  accepted_end: 'The workflow has not answered yet; the page shows it as pending until it has.',
  unknown: 'It is not known whether this was done.',
  ask_again: 'Ask again',
  not_possible: 'Not possible now',
  possible: (actions: string[]) => `Possible now: ${list.format(actions)}.`,
  confirm_word: (word: string) => `Type ${word} to confirm`,
  confirm_needed: (word: string) => `Type ${word}.`,
  offline: 'Commands are off while you are offline.',
  pause: {
    title: 'Pause this operation?',
    button: 'Pause operation',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; ${count(rest, 'one does not start', '{n} do not start')} until it is resumed.`,
    done: 'Pause is recorded.',
  },
  resume: {
    title: 'Resume this operation?',
    button: 'Resume operation',
    effect: (next: string[]) =>
      next.length === 0
        ? 'Nothing starts at once; gates and failures go on waiting.'
        : `Next to start: ${list.format(next)}.`,
    drifted: (names: string[]) => `Changed in the catalog since the plan: ${list.format(names)}.`,
    acknowledge: 'I have seen that, take the new values',
    done: 'Resume is recorded.',
  },
  cancel: {
    title: 'Cancel this operation?',
    button: 'Cancel operation',
    mode: 'How',
    graceful: 'Stop: what runs finishes, nothing new starts, nothing is undone',
    force: 'Stop at once: what runs is abandoned, and what it did is not known',
    compensate: 'Stop and undo: compensations of succeeded nodes run in reverse order',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; ${count(rest, 'one will not start', '{n} will not start')}.`,
    compensations: (n: number) =>
      n === 0 ? 'No node has anything to undo.' : count(n, 'One node is undone.', '{n} nodes are undone.'),
    done: 'Cancel is recorded.',
  },
  retry: {
    title: 'Retry this node?',
    button: 'Retry node',
    effect: (names: string[]) => `These nodes run again: ${list.format(names)}.`,
    gates: (names: string[]) => `These gates ask again: ${list.format(names)}.`,
    done: 'Retry is recorded.',
    other_inputs: 'With other inputs',
    found: 'The outcome of the last attempt is not known. What did you find at the target?',
    findings: {
      effect_absent: 'It had no effect',
      effect_present: 'It had its full effect',
      effect_partial: 'It had part of its effect',
    },
  },
  start: {
    title: 'Start this plan?',
    button: 'Start operation',
    first: (names: string[]) =>
      names.length === 0 ? 'Nothing starts at once.' : `First to start: ${list.format(names)}.`,
    gate: (question: string) => `The first gate asks: ${question}`,
  },
}
