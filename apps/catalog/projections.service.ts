import { lastPubSeq } from '../../db/catalog/lists.ts'
import { countHeld } from '../../db/catalog/operations.ts'
import type { Projections } from '../shared/contracts/catalog/projections.ts'
import type { CatalogDeps } from './deps.ts'
import { CONSUMER } from './operations.consumer.ts'

/** What this process keeps beside the truth and how far it is: the graph in memory, and the index of operations. */
export const readProjections = async ({ db, graph }: CatalogDeps): Promise<Projections> => {
  // The head is read first: nothing is said to be behind an event that came later.
  const last_pub_seq = await lastPubSeq(db)
  const store = graph.store()
  const index = await countHeld(db, CONSUMER)
  const { nodes = 0, edges = 0, bytes = 0, changed = 0, loads, load_ms } = graph.figures()
  return {
    items: [
      {
        name: 'graph',
        state: store ? 'live' : graph.enabled ? 'loading' : 'off',
        pub_seq: store?.watermark ?? null,
        lag_ms: store ? graph.lag() : null,
        figures: { nodes, edges, bytes, changed, loads, load_ms: Math.round(load_ms) },
      },
      {
        name: 'operations_index',
        state: index.held > 0 ? 'held' : 'live',
        pub_seq: null,
        lag_ms: null,
        figures: index,
      },
    ],
    last_pub_seq,
  }
}
