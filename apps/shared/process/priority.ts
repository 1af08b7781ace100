/** The priority of requests (platform.md 7.1), highest first. Every route has one class; `exempt` joins no queue. */
export const PRIORITIES = ['exempt', 'stop', 'enter', 'decide', 'write', 'read', 'batch'] as const
export type Priority = (typeof PRIORITIES)[number]

/** Stopping, deciding and signing in wait for a busy machine until the deadline: a refusal would be worse. */
export const PATIENT: ReadonlySet<Priority> = new Set<Priority>(['stop', 'enter', 'decide'])
