import type { RecordBatch, RecordResult } from '../../../workflows/operation/state/types.ts'
import type { GatePolicy, GateStatus, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'

export type RehearsedGate = {
  gate_id: string
  policy: GatePolicy
  status: GateStatus
  asked_at: number | null
  deadline: number | null
  decided_at: number | null
}

/** Conditions that are constant after planning; any other depends on outputs, which nobody knows before. */
const KNOWN: Record<string, boolean> = { true: true, false: false }

/** What stands for the rows of Postgres: gates, control and conditions, decided as record_changes decides them. */
export const createRows = (nodes: readonly PlanNode[], gates: readonly PlanGate[]) => {
  const state = {
    control: 'run' as 'run' | 'pause' | 'cancel',
    compensates: false,
    gates: new Map<string, RehearsedGate>(
      gates.map(({ gate_id, policy }) => [
        gate_id,
        { gate_id, policy, status: 'armed', asked_at: null, deadline: null, decided_at: null },
      ]),
    ),
    /** Nodes whose condition was taken for true. */
    assumed: new Set<string>(),
  }
  const whens = new Map(nodes.flatMap(({ node_id, when }) => (when === undefined ? [] : [[node_id, when] as const])))

  const ask = (gate: RehearsedGate, at: number) => {
    if (gate.status !== 'armed') return
    Object.assign(gate, { status: 'waiting', asked_at: at, deadline: at + 1000 * gate.policy.deadline_s })
  }
  const expire = (gate: RehearsedGate, at: number) => {
    if (gate.status !== 'waiting' || gate.deadline === null || gate.deadline > at) return
    gate.deadline = null
    if (gate.policy.on_timeout === 'hold') return
    gate.status = gate.policy.on_timeout === 'approve' ? 'approved' : 'expired'
    gate.decided_at = at
  }
  const cancel = (mode: string) => {
    state.control = 'cancel'
    state.compensates = mode === 'compensate'
    for (const gate of state.gates.values())
      if (gate.status === 'armed' || gate.status === 'waiting') gate.status = 'cancelled'
  }

  /** Writes one batch and says what came of it; `asks` hears of each gate that begins to wait. */
  const record = ({ record_seq, changes }: RecordBatch, at: number, asks: (gate: RehearsedGate) => void) => {
    const result: RecordResult = { record_seq, gates: [], whens: {}, control: null }
    for (const change of changes) {
      if (change.t === 'when') {
        const known = KNOWN[whens.get(change.id) ?? '']
        if (known === undefined) state.assumed.add(change.id)
        result.whens[change.id] = known ?? true
      } else if (change.t === 'control') {
        const made = state.control === 'run' ? change.to : null
        if (made === 'pause') state.control = 'pause'
        if (made === 'cancel') cancel(change.mode ?? 'graceful')
        result.control = { swapped: made ?? result.control?.swapped ?? null, seq: 0 }
      } else if (change.t === 'gate_open' || change.t === 'gate_expire') {
        const gate = state.gates.get(change.gate_id)
        if (!gate) continue
        const armed = gate.status === 'armed'
        if (change.t === 'gate_open') ask(gate, at)
        else expire(gate, at)
        if (armed && gate.status === 'waiting') asks(gate)
        const deadline_at = gate.deadline === null ? null : new Date(gate.deadline).toISOString()
        result.gates.push({ gate_id: gate.gate_id, status: gate.status, round: change.round, deadline_at })
      }
    }
    return result
  }
  return { state, record }
}
