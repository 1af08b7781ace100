/** Words of the timeline and its events. */
export const timeline = {
  title: 'Timeline',
  gantt: 'Node durations',
  gantt_note: 'The table on the Nodes tab has the same times.',
  events: 'Events',
  caption: 'Events of this operation, newest first',
  at: 'Time',
  event: 'Event',
  who: 'Who',
  about: 'About',
  segment: { queued: 'queued', gated: 'waiting for a gate', running: 'running', backoff: 'back-off' },
  bar: (name: string, word: string, duration: string) => `${name}: ${word}, ${duration}`,
  now: 'now',
  filter: 'Show',
  kinds: { all: 'All', people: 'People and gates', problems: 'Failures' },
  empty: 'No events yet.',
  nothing_ran: 'No node has started yet.',
}

export const activity = {
  title: 'Actions on this operation',
  who: { people: 'People', system: 'System', all: 'All' },
  details: 'Details',
  evidence: 'Evidence',
  empty: 'No actions yet.',
}

export const event_nouns = {
  operation: 'Operation',
  node: 'Node',
  gate: 'Gate',
  patch: 'Patch',
  command: 'Command',
  lease: 'Lease',
  catalog: 'Catalog',
  artifact: 'Artifact',
  intervention: 'Intervention',
  freeze: 'Freeze',
  export: 'Export',
} as Record<string, string>

/** Events whose name alone is not clear enough. */
export const events = {
  'operation.drifted': 'A target changed in the catalog',
  'operation.ended': 'Operation ended',
  'node.backoff': 'Node is waiting to retry',
  'node.dispatched': 'Node handed to its executor',
  'node.gated': 'Node is waiting for a gate',
  'node.outcome_unknown': 'Outcome of the node is unknown',
  'node.progress': 'Node reported progress',
  'node.reset': 'Node reset for a retry',
  'node.result_refused': 'A late result was refused',
  'patch.awaiting_approval': 'Patch proposed',
  'gate.waiting': 'Gate asks for a decision',
  'gate.armed': 'Gate armed',
  'gate.voted': 'Vote counted',
  'gate.reopened': 'Gate asks again',
  'gate.vote_voided': 'Vote no longer counts',
  'patch.vote_voided': 'Vote for the patch no longer counts',
  'gate.carried_over': 'Earlier approval still holds',
  'catalog.applied': 'Written to the catalog',
  'catalog.conflict': 'The catalog had changed',
  'plan.rehearsed': 'Rehearsed before the start',
  'plan.policy_forbids': 'A policy forbids the plan',
  'export.made': 'Evidence exported',
  'artifact.stored': 'Artifact stored',
  'lease.waiting': 'Waiting for a lease',
} as Record<string, string>
