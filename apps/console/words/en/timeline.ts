/** Words of the timeline and its events. */
export const timeline = {
  title: 'Timeline',
  gantt: 'Bars per node',
  gantt_note: 'The same times stand in the table on the Nodes tab.',
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
  kinds: { all: 'Everything', people: 'People and gates', problems: 'Failures' },
  empty: 'Nothing has happened yet.',
  nothing_ran: 'No node has started yet.',
}

export const activity = {
  title: 'Acts on this operation',
  who: { people: 'People', system: 'System', all: 'Everything' },
  details: 'Details',
  evidence: 'Evidence',
  empty: 'Nobody has done anything yet.',
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

/** Events whose plain words would not do. */
export const events = {
  'operation.drifted': 'A target changed in the catalog',
  'operation.ended': 'Operation ended',
  'node.backoff': 'Node waits before it tries again',
  'node.dispatched': 'Node handed to its executor',
  'node.gated': 'Node waits for a gate',
  'node.outcome_unknown': 'Outcome of the node is not known',
  'node.progress': 'Node reported progress',
  'node.reset': 'Node set back for a retry',
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
  'catalog.conflict': 'The catalog had moved on',
  'plan.rehearsed': 'Rehearsed before the start',
  'plan.policy_forbids': 'A policy speaks against the plan',
  'export.made': 'Evidence exported',
  'artifact.stored': 'Artifact stored',
  'lease.waiting': 'Waiting for a lease',
} as Record<string, string>
