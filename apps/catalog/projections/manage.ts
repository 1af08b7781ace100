import { countHeld } from '../../../db/catalog/operations.ts'
import { isPaused, setPaused } from '../../../db/catalog/projections.ts'
import { lastPubSeq } from '../../../db/catalog/resources/lists.ts'
import type { Tx } from '../../../db/client.ts'
import type { Projection, Projections } from '../../shared/contracts/catalog/projections.ts'
import { AppError, unavailable } from '../../shared/errors.ts'
import { recordAudit } from '../command/outbox.ts'
import type { CatalogDeps } from '../deps.ts'
import { compareIndex } from '../operations/compare.ts'
import { indexMark } from '../operations/consumer.ts'
import { CONSUMER, OPERATIONS_INDEX } from '../operations/follow.ts'
import type { Kind, Name } from './proofs.ts'

/** The projections of this process and their progress: the graph in memory, and the index of operations. */
export const readProjections = async (deps: CatalogDeps): Promise<Projections> => {
  // The head is read first, so that no projection appears to lag behind a later event.
  const last_pub_seq = await lastPubSeq(deps.db)
  return { items: [graphOf(deps), await indexOf(deps)], last_pub_seq }
}

const graphOf = ({ graph, proofs }: CatalogDeps): Projection => {
  const store = graph.store()
  const { nodes = 0, edges = 0, bytes = 0, changed = 0, loads, load_ms } = graph.figures()
  const running = store && (graph.isPaused() ? 'paused' : 'live')
  return {
    name: 'graph',
    state: running ?? (graph.enabled ? 'loading' : 'off'),
    pub_seq: store?.watermark ?? null,
    lag_ms: store ? graph.lag() : null,
    figures: { nodes, edges, bytes, changed, loads, load_ms: Math.round(load_ms) },
    running: proofs.running('graph'),
    proof: proofs.last('graph'),
  }
}

const indexOf = async (deps: CatalogDeps): Promise<Projection> => {
  const { db, proofs, config } = deps
  const figures = await countHeld(db, CONSUMER)
  const waits = (await isPaused(db, OPERATIONS_INDEX)) ? 'paused' : !config.projector_enabled ? 'off' : undefined
  return {
    name: OPERATIONS_INDEX,
    state: waits ?? (figures.held > 0 ? 'held' : 'live'),
    ...(await indexMark(deps)),
    figures,
    running: proofs.running(OPERATIONS_INDEX),
    proof: proofs.last(OPERATIONS_INDEX),
  }
}

/** Who acts on a read model, for the audit log. */
export type Keeper = { actor: string; action: string; request_id: string }

const audited = (deps: CatalogDeps, name: Name, keeper: Keeper, write = async (_tx: Tx, _at: string) => {}) =>
  deps.db.transaction(async (tx) => {
    const at = deps.clock.now().toISOString()
    await write(tx, at)
    const cause = { ...keeper, roles: [], at, reason: null, command_id: null }
    await recordAudit(tx, deps, cause, { object: `projection:${name}`, outcome: 'applied' })
  })

/** Pauses or resumes feeding a read model in every process of this app; events meanwhile wait in its log. */
export const pauseProjection = async (deps: CatalogDeps, name: Name, paused: boolean, keeper: Keeper) => {
  await audited(deps, name, keeper, (tx, at) => setPaused(tx, name, paused, at))
  return { name, state: paused ? ('paused' as const) : ('live' as const) }
}

/**
 * Rebuilds a read model of this process beside the current one and compares the two at one position of the log. A
 * rebuild replaces the current one. Reads continue; `readProjections` reports the result.
 */
export const proveProjection = async (deps: CatalogDeps, name: Name, kind: Kind, keeper: Keeper) => {
  if (await isPaused(deps.db, name)) {
    throw new AppError('validation_error', 'lifecycle_transition', `${name} is paused.`, {
      extra: { allowed: ['resume'] },
      hint: 'Resume it first: verification compares at the end of the log.',
    })
  }
  if (name === 'graph' && !deps.graph.store()) throw unavailable('This process has no graph in memory.')
  const swap = kind === 'rebuild'
  deps.proofs.start(name, kind, async () =>
    name === 'graph' ? deps.graph.compare(swap) : { ...(await compareIndex(deps, swap)), pub_seq: null },
  )
  await audited(deps, name, keeper)
  return { name, running: kind }
}
