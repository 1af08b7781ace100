/** Texts for deadlines that are near. */
export const tExpiring = {
  kinds: { operation: 'Deadline', plan: 'Plan', gate: 'Others decide', delegation: 'Delegated to you' },
  follows: {
    plan: 'it needs a new preview',
    delegation: 'you can no longer decide it',
    graceful: 'it is canceled',
    compensate: 'it is canceled and undone',
  } as Record<string, string>,
}
