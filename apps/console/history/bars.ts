import { TARGET_DRIFTED } from '../../shared/contracts/operations/graph.ts'
import type { TimelineEvent } from '../api/types.ts'

/** `hold`: ended badly, until a person decides. `end`: ended without a run, as by a skip; it has no length. */
export type BarKind = 'run' | 'undo' | 'backoff' | 'gate' | 'queue' | 'hold' | 'pause' | 'end'
/** A time span in ms; an `open` one has not ended and reaches to now. */
export type Bar = {
  kind: BarKind
  from: number
  to: number
  open: boolean
  /** For an attempt: its outcome. */
  state: string
  attempt?: number | undefined
  error?: string | undefined
  /** For a backoff: when the next attempt is due. */
  due?: number | undefined
}
export type Fact = Pick<TimelineEvent, 'type' | 'at' | 'node_id' | 'gate_id' | 'data'>
type Said = {
  attempt?: number
  role?: string
  started_at?: string
  due_at?: string
  error?: { class?: string; message?: string }
}

const WAITS: Record<string, BarKind> = {
  backoff: 'backoff',
  gated: 'gate',
  ready: 'queue',
  failed: 'hold',
  outcome_unknown: 'hold',
  compensation_failed: 'hold',
}
const WORKS = new Set(['dispatched', 'running', 'compensating'])
const GOES_BACK = new Set(['gated', 'ready'])
const ENDS = new Set(
  'backoff succeeded failed outcome_unknown skipped cancelled compensated compensation_failed'.split(' '),
)

/** Each node's attempts and waits, by events in seq order. After a failure that `holds`, a person is awaited. Pure. */
export const barsOf = (
  events: readonly Fact[],
  now: number,
  holds: (node_id: string) => boolean = () => true,
): Map<string, Bar[]> => {
  const nodes = Map.groupBy(
    events.filter(({ type, node_id }) => node_id !== null && type.startsWith('node.')),
    ({ node_id }) => node_id as string,
  )
  return new Map(
    [...nodes].map(([node_id, facts]) => {
      const bars: Bar[] = []
      for (const { type, at, data } of facts)
        addState(bars, type.slice('node.'.length), Date.parse(at), data as Said, holds(node_id))
      shut(bars, now, true)
      return [node_id, bars]
    }),
  )
}

const isWork = (bar: Bar): boolean => bar.kind === 'run' || bar.kind === 'undo'
const workOf = (state: string, { role }: Said) => (role === 'undo' || state === 'compensating' ? 'undo' : 'run')
const openWork = (bars: Bar[]): Bar | undefined => bars.slice(-1).find((bar) => bar.open && isWork(bar))

const addState = (bars: Bar[], state: string, at: number, said: Said, holds: boolean): void => {
  if (WORKS.has(state)) {
    beginWork(bars, state, at, said)
    return
  }
  // An attempt that was dispatched and came back as ready was refused: it never ran.
  if (GOES_BACK.has(state) && openWork(bars)) bars.pop()
  if (ENDS.has(state)) endWork(bars, state, at, said)
  else shut(bars, at)
  const kind = WAITS[state]
  // A target that is not as planned holds whatever the plan says.
  if (kind === undefined || (state === 'failed' && !holds && said.error?.class !== TARGET_DRIFTED)) return
  const due = said.due_at === undefined ? undefined : Date.parse(said.due_at)
  bars.push({ kind, from: at, to: at, open: true, state, attempt: said.attempt, due })
}

/** Dispatched and running are two events of one attempt; the history may have either or both. */
const beginWork = (bars: Bar[], state: string, at: number, said: Said): void => {
  const kind = workOf(state, said)
  const open = openWork(bars)
  if (open?.kind === kind && (open.attempt ?? said.attempt) === said.attempt) {
    Object.assign(open, { from: at, attempt: said.attempt })
    return
  }
  shut(bars, at)
  bars.push({ kind, from: at, to: at, open: true, state: 'running', attempt: said.attempt })
}

/** The end of an attempt reports when it really began. An end without an attempt, or by a later decision, is a mark. */
const endWork = (bars: Bar[], state: string, at: number, said: Said): void => {
  const { attempt, error } = said
  const kind = workOf(state, said)
  const known = bars.some((bar) => isWork(bar) && !bar.open && bar.kind === kind && bar.attempt === attempt)
  const began = said.started_at === undefined || known ? undefined : Math.min(at, Date.parse(said.started_at))
  const open = openWork(bars)
  if (open) bars.pop()
  const from = began ?? open?.from ?? at
  shut(bars, from)
  const outcome = { state: state === 'backoff' ? 'failed' : state, attempt, error: error?.message }
  bars.push({ kind: began === undefined && !open ? 'end' : kind, from, to: at, open: false, ...outcome })
}

/** Ends the newest bar, or extends it to now. A backoff ends when it was due; from then on the node is queued. */
const shut = (bars: Bar[], at: number, open = false): void => {
  const last = bars.at(-1)
  if (!last?.open) return
  const late = last.due !== undefined && last.due < at
  Object.assign(last, { to: Math.max(last.from, late ? (last.due ?? at) : at), open: open && !late })
  if (late) bars.push({ kind: 'queue', from: last.to, to: at, open, state: 'ready' })
}

/** When the operation was paused, beginning with the command, since no node starts after it. Pure. */
export const pausesOf = (events: readonly Fact[], now: number): Bar[] =>
  periodsOf(events, now, 'pause', (type) =>
    type === 'operation.pausing' || type === 'operation.paused' ? true : STOPS_PAUSE.has(type) ? false : undefined,
  )
const STOPS_PAUSE = new Set(['operation.resumed', 'operation.cancelling', 'operation.cancelled', 'operation.ended'])

/** When a gate was open, from its question to the decision; if it asks again, it gets another bar. Pure. */
export const asksOf = (events: readonly Fact[], now: number, gate_id: string): Bar[] =>
  periodsOf(
    events.filter((event) => event.gate_id === gate_id),
    now,
    'gate',
    (type) => (ASKS.has(type) ? true : ANSWERS.has(type) ? false : undefined),
  )
const ASKS = new Set(['gate.waiting', 'gate.reopened'])
const ANSWERS = new Set(['approved', 'rejected', 'expired', 'bypassed', 'cancelled', 'armed'].map((to) => `gate.${to}`))

/** `goesOn` says whether the period is on after an event of that type; `undefined`: unchanged. */
const periodsOf = (
  events: readonly Fact[],
  now: number,
  kind: BarKind,
  goesOn: (type: string) => boolean | undefined,
): Bar[] => {
  const bars: Bar[] = []
  for (const { type, at: text } of events) {
    const at = Date.parse(text)
    const on = goesOn(type)
    const last = bars.at(-1)
    if (on === true && !last?.open) bars.push({ kind, from: at, to: at, open: true, state: 'waiting' })
    if (on === false && last?.open)
      Object.assign(last, { to: Math.max(last.from, at), open: false, state: type.split('.')[1] })
  }
  shut(bars, now, true)
  return bars
}
