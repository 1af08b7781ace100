import { lastLogId, numberedTo, readRun } from '../../../db/catalog/relationships/graph-events.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import { type Compared, compareStores } from './compare.ts'
import { catchUp, loadArrays, type Source } from './feed.ts'
import { createStore, type Store } from './store.ts'

/** Failed turns on one event after which the graph is rebuilt: the tables hold the event's data. */
const MAX_FAILURES = 3

/** The result of a comparison, and the position in the log at which it ran. */
export type Proven = Compared & { pub_seq: string }

/** A graph, and the run of the database in which its load began. */
type Loaded = Store & { readonly run: string | undefined }

/** A newly loaded graph for comparison with the current one. */
export type Trial = {
  /** Replaces the current graph afterwards. */
  swap: boolean
  done: (found: Proven) => void
  failed: (error: unknown) => void
  store?: Loaded
  /** The last log row that it may already contain. */
  log_id?: string
}

/** The current graph, and the graphs loaded or compared beside it. */
export type Growth = {
  readonly source: Source
  readonly url: string
  readonly log: Telemetry['log']
  /** Receives the number of nodes that differed in a comparison. */
  readonly differed: (count: number) => void
  /** Changes in the overlay at which the arrays are rebuilt. */
  readonly compact_at: number
  live?: Loaded | undefined
  next?: Loaded | undefined
  /** The run of the database, as last read. */
  run?: string | undefined
  loading?: Promise<void> | undefined
  trial?: Trial | undefined
  /** Consecutive turns in which the current graph could not apply the next event. */
  failures: number
  loads: number
  load_ms: number
  /** The part of `load_ms` spent counting below each place. */
  count_ms: number
}

const load = async (growth: Growth): Promise<Loaded> => {
  const { source, url } = growth
  const started = performance.now()
  const run = await readRun(source.db)
  const store = Object.assign(createStore(await loadArrays(url, source.signal)), { run })
  const loaded = performance.now()
  await store.countPlaces(source.registry.types)
  growth.count_ms = performance.now() - loaded
  growth.load_ms = performance.now() - started
  growth.loads += 1
  return store
}

/** Advances the loads and comparisons beside the current graph by one step. True if another graph is now current. */
export const grow = async (growth: Growth): Promise<boolean> => {
  const { compact_at, log } = growth
  const before = growth.live
  if (growth.next) await swapIn(growth, growth.next)
  const { live, trial } = growth
  if (trial?.store && trial.store.run !== growth.run) delete trial.store
  // It may hold what the database has lost, at a position that the log has not reached again.
  const astray = live !== undefined && live.run !== growth.run
  // While the current graph does not follow the log, there is no position to compare at: it is rebuilt first.
  if (trial && live && !astray && growth.failures === 0) await compareWith(growth, trial, live)
  const spent =
    astray || growth.failures >= MAX_FAILURES || (!growth.trial && live && live.figures().changed > compact_at)
  if (!growth.loading && !growth.next && (!live || spent)) {
    const fill = async () => {
      growth.next = await load(growth)
    }
    const loading = fill().finally(() => loaded(growth))
    growth.loading = loading
    if (!live) await loading
    else loading.catch((error) => log.warn({ err: error }, 'the graph could not be reloaded'))
  }
  return growth.live !== before
}

const loaded = (growth: Growth): void => {
  growth.loading = undefined
}

/** The loaded graph replaces the current one as soon as it has caught up. */
const swapIn = async (growth: Growth, fresh: Loaded): Promise<void> => {
  growth.next = undefined
  growth.run ??= fresh.run
  if (fresh.run !== growth.run) return
  await catchUp(growth.source, fresh)
  if (growth.live && growth.live.run === fresh.run && BigInt(fresh.watermark) < BigInt(growth.live.watermark)) {
    growth.next = fresh
    return
  }
  growth.live = fresh
  growth.failures = 0
  const times = { load_ms: Math.round(growth.load_ms), count_ms: Math.round(growth.count_ms) }
  growth.log.info({ ...fresh.figures(), ...times }, 'the graph is in memory')
}

/** One step of a trial: load it, wait until all log rows that it may contain have numbers, compare at one position. */
const compareWith = async (growth: Growth, one: Trial, current: Store): Promise<void> => {
  const { source } = growth
  const end = (error?: unknown): void => {
    if (growth.trial === one) growth.trial = undefined
    if (error !== undefined) one.failed(error)
  }
  try {
    const { store, log_id } = one
    if (!store || log_id === undefined) {
      if (!growth.loading && !growth.next) growth.loading = prepare(growth, one, end)
      return
    }
    const last = await numberedTo(source.db, log_id)
    if (last === undefined) return
    const pub_seq = await meet(source, current, store, last)
    if (growth.trial !== one) return
    const found = await compareStores(current, store)
    if (found.differ > 0) growth.log.error({ ...found, pub_seq }, 'the graph did not match the tables')
    growth.differed(found.differ)
    if (growth.trial !== one) return
    if (one.swap) growth.live = store
    end()
    one.done({ ...found, pub_seq })
  } catch (error) {
    if (source.signal.aborted) return end(error)
    // The loaded graph does not follow either: it is loaded again until the time limit.
    delete one.store
    throw error
  }
}

const prepare = (growth: Growth, one: Trial, end: (error: unknown) => void): Promise<void> => {
  const fill = async () => {
    one.store = await load(growth)
    one.log_id = await lastLogId(growth.source.db)
  }
  return fill()
    .catch(end)
    .finally(() => loaded(growth))
}

/** Brings two graphs to one position of the log, at or after the given one. */
const meet = async (source: Source, current: Store, other: Store, last: string): Promise<string> => {
  await catchUp(source, current)
  const pub_seq = BigInt(current.watermark) > BigInt(last) ? current.watermark : last
  await catchUp(source, current, pub_seq)
  await catchUp(source, other, pub_seq)
  source.signal.throwIfAborted()
  return pub_seq
}
