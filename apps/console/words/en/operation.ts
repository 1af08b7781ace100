import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })

/** Words of operations and their list. */
export const operations = {
  title: 'Operations',
  tabs: { running: 'Running', waiting: 'Needs attention', failed: 'Failed', all: 'All' },
  filter: 'Which operations',
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
    running: 'No operation is running.',
    waiting: 'No operation needs a person.',
    failed: 'No operation has failed.',
    all: 'No operation was started yet.',
  },
  no_match: 'No operation matches.',
  clear: 'Clear filters',
  see_all: 'See all operations',
  demo: 'npm run demo starts one.',
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
    running: (n: number) => count(n, 'Running: one node at work.', 'Running: {n} nodes at work.'),
    waiting_gate: 'Waiting for a decision:',
    more_gates: (n: number) => count(n, 'and one more gate', 'and {n} more gates'),
    waiting_failed: 'Stopped at a failure:',
    blocked: (message: string) => `Blocked: ${message}`,
    pausing: (n: number, by: string) =>
      `Pausing${by}${n > 0 ? count(n, ': one node is finishing.', ': {n} nodes are finishing.') : '.'}`,
    paused: (by: string) => `Paused${by}. Nothing new starts until it is resumed.`,
    by: (who: string, at: string) => ` by ${who}, ${at}`,
    cancelling: (n: number, by: string) =>
      `Cancelling${by}${n > 0 ? count(n, ': one node is finishing.', ': {n} nodes are finishing.') : '.'}`,
    succeeded: (duration: string) => `Succeeded in ${duration}.`,
    succeeded_with_exceptions: (duration: string) => `Succeeded with exceptions in ${duration}.`,
    failed: 'Failed.',
    cancelled: (by: string) => `Cancelled${by}.`,
    timed_out: 'Timed out.',
  },
  /** Why the system itself paused or ended an operation. */
  system_reason: {
    node_failed: 'A node failed.',
    gate_rejected: 'A gate was rejected.',
    gate_expired: 'Nobody decided a gate in time.',
    deadline: 'Its deadline passed.',
    failed_node: 'A node failed.',
    catalog_drift: 'Targets have changed in the catalog since the plan.',
    engine_lost: 'The workflow service has lost it.',
    engine_mismatch: 'The workflow service cannot carry it on as it is.',
    start_withdrawn: 'Its start came too late and was withdrawn.',
  } as Record<string, string>,
  pending: (kind: string) => `pending: ${kind}`,
  actions: 'Actions',
  action: { pause: 'Pause', resume: 'Resume', cancel: 'Cancel' },
  review_gate: 'Review the gate',
  see_failure: 'See the failure',
}
