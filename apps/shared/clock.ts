/** Time is an argument everywhere but here, so that tests control it. */
export type Clock = { now(): Date }
export const systemClock: Clock = { now: () => new Date() }
