import { count, list, number } from '../frame/plural.ts'

const finishing = (running: number): string =>
  running === 0 ? 'No node is running' : count(running, 'One running node finishes', '{n} running nodes finish')
/** Texts for operations and their list. */
export const operations = {
  title: 'Operations',
  tabs: {
    running: 'Open',
    waiting: 'Needs attention',
    failed: 'Failed',
    all: 'All',
    succeeded: 'Succeeded',
    cancelled: 'Canceled',
  },
  ended_between: (from: string, to: string) => `Ended ${from} to ${to}`,
  any_time: 'Any time',
  filters: {
    any: 'Any',
    kind: 'Kind',
    kinds: { change: 'Change', action: 'Action', runbook: 'Runbook', graph: 'Graph' },
    age: 'Requested within',
    ages: { day: 'a day', week: 'a week', month: '30 days' },
    by: 'Requester, or me',
    env: 'Environment',
    on: 'Resource ID',
  },
  filter: 'Operations',
  search: 'Search title or ticket',
  caption: 'Operations, newest first',
  status: 'Status',
  operation: 'Operation',
  who: 'Requested by',
  progress: 'Progress',
  waiting_on: 'Waiting on',
  started: 'Started',
  duration: 'Duration',
  failed: (n: number) => `${number(n)} failed`,
  ended: (part: number, whole: number) => `${number(part)} of ${number(whole)} ended`,
  empty: {
    running: 'No operations are running.',
    waiting: 'No operations need attention.',
    failed: 'No operations have failed.',
    all: 'No operations yet.',
    succeeded: 'No operations have succeeded.',
    cancelled: 'No operations were canceled.',
  },
  no_match: 'No operations match.',
  clear: 'Clear filters',
  see_all: 'See all operations',
  demo: 'To start one, run: npm run demo',
  /** Several operations paused, resumed or canceled together. */
  bulk: {
    title: 'Selected operations',
    select: (title: string) => `Select ${title}`,
    selected: (n: number) => count(n, 'One operation selected', '{n} operations selected'),
    most: (n: number) => `${number(n)} operations selected, the most at once`,
    all: 'Select all',
    clear: 'Clear selection',
    open: { pause: 'Pause selected …', resume: 'Resume selected …', cancel: 'Cancel selected …' },
    titles: {
      pause: (n: number) => count(n, 'Pause this operation?', 'Pause these operations?'),
      resume: (n: number) => count(n, 'Resume this operation?', 'Resume these operations?'),
      cancel: (n: number) => count(n, 'Cancel this operation?', 'Cancel these operations?'),
    },
    buttons: {
      pause: (n: number) => count(n, 'Pause one operation', 'Pause {n} operations'),
      resume: (n: number) => count(n, 'Resume one operation', 'Resume {n} operations'),
      cancel: (n: number) => count(n, 'Cancel one operation', 'Cancel {n} operations'),
    },
    able: (n: number) => count(n, 'One operation', '{n} operations'),
    out: 'Left out',
    none: 'This is possible for none of them now.',
    rest: (n: number) => count(n, 'Send the last one', 'Send the other {n}'),
    recorded: 'Recorded, not confirmed yet',
    held: 'Not sent yet',
    progress: (done: number, all: number) => `${number(done)} of ${number(all)} answered.`,
  },
}

export const operation = {
  tabs: {
    graph: 'Graph',
    nodes: 'Nodes',
    timeline: 'Timeline',
    patches: 'Patches',
    artifacts: 'Artifacts',
    evidence: 'Evidence',
    activity: 'Activity',
  },
  tabs_label: 'Views of this operation',
  requested: (who: string) => `Requested by ${who}`,
  repeats: 'Follows',
  plan: 'Plan',
  engine: 'Open in Temporal',
  nodes_done: (done: number, total: number) => `${number(done)} of ${number(total)} nodes done`,
  failed: (n: number) => count(n, '{n} failed', '{n} failed'),
  running: (n: number) => `${number(n)} running`,
  eta: (text: string) => `about ${text} left`,
  /** Why an operation is blocked, by kind; `undefined`: the text of the server. */
  blocked_on: (_kind: string, _id: string, _message: string): string | undefined => undefined,
  sentence: {
    queued: 'Queued.',
    running: (n: number) => count(n, 'Running: one node in progress.', 'Running: {n} nodes in progress.'),
    waiting_gate: 'Waiting for a decision:',
    more_gates: (n: number) => count(n, 'and one more gate', 'and {n} more gates'),
    waiting_failed: 'Stopped at a failure:',
    blocked: 'Blocked:',
    pausing: (n: number, by: string) =>
      `Pausing${by}${n > 0 ? count(n, ': one node is finishing.', ': {n} nodes are finishing.') : '.'}`,
    paused: (by: string) => `Paused${by}. No new node starts until it is resumed.`,
    by: (who: string, at: string) => ` by ${who}, ${at}`,
    cancelling: (n: number, by: string) =>
      `Canceling${by}${n > 0 ? count(n, ': one node is finishing.', ': {n} nodes are finishing.') : '.'}`,
    succeeded: (duration: string) => `Succeeded in ${duration}.`,
    succeeded_with_exceptions: (duration: string) => `Succeeded with exceptions in ${duration}.`,
    failed: 'Failed.',
    cancelled: (by: string) => `Canceled${by}.`,
    timed_out: 'Timed out.',
  },
  /** Why the system paused or ended an operation. */
  system_reason: {
    node_failed: 'A node failed.',
    gate_rejected: 'A gate was rejected.',
    gate_expired: 'A gate expired without a decision.',
    deadline: 'Its deadline passed.',
    failed_node: 'A node failed.',
    failure_budget: 'More nodes failed than the plan allows.',
    target_drift: 'A target is not as it was planned; its node says what differs.',
    catalog_drift: 'Targets have changed in the catalog since the plan.',
    engine_lost: 'The workflow engine lost it.',
    engine_mismatch: 'The workflow engine cannot continue it as it is.',
    start_withdrawn: 'It was withdrawn before anything started.',
  } as Record<string, string>,
  /** The outcome of a command that was recorded before. */
  late: {
    applied: () => 'Carried out.',
    refused: (kind: string) => `Recorded, then refused: ${kind}.`,
    withdrawn: (kind: string) => `Recorded, then withdrawn: ${kind}.`,
  },
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
    moved: 'This node has changed since this dialog was opened. Close it and look at the node again.',
    decided: 'This gate no longer waits. Close this dialog and look at the operation again.',
    title: 'Retry this node?',
    button: 'Retry node',
    effect: (names: string[]) =>
      `${count(names.length, 'This node runs', 'These nodes run')} again: ${list.format(names)}.`,
    waiting: (names: string[]) =>
      `${count(names.length, 'This node waits', 'These nodes wait')} for that: ${list.format(names)}.`,
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
  kind: (kind: string) => kind.replaceAll('_', ' '),
  pending: (kind: string) => `pending: ${kind}`,
  open: 'Open the operation',
  actions: 'Actions',
  action: { pause: 'Pause', resume: 'Resume', cancel: 'Cancel', again: 'Run again', back: 'Roll back' },
  review_gate: 'Review the gate',
}
