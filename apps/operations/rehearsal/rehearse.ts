import { compactHead, compactNodes } from '../../../db/operations/operations/compact.ts'
import { Heap } from '../../../workflows/operation/heap.ts'
import type { CommandBodies, CommandMessage } from '../../../workflows/operation/messages.ts'
import type {
  AttemptResult,
  Change,
  Effect,
  Event,
  RecordBatch,
  RunEffect,
} from '../../../workflows/operation/state/events.ts'
import { isDone, start, step } from '../../../workflows/operation/state.ts'
import { type Closure, RETRYABLE } from '../../shared/contracts/operations/graph.ts'
import { closureOf } from '../../shared/data/calendar.ts'
import { drawDuration } from './draw.ts'
import { type Lane, reportOf } from './report.ts'
import { createRows, type RehearsedGate } from './rows.ts'
import type { RehearsalAnswer, RehearsalInput } from './types.ts'

const MAX_EVENTS = 50_000
/** Of processor time: a busy machine takes longer, not less. */
const MAX_MS = 2000
/** A node that was turned away so often will not begin: its windows have no moment in common. */
const MAX_CLOSURES = 16
/** What that looks like for the reducer; past the end of any rehearsal. */
const NEVER = Date.parse('9999-01-01T00:00:00Z')

const SETTLED = new Set(['succeeded', 'failed', 'skipped', 'outcome_unknown'])

type Pending = {
  at: number
  order: number
  event: Event | { type: 'approve'; gate: RehearsedGate }
}

/**
 * Carries a plan out on a virtual clock: the reducer of the real workflow, with drawn durations in place of targets
 * (operations.md 10). Claims are answered by the calendar as the worker answers them. The same input gives the same bytes.
 * It predicts the schedule, not what targets answer.
 */
export const rehearse = (input: RehearsalInput, used_ms: () => number = () => 0): RehearsalAnswer => {
  const begin = Date.parse(input.at)
  const { nodes, gates } = input
  const rows = createRows(nodes, gates)
  const failures = new Map(
    input.failures.map(({ node_id, attempt, undo = false, class: name }) => [
      `${undo ? 'undo' : 'run'} ${node_id} ${attempt}`,
      name,
    ]),
  )
  const lanes: Lane[] = []
  const undone: string[] = []
  const waits = new Map<string, number>()
  const turnedAway = new Map<string, number>()
  const settled = new Map<string, number>()
  const waiting = new Map<string, number>()
  const isWait = new Set(nodes.filter(({ kind }) => kind === 'wait').map(({ node_id }) => node_id))

  const queue: Pending[] = []
  let order = 0
  const later = new Heap()
  const push = (at: number, event: Pending['event']) => {
    queue[order] = { at, order, event }
    later.push(at, order)
    order += 1
  }
  let now = begin
  let wake = Number.POSITIVE_INFINITY
  let seq = 1

  const command = <K extends 'start' | 'gate_decided'>(kind: K, body: CommandBodies[K]) =>
    ({
      v: 1,
      command_id: `${kind}-${seq}`,
      seq,
      kind,
      at: new Date(now).toISOString(),
      not_after: null,
      actor: { kind: 'system', id: 'rehearsal', name: 'Rehearsal' },
      request_id: null,
      trace: null,
      reason: null,
      body,
    }) as CommandMessage<K>

  const pages = pagesOf(input)
  const state = start('rehearsal', pages, command('start', {}), now)

  const passedFreezes = (): string[] =>
    gates
      .filter(({ gate_id, kind }) => {
        const status = rows.state.gates.get(gate_id)?.status
        return kind === 'freeze' && (status === 'approved' || status === 'bypassed')
      })
      .map(({ policy }) => policy.key ?? '')

  /** What keeps a node from beginning now, as its claim would find it. */
  const closureAt = ({ node, node_id }: RunEffect): Closure | undefined => {
    if (!input.calendar) return undefined
    const closure = closureOf(input.calendar, nodes[node]?.target_id ?? null, passedFreezes(), now)
    if (!closure) return undefined
    const times = (turnedAway.get(node_id) ?? 0) + 1
    turnedAway.set(node_id, times)
    return times > MAX_CLOSURES ? { ...closure, until: NEVER } : closure
  }

  const answer = (effect: RunEffect, at: number, result: AttemptResult) => {
    const { node, role, generation, attempt, slice } = effect
    push(at, { type: 'attempt_ended', at, node, role, generation, attempt, slice, result })
  }

  const claim = (effect: RunEffect) => {
    const isUndo = effect.role === 'undo'
    const stopped = isUndo ? !rows.state.compensates : rows.state.control !== 'run'
    const refusal = { seq: 0, generation: effect.generation, gates: [], repeated: false }
    if (stopped) return answer(effect, now, { status: 'refused', refusal: { ...refusal, reason: 'stopped' } })
    const closure = isUndo ? undefined : closureAt(effect)
    if (closure) {
      waits.set(effect.node_id, closure.until)
      const reason = closure.kind === 'freeze' ? 'frozen' : 'window_closed'
      return answer(effect, now, { status: 'refused', refusal: { ...refusal, reason, closure } })
    }
    const spec = nodes[effect.node]
    const timing = input.timings[effect.node]
    if (!spec || !timing) throw new Error(`there is no node at ${effect.node}`)
    const fault = failures.get(`${effect.role} ${effect.node_id} ${effect.attempt}`)
    // Cut off and safe to repeat: the same attempt goes on under another fence.
    const again = fault === 'outcome_unknown' && spec.idempotent
    const once = drawDuration(`${input.seed} ${effect.role} ${effect.node_id} ${effect.attempt}`, timing)
    const ends = now + (again ? 2 * once : once)
    const { node_id, attempt, role } = effect
    lanes.push({ node_id, attempt, role, from: now, to: ends, class: again ? null : (fault ?? null) })
    answer(effect, ends, resultOf(again ? undefined : fault, now, ends))
  }

  const note = ({ id, state: reached, at }: Extract<Change, { t: 'node' }>) => {
    if (reached === 'compensated') undone.push(id)
    if (SETTLED.has(reached) && !settled.has(id)) settled.set(id, at)
    if (!isWait.has(id)) return
    const from = waiting.get(id)
    if (reached === 'running') waiting.set(id, at)
    else if (from !== undefined && reached === 'succeeded')
      lanes.push({ node_id: id, attempt: 0, role: 'run', from, to: at, class: null })
  }

  const noteAll = ({ changes }: RecordBatch) => {
    for (const change of changes) if (change.t === 'node') note(change)
  }

  const accept = (effects: Effect[]) => {
    wake = Number.POSITIVE_INFINITY
    for (const effect of effects) {
      if (effect.type === 'wake_at') wake = effect.at
      else if (effect.type === 'run') claim(effect)
      else if (effect.type === 'apply_catalog') {
        const { node, generation, attempt } = effect
        push(now, {
          type: 'catalog_ended',
          at: now,
          node,
          generation,
          attempt,
          result: { status: 'applied', version: 1 },
        })
      } else if (effect.type === 'record') {
        noteAll(effect.batch)
        const result = rows.record(effect.batch, now, (gate) => {
          if (input.approval_delay_s !== null) push(now + 1000 * input.approval_delay_s, { type: 'approve', gate })
        })
        push(now, { type: 'recorded', at: now, result })
      } else if (effect.type === 'close') {
        if (effect.batch) noteAll(effect.batch)
        push(now, { type: 'closed', at: now, result: { status: 'ended', evidence_head: { seq: 0, hash: '' } } })
      }
    }
  }

  /** What a virtual event means for the reducer; nothing where it is of the rows alone. */
  const take = ({ event, at }: Pending): Event[] => {
    if (event.type !== 'approve') return [event]
    const { gate } = event
    if (gate.status !== 'waiting') return []
    Object.assign(gate, { status: 'approved', decided_at: at, deadline: null })
    seq += 1
    const body = { gate_id: gate.gate_id, round: 1, status: 'approved' as const, digest: '' }
    return [{ type: 'command', at, command: command('gate_decided', body) as CommandMessage }]
  }

  accept(step(state, { type: 'due', at: now }).effects)
  for (let count = 1; !isDone(state); count++) {
    if (count > MAX_EVENTS) return { too_long: `more than ${MAX_EVENTS} events` }
    if (used_ms() > MAX_MS) return { too_long: `more than ${MAX_MS / 1000} s` }
    const next = Math.min(later.peek()?.[0] ?? Number.POSITIVE_INFINITY, wake)
    if (!Number.isFinite(next) || next >= NEVER) break
    now = Math.max(now, next)
    const events: Event[] = []
    for (let top = later.peek(); top && top[0] <= now; top = later.peek()) {
      later.pop()
      const pending = queue[top[1]]
      delete queue[top[1]]
      if (pending) events.push(...take(pending))
      count += 1
    }
    if (events.length === 0 && wake <= now) events.push({ type: 'due', at: now })
    if (events.length > 0) accept(step(state, ...events).effects)
  }
  return {
    rehearsal: reportOf(input, {
      begin,
      now,
      state,
      lanes,
      undone,
      waits,
      settled,
      gates: [...rows.state.gates.values()],
      assumed: [...rows.state.assumed],
    }),
  }
}

const resultOf = (fault: string | undefined, started_at: number, ended_at: number): AttemptResult => {
  if (fault === undefined) return { status: 'succeeded', started_at, ended_at }
  const error = { class: fault, message: 'As the rehearsal was told.', retryable: RETRYABLE.has(fault) }
  if (fault === 'outcome_unknown') return { status: 'unknown', error }
  return { status: 'failed', started_at, ended_at, error }
}

/** The graph as load_graph would give it for an operation that has just been started. */
const pagesOf = ({ nodes, gates, constraints, max_parallel, at }: RehearsalInput) => {
  const guarding = new Map<string, string[]>()
  for (const { gate_id, guards } of gates)
    for (const id of guards) guarding.set(id, [...(guarding.get(id) ?? []), gate_id])
  const { deadline_s } = constraints
  return [
    {
      plan_revision: 1,
      ...compactNodes(
        nodes.map((spec) => ({ ...spec, spec, gate_ids: guarding.get(spec.node_id) ?? [] })),
        nodes.map(({ node_id }) => node_id),
        gates.map(({ gate_id }) => gate_id),
        Number.POSITIVE_INFINITY,
      ),
      next: null,
      head: compactHead(
        gates.map(({ gate_id, policy }) => ({ gate_id, policy, status: 'armed', round: 1 })),
        constraints,
        {
          max_parallel,
          deadline_at:
            typeof deadline_s === 'number' ? new Date(Date.parse(at) + 1000 * deadline_s).toISOString() : null,
          force_grace_s: 0,
        },
      ),
    },
  ]
}
