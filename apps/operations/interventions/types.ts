import type { TimelineEvent } from '../../../db/operations/facts/state.ts'
import type { Caller } from '../../shared/auth/caller.ts'
import type { Command, Decision, Subject } from '../command/command.ts'
import type { PlanningDeps, PolicyDeps, Uses } from '../deps.ts'

export type InterventionDeps = PlanningDeps & PolicyDeps & Uses<'trust'>
export type InterventionCommand = Command & { caller: Caller }
/**
 * `groups`: those of its author now. `agreed`: a second person has agreed; its author's permission was checked earlier.
 */
export type Intervening = {
  command: InterventionCommand
  subject: Subject
  command_id: string
  groups: readonly string[]
  agreed?: boolean
}

/** The result of an intervention: its rows are already written. */
export type Intervened = {
  payload: Record<string, unknown> | null
  /** Facts besides the intervention itself. */
  events?: Omit<TimelineEvent, 'actor'>[]
  set?: Decision['set']
  undo?: Record<string, unknown>
  /** Recorded as an exception to the plan. */
  exception?: boolean
  /** The people who take part in the operation because of it. */
  involved?: string[]
  /** The freezes that still hold the operation. */
  freezes?: Record<string, string>
  node_id?: string
  gate_id?: string
  /** The state that it overrides: a second person reads it, and agrees to no other. */
  overrides?: Record<string, unknown>
  statement: string
  data: Record<string, unknown>
  effect: Record<string, unknown>
  before: unknown
}
