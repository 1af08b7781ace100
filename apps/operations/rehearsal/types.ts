import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { OperationCalendar } from '../../shared/data/calendar.ts'
import type { Timing } from '../graph/graph.ts'

/** The assumptions of a rehearsal (operations.md 10). */
export type Assumptions = {
  seed: number
  /** Seconds until an approval; null: no approval comes. */
  approval_delay_s: number | null
  /** Failures of runs, or of undos if `undo` is set. */
  failures: { node_id: string; attempt: number; class: string; undo?: boolean }[]
}

/** The whole input of a rehearsal: plain data, so that it can cross to another thread. */
export type RehearsalInput = Assumptions & {
  /** When it begins; used only by windows, freezes and waits until a time. */
  at: string
  nodes: PlanNode[]
  gates: PlanGate[]
  /** By position of the node. */
  timings: Timing[]
  constraints: Record<string, unknown>
  max_parallel: number
  /** The calendar that claims use: the same as the operation's. */
  calendar: OperationCalendar | null
}

export type RehearsalAnswer = { rehearsal: Rehearsal } | { too_long: string }
