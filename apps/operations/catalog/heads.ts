import type { Queryable } from '../../../db/client.ts'
import { loadVersions } from '../../../db/operations/plans/planning.ts'
import { AppError, type ErrorOptions } from '../../shared/errors.ts'
import { type CatalogClient, CatalogUnavailable, type ResourceVersion } from './client.ts'
import { refuseHeld } from './consumer.ts'
import type { CatalogProjection } from './projection.ts'

const WAIT_MS = 2000
/** How old an answer of the catalog may be when it is used; this includes the wait for locks. */
const ANSWER_MS = 5000

type HeadsDeps = { db: Queryable; projection: CatalogProjection; trust: { catalog: CatalogClient } }

/**
 * Makes sure that the projection of these resources matches the catalog now: asks it for their versions in one round
 * trip, and fetches what is missing. Refuses with 503 if the catalog does not answer. It also names the resources that
 * cannot be updated in time: no node starts on stale state.
 */
const requireHeads = async ({ db, projection, trust }: HeadsDeps, resource_ids: readonly string[]): Promise<void> => {
  if (resource_ids.length === 0) return
  const end = Date.now() + WAIT_MS
  // Read first: a version here that is newer than the later answer never existed in that catalog.
  const known = await loadVersions(db, resource_ids)
  const heads = await trust.catalog.versions(resource_ids).catch(unanswered)
  const ahead = heads.find(({ resource_id, version }) => (known.get(resource_id) ?? 0) > version)
  if (ahead) throw foreign(ahead, known.get(ahead.resource_id) ?? 0)
  let behind = behindOf(heads, known)
  if (behind.length > 0) await projection.catchUp().catch(unlessAway)
  while (behind.length > 0) {
    const now = await loadVersions(db, resource_ids)
    behind = behindOf(behind, now)
    const [first] = behind
    if (!first) return
    await refuseHeld(db, resource_ids)
    if (Date.now() > end) throw late(first, now.get(first.resource_id) ?? 0)
    // Events without a number in the log yet are found through the resource itself.
    for (const { resource_id } of behind) await projection.followOne('resource', resource_id).catch(unlessAway)
  }
}

const behindOf = (heads: readonly ResourceVersion[], known: ReadonlyMap<string, number>): ResourceVersion[] =>
  heads.filter(({ resource_id, version }) => (known.get(resource_id) ?? 0) < version)

const unlessAway = (error: unknown): void => {
  if (!(error instanceof CatalogUnavailable)) throw error
}

const HINT = 'Send the same request again in a moment. Pause and cancel work without the catalog.'

export const unanswered = (error: unknown): never => {
  if (!(error instanceof CatalogUnavailable)) throw error
  throw lagging('The catalog does not answer, so the state of the targets is unknown.', { cause: error })
}

const lagging = (detail: string, more: ErrorOptions = {}) =>
  new AppError('stale_catalog_projection', 'projection_lag', detail, {
    retryable: true,
    retry_after_ms: 1000,
    hint: HINT,
    ...more,
  })

const watermarkOf = ({ resource_id, version }: ResourceVersion, known: number) => ({
  resource_id,
  watermark: { observed: String(known), required: String(version) },
})

const late = (head: ResourceVersion, known: number) =>
  lagging(`"${head.resource_id}" is at version ${head.version} in the catalog; version ${known} is known here.`, {
    extra: watermarkOf(head, known),
  })

/** The catalog was restored to an earlier time, or is a different one. */
const foreign = (head: ResourceVersion, known: number) =>
  new AppError(
    'stale_catalog_projection',
    'projection_gap',
    `"${head.resource_id}" is at version ${head.version} in the catalog, but version ${known} was seen here.`,
    {
      hint: 'The catalog was restored: an administrator of this installation must accept that first.',
      extra: watermarkOf(head, known),
    },
  )

/**
 * The heads of a command's targets. They are requested before its transaction, so that no lock waits for the catalog.
 * They are refused inside it, after not found, policy and state. An answer that has become too old counts as none.
 */
export const askHeads = (deps: HeadsDeps, targets: () => Promise<readonly string[]>) => {
  let refusal: { error: unknown } | undefined
  let asked = performance.now()
  return {
    ahead: async (): Promise<void> => {
      asked = performance.now()
      try {
        await requireHeads(deps, await targets())
      } catch (error) {
        refusal = { error }
      }
    },
    require: (): void => {
      if (refusal) throw refusal.error
      if (performance.now() - asked > ANSWER_MS)
        throw lagging(`More than ${ANSWER_MS / 1000} s have passed since the catalog was asked about the targets.`)
    },
  }
}
