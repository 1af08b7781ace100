import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import {
  graphEventsAfter,
  lastLogId,
  numberedTo,
  readLogState,
} from '../../../db/catalog/relationships/graph-events.ts'
import type { Db } from '../../../db/client.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import type { Registry } from '../packs/registry.ts'
import type { GraphArrays } from './arrays.ts'
import { type Compared, compareStores } from './compare.ts'
import { createStore, type Store, UnknownName } from './store.ts'

const RETRY_MS = 1000
/** Turns in which one event could not be applied, after which the graph is made anew: the tables hold what it told. */
const MAX_FAILURES = 3
/** A poll that is later than this is an age of its own: the log may have gone on unseen. */
const LATE_MS = 1000

export type GraphOptions = {
  db: Db
  url: string
  registry: Registry
  telemetry: Telemetry
  enabled: boolean
  poll_ms: number
  /** Events that are read at once. */
  batch: number
  /** Changes in the overlay at which the arrays are made anew. */
  compact_at: number
  /** After which a comparison that cannot come to its end fails, so that another may begin. */
  compare_ms: number
}

/** The name of this projection in the tables and on the wire. */
export const GRAPH = 'graph'

/** What a comparison found, and at which place of the log. */
type Proven = Compared & { pub_seq: string }

/** A graph that was loaded anew to be compared with the one in use. */
type Trial = {
  /** Takes the place of the one in use afterwards. */
  swap: boolean
  done: (found: Proven) => void
  failed: (error: unknown) => void
  store?: Store
  /** The last row of the log that it may hold already. */
  log_id?: string
}

/**
 * The graph of this process (catalog.md 10): loaded by a worker, then fed by the own log in `pub_seq` order. It is warm
 * when the end of the log was seen once. What the overlay gathers is folded in by loading anew beside it and swapping.
 */
export const createGraph = (options: GraphOptions) => {
  const { db, url, registry, telemetry, enabled, poll_ms, batch, compact_at, compare_ms } = options
  const { log } = telemetry
  const stopping = new AbortController()
  let live: Store | undefined
  let next: Store | undefined
  let loading: Promise<void> | undefined
  let trial: Trial | undefined
  /** Turns in a row in which the graph in use could not take the next event. */
  let failures = 0
  let paused = false
  let loads = 0
  let load_ms = 0
  /** Of it, what counting below each place took. */
  let count_ms = 0
  /** Age of the oldest event that is committed and not in the graph, as it was at `seen_at`. */
  let behind_ms = 0
  let seen_at = performance.now()
  let loop: Promise<void> | undefined

  const gauges = {
    edges: telemetry.gauge('graph_edges', 'Relationships in the graph in memory.'),
    bytes: telemetry.gauge('graph_bytes', 'Bytes that the graph in memory takes.'),
    lag: telemetry.gauge('projection_lag_seconds', 'Age of the oldest event that is not folded.', ['consumer']),
    differ: telemetry.gauge('projection_differences', 'Rows that differed from the truth when it was last compared.', [
      'consumer',
    ]),
  }

  const load = async (): Promise<Store> => {
    const started = performance.now()
    const store = createStore(await loadArrays(url, stopping.signal))
    const loaded = performance.now()
    await store.countPlaces(registry.types)
    count_ms = performance.now() - loaded
    load_ms = performance.now() - started
    loads += 1
    return store
  }

  /** Applies one batch of the log, to a place in it if one is named. True: there may be more. */
  const feed = async (store: Store, to?: string): Promise<boolean> => {
    const events = await graphEventsAfter(db, store.watermark, batch, to)
    try {
      store.apply(events, registry.types)
    } catch (error) {
      if (!(error instanceof UnknownName)) throw error
      // A pack that another process has loaded: read the types and go on where it stopped.
      await registry.reload()
      const rest = events.filter(({ pub_seq }) => BigInt(pub_seq) > BigInt(store.watermark))
      store.apply(rest, registry.types)
    }
    return events.length === batch
  }

  const catchUp = async (store: Store, to?: string): Promise<void> => {
    while (!stopping.signal.aborted && (await feed(store, to))) {
      // goes on while batches are full
    }
  }

  const turn = async (): Promise<void> => {
    if (live) {
      const asked = performance.now()
      const state = await readLogState(db, GRAPH, live.watermark)
      paused = state.paused
      const follows = paused || (await keepsUp(live))
      behind_ms = Math.max(state.unnumbered_ms, paused || !follows ? state.unfolded_ms : 0)
      seen_at = asked
    }
    if (!paused) await grow()
    const figures = live?.figures()
    gauges.edges.set(figures?.edges ?? 0)
    gauges.bytes.set(figures?.bytes ?? 0)
    gauges.lag.set({ consumer: GRAPH }, lag() / 1000)
  }

  /** Feeds the graph in use; false while an event does not fit it. Loads and comparisons go on meanwhile. */
  const keepsUp = async (store: Store): Promise<boolean> => {
    try {
      await catchUp(store)
      failures = 0
    } catch (error) {
      failures += 1
      if (!stopping.signal.aborted) log.warn({ err: error, failures }, 'the graph cannot follow the log now')
    }
    return failures === 0
  }

  /** Whatever is loaded or compared beside the graph in use, one step further. */
  const grow = async (): Promise<void> => {
    if (next) {
      const fresh = next
      next = undefined
      await catchUp(fresh)
      next = fresh
      if (!live || BigInt(next.watermark) >= BigInt(live.watermark)) {
        if (!live) seen_at = performance.now()
        live = next
        next = undefined
        failures = 0
        const figures = live.figures()
        log.info({ ...figures, load_ms: Math.round(load_ms), count_ms: Math.round(count_ms) }, 'the graph is in memory')
      }
    }
    // While the graph in use does not follow there is no place to compare at: it is made anew first.
    if (trial && live && failures === 0) await compareWith(trial, live)
    const spent = failures >= MAX_FAILURES || (!trial && live && live.figures().changed > compact_at)
    if (!loading && !next && (!live || spent)) {
      loading = load()
        .then((store) => {
          next = store
        })
        .finally(loaded)
      if (!live) await loading
      else loading.catch((error) => log.warn({ err: error }, 'the graph could not be loaded anew'))
    }
  }

  const loaded = (): void => {
    loading = undefined
  }

  /** One step of a trial: load it, wait until the log has numbers for all that it may hold, compare at one place. */
  const compareWith = async (one: Trial, current: Store): Promise<void> => {
    const end = (error?: unknown): void => {
      if (trial === one) trial = undefined
      if (error !== undefined) one.failed(error)
    }
    try {
      const { store, log_id } = one
      if (!store || log_id === undefined) {
        if (loading || next) return
        const fill = async () => {
          one.store = await load()
          one.log_id = await lastLogId(db)
        }
        loading = fill().catch(end).finally(loaded)
        return
      }
      const last = await numberedTo(db, log_id)
      if (last === undefined) return
      await catchUp(current)
      const pub_seq = BigInt(current.watermark) > BigInt(last) ? current.watermark : last
      await catchUp(current, pub_seq)
      await catchUp(store, pub_seq)
      stopping.signal.throwIfAborted()
      if (trial !== one) return
      const found = await compareStores(current, store)
      if (found.differ > 0) log.error({ ...found, pub_seq }, 'the graph was not what the tables say')
      gauges.differ.set({ consumer: GRAPH }, found.differ)
      if (trial !== one) return
      if (one.swap) live = store
      end()
      one.done({ ...found, pub_seq })
    } catch (error) {
      if (stopping.signal.aborted) return end(error)
      // What was loaded does not follow either: it is loaded once more, until the time is over.
      delete one.store
      throw error
    }
  }

  const lag = (): number => {
    const late = performance.now() - seen_at
    return Math.round(behind_ms + (behind_ms > 0 || late > LATE_MS ? late : 0))
  }

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let pause = live ? poll_ms : 0
      try {
        await turn()
        if (failures > 0) pause = RETRY_MS
      } catch (error) {
        pause = RETRY_MS
        if (!stopping.signal.aborted) log.warn({ err: error }, 'the graph cannot follow the log now')
      }
      await delay(pause, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  return {
    enabled,
    start: (): void => {
      if (enabled) loop ??= run()
    },
    stop: async (): Promise<void> => {
      stopping.abort()
      trial?.failed(new Error('the process ends'))
      await loading?.catch(() => {})
      await loop
    },
    /** The graph, or nothing while it is being loaded or switched off. */
    store: (): Store | undefined => live,
    /** Milliseconds by which the graph is behind what is committed. */
    lag,
    isPaused: (): boolean => paused,
    /**
     * Loads the graph once more beside the one in use and compares the two at one place of the log; with `swap` it then
     * takes its place. Requests go on meanwhile. One at a time; fails when it does not come to its end in time.
     */
    compare: async (swap: boolean): Promise<Proven> => {
      const { promise, resolve, reject } = Promise.withResolvers<Proven>()
      const one: Trial = { swap, done: resolve, failed: reject }
      trial = one
      const late = () => reject(new Error(`the comparison did not end within ${compare_ms} ms`))
      const timer = setTimeout(late, compare_ms)
      try {
        return await promise
      } finally {
        clearTimeout(timer)
        if (trial === one) trial = undefined
      }
    },
    /** What `npm run bench:catalog` and the log print. */
    figures: () => ({ ...live?.figures(), loads, load_ms }),
    /** For the health check: says that the graph is not there yet. */
    check: async (): Promise<void> => {
      if (enabled && !live) throw new Error('the graph is being loaded')
    },
  }
}
export type GraphInMemory = ReturnType<typeof createGraph>

const loadArrays = (url: string, signal: AbortSignal): Promise<GraphArrays> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./loader.worker.ts', import.meta.url), { workerData: { url } })
    const abort = () => void worker.terminate()
    signal.addEventListener('abort', abort, { once: true })
    const settle = (then: () => void) => {
      signal.removeEventListener('abort', abort)
      then()
    }
    worker.once('message', (arrays: GraphArrays) => settle(() => resolve(arrays)))
    worker.once('error', (error) => settle(() => reject(error)))
    worker.once('exit', () => settle(() => reject(new Error('the loader of the graph ended'))))
  })
