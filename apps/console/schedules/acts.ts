import type { ScheduleView } from '../api/types.ts'

const ACTS = ['run', 'pause', 'resume', 'end'] as const
export type Act = (typeof ACTS)[number]

/** What a schedule is offered in its state; its `allowed_actions` say whether this person may. */
export const actsOf = ({ status }: Pick<ScheduleView, 'status'>): Act[] =>
  status === 'ended'
    ? []
    : ACTS.filter((one) => (one === 'pause' ? status === 'active' : one !== 'resume' || status === 'paused'))
