import { count, list, number } from '../frame/plural.ts'

/** Texts for plans: the changes of an intent, and how they are carried out. */
export const plan = {
  starting: {
    title: 'Start this plan?',
    button: 'Start operation',
    first: (names: string[]) =>
      names.length === 0 ? 'No node starts immediately.' : `First to start: ${list.format(names)}.`,
    gate: (question: string) => `The first gate asks: ${question}`,
    held: 'While other operations hold its resources',
    queue: 'Queue it until they are free',
    reject: 'Do not start it',
  },
  title: 'Plan',
  digest: 'Plan hash',
  tabs: { changes: 'Changes', graph: 'Graph', gates: 'Gates', checks: 'Checks', rehearsal: 'Rehearsal' },
  tabs_label: 'Views of this plan',
  time: 'Expected duration',
  drawing: 'Graph of the plan: every node that would run',
  no_nodes: 'No nodes would run.',
  gate_before: 'Gate before it',
  range: (low: string, high: string) => `${low} to ${high}`,
  operation: 'Open the operation',
  start: 'Start',
  again: 'Preview again',
  planning: 'Planning …',
  status: {
    ready: 'Ready to start.',
    blocked_by_policy: 'A policy forbids its start; Checks names the policy.',
    locked: 'It is starting.',
    started: 'It has started.',
    superseded: 'A newer plan has replaced it.',
    stale: 'Its resources have changed; preview it again to see the difference.',
    expired: 'It has expired; preview it again.',
  } as Record<string, string>,
  newer: 'Open the newer plan',
  moved: (name: string, planned: number, now: number | null) =>
    now === null
      ? `${name} no longer exists; it was planned at version ${planned}`
      : `${name} moved from version ${planned} to ${now}`,
  moved_title: 'Changed since the plan',
  more_changes: (n: number) => `The first ${number(n)} resources are listed.`,

  rule: (rule: string, steps: string) => `Needs ${rule}. Guards ${steps}.`,
  no_gates: 'No gates: it runs to the end without stopping.',
  who: (groups: string[]) =>
    groups.length === 0 ? 'Anyone with gate:decide may decide.' : `Members of ${list.format(groups)} may decide.`,
  can_i: 'You are one of them.',
  cannot_i: 'You are not one of them.',

  risk: (level: string, score: number) => `Risk: ${level}, ${count(score, 'one point', '{n} points')}`,
  no_factors: 'No risk factors.',
  points: (n: number) => `+${n}`,
  impact: 'Impact',
  dependents: (n: number) =>
    n === 0
      ? 'No other resource depends on the changed ones.'
      : count(n, 'One resource depends on the changed ones.', '{n} resources depend on the changed ones.'),
  affected: (n: number, at_least: boolean, unhealthy: number) =>
    n === 0
      ? 'No other resource depends on the changed ones.'
      : [
          at_least ? 'At least ' : '',
          count(n, at_least ? 'one resource' : 'One resource', '{n} resources'),
          ' would be affected if the changed ones failed',
          unhealthy > 0 ? `: ${unhealthy} would become unhealthy` : '',
          n > unhealthy ? `${unhealthy > 0 ? ', ' : ': '}${n - unhealthy} would become degraded` : '',
          '.',
        ].join(''),
  affected_columns: { type: 'Type', health: 'Health now', count: 'Count', nearest: 'Nearest' },
  compensable: 'Every step has a compensation: canceling with compensation undoes the changes.',
  not_compensable: 'Not every step has a compensation.',
  policies: 'Policies',
  no_policies: 'No policy findings.',
  levels: { hard: 'hard: cannot be overridden', soft: 'soft: can be overridden', advisory: 'advice' } as Record<
    string,
    string
  >,
  results: { passed: 'passed', forbids: 'forbids' } as Record<string, string>,
  conflicts: 'Conflicts',
  no_conflicts: 'No other operation holds these resources.',
  windows: (names: string[]) => `It starts only within ${list.format(names)}.`,
  warnings: 'Warnings',
  /** A risk factor or warning by its code; `undefined`: the text of the server. */
  said: (_code: string, _values: Record<string, string | number>): string | undefined => undefined,

  rehearsal: {
    none: 'Not rehearsed yet. A rehearsal runs the plan on a virtual clock, by the rules of the engine. It touches no target.',
    run: 'Rehearse',
    again: 'Rehearse again',
    running: 'Rehearsing …',
    approval: 'Gates are decided',
    delays: {
      '0': 'at once',
      '600': 'after 10 minutes',
      '3600': 'after an hour',
      '28800': 'after eight hours',
      never: 'never',
    } as Record<string, string>,
    fail: 'Simulated failure',
    fail_none: 'None',
    ends: (how: string, time: string) => `It ends: ${how}, after ${time}.`,
    stands: (how: string, time: string) => `It stalls after ${time}: ${how}. It waits for a person.`,
    ended: {
      succeeded: 'succeeded',
      succeeded_with_exceptions: 'succeeded with exceptions',
      failed: 'failed',
      cancelled: 'canceled',
      timed_out: 'timed out',
      blocked: 'blocked',
      paused: 'paused',
    } as Record<string, string>,
    assumed: (delay: string, failures: string[]) =>
      `Assumed: gates are decided ${delay}${failures.length > 0 ? `; ${list.format(failures)}` : ''}.`,
    failure: (node: string, attempt: number, why: string) => `${node} fails at attempt ${attempt} (${why})`,
    seconds: (text: string) => `after ${text}`,
    lanes: 'Schedule',
    lanes_cut: (shown: number, all: number) => `The first ${number(shown)} of ${number(all)} runs are listed.`,
    gate_at: (gate: string, at: string, decided: string | null) =>
      decided === null ? `${gate} asks ${at} and is not decided` : `${gate} asks ${at}, decided ${decided}`,
    gates: 'Gates',
    undone: (names: string[]) => `Undone, in this order: ${list.format(names)}.`,
    attempt: (n: number) => (n === 0 ? 'waiting' : `attempt ${n}`),
    bar: (node: string, attempt: string, from: string, to: string, failure: string | null) =>
      `${node}, ${attempt}: ${from} to ${to}${failure === null ? '' : `, fails: ${failure}`}`,
    warnings: 'Findings',
  },
}

/** Texts for the parts of a gate that come later: the observations of a watch, and the preview of a tool. */
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
