import { count, number } from '../frame/plural.ts'

/** Texts for nodes and their logs. */
export const nodes = {
  title: 'Nodes',
  caption: 'Nodes of this operation, failures first',
  node: 'Node',
  target: 'Target',
  status: 'Status',
  attempt: 'Attempt',
  started: 'Started',
  duration: 'Duration',
  error: 'Error',
  filter: 'Show',
  every: 'All',
  no_match: 'No nodes in this state.',
}

export const node = {
  tabs: { summary: 'Summary', logs: 'Logs', io: 'Inputs and outputs', artifacts: 'Artifacts' },
  tabs_label: 'Views of this node',
  executor: 'Executor',
  target: 'Target',
  group: 'Batch',
  attempts: 'Attempts',
  attempt: (n: number) => `Attempt ${n}`,
  attempt_of: (n: number, total: number) => `Attempt ${n} of ${total}`,
  no_attempt: 'This node has not started.',
  started: 'Started',
  ended: 'Ended',
  duration: 'Duration',
  progress: 'Progress',
  error: 'Error',
  error_class: 'Class',
  retryable: 'Retryable',
  yes: 'yes',
  no: 'no',
  inputs: 'Inputs',
  outputs: 'Outputs',
  spec: 'Specification',
  no_outputs: 'No outputs yet.',
  retry: 'Retry node',
  gates: 'Gates',
  see_logs: 'See the log',
}

export const logs = {
  label: 'Log',
  lines: 'Lines of the log',
  empty: 'This attempt has no log lines.',
  not_started: 'This node has not started, so there is no log.',
  new_lines: (n: number) => count(n, '{n} new line', '{n} new lines'),
  wrap: 'Wrap lines',
  times: 'Times',
  download: 'Download',
  total: (n: number) => count(n, '{n} line', '{n} lines'),
  errors: (n: number) => count(n, '{n} error', '{n} errors'),
  levels: { error: 'error', warn: 'warn' },
  live: 'following',
  complete: 'complete',
  cut: 'line truncated at 16 KiB when stored',
  line: (n: number) => `Line ${n}`,
  search: 'Search the log',
  matches: (at: number, n: number) =>
    n === 0 ? 'No matches' : `${number(at)} of ${number(n)}${n > 1 ? ', newest first' : ''}`,
  previous: 'Previous match',
  next: 'Next match',
  select_first: 'Select lines first, with Shift and an arrow key.',
  selected: (from: number, to: number) =>
    from === to ? `Line ${number(from)} selected` : `Lines ${number(from)} to ${number(to)} selected`,
  no_error: 'No more errors in this direction.',
  not_copied: 'Not copied. Allow this page to use the clipboard, then try again.',
}

/** Texts for two logs side by side. */
export const compare = {
  with: 'Compare with',
  none: 'no other attempt',
  attempt: (n: number) => `Attempt ${n}`,
  label: (before: number, after: number) => `Attempts ${before} and ${after} compared`,
  differ: (n: number, all: number) =>
    `${number(n)} of ${count(all, '{n} line', '{n} lines')} ${n === 1 ? 'differs' : 'differ'}`,
  masked: 'Times, durations and ids are ignored.',
  only: 'Only differences',
  same: 'The logs are the same.',
}
