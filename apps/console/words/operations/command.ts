import { list } from '../frame/plural.ts'

/** Texts for the dialogs of commands. */
export const tCommand = {
  reason: 'Reason',
  required: 'Required',
  reason_needed: 'Enter a reason.',
  sending: 'Sending …',
  asking: 'Checking the effect …',
  no_dry_run: 'The server could not preview the effect.',
  accepted_start: 'Recorded at',
  accepted_end: 'The workflow has not confirmed it yet. Until then, this page shows it as pending.',
  unknown: 'It is unknown whether this took effect.',
  ask_again: 'Ask again',
  not_possible: 'Not possible now',
  held: 'Other operations hold its resources.',
  possible: (actions: string[]) => `Possible now: ${list.format(actions)}.`,
  confirm_word: (word: string) => `Type ${word} to confirm`,
  confirm_needed: (word: string) => `Type ${word}.`,
  offline: 'Commands are off while you are offline.',
  leaving: { title: 'Leave this page?', lost: 'Your entries will be lost.', stay: 'Stay', leave: 'Leave' },
}
