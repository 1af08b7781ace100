import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { edgeConditions, listEdges } from '../../db/catalog/events.ts'
import { accessSql } from '../../db/catalog/lists.ts'
import { ResourceParams } from '../shared/contracts/catalog/common.ts'
import { RelationshipList, RelationshipQuery } from '../shared/contracts/catalog/relationships.ts'
import type { HealthStatus } from '../shared/contracts/catalog/resources.ts'
import { errorReplies } from '../shared/http.ts'
import type { CatalogDeps } from './deps.ts'
import { relationshipId, timeText } from './documents.ts'
import { asOf, valuesOf } from './lists.service.ts'
import { pageSizeOf } from './pages.ts'
import { findVisible } from './reads.service.ts'
import type { Side } from './sides.ts'

/** Open edges of one resource, seen from it. */
export const relationshipsRoutes: FastifyPluginAsyncTypebox<{ deps: CatalogDeps; side: Side }> = async (
  app,
  { deps, side },
) => {
  app.get(
    side.path('/v1/resources/:resource_id/relationships'),
    {
      schema: {
        summary: 'List the relationships of a resource',
        description:
          'Open edges to peers that the caller may see, by type, direction and peer id. Example: ?direction=out&relationship_types=depends_on',
        tags: side.tags,
        params: ResourceParams,
        querystring: RelationshipQuery,
        response: { 200: RelationshipList, ...errorReplies },
      },
      preHandler: side.guard(),
    },
    async (req) => {
      const { types } = deps.registry
      const reader = side.reader(req)
      const { row } = await findVisible(deps, req.params.resource_id, reader)
      const { page_size, page_token, direction, ...query } = req.query
      const list = { route: 'relationships', resource_id: row.resource_id, direction, ...query }
      const relationship_types = valuesOf(query.relationship_types)
      const peer_types = valuesOf(query.peer_types)
      const where = [
        accessSql(reader.access, types.topologyIds, 'n'),
        ...(direction && direction !== 'both' ? [edgeConditions.direction(direction)] : []),
        ...(relationship_types ? [edgeConditions.types(relationship_types)] : []),
        ...(peer_types ? [edgeConditions.peers(types.idsOf(peer_types))] : []),
      ]
      const size = pageSizeOf(page_size, deps.config)
      const after = deps.pages.read(page_token, list, reader.name)
      const rows = await listEdges(deps.db, row.rid, { where, after, limit: size + 1 })
      const shown = rows.slice(0, size)
      const last = shown.at(-1)
      return {
        items: shown.map((edge) => ({
          relationship: {
            relationship_id: relationshipId(edge.rel_no),
            rev: edge.rev,
            type_key: edge.type_key,
            from_id: edge.out ? row.resource_id : edge.peer_id,
            to_id: edge.out ? edge.peer_id : row.resource_id,
            properties: edge.properties,
            valid_from: timeText(edge.valid_from),
          },
          direction: edge.out ? ('out' as const) : ('in' as const),
          peer: {
            resource_id: edge.peer_id,
            type_key: types.keyOf(edge.peer_type_id),
            name: edge.peer_name,
            lifecycle_status: edge.peer_lifecycle,
            health_status: edge.peer_health as HealthStatus,
          },
        })),
        next_page_token: rows.length > size && last ? deps.pages.write(last.sort_keys, list, reader.name) : null,
        prev_page_token: null,
        as_of: await asOf(deps.db, deps),
      }
    },
  )
}
