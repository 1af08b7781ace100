import { edgeConditions, listEdges } from '../../../db/catalog/events.ts'
import { accessSql } from '../../../db/catalog/resources/lists.ts'
import { ResourceParams } from '../../shared/contracts/catalog/common.ts'
import { RelationshipList, RelationshipQuery } from '../../shared/contracts/catalog/relationships.ts'
import type { HealthStatus } from '../../shared/contracts/catalog/resources.ts'
import { pick } from '../../shared/data/pick.ts'
import { routes } from '../../shared/http/routes.ts'
import type { CatalogDeps } from '../deps.ts'
import { relationshipId, timeText } from '../read/documents.ts'
import { awaitChange } from '../read/freshness.ts'
import { asOf, invalid, openPage, valuesOf } from '../read/lists.ts'
import { pastTime, refuseBefore } from '../read/past.ts'
import type { Side } from '../read/sides.ts'
import { findVisible } from '../read/visible.ts'

/** The open edges of one resource, from its point of view. */
export const relationshipsRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resources/:resource_id/relationships'), {
    operationId: 'listRelationships',
    summary: 'List the relationships of a resource',
    description:
      'Lists open edges (with at, those of that time) to peers that the caller may see, by type, direction and peer id. Example: ?direction=out&relationship_types=depends_on',
    params: ResourceParams,
    querystring: RelationshipQuery,
    response: { 200: RelationshipList },
    preHandler: side.guard(),
    handler: async (req) => {
      const { types } = deps.registry
      const reader = side.reader(req)
      const { row } = await findVisible(deps, req.params.resource_id, reader)
      const { page_size, page_token, direction, min_change, max_lag_ms, ...query } = req.query
      const at = await pastTime(deps, query.at, deps.config.history_d)
      refuseBefore(row, at)
      const list = { route: 'relationships', resource_id: row.resource_id, direction, ...query }
      const relationship_types = valuesOf(query.relationship_types, 'relationship_types')
      const stray = relationship_types?.find((key) => !types.relationship(key))
      if (stray) throw invalid('relationship_types', `does not know ${stray}`)
      const peer_types = valuesOf(query.peer_types, 'peer_types')
      const other = peer_types?.find((key) => !types.newest(key))
      if (other) throw invalid('peer_types', `does not know ${other}`)
      const where = [
        accessSql(reader.access, types.topologyIds, 'n'),
        ...(direction && direction !== 'both' ? [edgeConditions.direction(direction)] : []),
        ...(relationship_types ? [edgeConditions.types(relationship_types)] : []),
        ...(peer_types ? [edgeConditions.peers(types.idsOf(peer_types))] : []),
      ]
      const { place, size, turn } = openPage(deps, req.query, list, reader)
      await awaitChange(deps, { ...(min_change !== undefined && { min_change }) }, reader)
      const rows = await listEdges(deps.db, row.rid, { where, place, limit: size + 1, now: deps.clock.now(), at })
      const { items: shown, ...tokens } = turn(rows, (edge) => edge.sort_keys)
      return {
        items: shown.map((edge) => ({
          relationship: {
            relationship_id: relationshipId(edge.rel_no),
            ...pick(edge, 'rev', 'type_key', 'properties'),
            from_id: edge.out ? row.resource_id : edge.peer_id,
            to_id: edge.out ? edge.peer_id : row.resource_id,
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
        ...tokens,
        as_of: await asOf(deps.db, deps),
      }
    },
  })
})
