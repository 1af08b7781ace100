import type {
  CancelMode,
  GateStatus,
  NodeIntervention,
  NodeState,
} from '../../../apps/shared/contracts/operations/graph.ts'
import type { CommandBodies, CommandKind, CommandMessage } from '../../../workflows/operation/messages.ts'
import { type NodeFacts, type OperationFacts, statusOf } from '../../../workflows/operation/rules/facts.ts'
import { coneOf, freeOf, type Progress } from '../../../workflows/operation/rules/nodes.ts'
import type {
  AttemptResult,
  Effect,
  Event,
  GraphPage,
  RecordBatch,
  RecordResult,
  Refusal,
  RunEffect,
} from '../../../workflows/operation/state/events.ts'

type Gate = { status: GateStatus; round: number; deadline: number; escalation?: number; guards: number[] }
type Attempt = { node: number; role: 'run' | 'undo'; attempt: number; generation: number; open: boolean }
/** `answer`: carried out, but the reducer has not heard of it yet. */
export type Task = { answer?: Event } & (
  | { kind: 'run'; effect: RunEffect; claimed: boolean }
  | { kind: 'catalog'; effect: Extract<Effect, { type: 'apply_catalog' }> }
  | { kind: 'record'; batch: RecordBatch }
  | { kind: 'load' }
  | { kind: 'close'; effect: Extract<Effect, { type: 'close' }> }
)

type Rows = {
  nodes: GraphPage['nodes']
  profiles: GraphPage['profiles']
  gates: NonNullable<GraphPage['head']>['gates']
}

const WAITING: ReadonlySet<NodeState> = new Set<NodeState>(['pending', 'gated', 'ready', 'backoff'])
const SYSTEM = { kind: 'system', id: 'test', name: 'Test' } as const

/**
 * The rows, the target and the relay around a reducer, small enough to reason about: claims decide like the real ones,
 * commands change rows first and arrive later, and each effect on the target is recorded.
 */
export class World {
  pages: GraphPage[]
  control: 'run' | 'pause' | 'cancel' = 'run'
  mode: CancelMode | null = null
  /** Why the first cancel was made, whoever escalates it later. */
  end_reason: string | null = null
  seq = 0
  now = 1_000_000
  ended = false
  gates: Gate[]
  generations: number[]
  attempts: Attempt[] = []
  /** Until when the calendar keeps a node from starting. */
  shut = new Map<number, number>()
  leases: 'held' | 'released' | 'waiting' = 'held'
  signals: CommandMessage[] = []
  delivered: CommandMessage[] = []
  tasks: Task[] = []
  wake = Number.POSITIVE_INFINITY
  outcomes = new Map<string, string[]>()
  states: NodeState[]
  status = 'queued'
  blocked_on: unknown[] = []
  problems: string[] = []
  revision = 1
  /** The open patch in the rows: the nodes that it holds, and the graph that it makes. */
  patch: { id: string; touched: number[]; change: (rows: Rows) => void } | null = null
  /** Nodes whose undo a person requested, whatever came after them. */
  asked_undo = new Set<number>()
  max_parallel: number
  /** The last command that resumed. */
  steered = 0
  /** How the decision of a command is taken back if it comes too late. */
  undo = new Map<string, () => void>()

  constructor(pages: GraphPage[]) {
    this.pages = pages
    const head = pages[0]?.head
    this.max_parallel = head?.max_parallel ?? 1
    this.gates = (head?.gates ?? []).map(() => ({ status: 'armed', round: 1, deadline: 0, guards: [] }))
    for (const [i, [, , , , gates]] of this.nodes().entries()) for (const g of gates) this.gates[g]?.guards.push(i)
    this.generations = this.nodes().map(() => 1)
    this.states = this.nodes().map(() => 'pending')
  }

  nodes() {
    return this.pages.flatMap((page) => page.nodes)
  }
  profile(i: number) {
    const node = this.nodes()[i]
    const profile = node && this.pages[0]?.profiles[node[2]]
    if (!profile) throw new Error('no profile')
    return profile
  }
  id(i: number): string {
    return this.nodes()[i]?.[0] ?? ''
  }

  /** A decided command: the caller changes its rows; the signal is in flight. */
  command<K extends CommandKind>(kind: K, body: CommandBodies[K], late = false): CommandMessage<K> {
    this.seq += 1
    const message = {
      v: 1,
      command_id: `c${this.seq}`,
      seq: this.seq,
      kind,
      at: new Date(this.now).toISOString(),
      not_after: late ? new Date(this.now - 1).toISOString() : null,
      actor: SYSTEM,
      request_id: null,
      trace: null,
      reason: null,
      body,
    } as CommandMessage<K>
    this.outcomes.set(message.command_id, [])
    return message
  }
  send<K extends CommandKind>(kind: K, body: CommandBodies[K]) {
    this.signals.push(this.command(kind, body) as CommandMessage)
  }

  accept(effects: Effect[]) {
    this.wake = Number.POSITIVE_INFINITY
    for (const effect of effects) {
      if (effect.type === 'wake_at') this.wake = effect.at
      else if (effect.type === 'run') this.tasks.push({ kind: 'run', effect, claimed: false })
      else if (effect.type === 'apply_catalog') this.tasks.push({ kind: 'catalog', effect })
      else if (effect.type === 'record') {
        // A paused report may predate an undo that a person requested since, but must never coincide with a run attempt.
        const working = this.openAttempts().some(({ role }) => role === 'run')
        if (effect.batch.report.engine_status === 'paused' && working)
          this.problems.push('reported paused with an attempt in flight')
        this.tasks.push({ kind: 'record', batch: effect.batch })
      } else if (effect.type === 'load_graph') this.tasks.push({ kind: 'load' })
      else if (effect.type === 'close') this.tasks.push({ kind: 'close', effect })
    }
  }

  openAttempts() {
    return this.attempts.filter((attempt) => attempt.open)
  }

  /** The claim; `undefined` if it is granted. */
  claim({ node, role, generation, attempt, slice }: RunEffect): Refusal | undefined {
    const known = this.attempts.find((a) => a.node === node && a.role === role && a.attempt === attempt)
    if (slice > 0) {
      if (!known?.open) this.problems.push(`a slice of ${this.id(node)} without an open attempt`)
      return undefined
    }
    const refuse = (reason: Refusal['reason']): Refusal => ({
      reason,
      seq: this.seq,
      generation: this.generations[node] ?? 0,
      gates: (this.nodes()[node]?.[4] ?? []).map((g) => ({
        gate_id: `g${g}`,
        status: this.gates[g]?.status ?? 'armed',
        round: this.gates[g]?.round ?? 0,
      })),
      repeated: false,
    })
    const undoing = this.control === 'cancel' ? this.mode === 'compensate' : this.states[node] === 'compensating'
    if (role === 'run' ? this.control !== 'run' : !undoing) return refuse('stopped')
    if (generation !== this.generations[node] || this.nodes()[node]?.[5]) return refuse('superseded')
    if (this.patch?.touched.includes(node)) return refuse('held')
    const gates = this.nodes()[node]?.[4] ?? []
    if (role === 'run' && gates.some((g) => this.gates[g]?.status !== 'approved')) return refuse('gate_open')
    if (this.leases !== 'held') return refuse('lease_lost')
    const until = this.shut.get(node) ?? 0
    if (role === 'run' && until > this.now)
      return { ...refuse('window_closed'), closure: { kind: 'window', id: 'night', until } }
    const mine = this.attempts.filter((a) => a.node === node && a.role === role)
    if (this.attempts.some((a) => a.node === node && a.open)) this.problems.push(`${this.id(node)} began twice`)
    if (mine.some((a) => a.attempt >= attempt)) this.problems.push(`attempt ${attempt} of ${this.id(node)} is not new`)
    this.attempts.push({ node, role, attempt, generation, open: true })
    return undefined
  }

  /** Writes the result; `dropped` if the attempt has already been closed by another party. */
  result({ node, role, attempt }: RunEffect, result: AttemptResult): AttemptResult {
    const mine = this.attempts.find((a) => a.node === node && a.role === role && a.attempt === attempt)
    if (!mine?.open) return { status: 'dropped' }
    if (result.status === 'pending') return result
    mine.open = false
    // A success is in its row before the engine knows of it.
    if (role === 'run' && result.status === 'succeeded' && !this.profile(node).catalog) this.states[node] = 'succeeded'
    return result
  }

  record({ record_seq, changes, report }: RecordBatch): RecordResult {
    const result: RecordResult = { record_seq, gates: [], whens: {}, control: null }
    // A late report does not count for a later pause.
    const late = report.engine_status === 'paused' && this.openAttempts().length > 0
    this.status = late ? 'running' : report.engine_status
    this.blocked_on = report.blocked_on
    for (const change of changes) {
      if (change.t === 'node') {
        const i = this.nodes().findIndex(([id]) => id === change.id)
        this.states[i] = change.state
        if (change.state === 'outcome_unknown' || change.state === 'compensation_failed')
          for (const mine of this.attempts)
            if (mine.node === i && mine.role === (change.role ?? 'run') && mine.attempt === change.attempt)
              mine.open = false
      } else if (change.t === 'when') result.whens[change.id] = change.id.length % 3 !== 0
      else if (change.t === 'command') {
        this.outcomes.get(change.command_id)?.push(change.status)
        const undo = this.undo.get(change.command_id)
        if (undo && change.status !== 'applied') {
          undo()
          result.plan_revision = this.revision
        }
        if (change.status === 'expired' && change.command_id === 'c1') result.withdrawn = true
      } else if (change.t === 'control') {
        const forced = change.by !== undefined && this.control !== 'cancel'
        const made = this.control === 'run' || forced ? change.to : null
        if (made) this.control = made
        if (made === 'cancel') this.cancelRows(change.mode ?? 'graceful', change.reason)
        result.control = { swapped: made ?? result.control?.swapped ?? null, seq: this.seq }
      } else if (change.t === 'leases') result.leases = this.moveLeases(change.to)
      else if (change.t === 'gate_open' || change.t === 'gate_expire' || change.t === 'gate_escalate')
        this.moveGate(change, result)
    }
    return result
  }

  moveLeases(to: 'release' | 'take'): NonNullable<RecordResult['leases']> {
    if (to === 'release') {
      if (this.control === 'cancel') return { state: 'none', blocked_on: [] }
      if (this.openAttempts().length > 0) this.problems.push('leases are given back with an attempt in flight')
      this.leases = 'released'
      return { state: 'released', blocked_on: [] }
    }
    // Now and then another operation holds them.
    const taken = this.leases === 'waiting' || (this.leases === 'released' && this.seq % 2 === 0)
    this.leases = taken ? 'waiting' : 'held'
    return { state: this.leases, blocked_on: taken ? [{ kind: 'lease', id: 'r', message: 'Somebody holds r.' }] : [] }
  }

  grantLeases() {
    this.leases = 'held'
    this.send('lease_granted', { lease_epoch: this.seq })
  }

  moveGate(
    change: { t: 'gate_open' | 'gate_expire' | 'gate_escalate'; gate_id: string; round: number },
    result: RecordResult,
  ) {
    const gate = this.gates[Number(change.gate_id.slice(1))]
    if (!gate) return
    if (change.t === 'gate_open' && gate.status === 'armed' && gate.round === change.round) {
      gate.status = 'waiting'
      gate.deadline = this.now + 60_000
      gate.escalation = this.now + 20_000
    }
    if (change.t === 'gate_escalate') {
      const due = gate.status !== 'waiting' || gate.round !== change.round || (gate.escalation ?? 0) <= this.now
      if (!due) this.problems.push(`${change.gate_id} escalates before its time`)
      delete gate.escalation
    }
    if (
      change.t === 'gate_expire' &&
      gate.status === 'waiting' &&
      gate.round === change.round &&
      gate.deadline <= this.now
    )
      gate.status = 'expired'
    const deadline_at = gate.status === 'waiting' ? new Date(gate.deadline).toISOString() : null
    const { status, round, escalation } = gate
    const escalates_at = status === 'waiting' && escalation ? new Date(escalation).toISOString() : null
    result.gates.push({ gate_id: change.gate_id, status, round, deadline_at, escalates_at })
  }

  /** Late: it reaches the engine after it has expired, and the rows are paused again, unless someone has acted since. */
  resume(late: boolean) {
    this.control = 'run'
    const command = this.command('resume', { acknowledged: [] }, late)
    this.signals.push(command as CommandMessage)
    this.steered = command.seq
    this.undo.set(command.command_id, () => {
      if (this.control === 'run' && this.steered === command.seq) this.control = 'pause'
    })
  }

  /** The rows as the rules of commands see them. */
  facts() {
    const open = (n: number) => this.attempts.some((a) => a.node === n && a.open)
    const runs = (n: number) => this.attempts.filter((a) => a.node === n && a.role === 'run')
    const progress = (n: number): Progress => {
      const [state, { kind, when }] = [this.states[n] ?? 'pending', this.profile(n)]
      if (open(n)) return 'open'
      if (state === 'pending') return when ? 'conditional' : kind === 'task' ? 'task' : 'instant'
      if (state === 'succeeded' || state === 'removed') return 'good'
      return ['skipped', 'failed', 'compensated'].includes(state) ? 'bad' : 'open'
    }
    const free = freeOf(
      this.nodes().map(([node_id, , , deps], n) => ({
        node_id,
        progress: progress(n),
        depends_on: deps.map((dep) => this.id(dep)),
      })),
    )
    const nodes = this.nodes().map(
      ([node_id, , , deps], n): NodeFacts => ({
        node_id,
        kind: this.profile(n).kind,
        state: open(n) ? 'running' : (this.states[n] ?? 'pending'),
        generation: this.generations[n] ?? 1,
        attempt: runs(n).length,
        begun: runs(n).some(({ generation }) => generation === this.generations[n]),
        free: free.has(node_id),
        skippable: true,
        has_compensation: this.profile(n).undo,
        depends_on: deps.map((dep) => this.id(dep)),
      }),
    )
    const facts: OperationFacts = {
      status: statusOf(this.control, this.status),
      control: this.control,
      cancel_mode: this.mode,
      cancelled_at: null,
      pause_reason: null,
      unknown_nodes: 0,
    }
    return { facts, nodes }
  }

  /** An intervention that the rules allow: its rows first, then the signal. `asks`: a gate whose subject it changes. */
  intervene(type: NodeIntervention, i: number, asks: number) {
    const raise = (n: number) => {
      this.generations[n] = (this.generations[n] ?? 0) + 1
      return this.generations[n] ?? 1
    }
    const body: CommandBodies['intervene'] = { type, node_id: this.id(i) }
    if (type === 'set_input' || type === 'set_output') Object.assign(body, this.askAgain(i, asks, type))
    if (type !== 'set_output') body.generation = raise(i)
    if (type === 'trigger_compensation') {
      this.states[i] = 'compensating'
      this.asked_undo.add(i)
      if (this.control !== 'cancel')
        body.generations = Object.fromEntries(
          coneOf(this.facts().nodes, this.id(i)).flatMap(({ node_id, state }) =>
            WAITING.has(state) ? [[node_id, raise(this.nodes().findIndex(([id]) => id === node_id))]] : [],
          ),
        )
    }
    this.send('intervene', body)
  }

  /** A change asks a gate again; one that was already used guards the node from then on. */
  askAgain(i: number, g: number, type: NodeIntervention): Pick<CommandBodies['intervene'], 'gates' | 'guarded_by'> {
    const gate = this.gates[g]
    if (!gate || (gate.status !== 'waiting' && gate.status !== 'approved')) return {}
    const used = gate.status === 'approved' && gate.guards.some((n) => this.attempts.some((a) => a.node === n))
    if (used && type === 'set_output') return {}
    gate.round += 1
    gate.status = used ? 'armed' : 'waiting'
    gate.deadline = this.now + 60_000
    if (used && !gate.guards.includes(i)) {
      this.pages = structuredClone(this.pages)
      this.nodes()[i]?.[4].push(g)
      this.nodes()[i]?.[4].sort((a, b) => a - b)
      gate.guards.push(i)
    }
    const deadline_at = used ? null : new Date(gate.deadline).toISOString()
    return {
      gates: { [`g${g}`]: { status: gate.status, round: gate.round, deadline_at } },
      guarded_by: used ? [`g${g}`] : [],
    }
  }

  /** By the rows the node has not begun in any way: a patch may change it. */
  isUntouched(i: number): boolean {
    const state = this.states[i] ?? ''
    return (
      ['pending', 'gated', 'ready'].includes(state) && !this.nodes()[i]?.[5] && !this.attempts.some((a) => a.node === i)
    )
  }

  /** Another graph under the next revision; its nodes keep their places. */
  redraw(change: (rows: Rows) => void) {
    const [page] = structuredClone(this.pages)
    if (!page?.head) return
    const rows = { nodes: page.nodes, profiles: page.profiles, gates: page.head.gates }
    change(rows)
    this.revision += 1
    page.plan_revision = this.revision
    for (let i = this.states.length; i < page.nodes.length; i++) {
      this.states.push('pending')
      this.generations.push(1)
    }
    for (let g = this.gates.length; g < rows.gates.length; g++)
      this.gates.push({ status: 'armed', round: 1, deadline: 0, guards: [] })
    for (const gate of this.gates) gate.guards = []
    for (const [i, [, , , , gates]] of page.nodes.entries()) for (const g of gates) this.gates[g]?.guards.push(i)
    for (const [g, gate] of this.gates.entries()) Object.assign(rows.gates[g] ?? {}, gate)
    this.pages = [page]
  }

  propose(touched: number[], change: (rows: Rows) => void) {
    if (this.patch || this.control === 'cancel' || !touched.every((i) => this.isUntouched(i))) return
    this.patch = { id: `p${this.seq}`, touched, change }
    this.send('patch_proposed', { patch_id: this.patch.id, node_ids: touched.map((i) => this.id(i)) })
  }

  /** Approved in the rows; late: the engine receives it after it has expired. */
  approvePatch(asks: number | null, late: boolean) {
    const { patch } = this
    if (!patch) return
    this.patch = null
    if (!patch.touched.every((i) => this.isUntouched(i))) {
      this.send('patch_closed', { patch_id: patch.id })
      return
    }
    const before = this.pages[0]
    const raise = () => {
      for (const i of patch.touched) this.generations[i] = (this.generations[i] ?? 0) + 1
    }
    this.redraw(patch.change)
    raise()
    for (const i of patch.touched) this.states[i] = this.nodes()[i]?.[5] ? 'removed' : 'pending'
    const gate = asks === null ? undefined : this.gates[asks]
    const gates: CommandBodies['patch_applied']['gates'] = {}
    if (gate && (gate.status === 'waiting' || gate.status === 'approved')) {
      const begun = gate.guards.some((i) => this.attempts.some((a) => a.node === i && a.role === 'run'))
      if (!begun) {
        Object.assign(gate, { status: 'waiting', round: gate.round + 1, deadline: this.now + 60_000 })
        gates[`g${asks}`] = {
          status: 'waiting',
          round: gate.round,
          deadline_at: new Date(this.now + 60_000).toISOString(),
        }
      }
    }
    const body = {
      patch_id: patch.id,
      plan_revision: this.revision,
      generations: Object.fromEntries(patch.touched.map((i) => [this.id(i), this.generations[i] ?? 1])),
      gates,
      closed: [],
    }
    const command = this.command('patch_applied', body, late)
    this.signals.push(command as CommandMessage)
    this.undo.set(command.command_id, () => {
      raise()
      this.redraw((rows) => {
        for (const [i, row] of rows.nodes.entries()) {
          const old = before?.nodes[i]
          if (!old) rows.nodes[i] = [row[0], row[1], row[2], [], [], 1]
          else if (patch.touched.includes(i)) {
            rows.nodes[i] = old
            if (this.states[i] === 'removed') this.states[i] = 'pending'
          }
        }
      })
    })
  }

  cancelRows(mode: CancelMode, reason: string) {
    this.end_reason ??= reason
    this.patch = null
    this.control = 'cancel'
    this.mode = mode
    for (const gate of this.gates) if (gate.status === 'armed' || gate.status === 'waiting') gate.status = 'cancelled'
  }

  close({ status, last_seq, batch }: Extract<Effect, { type: 'close' }>): Event {
    if (batch) this.record(batch)
    if (last_seq < this.seq) return { type: 'closed', at: this.now, result: { status: 'not_yet', seq: this.seq } }
    this.ended = true
    this.status = status
    if (this.openAttempts().length > 0) this.problems.push('closed with an attempt in flight')
    return { type: 'closed', at: this.now, result: { status: 'ended', evidence_head: { seq: 1, hash: 'x' } } }
  }
}
