import type { State } from '../../../workflows/operation/state/types.ts'
import type { PlanNode } from '../../shared/contracts/operations/graph.ts'
import type { Rehearsal } from '../../shared/contracts/operations/plans.ts'
import { pick } from '../../shared/data/pick.ts'
import type { RehearsedGate } from './rows.ts'
import type { RehearsalInput } from './types.ts'

/** One run of a node, in virtual milliseconds; `class`: the failure that it was given. */
export type Lane = {
  node_id: string
  attempt: number
  role: 'run' | 'undo'
  from: number
  to: number
  class: string | null
}

export type Rehearsed = {
  begin: number
  now: number
  state: State
  lanes: Lane[]
  undone: string[]
  /** Nodes that waited for a window or a freeze, and until when. */
  waits: Map<string, number>
  /** When each node was settled for the first time. */
  settled: Map<string, number>
  gates: RehearsedGate[]
  assumed: string[]
}

const SHOWN_LANES = 1000
const SHOWN = 20

/** Returns a rehearsal as shown to people: in seconds from its beginning. */
export const reportOf = (input: RehearsalInput, run: Rehearsed): Rehearsal => {
  const { state, begin, now, lanes, undone, gates } = run
  const seconds = (at: number) => (at - begin) / 1000
  const or = (at: number | null) => (at === null ? null : seconds(at))
  const sorted = lanes.toSorted((a, b) => a.from - b.from || a.to - b.to || (a.node_id < b.node_id ? -1 : 1))
  return {
    ...pick(input, 'seed', 'approval_delay_s', 'failures'),
    ends: state.end?.status ?? (state.control === 'pause' ? 'paused' : 'blocked'),
    duration_s: seconds(now),
    critical_path: criticalPath(input.nodes, run.settled),
    gates: gates.map(({ gate_id, status, asked_at, decided_at, escalations }) => ({
      gate_id,
      status,
      at: or(asked_at),
      decided_at: or(decided_at),
      escalations: escalations.map(({ at, add_groups }) => ({ at: seconds(at), add_groups })),
    })),
    lanes: sorted
      .slice(0, SHOWN_LANES)
      .map(({ node_id, attempt, role, from, to, class: failure }) => ({
        node_id,
        from_s: seconds(from),
        to_s: seconds(to),
        attempt,
        undo: role === 'undo',
        failure,
      })),
    lanes_count: lanes.length,
    compensations: undone,
    warnings: warningsOf(run),
  }
}

/** Walks backwards from the node that is settled last, each time to the dependency that it waited for longest. */
const criticalPath = (nodes: readonly PlanNode[], settled: ReadonlyMap<string, number>): string[] => {
  const byId = new Map(nodes.map((node) => [node.node_id, node]))
  const latest = (ids: readonly string[]) =>
    ids.reduce<string | undefined>(
      (best, id) =>
        settled.has(id) && (best === undefined || (settled.get(id) ?? 0) > (settled.get(best) ?? 0)) ? id : best,
      undefined,
    )
  const path: string[] = []
  for (
    let id = latest(nodes.map(({ node_id }) => node_id));
    id !== undefined;
    id = latest(byId.get(id)?.depends_on ?? [])
  )
    path.unshift(id)
  return path
}

const warningsOf = ({ state, gates, waits, assumed, now }: Rehearsed): Rehearsal['warnings'] => {
  const warnings: Rehearsal['warnings'] = []
  for (const { gate_id, status } of gates)
    if (status === 'expired' || status === 'waiting')
      warnings.push({
        code: status === 'expired' ? 'gate_expires' : 'gate_waits',
        message:
          status === 'expired' ? `The gate ${gate_id} expires without approval.` : `The gate ${gate_id} waits forever.`,
      })
  const closed = [...waits].filter(([, until]) => until > now)
  if (waits.size > 0) {
    const names = [...waits.keys()].sort()
    warnings.push({
      code: closed.length > 0 ? 'window_never_opens' : 'waits_for_window',
      message: `${names.slice(0, SHOWN).join(', ')}${names.length > SHOWN ? ` and ${names.length - SHOWN} more` : ''} must wait for a window or the end of a freeze.`,
    })
  }
  if (assumed.length > 0)
    warnings.push({
      code: 'condition_assumed',
      message: `Whether these nodes run depends on outputs, so the rehearsal assumes that they do: ${assumed.slice(0, SHOWN).join(', ')}.`,
    })
  if (state.end === null)
    for (const { message } of (state.reported?.blocked_on ?? []).slice(0, SHOWN))
      warnings.push({ code: 'stands_still', message })
  return warnings
}
