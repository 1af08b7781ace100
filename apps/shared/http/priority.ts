/** What a request is for: to read, to write, to act on what runs, or to stop it. */
export type ActionKind = 'R' | 'W' | 'A' | 'S'

/** Who goes first (platform.md 7.1), highest first. Every route has one class; `exempt` takes part in no queue. */
export const PRIORITIES = ['exempt', 'stop', 'enter', 'decide', 'write', 'read', 'batch'] as const
export type Priority = (typeof PRIORITIES)[number]

/** The header in which the gateway tells the apps the class of a request; no client can send it. */
export const PRIORITY_HEADER = 'x-priority'

const OF_KIND: Record<ActionKind, Priority> = { S: 'stop', A: 'decide', W: 'write', R: 'read' }

/** The class that the gateway stated, else the one of the kind of action. */
export const priorityOf = (stated: string | string[] | undefined, kind: ActionKind): Priority =>
  PRIORITIES.find((priority) => priority === stated) ?? OF_KIND[kind]
