import { expect } from 'vitest'
import type { CatalogConfig } from '../../../apps/catalog/config.ts'
import type { CatalogDeps } from '../../../apps/catalog/deps.ts'
import { emptyArrays, loadGraph } from '../../../apps/catalog/graph/load.ts'
import { createStore, type Store } from '../../../apps/catalog/graph/store.ts'
import type { CatalogEvent } from '../../../apps/shared/contracts/catalog/events.ts'
import { graphEventsAfter } from '../../../db/catalog/relationships/graph-events.ts'

/** The parts of a running catalog that the proof reads. */
type Catalog = {
  deps: CatalogDeps
  config: CatalogConfig
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any route
  internally: (method: string, path: string) => Promise<{ body: any }>
  rows: <T>(text: string) => Promise<T[]>
  sequence: () => Promise<number>
  followed: () => Promise<void>
}

/**
 * The state that every test file leaves behind is also a proof: the log alone gives the truth's documents, open
 * relationships and healths. The graph folded from the first event equals the graph loaded from the tables, with the
 * counts of each place (catalog.md 16.12).
 */
export const provesRebuild = async (c: Catalog): Promise<void> => {
  while (await c.sequence());
  await c.deps.registry.reload()
  expect(await foldedDocuments(c)).toEqual(await snapshotDocuments(c))
  const { types } = c.deps.registry
  const folded = createStore(emptyArrays('0', 1))
  await folded.countPlaces(types)
  for (;;) {
    const events = await graphEventsAfter(c.deps.db, folded.watermark, 500)
    if (events.length === 0) break
    folded.apply(events, types)
  }
  const loaded = createStore(await loadGraph(c.config.CATALOG__DATABASE__URL))
  await loaded.countPlaces(types)
  expect(folded.watermark).toBe(loaded.watermark)
  const rids = (await c.rows<{ rid: string }>('select rid from catalog.resource order by rid')).map(({ rid }) =>
    Number(rid),
  )
  expect(picture(folded, rids)).toEqual(picture(loaded, rids))
  const live = c.deps.graph.store()
  if (!live) return
  await c.followed()
  expect(picture(live, rids)).toEqual(picture(loaded, rids))
}

const picture = (store: Store, rids: readonly number[]) =>
  rids.map((rid) => {
    const arcs: string[] = []
    store.eachArc(rid, (type, out, peer, no) => void arcs.push(`${type} ${out ? 'to' : 'from'} ${peer} #${no}`))
    const below: string[] = []
    store.eachCount(rid, (...counted) => void below.push(counted.join(' ')))
    const facts = [store.idOf(rid), store.nameOf(rid), store.typeOf(rid), store.parentOf(rid), store.versionOf(rid)]
    return [...facts, store.isOpen(rid), store.lifecycleOf(rid), store.healthOf(rid), arcs.sort(), below.sort()]
  })

type Document = { parent_id: string | null }
type Edge = { relationship_id: string; type_key: string; from_id: string; to_id: string }
type Facts = { documents: Map<string, Document | 'large'>; edges: Map<string, unknown>; healths: Map<string, unknown> }

const foldedDocuments = async (c: Catalog): Promise<Facts> => {
  const facts: Facts = { documents: new Map(), edges: new Map(), healths: new Map() }
  for (let after = '0'; ; ) {
    const { items } = (await c.internally('GET', `/events?after=${after}&limit=500`)).body as { items: CatalogEvent[] }
    for (const event of items) fold(facts, event)
    const last = items.at(-1)?.pub_seq
    if (!last) return facts
    after = last
  }
}

const fold = ({ documents, edges, healths }: Facts, event: CatalogEvent): void => {
  if (event.agg_type === 'health') healths.set(event.agg_id, (event as unknown as { status: string }).status)
  const part = event.agg_type === 'relationships'
  if (event.agg_type !== 'resource' && !part) return
  const { document, relationship_changes, of } = event as unknown as {
    document?: Document
    of?: string
    relationship_changes: (Edge & { op: string })[]
  }
  const type = part ? of : event.type
  // Too large for an event: consumers fetch the document, so it cannot be compared here.
  if (!part) documents.set(event.agg_id, document ?? 'large')
  if (event.type === 'resource.created') healths.set(event.agg_id, 'unknown')
  for (const { op, ...edge } of relationship_changes) {
    if (op === 'removed') edges.delete(edge.relationship_id)
    else edges.set(edge.relationship_id, edge)
    // Either end may report containment, and a resource that has ended keeps its last place.
    const child = edge.type_key === 'contained_in' && documents.get(edge.from_id)
    if (!child || child === 'large') continue
    if (op === 'added') documents.set(edge.from_id, { ...child, parent_id: edge.to_id })
    else if (op === 'removed' && type !== 'resource.retired' && child.parent_id === edge.to_id)
      documents.set(edge.from_id, { ...child, parent_id: null })
  }
}

type Item = {
  document: Document & { resource_id: string; health_status: string; health_revision: number }
  relationships_out: { relationship_id: string }[]
}

const snapshotDocuments = async (c: Catalog): Promise<Facts> => {
  const facts: Facts = { documents: new Map(), edges: new Map(), healths: new Map() }
  for (let after: string | null = ''; after !== null; ) {
    const page: { items: Item[]; next: string | null } = (
      await c.internally('GET', `/snapshot?limit=500${after ? `&after=${after}` : ''}`)
    ).body
    for (const { document, relationships_out } of page.items) {
      const { health_status, health_revision: _, ...facts_of_it } = document
      facts.documents.set(document.resource_id, facts_of_it)
      facts.healths.set(document.resource_id, health_status)
      for (const edge of relationships_out) facts.edges.set(edge.relationship_id, edge)
    }
    after = page.next
  }
  const last = await c.rows<{ id: string; whole: boolean }>(
    `select distinct on (agg_id) agg_id as id, payload ? 'document' as whole from catalog.outbox
     where agg_type = 'resource' order by agg_id, agg_version desc`,
  )
  for (const { id, whole } of last) if (!whole) facts.documents.set(id, 'large')
  return facts
}
