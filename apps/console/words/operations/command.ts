import { count, list } from '../frame/plural.ts'

const finishing = (running: number): string =>
  running === 0 ? 'No node is running' : count(running, 'One running node finishes', '{n} running nodes finish')
/** Texts for the dialogs of commands. */
export const command = {
  reason: 'Reason',
  reason_needed: 'Enter a reason.',
  sending: 'Sending …',
  asking: 'Checking the effect …',
  no_dry_run: 'The server could not preview the effect.',
  accepted_start: 'Recorded at',
  accepted_end: 'The workflow has not confirmed it yet. Until then, this page shows it as pending.',
  unknown: 'It is unknown whether this took effect.',
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
      `${finishing(running)}; ${count(rest, 'one will not start', '{n} will not start')} until it is resumed.`,
  },
  resume: {
    title: 'Resume this operation?',
    button: 'Resume operation',
    effect: (next: string[]) =>
      next.length === 0
        ? 'No node starts immediately: gates and failures are still waiting.'
        : `Next to start: ${list.format(next)}.`,
    drifted: (names: string[]) => `Changed in the catalog since the plan: ${list.format(names)}.`,
    acknowledge: 'I have reviewed this. Use the new values.',
  },
  cancel: {
    title: 'Cancel this operation?',
    button: 'Cancel operation',
    mode: 'Mode',
    graceful: 'Stop: running nodes finish, no new node starts, no change is undone',
    force: 'Stop immediately: running nodes are abandoned, and their outcome is unknown',
    compensate: 'Stop and undo: succeeded nodes are compensated in reverse order',
    effect: (running: number, rest: number) =>
      `${finishing(running)}; ${count(rest, 'one will not start', '{n} will not start')}.`,
    compensations: (n: number) =>
      n === 0 ? 'No node needs to be undone.' : count(n, 'One node is undone.', '{n} nodes are undone.'),
  },
  retry: {
    title: 'Retry this node?',
    button: 'Retry node',
    effect: (names: string[]) =>
      `${count(names.length, 'This node runs', 'These nodes run')} again: ${list.format(names)}.`,
    gates: (names: string[]) =>
      `${count(names.length, 'This gate asks', 'These gates ask')} again: ${list.format(names)}.`,
    other_inputs: 'With other inputs',
    found: 'The outcome of the last attempt is unknown. What did you find at the target?',
    findings: {
      effect_absent: 'It had no effect',
      effect_present: 'It had its full effect',
      effect_partial: 'It had part of its effect',
    },
  },
}
