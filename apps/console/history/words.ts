import { lookOf, type Shape, type Tone } from '../../shared/contracts/client/status.ts'
import type { Graph, TimelineEvent } from '../api/types.ts'
import { tOperation } from '../words/operation.ts'
import { barsOf } from './bars.ts'

/** An event of the history in words, with the shape of its state. Unknown types keep the server's term. */
export const eventWords = ({
  type,
  data,
}: Pick<TimelineEvent, 'type'> & { data?: unknown }): { words: string; shape: Shape; tone: Tone } => {
  const [noun = '', happened = ''] = type.split('.')
  const known = tOperation.events[type]
  const state = STATES[type] ?? happened
  const look = KNOWN.has(state) ? lookOf(state) : { shape: 'dot' as const, tone: 'idle' as const }
  const words = known ?? `${tOperation.event_nouns[noun] ?? noun} ${happened.replaceAll('_', ' ')}`
  const { kind } = (data ?? {}) as { kind?: unknown }
  const which = noun === 'command' && typeof kind === 'string' ? `: ${kind.replaceAll('_', ' ')}` : ''
  return { words: words + which, shape: look.shape, tone: look.tone }
}

/** What an event is about: names of steps by id, questions of gates by id with a prefix, as both may share one. */
export const namesIn = (graph: Graph | undefined): ReadonlyMap<string, string> =>
  new Map([
    ...(graph?.nodes ?? []).map(({ node_id, name }) => [node_id, name] as const),
    ...(graph?.gates ?? []).map(({ gate_id, question }) => [`gate ${gate_id}`, question] as const),
  ])

export const isAboutPeople = (event: TimelineEvent): boolean =>
  event.actor.kind === 'user' || event.type.startsWith('gate.')

export const isProblem = (event: TimelineEvent): boolean => {
  const { tone } = eventWords(event)
  return tone === 'bad' || tone === 'odd' || event.type.endsWith('backoff') || event.type === 'catalog.conflict'
}

/** A line of the history: an event, and the earlier ones that the system has recorded of the same node. */
export type Entry = TimelineEvent & { earlier?: readonly TimelineEvent[] }

/**
 * One line for all that the system has recorded of a node, in the place of its newest event. Acts of people and events
 * about no node keep their own lines. Events come newest first. Pure.
 */
export const foldedByNode = (events: readonly TimelineEvent[]): Entry[] => {
  const lines = Map.groupBy(events, ({ seq, type, node_id, actor }) =>
    node_id !== null && actor.kind !== 'user' && type.startsWith('node.') ? node_id : seq,
  )
  return [...lines.values()].flatMap(([newest, ...earlier]) => (newest ? [{ ...newest, earlier }] : []))
}

/** The key of a line, which stays the same while newer events join it. Pure. */
export const keyOfLine = ({ seq, earlier }: Entry): number => earlier?.at(-1)?.seq ?? seq

/** How often a node was tried up to the newest of its events, and how long that took together. Pure. */
export const triedOf = ({ earlier = [], ...newest }: Entry): { attempts: number; ran_ms: number } => {
  const bars = barsOf([...earlier.toReversed(), newest], Date.parse(newest.at)).get(newest.node_id ?? '') ?? []
  const runs = bars.filter(({ kind }) => kind === 'run' || kind === 'undo')
  return { attempts: runs.length, ran_ms: runs.reduce((sum, { from, to }) => sum + to - from, 0) }
}

const STATES: Record<string, string> = {
  'operation.ended': 'succeeded',
  'catalog.applied': 'applied',
  'node.result_refused': 'refused',
}
const KNOWN = new Set([
  'pending',
  'queued',
  'ready',
  'dispatched',
  'running',
  'executing',
  'started',
  'waiting',
  'gated',
  'blocked',
  'backoff',
  'pausing',
  'paused',
  'succeeded',
  'approved',
  'applied',
  'failed',
  'rejected',
  'refused',
  'timed_out',
  'expired',
  'outcome_unknown',
  'skipped',
  'withdrawn',
  'cancelled',
  'cancelling',
  'compensating',
  'compensated',
  'compensation_failed',
  'succeeded_with_exceptions',
  'bypassed',
])
