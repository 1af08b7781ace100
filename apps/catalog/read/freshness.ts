import { setTimeout as delay } from 'node:timers/promises'
import { getResource } from '../../../db/catalog/resources/rows.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { type Access, visibleOf } from './access.ts'
import { changeOf } from './documents.ts'
import { tooExpensive } from './expensive.ts'

const POLL_MS = 50
const GRAPH_POLL_MS = 10

/** How fresh an answer must be: it includes this write, or is no older than this. */
export type Freshness = { min_change?: string; max_lag_ms?: number }

const tokenInvalid = () =>
  new AppError(
    'validation_error',
    'change_token_invalid',
    'min_change is not a change_token of a resource that you may see.',
    {
      violations: [
        { pointer: '/querystring/min_change', code: 'change_token_invalid', message: 'names no known write' },
      ],
      hint: 'Send the change_token of a reply of this catalog.',
    },
  )

/**
 * Waits at most STALE__WAIT_MS until the truth contains the write named by min_change (a replica or a later read would
 * be behind), else 503 `projection_lag`. Answers from truth have no lag, so max_lag_ms always holds for them.
 */
export const awaitChange = async (
  deps: CatalogDeps,
  { min_change }: Freshness,
  reader: { name: string; access: Access },
): Promise<void> => {
  if (min_change === undefined) return
  const wanted = changeOf(min_change)
  if (!wanted) throw tokenInvalid()
  const until = Date.now() + deps.config.stale_wait_ms
  for (;;) {
    const row = await getResource(deps.db, wanted.resource_id)
    const seen = row && (await visibleOf(deps.db, deps.registry.types, reader.access, [row])).has(row.rid)
    // A hidden resource answers like one that never existed.
    if (!row || !seen) throw tokenInvalid()
    if (row.version >= wanted.version) return
    if (Date.now() >= until) throw behind(row.version, wanted.version)
    await delay(POLL_MS)
  }
}

/** Waits (bounded) until the graph has a resource's version and meets the maximum lag; else 503 `projection_lag`. */
export const awaitGraph = async (
  { graph, config }: CatalogDeps,
  { change, max_lag_ms = Number.POSITIVE_INFINITY }: { change?: ReturnType<typeof changeOf>; max_lag_ms?: number },
): Promise<void> => {
  const until = performance.now() + config.stale_wait_ms
  for (;;) {
    const store = graph.store()
    const rid = change && store?.ridOf(change.resource_id)
    const version = rid === undefined ? 0 : (store?.versionOf(rid) ?? 0)
    if (store && version >= (change?.version ?? 0) && graph.lag() <= max_lag_ms) return
    if (performance.now() >= until) throw behind(version, change?.version ?? 0)
    await delay(GRAPH_POLL_MS)
  }
}

/** The freshness that an answer from memory must reach in time, else 503 `projection_lag`. Truth is never stale. */
export const requireFresh = async (
  deps: CatalogDeps,
  { min_change, max_lag_ms }: Freshness,
  reader: { name: string; access: Access },
  from_memory = deps.graph.store() !== undefined,
): Promise<void> => {
  if (min_change !== undefined) await awaitChange(deps, { min_change }, reader)
  if (!from_memory || (min_change === undefined && max_lag_ms === undefined)) return
  const change = min_change === undefined ? undefined : changeOf(min_change)
  await awaitGraph(deps, { ...(change && { change }), ...(max_lag_ms !== undefined && { max_lag_ms }) })
}

/** Refuses a query that only the graph in memory can answer: 503 while it is loading, 422 if it is switched off. */
export const graphMissing = ({ graph, config }: Uses<'graph' | 'config'>, what: string, instead: string): AppError =>
  graph.enabled
    ? new AppError('stale_projection', 'graph_warming', `${what} is read from the graph in memory, which is loading.`, {
        retryable: true,
        retry_after_ms: config.stale_wait_ms,
        hint: `Send the same request again in a few seconds. ${instead}`,
      })
    : tooExpensive(`${what} needs the graph in memory, which this deployment has switched off.`, instead)

const behind = (observed: number, required: number) =>
  new AppError('stale_projection', 'projection_lag', 'The catalog does not include that write yet.', {
    retryable: true,
    retry_after_ms: 1000,
    extra: { watermark: { observed: String(observed), required: String(required) } },
    hint: 'Send the same request again.',
  })
