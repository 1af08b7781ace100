import type { BlockedOn, Closure, EngineStatus, NodeState } from '../../../apps/shared/contracts/operations/graph.ts'
import type { Report } from './events.ts'
import { item } from './graph.ts'
import { refusedBy } from './nodes.ts'
import type { State } from './types.ts'

const SHOWN = 50

/** Returns the summary of the whole operation that the rows show to readers. */
export const reportOf = (s: State, engine_status: EngineStatus): Report => {
  const sum = (...states: NodeState[]) => states.reduce((total, state) => total + s.counts[state], 0)
  return {
    engine_status,
    blocked_on: blockedOn(s, engine_status),
    total: s.nodes.length - s.counts.removed,
    done: sum('succeeded', 'skipped', 'compensated', 'cancelled'),
    running: sum('running', 'compensating', 'backoff'),
    failed: sum('failed', 'outcome_unknown', 'compensation_failed'),
    waiting: s.counts.gated,
    open_gates: s.gates.filter((gate) => gate.status === 'waiting').length,
  }
}

/** Returns why the operation is blocked, oldest position first; empty while a node runs. */
const blockedOn = (s: State, status: EngineStatus): BlockedOn[] => {
  if (status === 'paused') {
    const paused: BlockedOn = { kind: 'paused', id: s.operation_id, message: pausedBecause(s.pause_reason) }
    return s.pause_reason === 'target_drift' ? [paused, ...nodesInTheWay(s)] : [paused]
  }
  if (status === 'queued') {
    const until = new Date(s.not_before).toISOString()
    return [{ kind: 'not_before', id: s.operation_id, until, message: `It starts no earlier than ${until}.` }]
  }
  const stuck = status === 'blocked' || (status === 'cancelling' && s.in_flight === 0)
  if (!stuck) return [...waitingForCatalog(s), ...closures(s, 'executor')]
  const gates = s.gates
    .filter((gate) => gate.status === 'waiting' || (gate.status !== 'armed' && holdsBack(s, gate)))
    .map(
      (gate): BlockedOn => ({
        kind: 'gate',
        id: gate.gate_id,
        href: `/v1/operations/${s.operation_id}/gates/${gate.gate_id}`,
        message: gate.status === 'waiting' ? `Gate ${gate.gate_id} waits for a decision.` : refusedBy(gate).message,
      }),
    )
  const patches = [...new Set([...s.held].map((i) => s.holds[i] ?? ''))]
    .sort()
    .map(
      (patch_id): BlockedOn => ({
        kind: 'patch',
        id: patch_id,
        href: `/v1/operations/${s.operation_id}/patches/${patch_id}`,
        message: 'A proposed patch holds nodes until it is decided.',
      }),
    )
  const leases = s.leases === 'waiting' ? s.lease_blockers : []
  return [...leases, ...gates, ...patches, ...closures(s), ...nodesInTheWay(s)].slice(0, SHOWN)
}

/** Returns windows, freezes and pools, each once; calendar entries with the time of the first node's next claim. */
const closures = (s: State, only?: Closure['kind']): BlockedOn[] => {
  const first = new Map<string, Closure>()
  for (const closure of Object.values(s.shut)) {
    const key = `${closure.kind} ${closure.id}`
    const known = first.get(key)
    if (only !== undefined && closure.kind !== only) continue
    if (!known || closure.until < known.until) first.set(key, closure)
  }
  return [...first.values()]
    .sort((a, b) => a.until - b.until || (a.id < b.id ? -1 : 1))
    .map(({ kind, id, until }) => ({
      kind,
      id,
      ...(kind !== 'executor' && { until: new Date(until).toISOString() }),
      message: CLOSED_BY[kind](id),
    }))
}

const CLOSED_BY: Record<Closure['kind'], (id: string) => string> = {
  freeze: (id) => `The freeze ${id} is not over.`,
  window: (id) => `The window ${id} is closed.`,
  identity: (id) => `The voters behind these nodes cannot be proved again: ${id} does not answer.`,
  executor: (id) => `The agents of pool ${id} have as much work as they may have at once.`,
  catalog: (id) => `The catalog does not say that ${id} is as it was planned; asking again.`,
}

const holdsBack = (s: State, gate: State['gates'][number]): boolean =>
  (gate.status === 'rejected' || gate.status === 'expired') &&
  gate.guards.some((i) => item(s.nodes, i).state === 'gated')

const nodesInTheWay = (s: State): BlockedOn[] =>
  [...s.attention]
    .sort((a, b) => a - b)
    .map((i) => {
      const id = item(s.graph.ids, i)
      const { state, error } = item(s.nodes, i)
      return {
        kind: state === 'outcome_unknown' ? 'outcome_unknown' : 'failed_node',
        id,
        href: `/v1/operations/${s.operation_id}/nodes/${id}`,
        message: `${item(s.graph.names, i)}: ${error?.message || state}`.slice(0, 300),
      }
    })

const waitingForCatalog = (s: State): BlockedOn[] =>
  s.nodes.flatMap((node, i) =>
    node.doing === 'catalog_wait'
      ? [{ kind: 'catalog' as const, id: item(s.graph.ids, i), message: 'The catalog does not answer; trying again.' }]
      : [],
  )

const PAUSED: Record<string, string> = {
  operator: 'Paused by an operator.',
  failed_node: 'Paused because a node failed.',
  failure_budget: 'Paused because more nodes failed than the plan allows.',
  catalog_drift: 'Paused because a target changed in the catalog.',
  target_drift: 'Paused because a target is not as it was planned.',
  engine_lost: 'Paused because the workflow engine lost this operation.',
  engine_mismatch: 'Paused because rows and engine do not agree.',
}
const pausedBecause = (reason: string | null): string => PAUSED[reason ?? 'operator'] ?? 'Paused.'
