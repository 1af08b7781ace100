import { setTimeout as delay } from 'node:timers/promises'
import { operationLook } from '../../shared/contracts/client/status.ts'
import { NODE_STATES } from '../../shared/contracts/operations/graph.ts'
import type { NodeSummary } from '../../shared/contracts/operations/nodes.ts'
import type { Operation, Timeline } from '../../shared/contracts/operations/operations.ts'
import { table } from '../../shared/data/print.ts'
import type { Context } from '../command.ts'
import { CliError } from '../errors.ts'
import { type Page, withQuery } from '../session/api.ts'
import { bar, liveLines } from '../terminal/ask.ts'
import { dim, harmless, second, short, word } from '../terminal/output.ts'

type Event = Timeline['events'][number]
/** The last known state; `lost` says since when and why it is not current. */
type View = { operation: Operation; nodes: NodeSummary[]; events: Event[]; lost?: { at: string; why: string } }

/** How long the server holds a request while there is no news. */
const NEWS_MS = 5000
const TICK_MS = 1000
const BACK_OFF_MS = [1000, 2000, 4000, 8000, 16_000, 30_000]
/** How many nodes are listed; the rest are counted. */
const NODES = 100
const QUIET = new Set(['pending', 'gated', 'succeeded', 'skipped', 'cancelled', 'compensated', 'removed'])
/** Failed, unknown, running or next. */
const LIVELY = NODE_STATES.filter((state) => !QUIET.has(state))

/**
 * Follows an operation to its end: on a terminal as a table that updates in place, elsewhere as one line per event. A
 * lost connection is reported and resumed after the last event, without limit. Returns the ended operation, or
 * `undefined` after Ctrl-C.
 */
export const watch = async (
  context: Context,
  operation_id: string,
  isOver: (operation: Operation) => boolean,
): Promise<Operation | undefined> => {
  const stopped = new AbortController()
  const stop = () => stopped.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.once(signal, stop)
  const shows = process.stdout.isTTY === true && isForPeople(context) ? onScreen() : inLines(context)
  try {
    const ended = new Promise<undefined>((resolve) =>
      stopped.signal.addEventListener('abort', () => resolve(undefined)),
    )
    return await Promise.race([follow(context, operation_id, { isOver, shows, stopped: stopped.signal }), ended])
  } finally {
    stop()
    shows.end()
    for (const signal of signals) process.off(signal, stop)
  }
}

type Shows = { show: (view: View, news: Event[]) => void; end: () => void }
type Following = { isOver: (operation: Operation) => boolean; shows: Shows; stopped: AbortSignal }

const follow = async (
  { api }: Context,
  operation_id: string,
  { isOver, shows, stopped }: Following,
): Promise<Operation | undefined> => {
  const path = `/api/v1/operations/${operation_id}`
  const lively = `${path}/nodes?${new URLSearchParams([
    ['failed_first', 'true'],
    ['page_size', String(NODES)],
    ...LIVELY.map((state): [string, string] => ['state', state]),
  ])}`
  let view: View | undefined
  let after = 0
  let failures = 0
  let over = false
  while (!stopped.aborted) {
    try {
      const query = { after_seq: String(after), limit: '500', wait_ms: String(view && !over ? NEWS_MS : 0) }
      const { events, last_seq } = await api.get<Timeline>(withQuery(`${path}/timeline`, query))
      const [operation, { items: nodes }] = await Promise.all([
        api.get<Operation>(path),
        api.get<Page<NodeSummary>>(lively),
      ])
      if (stopped.aborted) return undefined
      failures = 0
      after = events.at(-1)?.seq ?? after
      view = { operation, nodes, events: [...(view?.events ?? []), ...events].slice(-NODES) }
      shows.show(view, events)
      // Its last events may have come after this page was read.
      if (over && after >= last_seq) return operation
      over = isOver(operation)
    } catch (error) {
      // A first request that fails is an error; later the connection may be lost and come back.
      if (!view || !(error instanceof CliError) || !error.passing) throw error
      const wait_ms = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)]
      view = { ...view, lost: view.lost ?? { at: new Date().toISOString(), why: error.lines[0] ?? '' } }
      shows.show(view, [])
      failures += 1
      await delay(wait_ms, undefined, { signal: stopped }).catch(() => {})
    }
  }
  return undefined
}

/** A table on a terminal; a selection from the events is data. */
export const isForPeople = ({ out }: Context): boolean => out.format === 'table' && !out.selects

/** Prints one line per event, or its body with --jsonl. */
const inLines = (context: Context): Shows => {
  const { out } = context
  let was_lost = false
  return {
    show: ({ lost }, news) => {
      if (lost && !was_lost) out.note(`${lost.why} Trying again until it answers.`)
      if (!lost && was_lost) out.note('It answers again.')
      was_lost = lost !== undefined
      for (const event of news) {
        if (out.selects) out.one(event, 'seq', () => [])
        else out.print(isForPeople(context) ? eventLine(harmless(event)) : JSON.stringify(event))
      }
    },
    end: () => {},
  }
}

const onScreen = (): Shows => {
  const live = liveLines()
  let shown: View | undefined
  const draw = () => shown && live.draw(viewLines(shown, live.rows()))
  // Durations grow even without news.
  const ticking = setInterval(draw, TICK_MS)
  return {
    show: (view) => {
      shown = harmless(view)
      draw()
    },
    end: () => {
      clearInterval(ticking)
      live.end()
    },
  }
}

/** Rows for the last events, below the table of nodes. */
const LAST_EVENTS = 6

/** The operation on a screen with this many rows; items that wait for a person come first. */
const viewLines = ({ operation, nodes, events, lost }: View, rows: number): string[] => {
  const { title, status, progress, blocked_on, open_gates } = operation
  const head = [
    `${word(operationLook(status, blocked_on).word === 'waiting_person' ? 'waiting' : status)}   ${title}`,
    `${bar(progress.done, progress.total)} ${progress.done} of ${progress.total} done, ${progress.running} running, ${progress.failed} failed`,
    ...(lost ? [`Shown as of ${second(lost.at).slice(11)}. ${lost.why} Trying again until it answers.`] : []),
    ...blocked_on.map(({ message }) => `waits: ${message}`),
    ...open_gates
      .filter(({ status: gate }) => gate === 'waiting')
      .map(({ gate_id }) => `Next:  signalbox gate show ${gate_id} --op ${short(operation.operation_id)}`),
    ...blocked_on
      .filter(({ kind }) => kind === 'failed_node' || kind === 'outcome_unknown')
      .map(({ id }) => `Next:  signalbox op logs ${id} --op ${short(operation.operation_id)}`),
  ]
  const last = events.slice(-LAST_EVENTS).map((event) => dim(eventLine(event)))
  const room = Math.max(1, rows - head.length - last.length - 4)
  const listed = nodes.slice(0, nodes.length > room ? room - 1 : room)
  const left = nodes.length - listed.length
  return [
    ...head,
    '',
    ...(nodes.length === 0 ? [] : nodeLines(listed)),
    ...(left > 0 ? [dim(`${left} more`)] : []),
    ...(nodes.length === 0 ? [] : ['']),
    ...last,
  ]
}

const nodeLines = (nodes: NodeSummary[]): string[] =>
  table(
    ['state', 'node', 'attempt', 'for', ''],
    nodes.map(({ state, node_id, attempt, started_at, ended_at, error_message }) => [
      word(state),
      node_id,
      String(attempt),
      started_at ? spanText(Date.parse(ended_at ?? new Date().toISOString()) - Date.parse(started_at)) : '',
      error_message ?? '',
    ]),
  )

/** `7 s`, `12 min 04 s`, `3 h 05 min`. */
const spanText = (ms: number): string => {
  const s = Math.max(0, Math.round(ms / 1000))
  const two = (part: number) => String(part).padStart(2, '0')
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`
  return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`
}

const eventLine = ({ at, type, actor, node_id, gate_id, reason }: Event): string =>
  [
    second(at).slice(11),
    type.padEnd(24),
    node_id ?? gate_id ?? '',
    actor.kind === 'engine' ? '' : `by ${actor.name}`,
    reason ? `"${reason}"` : '',
  ]
    .filter(Boolean)
    .join('  ')
