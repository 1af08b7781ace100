import { lastLogId, numberedTo } from '../../../db/catalog/relationships/graph-events.ts'
import type { Telemetry } from '../../shared/telemetry.ts'
import { type Compared, compareStores } from './compare.ts'
import { catchUp, loadArrays, type Source } from './feed.ts'
import { createStore, type Store } from './store.ts'

/** Turns in which one event could not be applied, after which the graph is made anew: the tables hold what it told. */
const MAX_FAILURES = 3

/** What a comparison found, and at which place of the log. */
export type Proven = Compared & { pub_seq: string }

/** A graph that was loaded anew to be compared with the one in use. */
export type Trial = {
  /** Takes the place of the one in use afterwards. */
  swap: boolean
  done: (found: Proven) => void
  failed: (error: unknown) => void
  store?: Store
  /** The last row of the log that it may hold already. */
  log_id?: string
}

/** The graph in use, and what is loaded or compared beside it. */
export type Growth = {
  readonly source: Source
  readonly url: string
  readonly log: Telemetry['log']
  /** Is told how many nodes differed in a comparison. */
  readonly differed: (count: number) => void
  /** Changes in the overlay at which the arrays are made anew. */
  readonly compact_at: number
  live?: Store | undefined
  next?: Store | undefined
  loading?: Promise<void> | undefined
  trial?: Trial | undefined
  /** Turns in a row in which the graph in use could not take the next event. */
  failures: number
  loads: number
  load_ms: number
  /** Of it, what counting below each place took. */
  count_ms: number
}

const load = async (growth: Growth): Promise<Store> => {
  const { source, url } = growth
  const started = performance.now()
  const store = createStore(await loadArrays(url, source.signal))
  const loaded = performance.now()
  await store.countPlaces(source.registry.types)
  growth.count_ms = performance.now() - loaded
  growth.load_ms = performance.now() - started
  growth.loads += 1
  return store
}

/** Takes whatever is loaded or compared beside the graph in use one step further. True: another is in use now. */
export const grow = async (growth: Growth): Promise<boolean> => {
  const { compact_at, log } = growth
  const before = growth.live
  if (growth.next) await swapIn(growth, growth.next)
  const { live, trial } = growth
  // While the graph in use does not follow there is no place to compare at: it is made anew first.
  if (trial && live && growth.failures === 0) await compareWith(growth, trial, live)
  const spent = growth.failures >= MAX_FAILURES || (!growth.trial && live && live.figures().changed > compact_at)
  if (!growth.loading && !growth.next && (!live || spent)) {
    const fill = async () => {
      growth.next = await load(growth)
    }
    const loading = fill().finally(() => loaded(growth))
    growth.loading = loading
    if (!live) await loading
    else loading.catch((error) => log.warn({ err: error }, 'the graph could not be loaded anew'))
  }
  return growth.live !== before
}

const loaded = (growth: Growth): void => {
  growth.loading = undefined
}

/** The graph that was loaded takes the place of the one in use as soon as it has come as far. */
const swapIn = async (growth: Growth, fresh: Store): Promise<void> => {
  growth.next = undefined
  await catchUp(growth.source, fresh)
  if (growth.live && BigInt(fresh.watermark) < BigInt(growth.live.watermark)) {
    growth.next = fresh
    return
  }
  growth.live = fresh
  growth.failures = 0
  const times = { load_ms: Math.round(growth.load_ms), count_ms: Math.round(growth.count_ms) }
  growth.log.info({ ...fresh.figures(), ...times }, 'the graph is in memory')
}

/** One step of a trial: load it, wait until the log has numbers for all that it may hold, compare at one place. */
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
    if (found.differ > 0) growth.log.error({ ...found, pub_seq }, 'the graph was not what the tables say')
    growth.differed(found.differ)
    if (growth.trial !== one) return
    if (one.swap) growth.live = store
    end()
    one.done({ ...found, pub_seq })
  } catch (error) {
    if (source.signal.aborted) return end(error)
    // What was loaded does not follow either: it is loaded once more, until the time is over.
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

/** Brings two graphs to one place of the log, at the given one or later. */
const meet = async (source: Source, current: Store, other: Store, last: string): Promise<string> => {
  await catchUp(source, current)
  const pub_seq = BigInt(current.watermark) > BigInt(last) ? current.watermark : last
  await catchUp(source, current, pub_seq)
  await catchUp(source, other, pub_seq)
  source.signal.throwIfAborted()
  return pub_seq
}
