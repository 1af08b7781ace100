/** Time is an argument everywhere but here, so that tests own it. */
export type Clock = { now(): Date }
export const systemClock: Clock = { now: () => new Date() }
