import type { SnapshotItem } from '../../../db/operations/projection/snapshot.ts'
import type { Affected } from '../../shared/contracts/catalog/affected.ts'
import type { CatalogEvent } from '../../shared/contracts/catalog/events.ts'
import type { HealthCompared, HealthCompareQuery } from '../../shared/contracts/catalog/health.ts'
import type { ResourceDocument } from '../../shared/contracts/catalog/resources.ts'
import type { RelationshipType, ResourceType } from '../../shared/contracts/catalog/types.ts'
import { Away } from '../../shared/process/outage.ts'
import { audienceOf } from '../../shared/service/scopes.ts'
import type { ServiceSigner } from '../../shared/service/tokens.ts'

const TIMEOUT_MS = 2000
const COMPARE_MS = 1000
const PAGE = 500

export type EventsPage = { items: CatalogEvent[]; last_pub_seq: string }
export type ResourceVersion = { resource_id: string; version: number }
type TypesPage = { items: ResourceType[]; next_page_token?: string | null }
export type SnapshotPage = { items: SnapshotItem[]; next: string | null; watermark: string }

/** The catalog did not answer, or not as agreed. */
export class CatalogUnavailable extends Away {
  constructor(path: string, cause: unknown) {
    super(`the catalog gave no valid answer for ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
    this.name = 'CatalogUnavailable'
  }
}

/** Reads from the catalog's internal API that feed the projection: missed events, the first fill, types. */
export const createCatalogClient = (base_url: string, signer: ServiceSigner) => {
  const call = async <T>(path: string, body?: unknown, timeout_ms = TIMEOUT_MS): Promise<T> => {
    try {
      const response = await fetch(new URL(path, base_url), {
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
        headers: {
          authorization: `Bearer ${signer(audienceOf('catalog'))}`,
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        signal: AbortSignal.timeout(timeout_ms),
        redirect: 'error',
      })
      if (!response.ok) throw new Error(`status ${response.status}`)
      return (await response.json()) as T
    } catch (error) {
      throw new CatalogUnavailable(path, error)
    }
  }
  /** Every page: an installation may limit pages to fewer than were asked for. */
  const resourceTypes = async (): Promise<ResourceType[]> => {
    const types: ResourceType[] = []
    for (let token: string | null | undefined = ''; token != null; ) {
      const after = token && `&page_token=${encodeURIComponent(token)}`
      const page: TypesPage = await call(`/internal/v1/resource-types?page_size=${PAGE}${after}`)
      types.push(...page.items)
      token = page.next_page_token
    }
    return types
  }
  return {
    eventsAfter: (pub_seq: string, limit = PAGE) =>
      call<EventsPage>(`/internal/v1/events?after=${pub_seq}&limit=${limit}`),
    eventsOf: (agg_type: string, agg_id: string, after_version: number) =>
      call<EventsPage>(
        `/internal/v1/events?agg_type=${encodeURIComponent(agg_type)}&agg_id=${encodeURIComponent(agg_id)}&after_version=${after_version}&limit=${PAGE}`,
      ),
    snapshot: (after: string | null) =>
      call<SnapshotPage>(
        `/internal/v1/snapshot?limit=${PAGE}${after === null ? '' : `&after=${encodeURIComponent(after)}`}`,
      ),
    /** The catalog's own current versions of at most 5,000 resources. */
    versions: async (resource_ids: readonly string[]) =>
      (await call<{ items: ResourceVersion[] }>('/internal/v1/resources:versions', { resource_ids })).items,
    /** Everything that depends on these resources together; null if the catalog keeps no graph. */
    affected: async (resource_ids: readonly string[]) =>
      (await call<{ affected: Affected | null }>('/internal/v1/resources:affected', { resource_ids })).affected,
    /** The metrics of targets that were changed, against the rest and themselves before; in 1 s, as a person waits. */
    compareHealth: async (asked: HealthCompareQuery) =>
      (await call<HealthCompared>('/internal/v1/health:compare', asked, COMPARE_MS)).metrics,
    /** A document that was too large for its event. */
    document: (href: string) => call<ResourceDocument>(href.replace(/^\/v1\//, '/internal/v1/')),
    types: async () => ({
      types: await resourceTypes(),
      relationship_types: (await call<{ items: RelationshipType[] }>('/internal/v1/relationship-types')).items,
    }),
  }
}
export type CatalogClient = ReturnType<typeof createCatalogClient>
