import type { GatePolicy, GateStatus, PlanNode } from '../../../apps/shared/contracts/operations/graph.ts'
import { pick } from '../../../apps/shared/data/pick.ts'
import type { GateSpec, GraphPage, Profile } from '../../../workflows/operation/state/events.ts'

/** A node's input to the compact form; `gate_ids` name the gates that guard it. */
export type CompactNode = Pick<PlanNode, 'node_id' | 'name' | 'depends_on'> & {
  gate_ids: readonly string[]
  spec: PlanNode
  removed?: boolean
}

/**
 * Nodes in the reducer's compact form: they refer to each other and to gates by position, and common values appear
 * once. `ids` are the nodes of the whole graph, ordered by position.
 */
export const compactNodes = (
  nodes: readonly CompactNode[],
  ids: readonly string[],
  gate_ids: readonly string[],
  slice_s: number,
): Pick<GraphPage, 'nodes' | 'profiles'> => {
  const position = positionsOf(ids)
  const gateAt = positionsOf(gate_ids)
  const profiles = new Map<string, number>()
  const rows = nodes.map(
    ({ node_id, name, depends_on, gate_ids: guarding, spec, removed }): GraphPage['nodes'][number] => {
      const key = JSON.stringify(profileOf(spec, slice_s))
      const index = profiles.get(key) ?? profiles.size
      profiles.set(key, index)
      if (removed) return [node_id, name, index, [], [], 1]
      return [node_id, name, index, places(position, depends_on), places(gateAt, guarding).sort((a, b) => a - b)]
    },
  )
  return { nodes: rows, profiles: [...profiles.keys()].map((key) => JSON.parse(key) as Profile) }
}

export type HeadLimits = {
  max_parallel: number
  most_parallel?: number
  command_seq?: number
  deadline_at: string | null
  force_grace_s: number
}

/** The part of the first page that describes the whole operation. */
export const compactHead = (
  gates: readonly {
    gate_id: string
    status: string
    round: number
    /** Whether no node can begin before it passes. */
    entry?: boolean
    policy: Pick<GatePolicy, 'on_reject' | 'lease_policy' | 'binds'>
  }[],
  ids: readonly string[],
  constraints: Record<string, unknown>,
  limits: HeadLimits,
): NonNullable<GraphPage['head']> => {
  const { on_deadline, not_before, pause_on_failure, failure_budget } = constraints as Partial<{
    on_deadline: 'graceful' | 'compensate'
    not_before: string
    pause_on_failure: boolean
    failure_budget: number
  }>
  return {
    gates: gates.map(
      ({ gate_id, status, round, entry, policy }): GateSpec => ({
        gate_id,
        on_reject: policy.on_reject,
        status: status as GateStatus,
        round,
        ...((entry || policy.lease_policy === 'release') && { release: true as const }),
        ...(policy.binds.length > 0 && { binds: boundIn(policy.binds, ids) }),
      }),
    ),
    ...limits,
    on_deadline: on_deadline ?? 'graceful',
    not_before: not_before ?? null,
    pause_on_failure: pause_on_failure ?? false,
    failure_budget: failure_budget ?? null,
  }
}

/** A reference to a step means all its nodes. */
const boundIn = (binds: readonly string[], ids: readonly string[]): number[] => {
  const names = new Set(binds.map((reference) => reference.split('/')[1]))
  return ids.flatMap((id, i) => (names.has(id) || names.has(id.split('.')[0]) ? [i] : []))
}

const positionsOf = (ids: readonly string[]) => new Map(ids.map((id, index) => [id, index]))

const places = (positions: Map<string, number>, ids: readonly string[]): number[] =>
  ids.map((id) => {
    const place = positions.get(id)
    if (place === undefined) throw new Error(`the graph refers to "${id}", which it does not contain`)
    return place
  })

const runsThrough = ({ executor, compensate }: PlanNode): boolean =>
  executor === 'command' || compensate?.executor === 'command'

const profileOf = (spec: PlanNode, slice_s: number): Profile => ({
  ...pick(spec, 'kind', 'executor', 'join', 'on_failure', 'retry'),
  // A program cannot be interrupted and resumed.
  slice_s: runsThrough(spec) ? spec.timeouts.run_s : Math.min(spec.timeouts.run_s, slice_s),
  when: spec.when !== undefined,
  catalog: spec.catalog !== undefined,
  undo: spec.compensate !== undefined,
  ...(spec.compensate?.catalog && spec.target_id !== undefined && { undo_catalog: true as const }),
  ...(spec.skippable === false && { skippable: false }),
  max_failures: spec.max_failures ?? null,
  wait: spec.kind === 'wait' ? (spec.with as NonNullable<Profile['wait']>) : null,
})
