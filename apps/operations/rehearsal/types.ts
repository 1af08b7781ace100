import type { WindowHours } from '../../shared/calendar.ts'
import type { PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import type { Timing } from '../planner/graph.ts'

/** What a rehearsal is told to assume (operations.md 10). */
export type Assumptions = {
  seed: number
  /** Seconds until somebody approves; null: nobody ever does. */
  approval_delay_s: number | null
  failures: { node_id: string; attempt: number; class: string }[]
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
  windows: WindowHours[]
  freezes: { freeze_id: string; from: string; to: string }[]
  /** By target: positions of the windows and freezes that cover it. */
  calendar: Record<string, { windows: number[]; freezes: number[] }>
  /** The window that the intent asks for: it binds every node. */
  asked_window: number | null
}

export type RehearsalAnswer = { rehearsal: Rehearsal } | { too_long: string }
