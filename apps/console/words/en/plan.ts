import { plural } from './plural.ts'

const count = (n: number, one: string, other: string): string => plural('en', n, { one, other })
const list = new Intl.ListFormat('en', { type: 'conjunction' })

/** Words of plans: what an intent would change, and how it would go. */
export const plan = {
  title: 'Plan',
  digest: 'Plan hash',
  tabs: { changes: 'Changes', graph: 'Graph', gates: 'Gates', checks: 'Checks', rehearsal: 'Rehearsal' },
  tabs_label: 'Views of this plan',
  time: 'Expected time',
  drawing: 'Graph of the plan: every node that would run',
  no_nodes: 'Nothing would run.',
  gate_before: 'Gate before it',
  range: (low: string, high: string) => `${low} to ${high}`,
  operation: 'Open the operation',
  start: 'Start',
  again: 'Preview again',
  planning: 'Planning …',
  status: {
    ready: 'It can be started.',
    blocked_by_policy: 'A policy forbids to start it; Checks says which.',
    locked: 'It is being started.',
    started: 'It was started.',
    superseded: 'A newer plan has taken its place.',
    stale: 'What it was made for has changed; preview it again to see the difference.',
    expired: 'It is too old to be started; preview it again.',
  } as Record<string, string>,
  newer: 'Open the newer plan',
  moved: (name: string, planned: number, now: number | null) =>
    now === null
      ? `${name} is gone; it was planned at version ${planned}`
      : `${name} moved from version ${planned} to ${now}`,
  moved_title: 'Moved since it was planned',
  more_changes: (n: number) => `The first ${n} resources are listed.`,

  no_gates: 'No gate: it runs to the end without asking.',
  who: (groups: string[]) =>
    groups.length === 0 ? 'Whoever holds gate:decide may decide.' : `Members of ${list.format(groups)} may decide.`,
  can_i: 'You are one of them.',
  cannot_i: 'You cannot decide it.',

  risk: (level: string, score: number) => `Risk: ${level}, ${count(score, 'one point', '{n} points')}`,
  no_factors: 'Nothing raises its risk.',
  points: (n: number) => `+${n}`,
  impact: 'Reach',
  dependents: (n: number) =>
    n === 0
      ? 'Nothing else depends on what it changes.'
      : count(n, 'One resource depends on what it changes:', '{n} resources depend on what it changes:'),
  compensable: 'Every step has a way back: cancelling with compensation undoes what was done.',
  not_compensable: 'Not every step has a way back.',
  policies: 'Policies',
  no_policies: 'No policy had anything to say.',
  levels: {
    hard: 'hard: cannot be overridden',
    soft: 'soft: can be overridden',
    advisory: 'advice',
  } as Record<string, string>,
  results: { passed: 'passed', forbids: 'forbids' } as Record<string, string>,
  conflicts: 'In the way',
  no_conflicts: 'Nothing else holds these resources.',
  windows: (names: string[]) => `It starts only within ${list.format(names)}.`,
  warnings: 'Worth knowing',

  rehearsal: {
    none: 'It has not been rehearsed. A rehearsal carries the plan out on a virtual clock, by the rules of the engine itself; nothing outside is touched.',
    run: 'Rehearse',
    again: 'Rehearse again',
    running: 'Rehearsing …',
    approval: 'Gates are decided',
    delays: {
      '0': 'at once',
      '600': 'after 10 minutes',
      '3600': 'after an hour',
      '28800': 'after eight hours',
      never: 'by nobody',
    } as Record<string, string>,
    fail: 'Let a step fail',
    fail_none: 'None',
    ends: (how: string, time: string) => `It ends: ${how}, after ${time}.`,
    stands: (how: string, time: string) => `It stands still after ${time}: ${how}. It waits for a person.`,
    ended: {
      succeeded: 'succeeded',
      succeeded_with_exceptions: 'succeeded with exceptions',
      failed: 'failed',
      cancelled: 'cancelled',
      timed_out: 'timed out',
      blocked: 'blocked',
      paused: 'paused',
    } as Record<string, string>,
    assumed: (delay: string, failures: string[]) =>
      `Assumed: gates are decided ${delay}${failures.length > 0 ? `; ${list.format(failures)}` : ''}.`,
    failure: (node: string, attempt: number, why: string) => `${node} fails at attempt ${attempt} (${why})`,
    seconds: (text: string) => `after ${text}`,
    lanes: 'Who runs when',
    lanes_cut: (shown: number, all: number) => `The first ${shown} of ${all} runs are listed.`,
    gate_at: (gate: string, at: string, decided: string | null) =>
      decided === null ? `${gate} asks ${at} and is not decided` : `${gate} asks ${at}, decided ${decided}`,
    gates: 'Gates',
    undone: (names: string[]) => `Undone, in this order: ${list.format(names)}.`,
    attempt: (n: number) => (n === 0 ? 'waits' : `attempt ${n}`),
    bar: (node: string, attempt: string, from: string, to: string, failure: string | null) =>
      `${node}, ${attempt}: ${from} to ${to}${failure === null ? '' : `, fails: ${failure}`}`,
    warnings: 'What it shows',
  },
}
