import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { OperationCalendar } from '../../shared/data/calendar.ts'
import type { Timing } from '../graph/graph.ts'

/** What a rehearsal is told to assume (operations.md 10). */
export type Assumptions = {
  seed: number
  /** Seconds until an approval; null: there is none. */
  approval_delay_s: number | null
  /** Of runs, or of undos where it says so. */
  failures: { node_id: string; attempt: number; class: string; undo?: boolean }[]
}

/** All that a rehearsal knows: plain data, so that it can cross to a thread of its own. */
export type RehearsalInput = Assumptions & {
  /** When it begins: only windows, freezes and waits until a time look at it. */
  at: string
  nodes: PlanNode[]
  gates: PlanGate[]
  /** By position of the node. */
  timings: Timing[]
  constraints: Record<string, unknown>
  max_parallel: number
  /** What claims ask: the same as that of the operation. */
  calendar: OperationCalendar | null
}

export type RehearsalAnswer = { rehearsal: Rehearsal } | { too_long: string }
