import { count } from '../frame/plural.ts'

/** Texts that the administration shares. */
export const common = {
  title: 'Administration',
  tabs: 'Pages of the administration',
  reason: 'Reason',
  reason_needed: 'Enter a reason.',
  second: 'Another administrator must confirm it, under Changes.',
  everywhere: 'Everywhere',
  never: 'Never',
  remove: 'Remove',
  remove_one: (name: string) => `Remove ${name}`,
  copy: 'Copy',
  /** What open gates lose with the rights. */
  losing: {
    none: 'No open gate loses a voter.',
    unknown: 'The effect on open gates cannot be read now.',
    blocked: 'too few people are left to approve it.',
    left: (n: number) => count(n, 'one person can still vote.', '{n} people can still vote.'),
    votes: (n: number) => count(n, 'One vote no longer counts.', '{n} votes no longer count.'),
    more: (n: number) => count(n, 'One more gate loses a voter.', '{n} more gates lose a voter.'),
  },
  scope: {
    region_id: 'Region',
    datacenter_id: 'Data center',
    layer_id: 'Layer',
    segment_id: 'Segment',
    type_key: 'Resource type',
  },
}
