import { setTimeout as delay } from 'node:timers/promises'
import { readLogState } from '../../../db/catalog/relationships/graph-events.ts'
import type { Db } from '../../../db/client.ts'
import { lagGauge, type Telemetry } from '../../shared/telemetry.ts'
import type { Registry } from '../packs/registry.ts'
import { catchUp } from './feed.ts'
import { type Growth, grow, type Proven, type Trial } from './grow.ts'
import type { Store } from './store.ts'

const RETRY_MS = 1000
/** When the last poll is older than this, its age counts as lag: the log may have grown unseen. */
const LATE_MS = 1000

export type GraphOptions = {
  db: Db
  url: string
  registry: Registry
  telemetry: Telemetry
  enabled: boolean
  poll_ms: number
  /** Events that are read together. */
  batch: number
  /** Changes in the overlay at which the arrays are rebuilt. */
  compact_at: number
  /** After this time an unfinished comparison fails, so that another may begin. */
  compare_ms: number
}

/** The name of this projection in the tables and on the wire. */
const GRAPH = 'graph'

/** The growth of a graph, and its lag behind the log. */
type Following = Growth & {
  paused: boolean
  /** Age of the oldest committed event missing from the graph, as of `seen_at`. */
  behind_ms: number
  seen_at: number
  /** Since when the graph is of another run of the database: its position in the log has no meaning then. */
  astray_at?: number | undefined
}

/**
 * The graph of this process (catalog.md 10): a worker loads it, then the catalog's own log feeds it in `pub_seq` order.
 * It is warm once it has reached the end of the log. To fold in the overlay, it loads a new graph beside the current
 * one and swaps them, also when Postgres runs anew: another run may be an older copy of the database.
 */
export const createGraph = (options: GraphOptions) => {
  const { db, url, registry, telemetry, enabled, poll_ms, batch, compact_at, compare_ms } = options
  const stopping = new AbortController()
  const gauges = gaugesOf(telemetry)
  const following: Following = {
    source: { db, registry, batch, signal: stopping.signal },
    url,
    log: telemetry.log,
    differed: (count) => gauges.differ.set({ consumer: GRAPH }, count),
    compact_at,
    ...{ failures: 0, loads: 0, load_ms: 0, count_ms: 0 },
    ...{ paused: false, behind_ms: 0, seen_at: performance.now() },
  }
  const lag = () => lagOf(following)
  let loop: Promise<void> | undefined

  return {
    enabled,
    start: (): void => {
      if (enabled) loop ??= run(following, gauges, poll_ms)
    },
    stop: async (): Promise<void> => {
      stopping.abort()
      following.trial?.failed(new Error('the process ends'))
      await following.loading?.catch(() => {})
      await loop
    },
    /** The graph; `undefined` while it is loading or switched off. */
    store: (): Store | undefined => following.live,
    /** Milliseconds by which the graph lags behind the committed events. */
    lag,
    isPaused: (): boolean => following.paused,
    /**
     * Loads the graph again beside the current one and compares the two at one position of the log; with `swap`, the
     * new one then takes over. Requests continue meanwhile. One at a time; fails if it does not finish in time.
     */
    compare: (swap: boolean): Promise<Proven> => compareIn(following, swap, compare_ms),
    /** For `npm run bench:catalog` and the log. */
    figures: () => ({ ...following.live?.figures(), loads: following.loads, load_ms: following.load_ms }),
    /** For the health check: throws while the graph is loading. */
    check: async (): Promise<void> => {
      if (enabled && !following.live) throw new Error('the graph is being loaded')
    },
  }
}

const gaugesOf = (telemetry: Telemetry) => ({
  edges: telemetry.gauge('signalbox_graph_edges', 'Relationships in the graph in memory.'),
  bytes: telemetry.gauge('signalbox_graph_bytes', 'Size of the graph in memory in bytes.'),
  lag: lagGauge(telemetry),
  differ: telemetry.gauge(
    'signalbox_projection_differences',
    'Rows that differed from the tables at the last comparison.',
    ['consumer'],
  ),
})
type Gauges = ReturnType<typeof gaugesOf>

const lagOf = ({ behind_ms, seen_at }: Following): number => {
  const late = performance.now() - seen_at
  return Math.round(behind_ms + (behind_ms > 0 || late > LATE_MS ? late : 0))
}

const run = async (following: Following, gauges: Gauges, poll_ms: number): Promise<void> => {
  const { source, log } = following
  while (!source.signal.aborted) {
    let pause = following.live ? poll_ms : 0
    try {
      await turn(following, gauges)
      if (following.failures > 0) pause = RETRY_MS
    } catch (error) {
      pause = RETRY_MS
      if (!source.signal.aborted) log.warn({ err: error }, 'the graph cannot follow the log right now')
    }
    await delay(pause, undefined, { signal: source.signal }).catch(() => {})
  }
}

const turn = async (following: Following, gauges: Gauges): Promise<void> => {
  const { live, source } = following
  if (live) {
    const asked = performance.now()
    const state = await readLogState(source.db, GRAPH, live.watermark)
    following.paused = state.paused
    following.run = state.run
    following.astray_at = live.run === state.run ? undefined : (following.astray_at ?? asked)
    const astray_ms = asked - (following.astray_at ?? asked)
    const follows = state.paused || (await keepsUp(following, live, state.unfolded_ms !== 0))
    const unfolded_ms = state.paused || !follows ? state.unfolded_ms : 0
    following.behind_ms = Math.max(state.unnumbered_ms, unfolded_ms, astray_ms)
    following.seen_at = asked
  }
  if (!following.paused && (await grow(following)) && !live) following.seen_at = performance.now()
  const figures = following.live?.figures()
  gauges.edges.set(figures?.edges ?? 0)
  gauges.bytes.set(figures?.bytes ?? 0)
  gauges.lag.set({ consumer: GRAPH }, lagOf(following) / 1000)
}

/** Feeds the current graph; returns false while an event does not fit it. Loads and comparisons continue meanwhile. */
const keepsUp = async (following: Following, store: Store, has_events: boolean): Promise<boolean> => {
  const { source, log } = following
  try {
    if (has_events) await catchUp(source, store)
    following.failures = 0
  } catch (error) {
    following.failures += 1
    const { failures } = following
    if (!source.signal.aborted) log.warn({ err: error, failures }, 'the graph cannot follow the log right now')
  }
  return following.failures === 0
}

const compareIn = async (growth: Growth, swap: boolean, within_ms: number): Promise<Proven> => {
  const { promise, resolve, reject } = Promise.withResolvers<Proven>()
  const one: Trial = { swap, done: resolve, failed: reject }
  growth.trial = one
  const late = () => reject(new Error(`the comparison took longer than ${within_ms} ms`))
  const timer = setTimeout(late, within_ms)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    if (growth.trial === one) growth.trial = undefined
  }
}
