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
/** Processor time: a busy machine takes longer, not less. */
const MAX_MS = 2000
/** A node refused this often will not begin: its windows have no moment in common. */
const MAX_CLOSURES = 16
/** The time of that closure for the reducer: past the end of any rehearsal. */
const NEVER = Date.parse('9999-01-01T00:00:00Z')

const SETTLED = new Set(['succeeded', 'failed', 'skipped', 'outcome_unknown'])

type Happening = Event | { type: 'approve'; gate: RehearsedGate }
type Pending = { at: number; event: Happening }

/** Future events by time; events at the same time stay in the order in which they were pushed. */
const createAgenda = () => {
  const queue: Pending[] = []
  const later = new Heap()
  let order = 0
  return {
    push: (at: number, event: Happening) => {
      queue[order] = { at, event }
      later.push(at, order)
      order += 1
    },
    next: (): number => later.peek()?.[0] ?? Number.POSITIVE_INFINITY,
    takeDue: (now: number): Pending[] => {
      const due: Pending[] = []
      for (let top = later.peek(); top && top[0] <= now; top = later.peek()) {
        later.pop()
        const pending = queue[top[1]]
        delete queue[top[1]]
        if (pending) due.push(pending)
      }
      return due
    },
  }
}
type Agenda = ReturnType<typeof createAgenda>

/** Keeps the course of the nodes for the report. */
const createChart = ({ nodes }: RehearsalInput) => {
  const lanes: Lane[] = []
  const undone: string[] = []
  const waits = new Map<string, number>()
  const settled = new Map<string, number>()
  const waiting = new Map<string, number>()
  const isWait = new Set(nodes.filter(({ kind }) => kind === 'wait').map(({ node_id }) => node_id))
  const note = ({ id, state: reached, at }: Extract<Change, { t: 'node' }>) => {
    if (reached === 'compensated') undone.push(id)
    if (SETTLED.has(reached) && !settled.has(id)) settled.set(id, at)
    if (!isWait.has(id)) return
    const from = waiting.get(id)
    if (reached === 'running') waiting.set(id, at)
    else if (from !== undefined && reached === 'succeeded')
      lanes.push({ node_id: id, attempt: 0, role: 'run', from, to: at, class: null })
  }
  return {
    lanes,
    undone,
    waits,
    settled,
    noteAll: ({ changes }: RecordBatch) => {
      for (const change of changes) if (change.t === 'node') note(change)
    },
  }
}
type Chart = ReturnType<typeof createChart>
type Rows = ReturnType<typeof createRows>

/** Answers claims as the worker does: by control and calendar, otherwise with a drawn duration and the given fault. */
const createClaims = (input: RehearsalInput, rows: Rows, chart: Chart, agenda: Agenda) => {
  const { nodes, gates } = input
  const failures = new Map(
    input.failures.map(({ node_id, attempt, undo = false, class: name }) => [
      `${undo ? 'undo' : 'run'} ${node_id} ${attempt}`,
      name,
    ]),
  )
  const turnedAway = new Map<string, number>()
  const passedFreezes = (): string[] =>
    gates
      .filter(({ gate_id, kind }) => {
        const status = rows.state.gates.get(gate_id)?.status
        return kind === 'freeze' && (status === 'approved' || status === 'bypassed')
      })
      .map(({ policy }) => policy.key ?? '')

  /** Returns the closure that keeps a node from beginning now, as its claim would find it. */
  const closureAt = ({ node, node_id }: RunEffect, now: number): Closure | undefined => {
    if (!input.calendar) return undefined
    const closure = closureOf(input.calendar, nodes[node]?.target_id ?? null, passedFreezes(), now)
    if (!closure) return undefined
    const times = (turnedAway.get(node_id) ?? 0) + 1
    turnedAway.set(node_id, times)
    return times > MAX_CLOSURES ? { ...closure, until: NEVER } : closure
  }

  const answer = (effect: RunEffect, at: number, result: AttemptResult) => {
    const { node, role, generation, attempt, slice } = effect
    agenda.push(at, { type: 'attempt_ended', at, node, role, generation, attempt, slice, result })
  }

  return (effect: RunEffect, now: number) => {
    const isUndo = effect.role === 'undo'
    const stopped = isUndo ? !rows.state.compensates : rows.state.control !== 'run'
    const refusal = { seq: 0, generation: effect.generation, gates: [], repeated: false }
    if (stopped) return answer(effect, now, { status: 'refused', refusal: { ...refusal, reason: 'stopped' } })
    const closure = isUndo ? undefined : closureAt(effect, now)
    if (closure) {
      chart.waits.set(effect.node_id, closure.until)
      const reason = closure.kind === 'freeze' ? 'frozen' : 'window_closed'
      return answer(effect, now, { status: 'refused', refusal: { ...refusal, reason, closure } })
    }
    const spec = nodes[effect.node]
    const timing = input.timings[effect.node]
    if (!spec || !timing) throw new Error(`there is no node at ${effect.node}`)
    const fault = failures.get(`${effect.role} ${effect.node_id} ${effect.attempt}`)
    // Cut off and safe to repeat: the same attempt continues under another fencing token.
    const again = fault === 'outcome_unknown' && spec.idempotent
    const once = drawDuration(`${input.seed} ${effect.role} ${effect.node_id} ${effect.attempt}`, timing)
    const ends = now + (again ? 2 * once : once)
    const { node_id, attempt, role } = effect
    chart.lanes.push({ node_id, attempt, role, from: now, to: ends, class: again ? null : (fault ?? null) })
    answer(effect, ends, resultOf(again ? undefined : fault, now, ends))
  }
}

const command = <K extends 'start' | 'gate_decided'>(kind: K, seq: number, at: number, body: CommandBodies[K]) =>
  ({
    v: 1,
    command_id: `${kind}-${seq}`,
    seq,
    kind,
    at: new Date(at).toISOString(),
    not_after: null,
    actor: { kind: 'system', id: 'rehearsal', name: 'Rehearsal' },
    request_id: null,
    trace: null,
    reason: null,
    body,
  }) as CommandMessage<K>

/**
 * Runs a plan on a virtual clock: the real workflow's reducer, with drawn durations in place of targets (operations.md
 * 10). The calendar answers claims as the worker does. The same input gives the same bytes. It predicts the schedule,
 * not the answers of targets.
 */
export const rehearse = (input: RehearsalInput, used_ms: () => number = () => 0): RehearsalAnswer => {
  const begin = Date.parse(input.at)
  const rows = createRows(input.nodes, input.gates)
  const chart = createChart(input)
  const agenda = createAgenda()
  const claim = createClaims(input, rows, chart, agenda)
  const perform = createPerformer(input, rows, chart, agenda)
  let now = begin
  let wake = Number.POSITIVE_INFINITY
  let seq = 1
  const state = start('rehearsal', pagesOf(input), command('start', seq, now, {}), now)

  const accept = (effects: Effect[]) => {
    wake = Number.POSITIVE_INFINITY
    for (const effect of effects) {
      if (effect.type === 'wake_at') wake = effect.at
      else if (effect.type === 'run') claim(effect, now)
      else perform(effect, now)
    }
  }

  /** Returns the reducer's events for one pending item; none if it concerns only the rows. */
  const take = ({ event, at }: Pending): Event[] => {
    if (event.type !== 'approve') return [event]
    const { gate } = event
    if (gate.status !== 'waiting') return []
    Object.assign(gate, { status: 'approved', decided_at: at, deadline: null })
    seq += 1
    const body = { gate_id: gate.gate_id, round: 1, status: 'approved' as const, digest: '' }
    return [{ type: 'command', at, command: command('gate_decided', seq, now, body) as CommandMessage }]
  }

  accept(step(state, { type: 'due', at: now }).effects)
  for (let count = 1; !isDone(state); count++) {
    if (count > MAX_EVENTS) return { too_long: `more than ${MAX_EVENTS} events` }
    if (used_ms() > MAX_MS) return { too_long: `more than ${MAX_MS / 1000} s` }
    const next = Math.min(agenda.next(), wake)
    if (!Number.isFinite(next) || next >= NEVER) break
    now = Math.max(now, next)
    const due = agenda.takeDue(now)
    count += due.length
    const events = due.flatMap(take)
    if (events.length === 0 && wake <= now) events.push({ type: 'due', at: now })
    if (events.length > 0) accept(step(state, ...events).effects)
  }
  const { lanes, undone, waits, settled } = chart
  const [gates, assumed] = [[...rows.state.gates.values()], [...rows.state.assumed]]
  return { rehearsal: reportOf(input, { begin, now, state, lanes, undone, waits, settled, gates, assumed }) }
}

/** Carries out the effects on rows and catalog, which take no time. */
const createPerformer =
  ({ approval_delay_s }: RehearsalInput, rows: Rows, chart: Chart, agenda: Agenda) =>
  (effect: Effect, now: number): void => {
    if (effect.type === 'apply_catalog') {
      const { node, role, generation, attempt } = effect
      const result = { status: 'applied' as const, version: 1 }
      agenda.push(now, { type: 'catalog_ended', at: now, node, role, generation, attempt, result })
    } else if (effect.type === 'record') {
      chart.noteAll(effect.batch)
      const result = rows.record(effect.batch, now, (gate) => {
        if (approval_delay_s !== null) agenda.push(now + 1000 * approval_delay_s, { type: 'approve', gate })
      })
      agenda.push(now, { type: 'recorded', at: now, result })
    } else if (effect.type === 'close') {
      if (effect.batch) chart.noteAll(effect.batch)
      agenda.push(now, { type: 'closed', at: now, result: { status: 'ended', evidence_head: { seq: 0, hash: '' } } })
    }
  }

const resultOf = (fault: string | undefined, started_at: number, ended_at: number): AttemptResult => {
  if (fault === undefined) return { status: 'succeeded', started_at, ended_at }
  const error = { class: fault, message: 'As set for the rehearsal.', retryable: RETRYABLE.has(fault) }
  if (fault === 'outcome_unknown') return { status: 'unknown', error }
  return { status: 'failed', started_at, ended_at, error }
}

/** Returns the graph as load_graph would return it for an operation that has just been started. */
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
        nodes.map(({ node_id }) => node_id),
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
