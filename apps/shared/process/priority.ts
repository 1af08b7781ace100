/** Who goes first (platform.md 7.1), highest first. Every route has one class; `exempt` takes part in no queue. */
export const PRIORITIES = ['exempt', 'stop', 'enter', 'decide', 'write', 'read', 'batch'] as const
export type Priority = (typeof PRIORITIES)[number]

/** Who stops, decides or signs in waits until the deadline for a machine that is busy: being refused by it is worse. */
export const PATIENT: ReadonlySet<Priority> = new Set<Priority>(['stop', 'enter', 'decide'])
