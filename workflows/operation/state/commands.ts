import type { NodeIntervention } from '../../../apps/shared/contracts/operations/graph.ts'
import type { CommandBodies, CommandMessage } from '../messages.ts'
import { INTERVENTION_STATES } from '../rules/nodes.ts'
import { CATALOG_CONFLICT, endAttempt, finish, finishUndo } from './attempts.ts'
import { beginCancel, queueUndo, undone } from './compensate.ts'
import { askTimes, guard, setGate, takeGates } from './gates.ts'
import { item } from './graph.ts'
import { leasesGranted, leasesLost } from './leases.ts'
import {
  askAgain,
  desist,
  enter,
  fail,
  isFlying,
  move,
  note,
  setDue,
  settle,
  tellAgain,
  tellAgent,
  toGate,
  toReady,
} from './nodes.ts'
import { hold, release } from './patch.ts'
import { BAD, GOOD, type NodeRun, OPEN, type State } from './types.ts'

/** The reducer's refusal of a command; undefined if it carries it out. */
export type Refused = { category: string; code: string; detail: string }
type Handle<K extends keyof CommandBodies> = (
  s: State,
  body: CommandBodies[K],
  at: number,
  command: CommandMessage<K>,
) => Refused | undefined

const SEEN = 256
/** Milliseconds before an attempt whose outcome its agent does not know is handed over again. */
const AGAIN_MS = 5000
/** How many signals that no node waits for yet are kept; they are carried from run to run. */
const KEPT_SIGNALS = 256

/**
 * Takes a command once, by its id; an unknown one (`known`) is refused. Past its `not_after` it is `expired`; record_changes undoes its decision. The relay
 * sends in the order of `seq`, so a new command with a lower number proves that the higher one was made up.
 */
export const takeCommand = (s: State, command: CommandMessage, at: number, known: boolean) => {
  if (s.seen.includes(command.command_id)) return
  s.last_seq = command.seq
  s.seen.push(command.command_id)
  if (s.seen.length > SEEN) s.seen.shift()
  const { command_id, not_after } = command
  if (not_after !== null && at > Date.parse(not_after)) {
    if (command.kind === 'patch_applied') release(s, command.body.patch_id)
    tellAgain(s, nodesOf(command), at)
    return note(s, { t: 'command', command_id, status: 'expired' })
  }
  const handle = HANDLERS[command.kind] as Handle<typeof command.kind>
  const refused = known ? handle(s, command.body as never, at, command as never) : UNKNOWN
  if (command.kind === 'patch_applied' && !refused) return
  if (refused) tellAgain(s, nodesOf(command), at)
  note(s, { t: 'command', command_id, status: refused ? 'refused' : 'applied', ...refused })
}

/** Returns the nodes whose rows the command has written. */
const nodesOf = ({ body }: CommandMessage): string[] => [
  ...('node_id' in body && body.node_id !== null ? [body.node_id] : []),
  ...('generations' in body ? Object.keys(body.generations ?? {}) : []),
]

/** Parked nodes claim again once the command that their refused claim knew of has arrived. */
export const unpark = (s: State) => {
  for (const i of [...s.parked]) if (item(s.nodes, i).wait_seq <= s.last_seq) toReady(s, i)
}

const refuse = (code: string, detail: string, category = 'invalid_state_transition'): Refused => ({
  category,
  code,
  detail,
})

const UNKNOWN = refuse('unexpected', 'The workflow engine does not know this command.', 'internal_error')

const HANDLERS: { [K in keyof CommandBodies]: Handle<K> } = {
  start: () => undefined,
  pause: (s, { reason = 'operator' }, at) => void pause(s, reason, at),
  resume: (s, { gates, guarding = {} }, at, { seq }) => {
    for (const [gate_id, node_ids] of Object.entries(guarding))
      for (const id of node_ids) {
        const i = s.graph.index.get(id)
        if (i !== undefined) guardBy(s, i, [gate_id], at)
      }
    takeGates(s, gates, at)
    resume(s, seq, at)
    return undefined
  },
  cancel: (s, { mode }, at) => void beginCancel(s, mode, { status: 'cancelled', reason: 'cancelled' }, at),
  gate_decided: (s, { gate_id, round, status }, at) => {
    const g = s.graph.gate_index.get(gate_id)
    if (g === undefined) return refuse('gate', `There is no gate "${gate_id}".`, 'not_found')
    setGate(s, g, status, round, at)
    askTimes(s, g)
    return undefined
  },
  retry_node: (s, body, at) => retry(s, body, at),
  intervene: (s, body, at, command) => intervene(s, body, at, command),
  node_result: (s, body, at) => {
    const {
      node_id,
      role = 'run',
      attempt,
      status,
      class: cls = 'remote_error',
      message = '',
      retryable = false,
    } = body
    const i = s.graph.index.get(node_id)
    const node = i === undefined ? undefined : item(s.nodes, i)
    if (i === undefined || !node || !isFlying(node)) return undefined
    const undoing = node.state === 'compensating'
    if (undoing !== (role === 'undo') || attempt !== (undoing ? node.undo_attempt : node.attempt)) return undefined
    if (status === 'again') {
      if (node.doing === 'poll') setDue(s, i, at + AGAIN_MS)
      return undefined
    }
    const error = { class: cls, message, retryable }
    const times = { started_at: at, ended_at: at }
    endAttempt(s, i, status === 'succeeded' ? { status, ...times } : { status, ...times, error }, at)
    return undefined
  },
  node_signal: (s, { name }) => {
    if (s.signals.length >= KEPT_SIGNALS)
      return refuse('intervention_not_applicable', `${KEPT_SIGNALS} signals wait already, and no node waits for them.`)
    s.signals.push(name)
    return undefined
  },
  catalog_drift: (s, _body, at) => void pause(s, 'catalog_drift', at),
  lease_granted: (s) => void leasesGranted(s),
  calendar_changed: (s, _body, at, { seq }) => void askCalendar(s, seq, at),
  place_free: (s, { node_ids }, at, { seq }) => {
    s.calendar_seq = seq
    for (const id of node_ids) {
      const i = s.graph.index.get(id)
      if (i !== undefined && item(s.nodes, i).doing === 'shut') askAgain(s, i, at)
    }
    return undefined
  },
  patch_proposed: (s, { patch_id, node_ids }) => void hold(s, patch_id, node_ids),
  patch_closed: (s, { patch_id, plan_revision = 0 }) => {
    release(s, patch_id)
    s.wanted_revision = Math.max(s.wanted_revision, plan_revision)
    return undefined
  },
  // Its outcome is reported once the new graph is loaded (patch.ts).
  patch_applied: (s, body, _at, { command_id }) => void s.patching.push({ ...body, command_id }),
}

export const pause = (s: State, reason: string, at: number) => {
  if (s.control !== 'run') return
  s.control = 'pause'
  s.pause_reason = reason
  // The operation's own clock stops while it is paused.
  if (s.deadline > 0) s.deadline_left = Math.max(s.deadline - at, 1)
  s.deadline = 0
}

const resume = (s: State, seq: number, at: number) => {
  if (s.asking?.to === 'pause') s.resumed_seq = seq
  if (s.control !== 'pause' || seq <= s.paused_seq) return
  s.control = 'run'
  s.pause_reason = null
  // A person may have given back the awaited leases; the rows know.
  if (s.leases === 'waiting') leasesLost(s)
  if (s.deadline_left === 0) return
  s.deadline = at + s.deadline_left
  s.deadline_left = 0
  note(s, { t: 'deadline', deadline_at: s.deadline })
}

/** Resets the named nodes to new generations. The command transaction decided it, so only later moves can refuse it. */
const retry = (
  s: State,
  { node_id, generations, gates, guarded_by }: CommandBodies['retry_node'],
  at: number,
): Refused | undefined => {
  const cone = Object.keys(generations).map((id) => s.graph.index.get(id))
  const root = s.graph.index.get(node_id)
  if (root === undefined || cone.some((i) => i === undefined))
    return refuse('node', `There is no node "${node_id}".`, 'not_found')
  const nodes = cone as number[]
  // Generations only grow, even for a retry without effect: claims compare them with the rows.
  for (const i of nodes) raise(s, i, generations[item(s.graph.ids, i)])
  if (s.control === 'cancel') return refuse('already_cancelling', 'The operation is being cancelled.')
  const busy = nodes.find((i) => isFlying(item(s.nodes, i)))
  if (busy !== undefined)
    return refuse('cone_in_flight', `Node "${item(s.graph.ids, busy)}" is running; wait until it ends.`)
  for (const i of nodes) reset(s, i)
  guardBy(s, root, guarded_by, at)
  takeGates(s, gates, at)
  // A person's retry proceeds even if its dependencies would have caused a skip.
  const node = item(s.nodes, root)
  if (node.open === 0 && node.bad > 0) toGate(s, root, at)
  else if (node.bad > 0 && !s.as_it_came) s.insisted.push(root)
  s.touched.push(...nodes)
  return undefined
}

const reset = (s: State, i: number) => {
  desist(s, i)
  const node = item(s.nodes, i)
  move(s, i, 'pending', 'idle')
  node.tries = 0
  node.slice = 0
  node.reopen = false
  node.error = null
  node.exception = false
  settle(s, i, OPEN)
  if (s.wanted?.node === i && !s.wanted.asked) s.wanted = null
}

const NOT_APPLICABLE = (state: string): Refused => refuse('intervention_not_applicable', `The node is now ${state}.`)

/** Applies an intervention that the command transaction decided; refuses it if the node has moved on since. */
const intervene = (
  s: State,
  body: CommandBodies['intervene'],
  at: number,
  { seq }: Pick<CommandMessage, 'seq'>,
): Refused | undefined => {
  const { type, node_id, generation = 0, generations = {}, payload = {} } = body
  if (type === 'set_limits') {
    s.max_parallel = Math.min(payload.max_parallel ?? s.max_parallel, s.most_parallel)
    return undefined
  }
  if (type === 'extend_deadline') return extend(s, body, at, seq)
  if (type === 'override_freeze') {
    s.overridden = true
    return void askCalendar(s, seq, at)
  }
  const i = node_id === null ? undefined : s.graph.index.get(node_id)
  if (i === undefined) return refuse('node', `There is no node "${node_id}".`, 'not_found')
  // Generations only grow, even for an intervention without effect: claims compare them with the rows.
  const others = Object.keys(generations).flatMap((id) => s.graph.index.get(id) ?? [])
  for (const n of others) raise(s, n, generations[item(s.graph.ids, n)])
  raise(s, i, generation)
  // Outputs are in the rows: the engine only learns which gates ask again.
  if (type === 'set_output') return void takeGates(s, body.gates, at)
  const node = item(s.nodes, i)
  const givenUp = type === 'mark_failed' && isUnderWay(node, payload.attempt)
  if (!givenUp && (isFlying(node) || !INTERVENTION_STATES[type].has(node.state))) return NOT_APPLICABLE(node.state)
  const undoing = node.state === 'compensation_failed' && (type === 'mark_compensated' || s.mode === 'compensate')
  if (s.control === 'cancel' && !undoing) return refuse('already_cancelling', 'The operation is being cancelled.')
  if (others.some((n) => isFlying(item(s.nodes, n))))
    return refuse('intervention_not_applicable', 'A downstream node is already running.')
  if (givenUp) tellAgent(s, i)
  ON_NODE[type](s, i, at, body, others)
  return undefined
}

/** Whether this attempt is in flight, or between two checks of its agent. */
const isUnderWay = (node: NodeRun, attempt: number | undefined): boolean =>
  attempt !== undefined &&
  node.state === 'running' &&
  node.attempt === attempt &&
  (node.doing === 'attempt' || node.doing === 'poll')

/** The calendar has changed: nodes that it held claim again, and the claim says what still holds them. */
const askCalendar = (s: State, seq: number, at: number) => {
  s.calendar_seq = seq
  for (const key of Object.keys(s.shut)) askAgain(s, Number(key), at)
}

const raise = (s: State, i: number, generation = 0) => {
  const node = item(s.nodes, i)
  node.generation = Math.max(node.generation, generation)
}

/** Extends the time of the whole operation, whose clock may be stopped, or of a gate, as its row states. */
const extend = (s: State, { payload = {}, gates }: CommandBodies['intervene'], at: number, seq: number): undefined => {
  const more = seq > s.loaded_seq ? 1000 * (payload.add_s ?? 0) : 0
  if (s.deadline > 0) {
    s.deadline += more
    // A resume that comes with it reports its deadline without this time.
    if (more > 0) note(s, { t: 'deadline', deadline_at: s.deadline })
  } else if (s.deadline_left > 0) s.deadline_left += more
  takeGates(s, gates, at)
}

/** Gates that approved other inputs than the node has now guard it from here on. */
const guardBy = (s: State, i: number, gate_ids: readonly string[] = [], at: number) => {
  for (const gate_id of gate_ids) {
    const g = s.graph.gate_index.get(gate_id)
    if (g !== undefined) guard(s, g, i, at)
  }
}

type OnNode = (s: State, i: number, at: number, body: CommandBodies['intervene'], others: readonly number[]) => void

const ON_NODE: Record<Exclude<NodeIntervention, 'set_output'>, OnNode> = {
  skip: (s, i, at) => {
    item(s.nodes, i).exception = true
    enter(s, i, 'skipped', at, { exception: 'skip' })
    settle(s, i, GOOD)
  },
  mark_succeeded: (s, i, at) => {
    item(s.nodes, i).exception = true
    // Its write to the catalog is still to come, even if the failure was passed over.
    settle(s, i, OPEN)
    finish(s, i, at, { exception: 'mark_succeeded' })
  },
  mark_failed: (s, i, at, { payload: { message = 'Marked as failed by a person.' } = {} }) => {
    item(s.nodes, i).exception = true
    fail(s, i, { class: 'cancelled', message, retryable: false }, at, { exception: 'mark_failed' })
  },
  // The target has its earlier state, so the catalog must show that, unless the catalog itself refused.
  mark_compensated: (s, i, at) => {
    const node = item(s.nodes, i)
    node.exception = true
    if (node.error?.class === CATALOG_CONFLICT) return undone(s, i, at)
    enter(s, i, 'compensating', at, { role: 'undo' })
    finishUndo(s, i, at)
  },
  set_input: (s, i, at, { gates, guarded_by }) => {
    guardBy(s, i, guarded_by, at)
    takeGates(s, gates, at)
  },
  // Nodes that need an undone node can never start, so all after it that wait by their rows are checked again, even
  // those that were passed since without a claim.
  trigger_compensation: (s, i, at, _body, others) => {
    item(s.nodes, i).exception = true
    queueUndo(s, i, at)
    if (s.control === 'cancel') return
    settle(s, i, BAD)
    for (const n of others) {
      const { settled, exception } = item(s.nodes, n)
      desist(s, n)
      if (settled === OPEN) move(s, n, 'pending', 'idle')
      else if (!exception && !s.as_it_came) reset(s, n)
      s.touched.push(n)
    }
  },
}
