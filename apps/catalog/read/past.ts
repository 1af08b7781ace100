import { setTimeout as delay } from 'node:timers/promises'
import { healthsThen } from '../../../db/catalog/resources/health-now.ts'
import { type RevisionRow, revisionsUpTo, versionAt } from '../../../db/catalog/resources/history.ts'
import { oldestStamp } from '../../../db/catalog/resources/stamps.ts'
import type { ResourceRow } from '../../../db/catalog/rows.ts'
import type { HealthStatus, ResourceDocument, ResourceView, Scope } from '../../shared/contracts/catalog/resources.ts'
import { mergePatch } from '../../shared/data/merge-patch.ts'
import { AppError } from '../../shared/errors.ts'
import type { CatalogDeps, Uses } from '../deps.ts'
import { isTerminal } from '../document/lifecycle.ts'
import type { Types } from '../packs/registry.ts'
import { type Placed, placedThen, scopesOf } from './access.ts'
import { changeToken } from './documents.ts'

/**
 * The requested time, which must not be in the future (400) or before the retained days (410). Returns once no open
 * command can still stamp that time, so that the answer never changes; 503 `projection_lag` if that takes too long.
 */
export const pastTime = async (
  { db, clock, config }: Uses<'db' | 'clock' | 'config'>,
  at: string | undefined,
  kept_d?: number,
  name = 'at',
): Promise<string | undefined> => {
  if (at === undefined) return at
  const time = new Date(at).getTime()
  const asked = clock.now().getTime()
  if (kept_d !== undefined && time < asked - kept_d * DAY_MS) throw pruned(`The state at ${at}`)
  if (time > asked) throw inFuture(name)
  const until = performance.now() + config.stale_wait_ms
  for (;;) {
    // The clock is read before the locks: a later lock holder stamps a later time.
    const now = clock.now().getTime()
    const settled = Math.min(now - CLOCKS_DIFFER_MS, (await oldestStamp(db)) ?? Number.POSITIVE_INFINITY)
    if (time < settled) return at
    if (performance.now() >= until) throw unsettled(new Date(settled).toISOString(), at)
    await delay(SETTLE_POLL_MS)
  }
}

/** The maximum difference between the clocks of our processes. */
const CLOCKS_DIFFER_MS = 50
const SETTLE_POLL_MS = 20

const inFuture = (name: string) =>
  new AppError('validation_error', 'time_in_future', `${name} is in the future.`, {
    violations: [{ pointer: `/querystring/${name}`, code: 'time_in_future', message: 'is in the future' }],
    hint: name === 'from' ? 'Compare with a time that has passed.' : `Leave ${name} out to read the present.`,
  })

const unsettled = (observed: string, required: string) =>
  new AppError('stale_projection', 'projection_lag', 'A command that may belong to that time is still running.', {
    retryable: true,
    retry_after_ms: 1000,
    extra: { watermark: { observed, required } },
    hint: 'Send the same request again, or ask for a time before watermark.observed.',
  })

const DAY_MS = 86_400_000

const noVersion = (resource_id: string, version: string) =>
  new AppError('not_found', 'version', `${resource_id} has no version ${version}.`, {
    hint: 'GET /v1/resources/{resource_id}/versions lists them.',
  })

const pruned = (what: string) => new AppError('not_found', 'history_pruned', `${what} is past its retention period.`)

/** 404 for a time before the resource existed. */
export const refuseBefore = ({ resource_id, created_at }: ResourceRow, at: string | undefined): void => {
  if (at !== undefined && new Date(at) < new Date(created_at)) throw noVersion(resource_id, `at ${at}`)
}

/** A resource as it was at a given time; 404 before it existed, 410 if that time is no longer retained. */
export const readAt = async (deps: CatalogDeps, row: ResourceRow, time: string): Promise<ResourceView> => {
  refuseBefore(row, time)
  const at = (await pastTime(deps, time, deps.config.history_d)) as string
  const version = await versionAt(deps.db, row.rid, at)
  if (version !== undefined) return readVersion(deps, row, version, at)
  throw pruned(`The state of ${row.resource_id} at ${at}`)
}

/**
 * One resource at a version, made from the nearest snapshot and the patches after it. Its place is that of then, or of
 * the oldest retained day: earlier places are not kept.
 */
export const readVersion = async (
  deps: CatalogDeps,
  row: ResourceRow,
  version: number,
  at?: string,
): Promise<ResourceView> => {
  const { types } = deps.registry
  if (version > row.version || version < 1) throw noVersion(row.resource_id, String(version))
  const revisions = await revisionsUpTo(deps.db, row.rid, version)
  const last = revisions.at(-1)
  if (last?.version !== version) throw pruned(`Version ${version} of ${row.resource_id}`)
  const kept_from = deps.clock.now().getTime() - deps.config.history_d * DAY_MS
  const time = at ?? (Date.parse(last.at) < kept_from ? new Date(kept_from).toISOString() : last.at)
  const placed = await placedThen(deps.db, types, [row], time)
  const document = documentThen(revisions)
  const { lifecycle_status } = document
  const health = (await healthsThen(deps.db, [{ rid: row.rid, lifecycle_status }], time)).get(row.rid)
  return viewThen(document, (await scopesOf(deps.db, types, placed))(placed[0] as Placed), health)
}

/** Builds a document from its nearest snapshot and the patches after it. */
export const documentThen = (revisions: readonly RevisionRow[]): ResourceDocument =>
  revisions.reduce<unknown>(
    (before, { kind, doc }) => (kind === 'snapshot' ? doc : mergePatch(before, doc)),
    {},
  ) as ResourceDocument

type Then = Pick<ResourceDocument, 'type_version' | 'lifecycle_status'>

/** Whether a resource had ended; a document of an older type version may have a state that only the newest defines. */
export const hasEnded = (types: Types, type_id: number, { type_version, lifecycle_status }: Then): boolean => {
  const own = types.version(type_id, type_version)
  const type = own?.lifecycle.states.includes(lifecycle_status) ? own : types.byId(type_id)
  return type !== undefined && isTerminal(type.lifecycle, lifecycle_status)
}

/** A past view of a resource, without the counter of its health and its conditions, which are not kept over time. */
export const viewThen = (
  document: ResourceDocument,
  scope: Scope,
  health_status: HealthStatus = 'unknown',
): ResourceView => ({
  ...document,
  owner: document.owner ?? null,
  parent_id: document.parent_id ?? null,
  last_operation: document.last_operation ?? null,
  scope,
  health_status,
  health_revision: 0,
  conditions: [],
  change_token: changeToken(document.resource_id, document.version),
  historical: true,
})
