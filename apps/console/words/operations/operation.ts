import { plural } from '../frame/plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of operations and of their list. */
export const operations = {
  title: 'Operations',
  tabs: { running: 'Running', waiting: 'Needs attention', failed: 'Failed', all: 'All' },
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
  failed: (n: number) => `${n} failed`,
  ended: (part: number, whole: number) => `${part} of ${whole} ended`,
  empty: {
    running: 'No operations are running.',
    waiting: 'No operations need attention.',
    failed: 'No operations have failed.',
    all: 'No operations yet.',
  },
  no_match: 'No operations match.',
  clear: 'Clear filters',
  see_all: 'See all operations',
  demo: 'To start one, run: npm run demo',
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
  plan: 'Plan',
  engine: 'Open in Temporal',
  nodes_done: (done: number, total: number) => `${done} of ${total} nodes done`,
  failed: (n: number) => count(n, '{n} failed', '{n} failed'),
  running: (n: number) => `${n} running`,
  eta: (text: string) => `about ${text} left`,
  sentence: {
    queued: 'Queued.',
    running: (n: number) => count(n, 'Running: one node in progress.', 'Running: {n} nodes in progress.'),
    waiting_gate: 'Waiting for a decision:',
    more_gates: (n: number) => count(n, 'and one more gate', 'and {n} more gates'),
    waiting_failed: 'Stopped at a failure:',
    blocked: (message: string) => `Blocked: ${message}`,
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
  /** Why the system itself paused or ended an operation. */
  system_reason: {
    node_failed: 'A node failed.',
    gate_rejected: 'A gate was rejected.',
    gate_expired: 'A gate expired without a decision.',
    deadline: 'Its deadline passed.',
    failed_node: 'A node failed.',
    target_drift: 'A target is not as it was planned; its node says what differs.',
    catalog_drift: 'Targets have changed in the catalog since the plan.',
    engine_lost: 'The workflow engine lost it.',
    engine_mismatch: 'The workflow engine cannot continue it as it is.',
    start_withdrawn: 'Its start was too late and was withdrawn.',
  } as Record<string, string>,
  pending: (kind: string) => `pending: ${kind}`,
  actions: 'Actions',
  action: { pause: 'Pause', resume: 'Resume', cancel: 'Cancel' },
  review_gate: 'Review the gate',
  see_failure: 'See the failure',
}
