import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { CatalogEvent, RelationshipEvent } from '../../../apps/shared/contracts/catalog/events.ts'
import type { ResourceDocument } from '../../../apps/shared/contracts/catalog/resources.ts'
import { uuidv7 } from '../../../apps/shared/ids.ts'
import type { SnapshotItem } from '../../../db/operations/projection/snapshot.ts'
import { types } from './planner.ts'

type Patch = Partial<ResourceDocument>
type Edge = Pick<RelationshipEvent, 'type_key' | 'from_id' | 'to_id'>

const AT = '2026-01-01T00:00:00.000000Z'
const blank = (resource_id: string): ResourceDocument => ({
  resource_id,
  type_key: 'fleet.host',
  type_version: 1,
  name: resource_id,
  display_name: resource_id,
  owner: null,
  labels: {},
  annotations: {},
  parent_id: null,
  lifecycle_status: 'active',
  desired_state: { hostname: resource_id, release: '2.3.9' },
  observed_state: { base_url: `http://127.0.0.1:7181/${resource_id}`, release: '2.3.9' },
  version: 0,
  generation: 1,
  observed_generation: 1,
  drift: { status: 'in_sync', paths: [] },
  last_operation: null,
  created_at: AT,
  created_by: 'user:x',
  updated_at: AT,
  updated_by: 'user:x',
})

/** The catalog's log and internal reads on their own listener: events as the catalog sends them, in one dense order. */
export const catalogLog = async () => {
  const events: CatalogEvent[] = []
  const documents = new Map<string, ResourceDocument>()
  const health = new Map<string, { status: string; revision: number }>()
  const edges = new Map<string, RelationshipEvent>()
  const state = { away: false, requests: [] as string[], links: 0 }

  const tell = (
    event: Record<string, unknown> &
      Partial<CatalogEvent> &
      Pick<CatalogEvent, 'type' | 'agg_type' | 'agg_id' | 'agg_version'>,
  ) => {
    const whole: CatalogEvent = {
      event_id: uuidv7(),
      schema_version: 1,
      occurred_at: AT,
      pub_seq: String(events.length + 1),
      request_id: null,
      resource_id: event.agg_id,
      type_key: null,
      version: event.agg_version,
      previous_version: null,
      generation: 1,
      actor: 'user:x',
      command_id: null,
      operation_id: null,
      evidence_refs: [],
      ...event,
    }
    events.push(whole)
    return whole
  }

  const log = {
    events,
    state,
    documents,
    /** Creates or changes a resource. */
    put: (
      resource_id: string,
      patch: Patch = {},
      changes: RelationshipEvent[] = [],
      more: Partial<CatalogEvent> = {},
    ) => {
      const before = documents.get(resource_id) ?? blank(resource_id)
      const document = { ...before, ...patch, version: before.version + 1 }
      documents.set(resource_id, document)
      return tell({
        type: document.version === 1 ? 'resource.created' : 'resource.updated',
        agg_type: 'resource',
        agg_id: resource_id,
        agg_version: document.version,
        summary: {},
        changed_paths: [],
        relationship_changes: changes,
        document,
        ...more,
      })
    },
    link: ({ type_key, from_id, to_id }: Edge, told_by = from_id) => {
      state.links += 1
      const edge = { relationship_id: `rel_${state.links}`, rev: 1, type_key, from_id, to_id, properties: {} }
      edges.set(edge.relationship_id, { op: 'added', ...edge })
      log.put(told_by, {}, [{ op: 'added', ...edge }])
      return edge
    },
    relink: (edge: Omit<RelationshipEvent, 'op'>, op: 'updated' | 'removed', told_by: string) => {
      const next = { ...edge, rev: edge.rev + 1, properties: { touched: edge.rev } }
      if (op === 'removed') edges.delete(edge.relationship_id)
      else edges.set(edge.relationship_id, { op: 'added', ...next })
      log.put(told_by, {}, [{ op, ...next }])
      return next
    },
    /** A change of so many relationships that they come in parts, before its event. */
    linkMany: (resource_id: string, type_key: string, parts: string[][], direction: 'in' | 'out' = 'out') => {
      const event_id = uuidv7()
      const version = (documents.get(resource_id)?.version ?? 0) + 1
      for (const [index, to_ids] of parts.entries()) {
        const relationship_changes = to_ids.map((peer_id) => {
          state.links += 1
          const [from_id, to_id] = direction === 'in' ? [peer_id, resource_id] : [resource_id, peer_id]
          const edge = { relationship_id: `rel_${state.links}`, rev: 1, type_key, from_id, to_id, properties: {} }
          edges.set(edge.relationship_id, { op: 'added', ...edge })
          return { op: 'added', ...edge }
        })
        const place = { agg_type: 'relationships', agg_id: event_id, agg_version: index + 1 }
        tell({
          type: 'resource.relationships',
          ...place,
          resource_id,
          version,
          of: 'resource.updated',
          relationship_changes,
        })
      }
      const more: Partial<CatalogEvent> & { relationship_parts: number } = {
        event_id,
        relationship_parts: parts.length,
      }
      return log.put(resource_id, {}, [], more)
    },
    sicken: (resource_id: string, status: string) => {
      const revision = (health.get(resource_id)?.revision ?? 0) + 1
      health.set(resource_id, { status, revision })
      return tell({
        type: 'health.changed',
        agg_type: 'health',
        agg_id: resource_id,
        agg_version: revision,
        status,
        previous_status: 'unknown',
        reason: 'observed',
        checks_changed: [],
      })
    },
    loadTypes: (number = 1) =>
      tell({
        type: 'type.pack_loaded',
        agg_type: 'type',
        agg_id: 'fleet',
        agg_version: number,
        resource_id: null,
        keys: {},
      }),
    request: (resource_id: string, desired_state_patch: Record<string, unknown>) => {
      const intent_id = uuidv7()
      return tell({
        type: 'intent.requested',
        agg_type: 'intent',
        agg_id: intent_id,
        agg_version: 1,
        resource_id,
        intent_id,
        kind: 'change',
        op: 'update',
        base_version: documents.get(resource_id)?.version ?? 0,
        base_generation: 1,
        desired_state_patch,
        requester: { kind: 'user', id: '018f0000-0000-7000-8000-00000000000a', name: 'olga', roles: ['operator'] },
        title: `change ${resource_id}`,
        reason: 'asked in the catalog',
      })
    },
  }

  const answer = (url: URL, sent: string): unknown => {
    if (url.pathname === '/internal/v1/resources:versions') {
      const { resource_ids } = JSON.parse(sent) as { resource_ids: string[] }
      const there = resource_ids.flatMap((id) => documents.get(id) ?? [])
      return { items: there.map(({ resource_id, version }) => ({ resource_id, version })) }
    }
    if (url.pathname === '/internal/v1/resources:affected') return { affected: null }
    if (url.pathname === '/internal/v1/health:compare') return { metrics: [] }
    const limit = Number(url.searchParams.get('limit') ?? 500)
    const last_pub_seq = String(events.length)
    if (url.pathname === '/internal/v1/events') {
      const agg_id = url.searchParams.get('agg_id')
      const items = agg_id
        ? events.filter(
            (event) =>
              event.agg_type === url.searchParams.get('agg_type') &&
              event.agg_id === agg_id &&
              event.agg_version > Number(url.searchParams.get('after_version')),
          )
        : events.slice(Number(url.searchParams.get('after'))).filter(({ pub_seq }) => pub_seq !== null)
      return { items: items.slice(0, limit), last_pub_seq }
    }
    if (url.pathname === '/internal/v1/snapshot') {
      const after = url.searchParams.get('after') ?? ''
      const ids = [...documents.keys()].sort().filter((id) => id > after)
      const page = ids.slice(0, Math.min(limit, 3))
      return {
        items: page.map((id): SnapshotItem => {
          const document = documents.get(id) ?? blank(id)
          const own = health.get(id)
          return {
            document: { ...document, health_status: (own?.status ?? 'unknown') as 'healthy' },
            version: document.version,
            health_revision: own?.revision ?? 0,
            relationships_out: [...edges.values()]
              .filter((edge) => edge.from_id === id)
              .map(({ op: _, ...edge }) => edge),
          }
        }),
        next: ids.length > page.length ? page.at(-1) : null,
        watermark: last_pub_seq,
      }
    }
    if (url.pathname === '/internal/v1/resource-types') {
      // Smaller pages than asked for, as an installation may limit them.
      const from = Number(url.searchParams.get('page_token'))
      const items = types.slice(from, from + 2).map((type) => ({ version: 1, ...type }))
      return { items, next_page_token: from + 2 < types.length ? String(from + 2) : null }
    }
    if (url.pathname === '/internal/v1/relationship-types')
      return {
        items: [
          { type_key: 'depends_on', inverse_key: 'required_by' },
          { type_key: 'contained_in', inverse_key: 'contains' },
          { type_key: 'member_of', inverse_key: 'has_member' },
        ],
      }
    return undefined
  }

  const server = createServer(async (req, res) => {
    const url = new URL(req.url ?? '/', 'http://catalog')
    state.requests.push(`${url.pathname}${url.search}`)
    const sent = await text(req)
    const body = state.away ? undefined : answer(url, sent)
    const authorized = /^Bearer .+/.test(req.headers.authorization ?? '')
    res.writeHead(!authorized ? 401 : body === undefined ? 503 : 200, { 'content-type': 'application/json' })
    res.end(JSON.stringify(body ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    ...log,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
export type CatalogLog = Awaited<ReturnType<typeof catalogLog>>
