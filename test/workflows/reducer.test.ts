import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  type CancelMode,
  type Join,
  NODE_INTERVENTIONS,
  type OnFailure,
  TARGET_DRIFTED,
} from '../../apps/shared/contracts/operations/graph.ts'
import { refusalOf } from '../../workflows/operation/refuse.ts'
import { coneOf, isInFlight, refuseIntervention, resetCone } from '../../workflows/operation/rules/nodes.ts'
import type {
  AttemptResult,
  Change,
  Effect,
  GraphPage,
  Profile,
  Refusal,
} from '../../workflows/operation/state/events.ts'
import {
  brokenInvariant,
  canLeave,
  type Event,
  isDone,
  outcome,
  restore,
  type State,
  snapshot,
  start,
  step,
} from '../../workflows/operation/state.ts'
import { type Task, World } from './support/world.ts'

type NodeSpec = {
  deps: number[]
  join: Join
  on_failure: OnFailure
  kind: 'task' | 'barrier' | 'wait'
  tries: number
  gates: boolean[]
  when: boolean
  catalog: boolean
  undo: boolean
  undo_catalog?: boolean
}
const nodeSpec = fc.record<NodeSpec>({
  deps: fc.array(fc.nat(30), { maxLength: 3 }),
  join: fc.constantFrom<Join>('all', 'all', 'all', 'any', 'settled'),
  on_failure: fc.constantFrom<OnFailure>('hold', 'hold', 'tolerate', 'skip_dependents', 'fail', 'compensate'),
  kind: fc.constantFrom<NodeSpec['kind']>('task', 'task', 'task', 'barrier', 'wait'),
  tries: fc.integer({ min: 1, max: 3 }),
  gates: fc.array(fc.boolean(), { maxLength: 3 }),
  when: fc.boolean(),
  catalog: fc.boolean(),
  undo: fc.boolean(),
  undo_catalog: fc.boolean(),
})
const graphs = fc.record({
  nodes: fc.array(nodeSpec, { minLength: 1, maxLength: 14 }),
  gates: fc.array(fc.constantFrom('fail_nodes' as const, 'hold' as const, 'cancel_operation' as const), {
    maxLength: 3,
  }),
  max_parallel: fc.integer({ min: 1, max: 4 }),
  pause_on_failure: fc.boolean(),
  failure_budget: fc.option(fc.integer({ min: 0, max: 2 }), { nil: null }),
  deadline: fc.option(fc.integer({ min: 1000, max: 300_000 }), { nil: null }),
})
type GraphSpec = typeof graphs extends fc.Arbitrary<infer T> ? T : never

const pageOf = (spec: GraphSpec): GraphPage => {
  const profiles = spec.nodes.map(
    (node): Profile => ({
      kind: node.kind,
      executor: 'noop',
      join: node.join,
      on_failure: node.on_failure,
      retry: { max_attempts: node.tries, initial_s: 1, factor: 2, max_s: 10 },
      slice_s: 10,
      when: node.kind === 'task' && node.when,
      catalog: node.kind === 'task' && node.catalog,
      undo: node.kind === 'task' && node.undo,
      ...(node.kind === 'task' && node.undo && node.undo_catalog && { undo_catalog: true as const }),
      max_failures: node.kind === 'barrier' && node.join === 'settled' ? 0 : null,
      wait: node.kind === 'wait' ? { duration_s: 5 } : null,
    }),
  )
  return {
    plan_revision: 1,
    profiles,
    nodes: spec.nodes.map((node, i) => [
      `n${i}`,
      `Node ${i}`,
      i,
      i === 0 ? [] : [...new Set(node.deps.map((dep) => dep % i))],
      node.kind === 'task' ? node.gates.flatMap((guarded, g) => (guarded && g < spec.gates.length ? [g] : [])) : [],
    ]),
    next: null,
    head: {
      gates: spec.gates.map((on_reject, g) => ({
        gate_id: `g${g}`,
        on_reject,
        status: 'armed',
        round: 1,
        ...(g % 2 === 0 && { release: true as const }),
        // Some of them wait for the gate themselves: it cannot wait for these.
        ...(g % 2 === 1 && { binds: spec.nodes.flatMap((_, i) => (i % 3 === 0 ? [i] : [])) }),
      })),
      max_parallel: spec.max_parallel,
      deadline_at: spec.deadline === null ? null : new Date(1_000_000 + spec.deadline).toISOString(),
      on_deadline: 'compensate',
      not_before: null,
      pause_on_failure: spec.pause_on_failure,
      failure_budget: spec.failure_budget,
      force_grace_s: 30,
    },
  }
}

/** Everything in a state except caches whose order does not matter. */
const shape = (s: State) => {
  const { ready, instant, undo_ready, dues, graph, out, rolling, nodes, attention, parked, waits, ...rest } = s
  const sorted = (set: Set<number>) => [...set].sort((a, b) => a - b)
  return {
    ...rest,
    fresh: sorted(s.fresh),
    attention: sorted(attention),
    parked: sorted(parked),
    waits: sorted(waits),
    nodes: nodes.map((n) => {
      // Only the rows keep the hint of an error.
      const { hint, ...error } = n.error ?? {}
      return { ...n, error, ...(!s.undoing && { undo_open: 0 }) }
    }),
  }
}

const checkState = (s: State) => {
  const flying = s.nodes.filter((n) => ['attempt', 'poll', 'catalog', 'catalog_wait'].includes(n.doing))
  expect(s.in_flight).toBe(flying.length)
  expect(s.running).toBe(flying.filter((n) => n.state === 'running').length)
  for (const state of Object.keys(s.counts) as (keyof typeof s.counts)[])
    expect(s.counts[state]).toBe(s.nodes.filter((n) => n.state === state).length)
  expect(s.unsettled).toBe(s.nodes.filter((n) => n.settled === 0).length)
  for (const [i, n] of s.nodes.entries()) {
    const deps = (s.graph.deps[i] ?? []).map((d) => s.nodes[d]?.settled)
    expect([n.open, n.good, n.bad]).toEqual([0, 1, 2].map((value) => deps.filter((d) => d === value).length))
    const closed = (s.graph.gates_of[i] ?? []).filter(
      (g) => !['approved', 'bypassed'].includes(s.gates[g]?.status ?? ''),
    )
    expect(n.closed_gates).toBe(closed.length)
  }
}

/** Random numbers of one run, from fast-check, so that a failure shrinks and repeats. */
type Dice = (sides: number) => number

class Run {
  readonly world: World
  readonly dice: Dice
  readonly rolls: boolean
  state: State
  /** Attempts that were in flight after the last step. */
  out = 0
  /** From now on the world is kind: every request succeeds. */
  kind = false
  /** Tasks that count against the budget, and whether they exceed it with no pause since. */
  spent = 0
  overspent = false
  /** A node was retried without those after it. */
  alone = false
  /** The generation in which a retry began a node anew. */
  reset = new Map<number, number>()
  /** Nodes that a person retried. */
  roots = new Set<number>()

  constructor(spec: GraphSpec, dice: Dice, rolls: boolean) {
    this.world = new World([pageOf(spec)])
    this.dice = dice
    this.rolls = rolls
    this.state = start('op', this.world.pages, this.world.command('start', {}), this.world.now)
    this.take({ type: 'due', at: this.world.now })
  }

  take(...events: Event[]) {
    const { control } = this.state
    const { state, effects } = step(this.state, ...events)
    this.state = state
    expect(brokenInvariant(state, effects)).toBeUndefined()
    this.checkBudget(control, events, effects)
    this.world.accept(effects)
    this.check()
    if (this.world.problems.length > 0) throw new Error(this.world.problems.join('; '))
    if (this.rolls && !isDone(state) && canLeave(state) && this.dice(4) === 0) this.leave()
  }

  check() {
    checkState(this.state)
    // A limit may be lowered below the attempts in flight; the catalog write of a node that a person marked needs no
    // place.
    const out = this.state.nodes.filter(({ doing }) => doing === 'attempt' || doing === 'poll').length
    if (out > this.out) expect(out).toBeLessThanOrEqual(this.state.max_parallel)
    this.out = out
  }

  /** Once more tasks have failed than the plan allows, none is dispatched before a pause, whatever else happens. */
  checkBudget(before: State['control'], events: readonly Event[], effects: readonly Effect[]) {
    const { nodes, control, failure_budget, graph } = this.state
    const spent = nodes.filter(
      ({ state, settled }, i) =>
        graph.profiles[i]?.kind === 'task' && (state === 'outcome_unknown' || (state === 'failed' && settled !== 1)),
    ).length
    const isOver = failure_budget !== null && spent > failure_budget && control !== 'cancel'
    if (isOver && spent > this.spent) this.overspent = true
    const paused = before === 'run' && control === 'pause' && events.some(({ type }) => type === 'recorded')
    if (!isOver || paused) this.overspent = false
    this.spent = spent
    const starts = effects.filter((effect) => effect.type === 'run' && effect.role === 'run' && effect.slice === 0)
    if (this.overspent) expect(starts).toEqual([])
  }

  /** Continue-as-new at this point: nothing may change. */
  leave() {
    const before = shape(this.state)
    const carried = JSON.parse(JSON.stringify(snapshot(this.state)))
    const newer = this.world.revision > this.state.plan_revision
    const guarded = this.state.graph.gates_of.map((gates) => [...gates])
    this.state = restore(carried, this.world.pages, this.world.now)
    this.check()
    // The rows may be ahead: then the graph is the newer one, and the command that reports it is in flight.
    if (newer) return
    const known = this.state.graph.gates_of
    for (const [i, gates] of guarded.entries()) expect(known[i]).toEqual(expect.arrayContaining(gates))
    // The gates of a node may be ahead, too: the command will add the extra ones.
    if (known.every((gates, i) => gates.length === guarded[i]?.length)) expect(shape(this.state)).toEqual(before)
  }

  /** One random thing happens in the world. */
  turn() {
    const { world } = this
    const options: (() => void)[] = []
    if (world.signals.length > 0)
      options.push(
        () => this.deliver(),
        () => this.deliver(),
      )
    for (const task of world.tasks)
      options.push(
        () => this.work(task),
        () => this.work(task),
      )
    if (Number.isFinite(world.wake)) options.push(() => this.wait())
    if (world.leases === 'waiting') options.push(() => world.grantLeases())
    if (!world.ended && this.dice(6) === 0) options.push(() => this.person())
    if (!world.ended && this.dice(3) === 0) options.push(() => this.patch())
    if (!world.ended && this.dice(4) === 0) options.push(() => this.intervene())
    if (!world.ended && this.dice(60) === 0)
      options.push(() => this.take({ type: 'cancel_requested', at: world.now, by: 'temporal' }))
    options[this.dice(options.length)]?.()
  }

  deliver() {
    const signal = this.world.signals.shift()
    if (!signal) return
    this.world.delivered.push(signal)
    const again = this.world.delivered[this.dice(this.world.delivered.length)]
    const events: Event[] = [{ type: 'command', at: this.world.now, command: signal }]
    // The relay may send a command twice: the second one changes nothing.
    if (again && this.dice(3) === 0) events.push({ type: 'command', at: this.world.now, command: again })
    this.take(...events)
  }

  wait() {
    this.world.now = Math.max(this.world.now, this.world.wake)
    this.take({ type: 'due', at: this.world.now })
  }

  /** Carries a task out. People may act before its answer arrives: commit and delivery are two turns. */
  work(task: World['tasks'][number]) {
    const answer = task.answer ?? this.commit(task)
    if (!answer) return
    if (!task.answer && !this.kind && this.dice(3) === 0) {
      task.answer = answer
      return
    }
    this.world.tasks = this.world.tasks.filter((other) => other !== task)
    this.take({ ...answer, at: this.world.now })
  }

  /** The answer to a task; none yet to an attempt whose claim was granted. */
  commit(task: World['tasks'][number]): Event | undefined {
    const { world } = this
    const at = world.now
    if (task.kind === 'run') {
      const { effect } = task
      if (task.claimed) return { ...effect, type: 'attempt_ended', at, result: world.result(effect, this.result()) }
      if (!this.kind && this.dice(10) === 0) world.shut.set(effect.node, at + 1000 * this.dice(900))
      const refusal = world.claim(effect)
      if (refusal) return { ...effect, type: 'attempt_ended', at, result: { status: 'refused', refusal } }
      this.checkBegin(effect.node, effect.role, effect.slice)
      task.claimed = true
      return undefined
    }
    if (task.kind === 'load') return { type: 'loaded', at, pages: structuredClone(world.pages) }
    if (task.kind === 'close') return world.close(task.effect)
    if (task.kind === 'record') {
      const result = world.record(task.batch)
      // The rows are paused, so whoever resumes has seen these failures.
      if (result.control?.swapped === 'pause') this.overspent = false
      return { type: 'recorded', at, result }
    }
    const results = [
      { status: 'applied', version: 2 },
      { status: 'away', message: 'away' },
      { status: 'conflict', message: 'moved' },
      { status: 'refused', message: 'no' },
    ] as const
    const result = results[this.kind ? 0 : Math.max(this.dice(9) - 5, 0)] ?? results[0]
    return { ...task.effect, type: 'catalog_ended', at, result }
  }

  result(): AttemptResult {
    const times = { started_at: this.world.now, ended_at: this.world.now }
    const drifts = !this.kind && this.dice(8) === 0
    const error = { class: drifts ? TARGET_DRIFTED : 'remote_error', message: 'no', retryable: true }
    switch (this.kind ? 9 : this.dice(10)) {
      case 0:
      case 1:
        return { status: 'failed', ...times, error: { ...error, retryable: this.dice(2) === 0 } }
      case 2:
        return { status: 'unknown', error }
      case 3:
        return { status: 'pending', started_at: this.world.now, poll_after_s: 2 }
      default:
        return { status: 'succeeded', ...times }
    }
  }

  /** At the moment an effect begins: dependencies satisfy the join, and nothing forbids it. */
  checkBegin(i: number, role: 'run' | 'undo', slice: number) {
    if (slice > 0) return
    const good = (dep: number) => {
      const node = this.state.nodes[dep]
      return node?.settled === 1 && node.generation >= (this.reset.get(dep) ?? 1)
    }
    // By the current rows, whichever graph the reducer knows.
    const row = this.world.nodes()[i]
    const deps = row?.[3] ?? []
    expect(row?.[5]).toBeUndefined()
    expect(this.world.patch?.touched ?? []).not.toContain(i)
    // A retry of scope "node" leaves dependents alone, so they may begin while it runs again; a person's own begins anyway.
    const untouched = [i, ...deps].every((n) => this.world.generations[n] === 1 || (!this.alone && !this.roots.has(n)))
    if (role === 'run' && this.state.graph.profiles[i]?.join === 'all' && untouched) expect(deps.every(good)).toBe(true)
    if (role === 'undo' && !this.world.asked_undo.has(i))
      for (const later of this.cone(i))
        if (later !== i && this.state.graph.profiles[later]?.undo)
          expect(['succeeded', 'running', 'compensating', 'compensation_failed']).not.toContain(
            this.state.nodes[later]?.state,
          )
  }

  /** A random command, decided on the rows as the API does. */
  person() {
    const { world } = this
    const pick = this.dice(8)
    if (pick === 0 && world.control === 'run') {
      world.control = 'pause'
      world.send('pause', {})
    } else if (pick <= 2 && world.control === 'pause') {
      world.resume(this.dice(6) === 0)
    } else if (pick === 3 && this.dice(4) === 0) {
      const modes: CancelMode[] = ['graceful', 'compensate', 'force']
      const mode = modes[this.dice(world.control === 'cancel' ? 3 : 2)] ?? 'graceful'
      const rank = (m: CancelMode | null) => (m === null ? -1 : modes.indexOf(m))
      if (rank(mode) <= rank(world.control === 'cancel' ? world.mode : null)) return
      world.cancelRows(mode, 'cancelled')
      world.send('cancel', { mode })
    } else if (pick <= 5) this.decideGate()
    else this.retry()
  }

  /** A random intervention among those that the rules allow on the rows. */
  intervene() {
    const { world } = this
    if (this.dice(8) === 0 && world.control !== 'cancel') {
      const limit = { type: 'set_limits' as const, payload: { max_parallel: 1 + this.dice(4) } }
      const time = { type: 'extend_deadline' as const, payload: { add_s: 60 } }
      return world.send('intervene', { node_id: null, ...(this.dice(2) === 0 ? limit : time) })
    }
    const { facts, nodes } = world.facts()
    const allowed = nodes.flatMap((node, i) => {
      const cone = coneOf(nodes, node.node_id)
      return NODE_INTERVENTIONS.filter((type) => !refuseIntervention(facts, node, { type, cone })).map((type) => ({
        type,
        i,
      }))
    })
    // The rarest first: an undo while the operation is paused or blocked.
    const undos = allowed.filter(({ type }) => type === 'trigger_compensation')
    const from = undos.length > 0 && this.dice(2) === 0 ? undos : allowed
    const chosen = from[this.dice(from.length)]
    if (chosen) world.intervene(chosen.type, chosen.i, this.dice(3))
  }

  /** Proposes a patch, or decides the open one. */
  patch() {
    const { world } = this
    if (world.control === 'cancel') return
    if (world.patch) {
      if (this.dice(4) > 0) return world.approvePatch(this.dice(2) === 0 ? this.dice(3) : null, this.dice(6) === 0)
      world.send('patch_closed', { patch_id: world.patch.id })
      world.patch = null
      return
    }
    const open = world.states.flatMap((_, i) => (world.isUntouched(i) ? [i] : []))
    const i = open[this.dice(open.length)]
    const kind = this.dice(5)
    if (i === undefined || kind === 0) return this.proposeNode(i)
    const after = this.after(i)
    const others = world.states.flatMap((_, n) => (after.has(n) || world.nodes()[n]?.[5] ? [] : [n]))
    const other = others[this.dice(others.length)]
    if (kind === 1 && after.size === 1)
      world.propose([i], ({ nodes }) => {
        const node = nodes[i]
        if (node) nodes[i] = [node[0], node[1], node[2], [], [], 1]
      })
    else if (kind === 2)
      world.propose([i], ({ nodes, gates }) => {
        gates.push({ gate_id: `g${gates.length}`, on_reject: 'hold', status: 'armed', round: 1 })
        nodes[i]?.[4].push(gates.length - 1)
      })
    else if (other !== undefined && !world.nodes()[i]?.[3].includes(other))
      world.propose([i], ({ nodes }) => void nodes[i]?.[3].push(other))
  }

  /** A new node, before an untouched one if one exists. */
  proposeNode(before: number | undefined) {
    const { world } = this
    const after = before === undefined ? new Set<number>() : this.after(before)
    const others = world.states.flatMap((_, n) => (after.has(n) || world.nodes()[n]?.[5] ? [] : [n]))
    const dep = others[this.dice(others.length)]
    const profile = this.dice(world.pages[0]?.profiles.length ?? 1)
    world.propose(before === undefined ? [] : [before], ({ nodes }) => {
      nodes.push([`n${nodes.length}`, 'New', profile, dep === undefined ? [] : [dep], []])
      if (before !== undefined) nodes[before]?.[3].push(nodes.length - 1)
    })
  }

  /** A node and all that comes after it, by the rows. */
  after(i: number): Set<number> {
    const seen = new Set([i])
    for (const n of seen)
      for (const [later, [, , , deps]] of this.world.nodes().entries()) if (deps.includes(n)) seen.add(later)
    return seen
  }

  decideGate() {
    const { world } = this
    const g = this.dice(Math.max(world.gates.length, 1))
    const gate = world.gates[g]
    if (gate?.status !== 'waiting') return
    gate.status = this.dice(4) === 0 ? 'rejected' : 'approved'
    world.send('gate_decided', { gate_id: `g${g}`, round: gate.round, status: gate.status, digest: 'd' })
  }

  retry() {
    const { world } = this
    if (world.control === 'cancel') return
    const i = this.dice(world.nodes().length)
    const scope = this.dice(2) === 0 ? 'node' : 'downstream'
    if (!['failed', 'outcome_unknown', 'succeeded', 'skipped'].includes(world.states[i] ?? '')) return
    const cone = resetCone(world.facts().nodes, world.id(i), scope)
    const reset = cone.map(({ node_id }) => Number(node_id.slice(1)))
    if (cone.some(({ state }) => isInFlight(state))) return
    if (scope === 'node') this.alone = true
    this.roots.add(i)
    const generations: Record<string, number> = {}
    for (const n of reset) {
      world.generations[n] = (world.generations[n] ?? 0) + 1
      generations[world.id(n)] = world.generations[n] ?? 0
      this.reset.set(n, world.generations[n] ?? 0)
    }
    const gates: CommandBodies['retry_node']['gates'] = {}
    for (const [g, gate] of world.gates.entries()) {
      if (!gate.guards.some((n) => reset.includes(n))) continue
      if (gate.status === 'rejected' || gate.status === 'expired') {
        gate.status = 'armed'
        gate.round += 1
      }
      gates[`g${g}`] = { status: gate.status, round: gate.round }
    }
    world.send('retry_node', { node_id: world.id(i), scope, generations, gates })
  }

  cone(i: number): number[] {
    const seen = new Set([i])
    for (const n of seen) for (const d of this.state.graph.dependents[n] ?? []) seen.add(d)
    return [...seen]
  }

  /** Lets everything come to rest, then helps where a person has to, until the operation has ended. */
  finish() {
    this.kind = true
    for (let turns = 0; turns < 4000 && !isDone(this.state); turns++) {
      const { world } = this
      const task = world.tasks[0]
      if (world.leases === 'waiting') world.grantLeases()
      else if (world.signals.length > 0) this.deliver()
      else if (task) this.work(task)
      else if (Number.isFinite(world.wake) && this.dice(3) > 0) this.wait()
      else this.help()
    }
    expect(isDone(this.state)).toBe(true)
    if (this.state.control === 'cancel') expect(outcome(this.state).end_reason).toBe(this.world.end_reason)
  }

  help() {
    const { world } = this
    // At rest and not ended: there is a due time, or readers are told why nothing moves.
    if (!Number.isFinite(world.wake)) expect(world.blocked_on.length).toBeGreaterThan(0)
    // No node waits for good behind a gate that was refused.
    for (const [i, { state }] of this.state.nodes.entries())
      if (state === 'gated')
        for (const { on_reject, status } of this.state.graph.gates_of[i]?.flatMap((g) => this.state.gates[g] ?? []) ??
          [])
          expect(on_reject === 'fail_nodes' && (status === 'rejected' || status === 'expired')).toBe(false)
    // All messages have arrived: the state has the graph of the rows, and only an open patch holds nodes.
    if (world.tasks.length === 0 && world.signals.length === 0) {
      expect(this.state.plan_revision).toBe(world.revision)
      expect(Object.values(this.state.holds).filter((id) => id !== world.patch?.id)).toEqual([])
      expect([this.state.control, this.state.mode]).toEqual([world.control, world.mode])
    }
    const waiting = world.gates.findIndex((gate) => gate.status === 'waiting')
    const stuck = this.state.nodes.findIndex(
      (n, i) => n.state === 'compensation_failed' || (this.state.attention.has(i) && world.control !== 'cancel'),
    )
    if (world.control === 'pause') {
      world.resume(false)
    } else if (world.patch) {
      world.approvePatch(null, false)
    } else if (waiting >= 0) {
      const gate = world.gates[waiting]
      if (gate) gate.status = 'approved'
      world.send('gate_decided', { gate_id: `g${waiting}`, round: gate?.round ?? 1, status: 'approved', digest: 'd' })
    } else if (stuck >= 0) {
      const state = this.state.nodes[stuck]?.state
      world.intervene(state === 'compensation_failed' ? 'mark_compensated' : 'skip', stuck, 0)
    } else if (!Number.isFinite(world.wake)) {
      world.cancelRows('graceful', 'cancelled')
      world.send('cancel', { mode: 'graceful' })
    }
  }
}

import type { CommandBodies } from '../../workflows/operation/messages.ts'

const runs = Number(process.env.REDUCER_RUNS ?? 300)
/** A failure prints its seed and path: REDUCER_AGAIN='{"seed":…,"path":"…"}' repeats it. */
const again = JSON.parse(process.env.REDUCER_AGAIN ?? '{}') as { seed?: number; path?: string }
const property = (rolls: boolean) =>
  fc.property(graphs, fc.infiniteStream(fc.nat(2 ** 30)), fc.integer({ min: 0, max: 150 }), (spec, numbers, turns) => {
    const dice: Dice = (sides) => (numbers.next().value ?? 0) % Math.max(sides, 1)
    const run = new Run(spec, dice, rolls)
    for (let i = 0; i < turns && !isDone(run.state); i++) run.turn()
    run.finish()
    for (const [id, outcomes] of run.world.outcomes) expect([id, outcomes.length <= 1]).toEqual([id, true])
  })

// They only compute: for seconds on a free core, and for a minute on a busy one.
vi.setConfig({ testTimeout: 180_000 })

describe('reducer', () => {
  it('never starts a node twice, never while stopped, and ends, whatever the order of events', () => {
    fc.assert(property(false), { numRuns: runs, ...again })
  })
  it('is the same after a snapshot and restore anywhere', () => {
    fc.assert(property(true), { numRuns: runs, ...again })
  })

  it('keeps signals that no node waits for yet, up to a limit', () => {
    const one = { deps: [], gates: [], join: 'all', on_failure: 'hold', kind: 'task', tries: 1 } as const
    const spec = { nodes: [{ ...one, deps: [], gates: [], when: false, catalog: false, undo: false }], gates: [] }
    const world = new World([
      pageOf({ ...spec, max_parallel: 1, pause_on_failure: false, failure_budget: null, deadline: null }),
    ])
    const s = start('op', world.pages, world.command('start', {}), world.now)
    for (let n = 0; n < 300; n++)
      step(s, { type: 'command', at: world.now, command: world.command('node_signal', { name: `s${n}` }) })
    expect(s.signals).toHaveLength(256)
    expect(s.signals.at(-1)).toBe('s255')
  })

  it('starts no node before the rows of a refused command are restored', () => {
    const one = { deps: [], gates: [], join: 'all', on_failure: 'hold', kind: 'task', tries: 1 } as const
    const spec = { nodes: [{ ...one, deps: [], gates: [], when: false, catalog: false, undo: false }], gates: [] }
    const world = new World([
      pageOf({ ...spec, max_parallel: 1, pause_on_failure: false, failure_budget: null, deadline: null }),
    ])
    const s = start('op', world.pages, world.command('start', {}), world.now)
    const take = (...events: Event[]) => world.accept(step(s, ...events).effects)
    const taken = <K extends Task['kind']>(kind: K) => {
      const found = world.tasks.filter((task): task is Extract<Task, { kind: K }> => task.kind === kind)
      world.tasks = world.tasks.filter((task) => task.kind !== kind)
      return found
    }
    const at = world.now
    take({ type: 'due', at })
    const [begun] = taken('run')
    if (!begun) throw new Error('nothing was begun')
    for (const { batch } of taken('record')) take({ type: 'recorded', at, result: world.record(batch) })
    // Other inputs are recorded while the attempt is on its way to its claim, which they void.
    world.generations[0] = 2
    const command = world.command('intervene', { type: 'set_input', node_id: 'n0', generation: 2 })
    take({ type: 'command', at, command })
    const refusal = world.claim(begun.effect)
    if (refusal?.reason !== 'superseded') throw new Error('the claim was granted')
    take({ ...begun.effect, type: 'attempt_ended', at, result: { status: 'refused', refusal } })
    take({ type: 'due', at: at + 2000 })
    expect(taken('run')).toEqual([])
    const [record] = taken('record')
    expect(record?.batch.changes).toContainEqual(expect.objectContaining({ t: 'command', status: 'refused' }))
    if (record) take({ type: 'recorded', at: at + 2000, result: world.record(record.batch) })
    expect(taken('run')).toMatchObject([{ effect: { generation: 2 } }])
  })

  it('reports an extension that arrives together with the resume', () => {
    const one = { join: 'all', on_failure: 'hold', kind: 'task', when: false, catalog: false, undo: false } as const
    const node = { ...one, deps: [], gates: [], tries: 1 }
    const world = new World([
      pageOf({
        nodes: [node],
        gates: [],
        max_parallel: 1,
        pause_on_failure: false,
        failure_budget: null,
        deadline: 300_000,
      }),
    ])
    const at = world.now
    const s = start('op', world.pages, world.command('start', {}), at)
    const told: Change[] = []
    const take = (...events: Event[]) => {
      world.accept(step(s, ...events).effects)
      for (let record = world.tasks.find(({ kind }) => kind === 'record'); record?.kind === 'record'; ) {
        world.tasks = world.tasks.filter((task) => task !== record)
        told.push(...record.batch.changes)
        world.accept(step(s, { type: 'recorded', at, result: world.record(record.batch) }).effects)
        record = world.tasks.find(({ kind }) => kind === 'record')
      }
    }
    take({ type: 'due', at })
    world.control = 'pause'
    take({ type: 'command', at, command: world.command('pause', {}) })
    world.control = 'run'
    const resume = world.command('resume', { acknowledged: [], gates: {} })
    const extension = { type: 'extend_deadline' as const, node_id: null, payload: { add_s: 3600 } }
    const extend = world.command('intervene', extension)
    take({ type: 'command', at, command: resume }, { type: 'command', at, command: extend })
    expect(told.filter(({ t }) => t === 'deadline').at(-1)).toEqual({ t: 'deadline', deadline_at: s.deadline })
    expect(s.deadline).toBe(1_000_000 + 300_000 + 3_600_000)
  })

  it('records thousands of long errors in a message that the engine takes', () => {
    const one = { deps: [], gates: [], join: 'all', on_failure: 'hold', kind: 'task', tries: 1 } as const
    const node = { ...one, deps: [], gates: [], when: true, catalog: false, undo: false }
    const page = pageOf({
      ...{ nodes: [node], gates: [], max_parallel: 1, pause_on_failure: false, failure_budget: null, deadline: null },
    })
    const id = (n: number) => `${n}`.padEnd(96, 'x')
    page.nodes = Array.from({ length: 5000 }, (_, n) => [id(n), 'A node', 0, [], []])
    const world = new World([page])
    const s = start('op', world.pages, world.command('start', {}), world.now)
    const batches = (...events: Event[]) =>
      step(s, ...events).effects.flatMap((effect) => (effect.type === 'record' ? [effect.batch] : []))
    const at = world.now
    const [asked] = batches({ type: 'due', at })
    const whens = Object.fromEntries(page.nodes.map(([name]) => [name, '€'.repeat(300)]))
    const result = { record_seq: asked?.record_seq ?? 0, gates: [], whens, control: null }
    const [told] = batches({ type: 'recorded', at, result })
    expect(told?.changes).toHaveLength(5000)
    expect(Buffer.byteLength(JSON.stringify(told))).toBeLessThan(2_000_000)
  })

  it('opens a gate once all nodes whose outputs it binds are settled, and not at the first of its nodes', () => {
    const one = { join: 'all', on_failure: 'hold', kind: 'task', when: false, catalog: false, undo: false } as const
    const node = (deps: number[], gates: boolean[]) => ({ ...one, tries: 1, deps, gates })
    const nodes = [node([], []), node([], []), node([0], [true]), node([1], [true])]
    const page = pageOf({
      ...{ nodes, gates: ['fail_nodes'], max_parallel: 4 },
      ...{ pause_on_failure: false, failure_budget: null, deadline: null },
    })
    for (const i of [0, 1]) page.nodes[i]?.[3].splice(0)
    Object.assign(page.head?.gates[0] ?? {}, { binds: [0, 1, 3] })
    const world = new World([page])
    const s = start('op', world.pages, world.command('start', {}), world.now)
    const opened = () => s.changes.filter(({ t }) => t === 'gate_open').length
    const runs = step(s, { type: 'due', at: world.now }).effects.flatMap((one) => (one.type === 'run' ? [one] : []))
    expect(runs.map(({ node_id }) => node_id)).toEqual(['n0', 'n1'])
    const ended: number[] = []
    for (const run of runs) {
      const result = { status: 'succeeded', started_at: 0, ended_at: 0 } as AttemptResult
      step(s, { ...run, type: 'attempt_ended', at: world.now, result })
      ended.push(opened())
    }
    expect(s.nodes.map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'gated', 'gated'])
    expect(ended).toEqual([0, 1])
  })

  it('opens gates that each bind what the other holds back', () => {
    const one = { join: 'all', on_failure: 'hold', kind: 'task', when: false, catalog: false, undo: false } as const
    const node = (deps: number[], gates: boolean[]) => ({ ...one, tries: 1, deps, gates })
    // Two first previews, two changes behind a gate each, and two previews after these changes.
    const nodes = [
      ...[node([], []), node([], [])],
      ...[node([0], [true]), node([1], [false, true]), node([2], []), node([3], [])],
    ]
    const page = pageOf({
      ...{ nodes, gates: ['fail_nodes', 'fail_nodes'], max_parallel: 4 },
      ...{ pause_on_failure: false, failure_budget: null, deadline: null },
    })
    for (const i of [0, 1]) page.nodes[i]?.[3].splice(0)
    for (const gate of page.head?.gates ?? []) Object.assign(gate, { binds: [0, 1, 4, 5] })
    const world = new World([page])
    const s = start('op', world.pages, world.command('start', {}), world.now)
    expect(s.gates.map(({ binds }) => binds)).toEqual([
      [0, 1],
      [0, 1],
    ])
  })

  describe('a gate that is', () => {
    const one = { join: 'all', on_failure: 'hold', kind: 'task', when: false, catalog: false, undo: false } as const
    const begin = () => {
      const nodes = [
        { ...one, tries: 3, deps: [], gates: [true] },
        { ...one, tries: 1, deps: [0], gates: [] },
      ]
      const spec = { nodes, gates: ['fail_nodes' as const], max_parallel: 1, pause_on_failure: false }
      const world = new World([pageOf({ ...spec, failure_budget: null, deadline: null })])
      const s = start('op', world.pages, world.command('start', {}), world.now)
      const take = (event: Event) => {
        const { effects } = step(s, event)
        expect(brokenInvariant(s, effects)).toBeUndefined()
        return effects.flatMap((effect) => (effect.type === 'run' ? [effect] : []))
      }
      const decide = (status: 'approved' | 'rejected', round = 1) =>
        take({
          type: 'command',
          at: world.now,
          command: world.command('gate_decided', { gate_id: 'g0', round, status, digest: 'd' }),
        })
      take({ type: 'due', at: world.now })
      const [run] = decide('approved')
      if (!run) throw new Error('the approved node has not begun')
      return { world, s, take, decide, run }
    }
    const failed: AttemptResult = {
      status: 'failed',
      started_at: 0,
      ended_at: 0,
      error: { class: 'unreachable', message: 'no', retryable: true },
    }
    const backingOff = () => {
      const begun = begin()
      const { world, s, take, run } = begun
      take({ ...run, type: 'attempt_ended', at: world.now, result: failed })
      expect(s.nodes[0]?.state).toBe('backoff')
      const gates = { g0: { status: 'armed' as const, round: 2, deadline_at: null } }
      const command = world.command('intervene', { type: 'set_input', node_id: 'n1', generation: 2, gates })
      take({ type: 'command', at: world.now, command })
      return begun
    }

    it('asked again during the backoff of a node holds its next attempt', () => {
      const { world, s, take, decide } = backingOff()
      expect(take({ type: 'due', at: world.now + 60_000 })).toEqual([])
      expect([s.nodes[0]?.state, s.gates[0]?.asked]).toEqual(['gated', true])
      expect(decide('approved', 2)).toMatchObject([{ node_id: 'n0', attempt: 2 }])
    })

    it('rejected during the backoff of a node fails it', () => {
      const { s, decide } = backingOff()
      decide('rejected', 2)
      expect(s.nodes[0]).toMatchObject({ state: 'failed', error: { class: 'rejected' } })
    })

    it('rejected and holds its node lets only a retry ask again', () => {
      const nodes = [{ ...one, tries: 1, deps: [], gates: [true] }]
      const spec = { nodes, gates: ['hold' as const], max_parallel: 1, pause_on_failure: false }
      const world = new World([pageOf({ ...spec, failure_budget: null, deadline: null })])
      const s = start('op', world.pages, world.command('start', {}), world.now)
      const retry = () => refusalOf(s, { kind: 'retry', node_id: 'n0' }, world.now)?.code
      step(s, { type: 'due', at: world.now })
      expect([s.nodes[0]?.state, retry()]).toEqual(['gated', 'node_not_retryable'])
      const command = world.command('gate_decided', { gate_id: 'g0', round: 1, status: 'rejected', digest: 'd' })
      step(s, { type: 'command', at: world.now, command })
      expect([s.nodes[0]?.state, retry()]).toEqual(['gated', undefined])
      for (const gate of s.gates) gate.on_reject = 'cancel_operation'
      expect(retry()).toBe('node_not_retryable')
    })

    const reporting = (gates: boolean[]) => {
      const nodes = [{ ...one, tries: 1, deps: [], gates }]
      const spec = { nodes, gates: gates.map(() => 'hold' as const), max_parallel: 1, pause_on_failure: false }
      const world = new World([pageOf({ ...spec, failure_budget: null, deadline: null })])
      const s = start('op', world.pages, world.command('start', {}), world.now)
      const saying = (event: Event) => {
        const batches = step(s, event).effects.flatMap((effect) => (effect.type === 'record' ? [effect.batch] : []))
        return batches.map(({ report }) => report.blocked_on.map(({ message }) => message))
      }
      const recorded = (status: 'waiting' | 'expired' | 'approved', deadline_at: string | null = null): Event => {
        const first = { gate_id: 'g0', round: 1, status, deadline_at }
        const others = gates.slice(1).map((_, i) => ({ ...first, gate_id: `g${i + 1}`, status: 'waiting' as const }))
        const result = { record_seq: s.record_seq, gates: [first, ...others], whens: {}, control: null }
        return { type: 'recorded', at: world.now, result }
      }
      return { world, saying, recorded }
    }

    it('approved by silence beside another that waits is reported as such, though no other change follows', () => {
      const { world, saying, recorded } = reporting([true, true])
      const [first, second] = [0, 1].map((g) => `Gate g${g} waits for a decision.`)
      saying({ type: 'due', at: world.now })
      const over = new Date(world.now + 2000).toISOString()
      expect(saying(recorded('waiting', over))).toEqual([[first, second]])
      saying(recorded('waiting', over))
      world.now += 2000
      expect(saying({ type: 'due', at: world.now })).toEqual([[first, second]])
      expect(saying(recorded('approved'))).toEqual([[second]])
      expect(saying(recorded('approved'))).toEqual([])
    })

    it('expired and holds its node is reported as such, though no other change follows', () => {
      const { world, saying, recorded } = reporting([true])
      const waits = ['Gate g0 waits for a decision.']
      saying({ type: 'due', at: world.now })
      expect(saying(recorded('waiting', new Date(world.now + 2000).toISOString()))).toEqual([waits])
      saying(recorded('waiting', new Date(world.now + 2000).toISOString()))
      world.now += 2000
      expect(saying({ type: 'due', at: world.now })).toEqual([waits])
      expect(saying(recorded('expired'))).toEqual([['Gate g0 expired.']])
      expect(saying(recorded('expired'))).toEqual([])
    })

    it('rejected before an attempt on its way has claimed fails the node', () => {
      const { world, s, take, run } = begin()
      take({
        type: 'command',
        at: world.now,
        command: world.command('gate_decided', { gate_id: 'g0', round: 2, status: 'rejected', digest: 'd' }),
      })
      const gates = [{ gate_id: 'g0', status: 'rejected' as const, round: 2 }]
      const refusal: Refusal = { reason: 'gate_open', seq: world.seq, generation: 1, gates, repeated: false }
      take({ ...run, type: 'attempt_ended', at: world.now, result: { status: 'refused', refusal } })
      expect(s.nodes[0]).toMatchObject({ state: 'failed', error: { class: 'rejected' } })
    })
  })

  it('repeats a claim refused by an outdated calendar, and waits for one refused by the current calendar', () => {
    const one = { deps: [], gates: [], join: 'all', on_failure: 'hold', kind: 'task', tries: 1 } as const
    const spec = { nodes: [{ ...one, deps: [], gates: [], when: false, catalog: false, undo: false }], gates: [] }
    const world = new World([
      pageOf({ ...spec, max_parallel: 1, pause_on_failure: false, failure_budget: null, deadline: null }),
    ])
    const run = (s: State, ...events: Event[]) => step(s, ...events).effects.filter(({ type }) => type === 'run')
    const s = start('op', world.pages, world.command('start', {}), world.now)
    const [begun] = run(s, { type: 'due', at: world.now })
    if (begun?.type !== 'run') throw new Error('nothing was begun')
    const { node, role, generation, attempt, slice } = begun
    const at = world.now
    const closure = { kind: 'freeze', id: 'launch', until: at + 3_600_000 } as const
    const refused = (seq: number): Event => {
      const refusal: Refusal = { reason: 'frozen', seq, generation, gates: [], repeated: false, closure }
      return {
        type: 'attempt_ended',
        at,
        node,
        role,
        generation,
        attempt,
        slice,
        result: { status: 'refused', refusal },
      }
    }
    // The freeze was withdrawn after the claim had looked, and the reducer learns that before the refusal arrives.
    const lifted = world.command('calendar_changed', { entry_ids: ['launch'] })
    run(s, { type: 'command', at, command: lifted }, refused(lifted.seq - 1))
    expect(run(s, { type: 'due', at: at + 2000 })).toHaveLength(1)
    run(s, refused(lifted.seq))
    expect(run(s, { type: 'due', at: at + 2000 })).toHaveLength(0)
    expect(run(s, { type: 'due', at: at + 3_600_000 })).toHaveLength(1)
  })
})
