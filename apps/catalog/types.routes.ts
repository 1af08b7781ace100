import Type from 'typebox'
import { closed, PageQuery, pageOf } from '../shared/contracts/catalog/common.ts'
import { RelationshipType, ResourceType } from '../shared/contracts/catalog/types.ts'
import { text } from '../shared/contracts/shapes.ts'
import { notFound } from '../shared/errors.ts'
import { rowsFrom } from '../shared/http/pages.ts'
import { isKnown, ReadHeaders, routes, sendUnchanged } from '../shared/http/routes.ts'
import type { CatalogDeps } from './deps.ts'
import type { StoredType } from './packs/registry.ts'
import { asOf, openPage } from './read/lists.ts'
import type { Side } from './read/sides.ts'

const TypesQuery = Type.Object(
  {
    ...PageQuery,
    status: Type.Optional(Type.Enum(['active', 'deprecated'])),
    version: Type.Optional(Type.Integer({ minimum: 1, description: 'Only types whose newest version is this one.' })),
    derived_from: Type.Optional(Type.String({ maxLength: 64, description: 'Only types derived from this type.' })),
    provides: Type.Optional(Type.String({ maxLength: 64 })),
    requires: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
)
const TypeParams = Type.Object({ type_key: text('fleet.host', { minLength: 1, maxLength: 64 }) })
const TypeQuery = Type.Object({ version: Type.Optional(Type.Integer({ minimum: 1 })) }, closed)

/** A type removed from the packs stays readable and is deprecated. */
const documentOf = ({ id, retired, ...type }: StoredType): ResourceType => ({
  ...type,
  status: retired ? 'deprecated' : type.status,
})

/** Resource types, flattened. */
export const typesRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get(side.path('/v1/resource-types'), {
    operationId: 'listResourceTypes',
    summary: 'List resource types',
    description:
      'Lists the newest version of each type, including everything inherited from its bases. Example: ?derived_from=infra.managed',
    querystring: TypesQuery,
    response: { 200: pageOf(ResourceType) },
    preHandler: side.guard(),
    handler: async (req) => {
      const { types } = deps.registry
      const reader = side.reader(req)
      const { page_size, page_token, ...list } = req.query
      const query = { route: 'types', ...list }
      const { place, size, turn } = openPage(deps, req.query, query, reader)
      const found = types.all
        .map(documentOf)
        .filter((type) => list.status === undefined || type.status === list.status)
        .filter((type) => list.version === undefined || type.version === list.version)
        .filter((type) => list.derived_from === undefined || type.ancestors.includes(list.derived_from))
        .filter(
          (type) => list.provides === undefined || type.provides.some((use) => use.capability_key === list.provides),
        )
        .filter(
          (type) => list.requires === undefined || type.requires.some((use) => use.capability_key === list.requires),
        )
      const rows = rowsFrom(found, place, size, ({ type_key }, [key]) =>
        type_key < (key ?? '') ? -1 : type_key === key ? 0 : 1,
      )
      return { ...turn(rows, ({ type_key }) => [type_key]), as_of: await asOf(deps.db, deps) }
    },
  })

  app.get(side.path('/v1/resource-types/:type_key'), {
    operationId: 'getResourceType',
    summary: 'Read a resource type',
    description:
      'Returns schemas, lifecycle, relationships, capabilities and actions of one type. Example: /v1/resource-types/fleet.host',
    params: TypeParams,
    headers: ReadHeaders,
    querystring: TypeQuery,
    'x-reply-headers': ['etag'],
    response: { 200: ResourceType, 304: Type.Null() },
    preHandler: side.guard(),
    handler: async (req, reply) => {
      const { types } = deps.registry
      const newest = types.newest(req.params.type_key)
      if (!newest) throw notFound('type', req.params.type_key)
      const { version } = req.query
      const type = version === undefined ? newest : types.version(newest.id, version)
      if (!type) throw notFound('version', `${newest.type_key} ${version}`)
      // A type that the packs no longer have reads as deprecated under the same checksum.
      const etag = `"${type.checksum}${type.retired ? '-retired' : ''}"`
      reply.header('etag', etag)
      if (isKnown(req, etag)) return sendUnchanged(reply)
      return documentOf(type)
    },
  })
})

/** Relationship types, for projections of other apps. */
export const relationshipTypesRoutes = routes<CatalogDeps, { side: Side }>('catalog', (app, { deps, side }) => {
  app.get('/internal/v1/relationship-types', {
    operationId: 'listRelationshipTypes',
    summary: 'List relationship types',
    description: 'Lists all relationship types with their rules. Not in the specification.',
    response: { 200: Type.Object({ items: Type.Array(RelationshipType) }) },
    preHandler: side.guard(),
    handler: async () => ({ items: deps.registry.types.relationships.map(({ id, ...type }) => type) }),
  })
})
