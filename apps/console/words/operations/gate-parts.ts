import { count, list, number } from '../frame/plural.ts'

/** Texts for the parts of a gate that come later: what a watch observed, and the preview of a tool. */
export const tObserved = {
  title: 'Observed by',
  check: 'Check',
  bad: 'Bad samples',
  of: (n: number, all: number) => `${number(n)} of ${number(all)}`,
  last: 'Last',
  min: 'Lowest',
  max: 'Highest',
  baseline: 'The rest',
}

export const tPreview = {
  changes: (n: number) => count(n, 'The preview shows 1 change', 'The preview shows {n} changes'),
  exact: 'This plan file runs, byte for byte.',
  only: (targets: string[]) => `Only these and their dependencies: ${list.format(targets)}.`,
  commit: 'Exactly this commit is pushed.',
  commit_id: 'The commit is',
  checked: 'Read again before the change; refused if it differs.',
  forecast: 'A forecast: the tool may do otherwise.',
  unforeseen: (n: number) => count(n, '1 part cannot be foreseen', '{n} parts cannot be foreseen'),
  base: (serial: number) => `Made on serial ${serial} of the state; the plan file is`,
  cut: (shown: number, count: number) =>
    `The first ${number(shown)} of ${number(count)} changes; the digest covers all.`,
  fields: (shown: number, count: number) => `The first ${number(shown)} of ${number(count)} fields.`,
  unknown: 'known after apply',
  sensitive: 'sensitive',
  sensitive_changes: 'changes',
}
