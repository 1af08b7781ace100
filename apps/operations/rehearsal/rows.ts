import type { RecordBatch, RecordResult } from '../../../workflows/operation/state/events.ts'
import type { GatePolicy, GateStatus, PlanGate, PlanNode } from '../../shared/contracts/operations/graph.ts'

export type RehearsedGate = {
  gate_id: string
  policy: GatePolicy
  status: GateStatus
  asked_at: number | null
  deadline: number | null
  decided_at: number | null
  /** When the next groups are asked. */
  escalation: number | null
  escalations: { at: number; add_groups: string[] }[]
}

const isoOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

/** Conditions that are constant after planning; any other depends on outputs, which are unknown in advance. */
const KNOWN: Record<string, boolean> = { true: true, false: false }

const ask = (gate: RehearsedGate, at: number) => {
  if (gate.status !== 'armed') return
  Object.assign(gate, { status: 'waiting', asked_at: at, deadline: at + 1000 * gate.policy.deadline_s })
  gate.escalation = levelOf(gate, 0)
}

/** Counted from when the gate began to wait. */
const levelOf = ({ policy, asked_at }: RehearsedGate, level: number): number | null => {
  const next = policy.escalation[level]
  return next && asked_at !== null ? asked_at + 1000 * next.after_s : null
}

const escalate = (gate: RehearsedGate, at: number) => {
  if (gate.status !== 'waiting' || gate.escalation === null || gate.escalation > at) return
  const level = gate.escalations.length
  gate.escalations.push({ at, add_groups: gate.policy.escalation[level]?.add_groups ?? [] })
  gate.escalation = levelOf(gate, level + 1)
}

const expire = (gate: RehearsedGate, at: number) => {
  if (gate.status !== 'waiting' || gate.deadline === null || gate.deadline > at) return
  gate.deadline = null
  if (gate.policy.on_timeout === 'hold') return
  gate.status = gate.policy.on_timeout === 'approve' ? 'approved' : 'expired'
  gate.decided_at = at
}

/** Replaces the rows of Postgres: gates, control and conditions, decided as record_changes decides them. */
export const createRows = (nodes: readonly PlanNode[], gates: readonly PlanGate[]) => {
  const state = {
    control: 'run' as 'run' | 'pause' | 'cancel',
    compensates: false,
    gates: new Map<string, RehearsedGate>(
      gates.map(({ gate_id, policy }) => [
        gate_id,
        {
          gate_id,
          policy,
          status: 'armed',
          asked_at: null,
          deadline: null,
          decided_at: null,
          escalation: null,
          escalations: [],
        },
      ]),
    ),
    /** Nodes whose condition was assumed to be true. */
    assumed: new Set<string>(),
  }
  const whens = new Map(nodes.flatMap(({ node_id, when }) => (when === undefined ? [] : [[node_id, when] as const])))

  const cancel = (mode: string) => {
    state.control = 'cancel'
    state.compensates = mode === 'compensate'
    for (const gate of state.gates.values())
      if (gate.status === 'armed' || gate.status === 'waiting') gate.status = 'cancelled'
  }

  /** Writes one batch and returns its result; calls `asks` for each gate that begins to wait. */
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
      } else if (change.t === 'gate_open' || change.t === 'gate_expire' || change.t === 'gate_escalate') {
        const gate = state.gates.get(change.gate_id)
        if (!gate) continue
        const armed = gate.status === 'armed'
        if (change.t === 'gate_open') ask(gate, at)
        else if (change.t === 'gate_expire') expire(gate, at)
        else escalate(gate, at)
        if (armed && gate.status === 'waiting') asks(gate)
        const { gate_id, status, deadline } = gate
        const escalates_at = status === 'waiting' ? isoOf(gate.escalation) : null
        result.gates.push({ gate_id, status, round: change.round, deadline_at: isoOf(deadline), escalates_at })
      }
    }
    return result
  }
  return { state, record }
}
