import { fork } from 'node:child_process'
import { graphEventsAfter } from '../../../db/catalog/relationships/graph-events.ts'
import type { Db } from '../../../db/client.ts'
import type { Registry } from '../packs/registry.ts'
import { UnknownName } from './apply.ts'
import type { GraphArrays } from './arrays.ts'
import type { Store } from './store.ts'

/** The source that feeds a graph, in batches of this many events, until the signal aborts. */
export type Source = { db: Db; registry: Registry; batch: number; signal: AbortSignal }

/** Applies the log up to its end or to a given position. */
export const catchUp = async (source: Source, store: Store, to?: string): Promise<void> => {
  while (!source.signal.aborted && (await feed(source, store, to))) {
    // Continues while batches are full.
  }
}

/** Applies one batch of the log. Returns true if there may be more. */
const feed = async ({ db, registry, batch }: Source, store: Store, to?: string): Promise<boolean> => {
  const events = await graphEventsAfter(db, store.watermark, batch, to)
  try {
    store.apply(events, registry.types)
  } catch (error) {
    if (!(error instanceof UnknownName)) throw error
    // Another process has loaded a pack: reload the types and continue where the batch stopped.
    await registry.reload()
    const rest = events.filter(({ pub_seq }) => BigInt(pub_seq) > BigInt(store.watermark))
    store.apply(rest, registry.types)
  }
  return events.length === batch
}

/** Reads the whole graph in a process of its own: a load needs several times its memory, which is then free again. */
export const loadArrays = (url: string, signal: AbortSignal): Promise<GraphArrays> =>
  new Promise((resolve, reject) => {
    const child = fork(new URL('./loader.process.ts', import.meta.url), { execArgv: [], serialization: 'advanced' })
    const abort = () => void child.kill()
    signal.addEventListener('abort', abort, { once: true })
    const settle = (then: () => void) => {
      signal.removeEventListener('abort', abort)
      then()
    }
    child.once('message', (loaded: GraphArrays | { error: string }) =>
      settle(() => ('error' in loaded ? reject(new Error(loaded.error)) : resolve(loaded))),
    )
    child.once('error', (error) => settle(() => reject(error)))
    child.once('exit', () => settle(() => reject(new Error('the loader of the graph ended'))))
    child.send(url)
  })
