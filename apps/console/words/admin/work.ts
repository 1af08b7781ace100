import { count } from '../frame/plural.ts'

/** Texts for freezes, agents and packs. */
export const freeze = {
  title: 'Freezes',
  what: 'While a freeze is in force, no node starts on a resource that it covers. Running nodes finish.',
  empty: 'No freeze is in force or planned.',
  columns: {
    freeze: 'Freeze',
    status: 'Status',
    from: 'From',
    to: 'Until',
    covers: 'Covers',
    approvers: 'Approvers',
    by: 'Created by',
    end: 'End',
  },
  in_force: 'In force',
  planned: 'Planned',
  file: 'A file of this installation',
  create: 'New freeze',
  submit: 'Create freeze',
  create_effect: 'It holds as soon as it begins, in new operations and in running ones.',
  reason: 'Title: why changes must stop',
  approvers: 'Approver groups, by key',
  begins: (zone: string) => `From (${zone}), empty: now`,
  ends: (zone: string) => `Until (${zone})`,
  conditions_note: 'Written by the conditions; you can edit it. “true” covers every resource.',
  covers: (targets: number, operations: number) =>
    targets === 0
      ? 'It covers no resource now.'
      : `${count(targets, 'It covers one resource', 'It covers {n} resources')} now and holds ${operations === 0 ? 'no open operation' : count(operations, 'one open operation', '{n} open operations')}.`,
  uncounted: 'There are too many resources to count what it covers.',
  may_end: (names: string[]) =>
    names.length === 0
      ? 'Nobody could end it now: no approver is in these groups.'
      : `Can end it: ${names.join(', ')}.`,
  end: 'End',
  end_one: (title: string) => `End: ${title}`,
  end_effect: 'The freeze ends for every operation. Nodes that it held start by themselves.',
  when: 'It ends',
  whens: { now: 'Now', later: 'Later, but before its planned end' },
  ends_at: (zone: string) => `New end (${zone})`,
  shorten: 'Shorten',
  shorten_effect: 'The freeze then ends at',
  outside: 'Choose a time after its beginning and before its planned end, not in the past.',
  end_instead: (groups: string[]) =>
    `To let one operation pass, ${groups.join(' or ')} can approve its freeze gate instead.`,
}

export const agent = {
  title: 'Agents',
  about: 'Agents ask for the work of their pools. A silent agent stays listed for seven days.',
  empty: 'No agent has asked for work.',
  columns: {
    agent: 'Agent',
    status: 'Status',
    pools: 'Pools',
    labels: 'Labels',
    version: 'Version',
    places: 'At once',
    seen: 'Last seen',
    work: 'Current work',
  },
  status: { idle: 'Idle', working: 'Working', draining: 'Draining', silent: 'Silent' },
  sharing: (n: number) => `${n} processes use this name. Give each its own.`,
  others: (n: number) => count(n, 'one more that you may not see', '{n} more that you may not see'),
}

export const pack = {
  title: 'Packs',
  what: 'Packs hold the procedures that plans are made of. They change with a release: operations refuses to start with a faulty pack.',
  check: 'names the fault and its place beforehand.',
  empty: 'No packs are loaded.',
  version: (version: string) => `version ${version}`,
  versions_of: (pack: string) => `Versions of ${pack}`,
  procedures_of: (pack: string) => `Procedures of ${pack}`,
  columns: {
    version: 'Version',
    status: 'Status',
    used: 'Used by',
    loaded: 'First loaded',
    digest: 'Digest',
    procedure: 'Procedure',
    kind: 'Kind',
    type: 'Resource type',
    steps: 'Steps',
    gates: 'Gates',
  },
  status: { current: 'Current: new plans use it', loaded: 'Loaded, not the newest', retired: 'No longer loaded' },
  kind: { change: 'Change', action: 'Action', runbook: 'Runbook' },
  used: ({ operations, schedules }: { operations: number; schedules: number }) =>
    [
      ...(operations > 0 ? [count(operations, 'one open operation', '{n} open operations')] : []),
      ...(schedules > 0 ? [count(schedules, 'one schedule', '{n} schedules')] : []),
    ].join(', ') || 'Not in use',
}
